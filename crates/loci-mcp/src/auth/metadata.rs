//! What resources and authorization servers say of themselves (RFC 9728, RFC 8414, OpenID discovery): where that is
//! found, what of it is read, and when it is not believed.
//!
//! A description is believed when it is of what was asked about: a resource that covers the server's address, an issuer
//! whose name is the one that was asked for. Endpoints are spoken to under TLS; in the clear on this machine alone, and
//! only for a server that is on this machine itself, so that no stranger can send us to a neighbour here.

use reqwest::Url;
use serde_json::Value;

use crate::names::brief;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// What a resource says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourceMetadata {
    /// Its name, exactly as it is published.
    pub(crate) resource: String,
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) scopes: Option<String>,
}

/// What an authorization server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerMetadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) registration_endpoint: Option<String>,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) scopes: Option<String>,
    /// How a client may say who it is at the token endpoint; none when that is not said.
    pub(crate) token_auth_methods: Option<Vec<String>>,
    /// Whether the address of a document may be a client's id.
    pub(crate) takes_metadata_documents: bool,
    /// Whether its answers name it.
    pub(crate) names_itself: bool,
}

/// Returns where a resource may be described: what the server said, then by its path, then at its root.
pub(crate) fn resource_metadata_urls(server: &Url, said: Option<&str>) -> Vec<Url> {
    let mut urls: Vec<Url> = said.and_then(|said| server.join(said).ok()).into_iter().collect();
    if !has_root_path(server) {
        urls.push(at(server, &format!("{RESOURCE}{}", server.path().trim_end_matches('/'))));
    }
    urls.push(at(server, RESOURCE));
    urls.dedup();
    urls.retain(|url| is_allowed(server, url));
    urls
}

/// Returns where an authorization server may be described.
pub(crate) fn server_metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let paths = match path.is_empty() {
        true => vec![SERVER.to_owned(), OPENID.to_owned()],
        false => vec![format!("{SERVER}{path}"), format!("{OPENID}{path}"), format!("{path}{OPENID}")],
    };
    paths.iter().map(|path| at(issuer, path)).collect()
}

