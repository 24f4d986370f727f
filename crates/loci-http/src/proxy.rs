//! Which proxy to go through, and for which hosts not to.
//!
//! One provider talks to one host, so the question is answered once, when the client is built.
//!
//! By hand, because `reqwest` reads the variables of the process itself, and here they come with the `Env`.

use std::fmt;

use loci_core::stream::Failure;
use loci_stdx::Vars;
use reqwest::Url;

use crate::settings::bad_value;

/// Variables that name a proxy; the first that is set wins.
const PROXY_VARS: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"];

/// A proxy and the hosts that are reached without it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxySettings {
    /// The proxy's address; user and password may be part of it.
    pub url: Url,
    /// Hosts that are reached directly.
    pub no_proxy: NoProxy,
}

impl ProxySettings {
    /// Reads the proxy variables; a value that is no address is a failure, never a silent direct connection.
    pub fn from_vars(vars: &Vars) -> Result<Option<Self>, Failure> {
        let found = PROXY_VARS.iter().find_map(|name| Some((*name, vars.non_empty(name)?.trim())));
        let Some((name, value)) = found.filter(|(_, value)| !value.is_empty()) else { return Ok(None) };
        let url = parse_proxy(value).ok_or_else(|| {
            // The value may hold a password, so only the part after it is shown.
            let shown = value.rsplit('@').next().unwrap_or_default();
            bad_value(name, "the address of a proxy", shown, "http://proxy.example.com:8080")
        })?;
        let no_proxy = vars.non_empty("no_proxy").or_else(|| vars.non_empty("NO_PROXY"));
        Ok(Some(Self { url, no_proxy: NoProxy::parse(no_proxy.unwrap_or_default()) }))
    }
}

impl fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxySettings({}, {:?})", url_without_credentials(&self.url), self.no_proxy)
    }
}

/// Returns an address without its user and password.
pub(crate) fn url_without_credentials(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

fn parse_proxy(value: &str) -> Option<Url> {
    let with_scheme = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
    let url = Url::parse(&with_scheme).ok()?;
    let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
    (is_known && url.host_str().is_some_and(|host| !host.is_empty())).then_some(url)
}

/// The hosts of `NO_PROXY`: a list separated by commas or spaces.
///
/// `*` is every host; `example.com` and `.example.com` are that domain and all below it; an entry may end in
/// a port. As others do, addresses are compared as text: ranges such as `10.0.0.0/8` match nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy {
    entries: Vec<String>,
}

impl NoProxy {
    /// Splits a list.
    pub fn parse(list: &str) -> Self {
        let entries = list.split([',', ' ', '\t', '\n']).filter(|entry| !entry.is_empty());
        Self { entries: entries.map(str::to_ascii_lowercase).collect() }
    }

    /// Tells whether `url` is reached without the proxy.
    pub fn covers(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
        let port = url.port_or_known_default();
        self.entries.iter().any(|entry| entry == "*" || entry_covers(entry, &host, port))
    }
}

fn entry_covers(entry: &str, host: &str, port: Option<u16>) -> bool {
    let (name, wanted_port) = split_port(entry);
    if wanted_port.is_some() && wanted_port != port {
        return false;
    }
    let name = name.trim_start_matches("*.").trim_start_matches('.').trim_matches(['[', ']']);
    host == name || host.strip_suffix(name).is_some_and(|rest| !name.is_empty() && rest.ends_with('.'))
}

/// Splits `host:8080` and `[::1]:8080`; a bare IPv6 address has no port.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_no_proxy(list: &str, url: &str, expected: bool) {
        assert_eq!(NoProxy::parse(list).covers(&Url::parse(url).unwrap()), expected, "{list:?} {url}");
    }

    #[test]
    fn no_proxy_lists_exempt_hosts() {
        check_no_proxy("", "http://localhost/", false);
        check_no_proxy("*", "https://api.example.com/", true);
        check_no_proxy("localhost,127.0.0.1", "http://127.0.0.1:8080/", true);
        check_no_proxy("localhost 127.0.0.1", "http://127.0.0.1:8080/", true);
        check_no_proxy("example.com", "https://example.com/", true);
        check_no_proxy("example.com", "https://api.example.com/", true);
        check_no_proxy(".example.com", "https://api.example.com/", true);
        check_no_proxy(".example.com", "https://example.com/", true);
        check_no_proxy("*.example.com", "https://api.example.com/", true);
        check_no_proxy("EXAMPLE.com", "https://api.Example.COM/", true);
        check_no_proxy("example.com", "https://notexample.com/", false);
        check_no_proxy("example.com:443", "https://example.com/", true);
        check_no_proxy("example.com:8443", "https://example.com/", false);
        check_no_proxy("[::1]:80", "http://[::1]/", true);
        check_no_proxy("::1", "http://[::1]:3000/", true);
        check_no_proxy(".", "https://example.com/", false);
    }

    fn check_proxy(vars: &[(&str, &str)], expected: &str) {
        let vars: Vars = vars.iter().copied().collect();
        let found = match ProxySettings::from_vars(&vars) {
            Ok(Some(proxy)) => format!("{:?}", proxy.url.as_str()),
            Ok(None) => "none".to_owned(),
            Err(failure) => failure.message,
        };
        assert_eq!(found, expected, "{vars:?}");
    }

    #[test]
    fn the_first_variable_wins() {
        check_proxy(&[], "none");
        check_proxy(&[("https_proxy", ""), ("HTTP_PROXY", "p:3128")], r#""http://p:3128/""#);
        check_proxy(&[("HTTP_PROXY", "http://b"), ("https_proxy", "http://a")], r#""http://a/""#);
        check_proxy(&[("HTTPS_PROXY", "http://b"), ("http_proxy", "http://a")], r#""http://b/""#);
        check_proxy(&[("HTTPS_PROXY", "http://u:p@b:1")], r#""http://u:p@b:1/""#);
        check_proxy(&[("HTTPS_PROXY", "ftp://x")], "`HTTPS_PROXY` is not the address of a proxy: `ftp://x`");
        check_proxy(&[("HTTPS_PROXY", "u:secret@:::")], "`HTTPS_PROXY` is not the address of a proxy: `:::`");
    }

    #[test]
    fn the_password_is_not_shown() {
        let vars: Vars = [("HTTPS_PROXY", "http://user:hush@proxy:8080")].into_iter().collect();
        let shown = format!("{:?}", ProxySettings::from_vars(&vars).unwrap().unwrap());
        assert!(shown.contains("http://proxy:8080") && !shown.contains("hush"), "{shown}");
    }
}
