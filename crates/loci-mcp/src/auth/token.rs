//! What is sent to a token endpoint, and what comes back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde_json::Value;

use super::client::{AuthMethod, Client};
use super::store::StoredLogin;
use crate::names::brief;

/// A form and the header that goes with it. It has no `Debug`, so that no message can show it.
pub(crate) struct TokenForm {
    pub(crate) body: String,
    pub(crate) authorization: Option<String>,
}

/// Returns the form that trades a code.
pub(crate) fn code_form(
    client: &Client,
    (code, verifier): (&str, &str),
    redirect_uri: &str,
    resource: Option<&str>,
) -> TokenForm {
    let mut pairs = vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("code_verifier", verifier),
        ("redirect_uri", redirect_uri),
    ];
    pairs.extend(resource.map(|resource| ("resource", resource)));
    form(client, pairs)
}

/// Returns the form that renews a token.
pub(crate) fn refresh_form(client: &Client, refresh_token: &str, resource: Option<&str>) -> TokenForm {
    let mut pairs = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
    pairs.extend(resource.map(|resource| ("resource", resource)));
    form(client, pairs)
}

/// Returns the form that takes a token back (RFC 7009).
pub(crate) fn revocation_form(client: &Client, (token, kind): (&str, &str)) -> TokenForm {
    form(client, vec![("token", token), ("token_type_hint", kind)])
}

fn form<'a>(client: &'a Client, mut pairs: Vec<(&'a str, &'a str)>) -> TokenForm {
    let mut authorization = None;
    match (&client.secret, client.auth_method) {
        (Some(secret), AuthMethod::Basic) => {
            // Some servers look who asks up before they look at the header.
            pairs.push(("client_id", &client.id));
            let both = format!("{}:{}", encoded(&client.id), encoded(secret));
            authorization = Some(format!("Basic {}", STANDARD.encode(both)));
        }
        (Some(secret), AuthMethod::Post) => {
            pairs.extend([("client_id", client.id.as_str()), ("client_secret", secret.as_str())]);
        }
        (_, _) => pairs.push(("client_id", &client.id)),
    }
    TokenForm { body: form_text(&pairs), authorization }
}

/// Writes pairs as forms have them.
fn form_text(pairs: &[(&str, &str)]) -> String {
    // The one writer of forms that is there belongs to addresses.
    let Ok(mut url) = Url::parse("http://form/") else { return String::new() };
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

fn encoded(text: &str) -> String {
    form_text(&[("", text)]).trim_start_matches('=').to_owned()
}

/// What a token endpoint gave. It has no `Debug`, so that no message can show it.
pub(crate) struct Tokens {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<i64>,
    scope: Option<String>,
}

impl Tokens {
    /// Reads an answer; the error repeats nothing of it.
    pub(crate) fn parse(answer: &Value) -> Result<Self, String> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
        if let Some(kind) = text("token_type").filter(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(format!("the token is of a kind that is not known here: {}", brief(kind)));
        }
        let seconds = answer.get("expires_in");
        Ok(Self {
            access_token: text("access_token").ok_or("the answer has no token")?.to_owned(),
            refresh_token: text("refresh_token").map(str::to_owned),
            expires_in: seconds.and_then(|it| it.as_i64().or_else(|| it.as_str()?.trim().parse().ok())),
            scope: text("scope").map(str::to_owned),
        })
    }

    /// Puts them into a login. What renews them stays when there is no other.
    pub(crate) fn into_login(self, mut login: StoredLogin, now_ms: i64) -> StoredLogin {
        login.access_token = Some(self.access_token);
        login.expires_at = self.expires_in.map(|seconds| now_ms.saturating_add(seconds.saturating_mul(1000)));
        login.refresh_token = self.refresh_token.or(login.refresh_token);
        login.scope = self.scope.or(login.scope);
        login
    }
}

