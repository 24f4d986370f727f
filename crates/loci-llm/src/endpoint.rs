//! Where requests go.

use loci_core::stream::Failure;
use reqwest::Url;

use crate::config::bad_value;
use crate::request::Request;

/// A server's address and the way from it to the API.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    base: Url,
    path: fn(&Request) -> String,
    query: &'static str,
}

impl Endpoint {
    /// Makes the endpoint of the Messages API below `base_url`.
    pub(crate) fn messages(base_url: &str) -> Result<Self, Failure> {
        let base = parse_base(base_url)?;
        Ok(Self { base, path: |_| "/v1/messages".to_owned(), query: "beta=true" })
    }

    /// Returns the address for a request.
    pub(crate) fn url(&self, request: &Request) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{}", self.base.path().trim_end_matches('/'), (self.path)(request)));
        let query = match self.base.query() {
            Some(own) => format!("{own}&{}", self.query),
            None => self.query.to_owned(),
        };
        url.set_query(Some(&query));
        url
    }

    /// Returns the server's address.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }
}

fn parse_base(base_url: &str) -> Result<Url, Failure> {
    let bad = || {
        // User and password may be part of it, so only what comes after them is shown.
        let shown = base_url.rsplit('@').next().unwrap_or_default();
        bad_value("ANTHROPIC_BASE_URL", "an http or https address", shown, "https://api.anthropic.com")
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
            assert_eq!(Endpoint::messages(base).unwrap().url(&request).as_str(), expected);
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
            let failure = Endpoint::messages(base).unwrap_err();
            assert_eq!(
                failure.message,
                format!("`ANTHROPIC_BASE_URL` is not an http or https address: `{shown}`")
            );
        }
    }
}
