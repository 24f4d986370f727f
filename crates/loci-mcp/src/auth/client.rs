//! Who we are at an authorization server: a client that the user has registered, a document that describes us, one that
//! was registered before, or one that is registered now.

use serde_json::{Value, json};

use super::metadata::ServerMetadata;
use super::store::StoredLogin;

/// A client of an authorization server. It has no `Debug`, so that no message can show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    pub(crate) secret_ends: Option<i64>,
    pub(crate) auth_method: AuthMethod,
}

/// How a client says who it is at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthMethod {
    /// By its id alone.
    None,
    /// By a header.
    Basic,
    /// In the form.
    Post,
}

impl AuthMethod {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post].into_iter().find(|method| method.name() == name)
    }
}

/// What is known of us before an authorization server is asked.
pub(crate) struct KnownClients<'a> {
    /// What the user has registered by hand: an id, perhaps with a secret.
    pub(crate) configured: Option<(&'a str, Option<&'a str>)>,
    /// The address of the document that describes us.
    pub(crate) document: Option<&'a str>,
    /// What an earlier login left.
    pub(crate) stored: &'a StoredLogin,
}

/// Who we are, or that we must register.
pub(crate) enum ClientChoice {
    Known(Client),
    Register { endpoint: String },
}

/// Chooses who we are; the error says that nobody can be.
pub(crate) fn choose_client(
    known: &KnownClients<'_>,
    server: &ServerMetadata,
    redirect_uri: &str,
    now_ms: i64,
) -> Result<ClientChoice, String> {
    if let Some((id, secret)) = known.configured {
        return Ok(ClientChoice::Known(Client {
            id: id.to_owned(),
            secret: secret.map(str::to_owned),
            secret_ends: None,
            auth_method: auth_method(server, secret.is_some()),
        }));
    }
    if let Some(document) = known.document.filter(|_| server.takes_metadata_documents) {
        let id = document.to_owned();
        return Ok(ClientChoice::Known(Client {
            id,
            secret: None,
            secret_ends: None,
            auth_method: AuthMethod::None,
        }));
    }
    if let Some(client) = stored_client(known.stored, server, redirect_uri, now_ms) {
        return Ok(ClientChoice::Known(client));
    }
    match &server.registration_endpoint {
        Some(endpoint) => Ok(ClientChoice::Register { endpoint: endpoint.clone() }),
        None => Err(format!(
            "the authorization server `{}` does not let clients register; register one there by hand and give \
             its id: `loci mcp add --client-id …`",
            crate::names::brief(&server.issuer)
        )),
    }
}

/// Returns the client of an earlier login: of this issuer, for this place to come back to, and not over.
fn stored_client(
    stored: &StoredLogin,
    server: &ServerMetadata,
    redirect_uri: &str,
    now_ms: i64,
) -> Option<Client> {
    let is_ours = stored.issuer.as_deref() == Some(&server.issuer)
        && stored.redirect_uri.as_deref() == Some(redirect_uri)
        && stored.client_secret_ends.is_none_or(|end| end > now_ms);
    is_ours.then(|| client_of(stored)).flatten()
}

/// Returns the client that a login was got with.
pub(crate) fn client_of(stored: &StoredLogin) -> Option<Client> {
    let method = stored.token_auth_method.as_deref().and_then(AuthMethod::parse);
    let usual = if stored.client_secret.is_some() { AuthMethod::Basic } else { AuthMethod::None };
    Some(Client {
        id: stored.client_id.clone()?,
        secret: stored.client_secret.clone(),
        secret_ends: stored.client_secret_ends,
        auth_method: method.unwrap_or(usual),
    })
}

/// Returns how a client says who it is where the server does not say which way it wants.
fn auth_method(server: &ServerMetadata, has_secret: bool) -> AuthMethod {
    let takes = |method: AuthMethod| {
        server.token_auth_methods.as_ref().is_none_or(|methods| methods.iter().any(|it| it == method.name()))
    };
    match has_secret {
        false => AuthMethod::None,
        true if takes(AuthMethod::Basic) => AuthMethod::Basic,
        true if takes(AuthMethod::Post) => AuthMethod::Post,
        true => AuthMethod::Basic,
    }
}

