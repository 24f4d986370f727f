//! What is kept of a login, and who keeps it.
//!
//! A login belongs to a server's name and its address as it is written: another address under the same name has none. It
//! names the issuer that gave it, and is of no use at another.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Whose login it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginKey {
    /// The server's name.
    pub server: String,
    /// Its address, as it is written.
    pub url: String,
}

impl LoginKey {
    /// Returns the name that a login is kept under.
    pub fn id(&self) -> String {
        let digest = Sha256::digest(self.url.as_bytes());
        format!("{}|{}", self.server, loci_core::hex::to_hex(&digest[..8]))
    }
}

/// What is held while a token is renewed; dropping it lets others.
pub type RenewalLock = Box<dyn Send>;

/// Who keeps logins. All of it may take a while, and is called where that does no harm.
pub trait LoginStore: Send + Sync {
    /// Returns what is kept for a server; an empty login when there is nothing.
    fn load(&self, key: &LoginKey) -> Result<StoredLogin, String>;

    /// Replaces what is kept for a server; an empty login takes it away.
    fn save(&self, key: &LoginKey, login: &StoredLogin) -> Result<(), String>;

    /// Waits until no other process renews the login of a server.
    fn lock(&self, key: &LoginKey) -> Result<RenewalLock, String>;

    /// Returns the secret of the client that the user has registered by hand.
    fn client_secret(&self, key: &LoginKey) -> Result<Option<String>, String>;
}

/// What is kept of a login. It has no `Debug`, so that no message can show it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StoredLogin {
    /// Who gave it.
    pub issuer: Option<String>,
    /// Who we are there.
    pub client_id: Option<String>,
    /// The secret of that client, where it was given one when it registered.
    pub client_secret: Option<String>,
    /// When that secret ends, in milliseconds since 1970.
    pub client_secret_ends: Option<i64>,
    /// How that client says who it is.
    pub token_auth_method: Option<String>,
    /// Where a login's answer comes to.
    pub redirect_uri: Option<String>,
    /// What requests carry.
    pub access_token: Option<String>,
    /// When it ends, in milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// What a new one is got with.
    pub refresh_token: Option<String>,
    /// What it allows.
    pub scope: Option<String>,
    /// What it was asked to allow.
    pub requested_scope: Option<String>,
    /// What a call was refused for.
    pub required_scope: Option<String>,
    /// The resource, as it is published.
    pub resource: Option<String>,
    /// Where tokens are renewed.
    pub token_endpoint: Option<String>,
    /// Where tokens are taken back.
    pub revocation_endpoint: Option<String>,
}

impl StoredLogin {
    /// Reads what is kept; empty texts are nothing.
    pub fn from_value(value: &Value) -> Self {
        let text =
            |key: &str| value.get(key).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned);
        // 0 stands for a token that is none, and nothing says when it ends.
        let time = |key: &str| value.get(key).and_then(Value::as_i64).filter(|it| *it > 0);
        Self {
            issuer: text("issuer"),
            client_id: text("clientId"),
            client_secret: text("clientSecret"),
            client_secret_ends: time("clientSecretExpiresAt"),
            token_auth_method: text("tokenEndpointAuthMethod"),
            redirect_uri: text("redirectUri"),
            access_token: text("accessToken"),
            expires_at: time("expiresAt"),
            refresh_token: text("refreshToken"),
            scope: text("scope"),
            requested_scope: text("requestedScope"),
            required_scope: text("requiredScope"),
            resource: text("resource"),
            token_endpoint: text("tokenEndpoint"),
            revocation_endpoint: text("revocationEndpoint"),
        }
    }

    /// Writes it over what is kept, with whose it is; what we do not know stays.
    pub fn write_into(&self, kept: &mut Map<String, Value>, key: &LoginKey) {
        let text = |value: &Option<String>| value.clone().map(Value::from);
        for (name, value) in [
            ("serverName", Some(json!(key.server))),
            ("serverUrl", Some(json!(key.url))),
            ("issuer", text(&self.issuer)),
            ("clientId", text(&self.client_id)),
            ("clientSecret", text(&self.client_secret)),
            ("clientSecretExpiresAt", self.client_secret_ends.map(Value::from)),
            ("tokenEndpointAuthMethod", text(&self.token_auth_method)),
            ("redirectUri", text(&self.redirect_uri)),
            ("accessToken", text(&self.access_token)),
            ("expiresAt", self.expires_at.map(Value::from)),
            ("refreshToken", text(&self.refresh_token)),
            ("scope", text(&self.scope)),
            ("requestedScope", text(&self.requested_scope)),
            ("requiredScope", text(&self.required_scope)),
            ("resource", text(&self.resource)),
            ("tokenEndpoint", text(&self.token_endpoint)),
            ("revocationEndpoint", text(&self.revocation_endpoint)),
        ] {
            match value {
                Some(value) => drop(kept.insert(name.to_owned(), value)),
                None => drop(kept.shift_remove(name)),
            }
        }
    }

    /// Tells whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns it without what requests carry: who we are is still known.
    pub(crate) fn without_tokens(&self) -> Self {
        Self { access_token: None, expires_at: None, refresh_token: None, scope: None, ..self.clone() }
    }

    /// Returns the token that can be used for a while from now.
    pub(crate) fn usable_token(&self, now_ms: i64, leeway_ms: i64) -> Option<&str> {
        let is_over = self.expires_at.is_some_and(|end| end <= now_ms + leeway_ms);
        self.access_token.as_deref().filter(|_| !is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_survive_being_written_and_read() {
        let key = LoginKey { server: "s".to_owned(), url: "https://h/mcp".to_owned() };
        let login = StoredLogin {
            issuer: Some("i".to_owned()),
            access_token: Some("t".to_owned()),
            expires_at: Some(5),
            ..StoredLogin::default()
        };
        let mut kept =
            Map::from_iter([("theirs".to_owned(), json!(1)), ("refreshToken".to_owned(), json!("old"))]);
        login.write_into(&mut kept, &key);
        let value = Value::Object(kept);
        assert!(StoredLogin::from_value(&value) == login && value["theirs"] == 1);
        assert_eq!((&value["serverName"], &value["serverUrl"]), (&json!("s"), &json!("https://h/mcp")));
        assert!(value.get("refreshToken").is_none());
        let other = json!({"accessToken": "", "expiresAt": 0, "clientId": "c", "unknown": 1});
        let read = StoredLogin::from_value(&other);
        assert!(read.access_token.is_none() && read.expires_at.is_none() && read.client_id.is_some());
        assert!(!read.is_empty() && StoredLogin::from_value(&json!(7)).is_empty());
    }

    #[test]
    fn token_is_usable_until_shortly_before_its_end() {
        let token = |expires_at| StoredLogin {
            access_token: Some("t".to_owned()),
            expires_at,
            ..StoredLogin::default()
        };
        for (end, expected) in [(None, true), (Some(200), true), (Some(150), false), (Some(50), false)] {
            assert_eq!(token(end).usable_token(100, 50).is_some(), expected, "{end:?}");
        }
    }

    #[test]
    fn another_address_is_another_login() {
        let id = |url: &str| LoginKey { server: "s".to_owned(), url: url.to_owned() }.id();
        assert!(id("https://a") != id("https://b") && id("https://a").starts_with("s|"));
        assert_eq!(id("https://a").len(), "s|".len() + 16);
    }
}
