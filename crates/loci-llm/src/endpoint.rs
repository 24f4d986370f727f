//! Where requests go.

use std::fmt;
use std::sync::Arc;

use loci_core::stream::Failure;
use reqwest::Url;

use crate::request::Request;
use loci_http::bad_value;

/// A server's address and the way from it to the API.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    base: Url,
    path: PathOf,
    query: &'static str,
    /// Another address for some requests.
    host: Option<HostOf>,
}

/// Says where a request goes whose model is elsewhere.
#[derive(Clone)]
struct HostOf(Arc<ElsewhereFn>);

type ElsewhereFn = dyn Fn(&Request) -> Option<String> + Send + Sync;

impl fmt::Debug for HostOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostOf")
    }
}

/// Says where below a server a request goes.
#[derive(Clone)]
pub(crate) struct PathOf(Arc<dyn Fn(&Request) -> String + Send + Sync>);

impl fmt::Debug for PathOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathOf")
    }
}

impl Endpoint {
    /// Makes the endpoint of the Messages API below `base_url`; `setting` is what people call the address.
    pub(crate) fn messages(setting: &str, base_url: &str) -> Result<Self, Failure> {
        let base = parse_base(setting, base_url)?;
        Ok(Self {
            base,
            path: PathOf(Arc::new(|_| "/v1/messages".to_owned())),
            query: "beta=true",
            host: None,
        })
    }

    /// Makes the endpoint at `path` below `base_url`; `setting` is what people call the address.
    pub(crate) fn below(setting: &str, base_url: &str, path: &'static str) -> Result<Self, Failure> {
        Self::with_path(setting, base_url, move |_| path.to_owned())
    }

    /// Makes the endpoint whose path depends on the request.
    pub(crate) fn with_path(
        setting: &str,
        base_url: &str,
        path: impl Fn(&Request) -> String + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        Ok(Self { base: parse_base(setting, base_url)?, path: PathOf(Arc::new(path)), query: "", host: None })
    }

    /// Lets some requests go to another address.
    pub(crate) fn with_host(self, host: impl Fn(&Request) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { host: Some(HostOf(Arc::new(host))), ..self }
    }

    /// Returns the address for a request.
    pub(crate) fn url(&self, request: &Request) -> Url {
        let other = self.host.as_ref().and_then(|host| Url::parse(&(host.0)(request)?).ok());
        let mut url = other.unwrap_or_else(|| self.base.clone());
        url.set_path(&format!("{}{}", url.path().trim_end_matches('/'), (self.path.0)(request)));
        let queries = [self.base.query().unwrap_or_default(), self.query];
        let queries: Vec<&str> = queries.into_iter().filter(|query| !query.is_empty()).collect();
        url.set_query((!queries.is_empty()).then(|| queries.join("&")).as_deref());
        url
    }

    /// Returns the server's address.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }
}

pub(crate) fn parse_base(setting: &str, base_url: &str) -> Result<Url, Failure> {
    let bad = || {
        // User and password may be part of it, so only what comes after them is shown.
        let shown = base_url.rsplit('@').next().unwrap_or_default();
        bad_value(setting, "an http or https address", shown, "https://api.anthropic.com")
    };
    let url = Url::parse(base_url.trim()).map_err(|_| bad())?;
    let is_usable = matches!(url.scheme(), "http" | "https") && url.has_host();
    if is_usable { Ok(url) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_becomes_the_messages_url() {
        let request = Request::new("m", 1, Vec::new());
        for (base, expected) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages?beta=true"),
            ("https://api.anthropic.com/", "https://api.anthropic.com/v1/messages?beta=true"),
            ("http://localhost:8080/llm/", "http://localhost:8080/llm/v1/messages?beta=true"),
            ("https://gw.example.com/a?team=x", "https://gw.example.com/a/v1/messages?team=x&beta=true"),
            ("http://[::1]:9", "http://[::1]:9/v1/messages?beta=true"),
        ] {
            assert_eq!(
                Endpoint::messages("ANTHROPIC_BASE_URL", base).unwrap().url(&request).as_str(),
                expected
            );
        }
    }

    #[test]
    fn bad_addresses_are_named_without_their_password() {
        for (base, shown) in [
            ("api.anthropic.com", "api.anthropic.com"),
            ("ftp://x", "ftp://x"),
            ("", ""),
            ("https://user:hush@:bad", ":bad"),
        ] {
            let failure = Endpoint::messages("ANTHROPIC_BASE_URL", base).unwrap_err();
            assert_eq!(
                failure.message,
                format!("`ANTHROPIC_BASE_URL` is not an http or https address: `{shown}`")
            );
        }
    }
}