/// Why a token endpoint gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// What was sent is of no use any more; another login is needed. `is_client` when it is who we are.
    Refused { text: String, is_client: bool },
    /// It may be better later.
    Unavailable(String),
}

impl TokenError {
    /// Reads an answer that refuses.
    pub(crate) fn parse(status: u16, answer: &Value) -> Self {
        let error = answer.get("error").and_then(Value::as_str).unwrap_or_default();
        let why = answer.get("error_description").and_then(Value::as_str).unwrap_or_default();
        let text = match error {
            "" => format!("the authorization server answered with HTTP {status}"),
            error => format!("the authorization server refused: {} {}", brief(error), brief(why)),
        };
        let text = text.trim_end().to_owned();
        match error {
            "invalid_grant" | "invalid_scope" | "invalid_target" => Self::Refused { text, is_client: false },
            "invalid_client" | "unauthorized_client" => Self::Refused { text, is_client: true },
            _ if status >= 500 || matches!(status, 408 | 429) => Self::Unavailable(text),
            "temporarily_unavailable" | "server_error" => Self::Unavailable(text),
            _ => Self::Refused { text, is_client: false },
        }
    }
}

impl std::fmt::Display for TokenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused { text, .. } | Self::Unavailable(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(secret: Option<&str>, auth_method: AuthMethod) -> Client {
        Client { id: "c:1".to_owned(), secret: secret.map(str::to_owned), secret_ends: None, auth_method }
    }

    #[test]
    fn forms_say_who_asks_in_the_way_that_is_wanted() {
        for (secret, method, body, authorization) in [
            (None, AuthMethod::None, "&client_id=c%3A1", None),
            (Some("s s"), AuthMethod::Post, "&client_id=c%3A1&client_secret=s+s", None),
            (Some("s s"), AuthMethod::Basic, "&client_id=c%3A1", Some("Basic YyUzQTE6cytz")),
        ] {
            let form = refresh_form(&client(secret, method), "r", Some("https://h/mcp"));
            let start = "grant_type=refresh_token&refresh_token=r&resource=https%3A%2F%2Fh%2Fmcp";
            assert_eq!((form.body, form.authorization.as_deref()), (format!("{start}{body}"), authorization));
        }
    }

    #[test]
    fn tokens_are_taken_and_what_renews_them_stays() {
        let before = StoredLogin {
            refresh_token: Some("r1".to_owned()),
            scope: Some("a".to_owned()),
            ..StoredLogin::default()
        };
        let tokens = Tokens::parse(&json!({"access_token": "t", "token_type": "Bearer", "expires_in": "60"}));
        let login = tokens.ok().unwrap().into_login(before.clone(), 1000);
        assert_eq!((login.access_token.as_deref(), login.expires_at), (Some("t"), Some(61_000)));
        assert_eq!((login.refresh_token.as_deref(), login.scope.as_deref()), (Some("r1"), Some("a")));
        let tokens =
            Tokens::parse(&json!({"access_token": "t", "refresh_token": "r2", "scope": "b"})).ok().unwrap();
        let login = tokens.into_login(before, 1000);
        assert_eq!((login.refresh_token.as_deref(), login.expires_at), (Some("r2"), None));
        for bad in [json!({}), json!({"access_token": ""}), json!({"access_token": "t", "token_type": "mac"})]
        {
            assert!(Tokens::parse(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn refusals_that_last_are_told_from_those_that_pass() {
        for (status, error, expected) in [
            (400, "invalid_grant", "refused"),
            (401, "invalid_client", "client"),
            (400, "temporarily_unavailable", "later"),
            (503, "", "later"),
            (429, "", "later"),
            (404, "", "refused"),
        ] {
            let found = match TokenError::parse(status, &json!({"error": error})) {
                TokenError::Refused { is_client: true, .. } => "client",
                TokenError::Refused { .. } => "refused",
                TokenError::Unavailable(_) => "later",
            };
            assert_eq!(found, expected, "{status} {error}");
        }
    }
}