fn at(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn has_root_path(url: &Url) -> bool {
    url.path().trim_end_matches('/').is_empty()
}

/// Tells whether an address may be spoken to for a server.
pub(crate) fn is_allowed(server: &Url, url: &Url) -> bool {
    let has_no_user = url.username().is_empty() && url.password().is_none();
    has_no_user
        && match url.scheme() {
            "https" => true,
            "http" => is_loopback(url) && is_loopback(server),
            _ => false,
        }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

impl ResourceMetadata {
    /// Reads a description of the resource that a server is part of.
    pub(crate) fn parse(value: &Value, server: &Url) -> Result<Self, String> {
        let resource = text(value, "resource").ok_or("it names no resource")?;
        let url =
            Url::parse(&resource).map_err(|_| format!("its resource is no address: {}", brief(&resource)))?;
        if !covers(&url, server) {
            return Err(format!("it describes another resource, `{}`", brief(&resource)));
        }
        Ok(Self {
            authorization_servers: texts(value, "authorization_servers").unwrap_or_default(),
            scopes: texts(value, "scopes_supported").map(|it| it.join(" ")).filter(|it| !it.is_empty()),
            resource,
        })
    }
}

/// Tells whether a resource covers an address: the same origin, and a path that begins so.
fn covers(resource: &Url, server: &Url) -> bool {
    let path = resource.path().trim_end_matches('/');
    let is_below =
        server.path().strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && is_below
}

impl ServerMetadata {
    /// Reads a description of the authorization server that is called so; without a name, of whichever it is.
    pub(crate) fn parse(value: &Value, issuer: Option<&str>, server: &Url) -> Result<Self, String> {
        let found = text(value, "issuer").ok_or("it names no issuer")?;
        if issuer.is_some_and(|issuer| issuer.trim_end_matches('/') != found.trim_end_matches('/')) {
            return Err(format!("it is of another issuer, `{}`", brief(&found)));
        }
        let methods = texts(value, "code_challenge_methods_supported");
        if methods.is_some_and(|methods| !methods.iter().any(|it| it == "S256")) {
            return Err("it does not know the proof S256, without which a login is not safe".to_owned());
        }
        let endpoint = |key: &'static str| match text(value, key) {
            Some(url) if Url::parse(&url).is_ok_and(|url| is_allowed(server, &url)) => Ok(Some(url)),
            Some(url) => Err(format!("its {key} is not safe to use: {}", brief(&url))),
            None => Ok(None),
        };
        let needed = |key: &'static str| endpoint(key)?.ok_or_else(|| format!("it has no {key}"));
        let is_set = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(false);
        Ok(Self {
            authorization_endpoint: needed("authorization_endpoint")?,
            token_endpoint: needed("token_endpoint")?,
            registration_endpoint: endpoint("registration_endpoint")?,
            revocation_endpoint: endpoint("revocation_endpoint")?,
            scopes: texts(value, "scopes_supported").map(|it| it.join(" ")).filter(|it| !it.is_empty()),
            token_auth_methods: texts(value, "token_endpoint_auth_methods_supported"),
            takes_metadata_documents: is_set("client_id_metadata_document_supported"),
            names_itself: is_set("authorization_response_iss_parameter_supported"),
            issuer: found,
        })
    }

    /// Returns what is assumed of a server of the protocol's first revision with logins, which describes nothing: it is
    /// its own authorization server, at paths that are agreed on.
    pub(crate) fn assumed(server: &Url) -> Self {
        let place = |path: &str| String::from(at(server, path));
        Self {
            issuer: server.origin().ascii_serialization(),
            authorization_endpoint: place("/authorize"),
            token_endpoint: place("/token"),
            registration_endpoint: Some(place("/register")),
            ..Self::default()
        }
    }

    pub(crate) fn has_scope(&self, scope: &str) -> bool {
        self.scopes.as_deref().unwrap_or_default().split_whitespace().any(|it| it == scope)
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn texts(value: &Value, key: &str) -> Option<Vec<String>> {
    let list = value.get(key)?.as_array()?;
    Some(list.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn descriptions_are_looked_for_by_path_first() {
        let shown = |urls: Vec<Url>| urls.iter().map(Url::to_string).collect::<Vec<_>>();
        let root = "https://h/.well-known/oauth-protected-resource";
        for (server, said, expected) in [
            ("https://h/mcp", None, vec![format!("{root}/mcp"), root.to_owned()]),
            ("https://h/a/b/?q=1", None, vec![format!("{root}/a/b"), root.to_owned()]),
            ("https://h/", None, vec![root.to_owned()]),
            (
                "https://h/mcp",
                Some("/x"),
                vec!["https://h/x".to_owned(), format!("{root}/mcp"), root.to_owned()],
            ),
            ("https://h", Some("http://127.0.0.1:1/x"), vec![root.to_owned()]),
            ("https://h", Some("file:///etc/passwd"), vec![root.to_owned()]),
        ] {
            assert_eq!(shown(resource_metadata_urls(&url(server), said)), expected, "{server} {said:?}");
        }
        assert_eq!(
            shown(server_metadata_urls(&url("https://as/t1/"))),
            [
                "https://as/.well-known/oauth-authorization-server/t1",
                "https://as/.well-known/openid-configuration/t1",
                "https://as/t1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(server_metadata_urls(&url("https://as")).len(), 2);
    }

    #[test]
    fn resource_must_cover_the_server_and_keeps_its_spelling() {
        for (resource, is_good) in [
            ("https://h/mcp", true),
            ("https://h/mcp/", true),
            ("https://h", true),
            ("https://h:443/", true),
            ("https://h/mc", false),
            ("https://h/mcp/x", false),
            ("https://other/mcp", false),
            ("http://h/mcp", false),
            ("nonsense", false),
        ] {
            let read = ResourceMetadata::parse(&json!({"resource": resource}), &url("https://h/mcp"));
            assert_eq!(read.is_ok(), is_good, "{resource}");
            assert!(read.is_err() || read.unwrap().resource == resource);
        }
    }

    #[test]
    fn server_must_be_the_issuer_that_was_asked_for_and_safe() {
        let good = json!({"issuer": "https://as", "authorization_endpoint": "https://as/a", "token_endpoint": "https://as/t"});
        let check = |change: Value, is_good: bool| {
            let mut value = good.clone();
            for (key, it) in change.as_object().unwrap() {
                value[key] = it.clone();
            }
            let read = ServerMetadata::parse(&value, Some("https://as"), &url("https://h/mcp"));
            assert_eq!(read.is_ok(), is_good, "{change}: {read:?}");
        };
        check(json!({}), true);
        check(json!({"issuer": "https://as/"}), true);
        check(json!({"issuer": "https://evil"}), false);
        check(json!({"issuer": "https://as/t2"}), false);
        check(json!({"issuer": null}), false);
        check(json!({"token_endpoint": null}), false);
        check(json!({"token_endpoint": "http://as/t"}), false);
        check(json!({"token_endpoint": "http://127.0.0.1:9/t"}), false);
        check(json!({"authorization_endpoint": "javascript:alert(1)"}), false);
        check(json!({"authorization_endpoint": "https://u:p@as/a"}), false);
        check(json!({"code_challenge_methods_supported": ["plain"]}), false);
        check(json!({"code_challenge_methods_supported": ["plain", "S256"]}), true);
    }
}