/// Returns what a registration says (RFC 7591).
pub(crate) fn registration(server: &ServerMetadata, redirect_uri: &str, scope: Option<&str>) -> Value {
    let takes = |method: AuthMethod| {
        server.token_auth_methods.as_ref().is_none_or(|methods| methods.iter().any(|it| it == method.name()))
    };
    // A program on somebody's machine keeps no secret; where one is wanted, one is taken. Servers made with the official
    // SDK take tokens back only from whoever has it in the form.
    let wanted = [AuthMethod::None, AuthMethod::Post, AuthMethod::Basic].into_iter().find(|it| takes(*it));
    let mut body = json!({
        "client_name": "loci",
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted.unwrap_or(AuthMethod::None).name(),
    });
    if let Some(scope) = scope {
        body["scope"] = json!(scope);
    }
    body
}

/// Reads what a registration was answered with.
pub(crate) fn registered(answer: &Value, server: &ServerMetadata) -> Result<Client, String> {
    let text = |key: &str| answer.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
    let id = text("client_id").ok_or("the registration was answered without a client id")?;
    let secret = text("client_secret");
    let method = text("token_endpoint_auth_method").and_then(AuthMethod::parse);
    let ends = answer.get("client_secret_expires_at").and_then(Value::as_i64).filter(|it| *it > 0);
    Ok(Client {
        id: id.to_owned(),
        secret: secret.map(str::to_owned),
        secret_ends: ends.and_then(|seconds| seconds.checked_mul(1000)),
        auth_method: method.unwrap_or_else(|| auth_method(server, secret.is_some())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ServerMetadata {
        ServerMetadata {
            issuer: "https://as".to_owned(),
            registration_endpoint: Some("https://as/r".to_owned()),
            ..ServerMetadata::default()
        }
    }

    /// Renders a choice: `id method`, or where to register.
    fn check(known: &KnownClients<'_>, server: &ServerMetadata, expected: &str) {
        let shown = match choose_client(known, server, "http://localhost:1/callback", 100) {
            Ok(ClientChoice::Known(client)) => format!("{} {}", client.id, client.auth_method.name()),
            Ok(ClientChoice::Register { endpoint }) => format!("register {endpoint}"),
            Err(_) => "nobody".to_owned(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn configured_client_comes_first_then_a_document_then_a_registration() {
        let stored = StoredLogin {
            issuer: Some("https://as".to_owned()),
            client_id: Some("old".to_owned()),
            redirect_uri: Some("http://localhost:1/callback".to_owned()),
            ..StoredLogin::default()
        };
        let document = Some("https://d/c.json");
        let configured = KnownClients { configured: Some(("mine", Some("s"))), document, stored: &stored };
        let plain = server();
        check(&configured, &plain, "mine client_secret_basic");
        let methods = Some(vec!["client_secret_post".to_owned()]);
        check(
            &configured,
            &ServerMetadata { token_auth_methods: methods, ..server() },
            "mine client_secret_post",
        );
        let known = KnownClients { configured: None, ..configured };
        check(
            &known,
            &ServerMetadata { takes_metadata_documents: true, ..server() },
            "https://d/c.json none",
        );
        check(&known, &plain, "old none");
        for other in [
            StoredLogin { issuer: Some("https://other".to_owned()), ..stored.clone() },
            StoredLogin { redirect_uri: Some("http://localhost:2/callback".to_owned()), ..stored.clone() },
            StoredLogin { client_secret_ends: Some(99), ..stored.clone() },
            StoredLogin::default(),
        ] {
            let known = KnownClients { configured: None, document: None, stored: &other };
            check(&known, &plain, "register https://as/r");
            check(&known, &ServerMetadata { registration_endpoint: None, ..server() }, "nobody");
        }
    }

    #[test]
    fn registration_is_of_a_native_program_that_keeps_no_secret() {
        let body = registration(&server(), "http://localhost:1/callback", Some("a"));
        assert_eq!(
            (&body["application_type"], &body["token_endpoint_auth_method"], &body["scope"]),
            (&json!("native"), &json!("none"), &json!("a"))
        );
        let wants =
            ServerMetadata { token_auth_methods: Some(vec!["client_secret_post".to_owned()]), ..server() };
        assert_eq!(registration(&wants, "x", None)["token_endpoint_auth_method"], "client_secret_post");
        let given = registered(
            &json!({"client_id": "c", "client_secret": "s", "client_secret_expires_at": 7}),
            &server(),
        );
        let given = given.ok().unwrap();
        assert_eq!(
            (given.id.as_str(), given.secret_ends, given.auth_method),
            ("c", Some(7000), AuthMethod::Basic)
        );
        assert!(registered(&json!({}), &server()).is_err());
    }
}
