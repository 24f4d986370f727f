//! A page of the web, fetched with the same proxy and certificates as everything else, and with more caution.
//!
//! 1. The address that is connected to is the one that was checked: names are looked up here, and what leads to this
//!    machine or a private network is left out before anything is connected (S-33). A name that leads elsewhere the next
//!    time changes nothing. Where a proxy looks names up, it decides.
//! 2. Redirects are followed on the same host and port only, never from `https` to `http`; any other is reported.
//! 3. Nothing of ours is sent: no credentials, no cookies, no certificate of the user's.
//! 4. What is read is bounded in size and time.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use loci_core::permission::{canonical_host, is_private_address, is_private_host, socket_host};
use loci_core::web::{Page, PageAnswer, PageRequest, Redirect};
use loci_stdx::Env;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION, USER_AGENT};
use reqwest::{Client, Response, Url};

use crate::connection_failure::root_words;
use crate::settings::NetworkSettings;
use crate::transport::{Transport, not_built};

/// How long a page may take in all.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The largest page that is read.
const MAX_BYTES: usize = 10 << 20;
/// How often a page may send us on.
const MAX_REDIRECTS: usize = 10;
/// What we like best comes first: it need not be converted.
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.5";

/// Fetches a page; the error says why that could not be done.
pub async fn fetch_page(env: &Env, request: PageRequest) -> Result<PageAnswer, String> {
    let url = judged_url(&request)?;
    match tokio::time::timeout(TIME_LIMIT, fetch(env.clone(), url, request.may_be_private)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("`{}` took longer than {} s", request.url, TIME_LIMIT.as_secs())),
    }
}

/// Builds a client for a web socket at an address that leads to the host that was judged; it may read files.
pub fn socket_client(env: &Env, url: &str, host: &str, may_be_private: bool) -> Result<Client, String> {
    let bad = |why: String| format!("`{url}` cannot be watched: {why}");
    let parsed = Url::parse(url).map_err(|error| bad(error.to_string()))?;
    if socket_host(parsed.as_str()).as_deref() != Some(host) {
        return Err(bad(format!("it leads elsewhere than to `{host}`")));
    }
    page_client(env, &parsed, may_be_private)
}

/// Reads the address. It must lead to the host that was judged, by both ways to read it; `http` becomes `https`, but for
/// hosts that are private by their spelling and may be: a server on the own machine rarely has a certificate. A public name
/// is upgraded whatever rule names it.
fn judged_url(request: &PageRequest) -> Result<Url, String> {
    let bad = |why: String| format!("`{}` cannot be fetched: {why}", request.url);
    let mut url = Url::parse(&request.url).map_err(|error| bad(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(format!("`{}:` is not an address of the web", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("an address with a name or a password in it is not fetched".to_owned()));
    }
    if canonical_host(url.as_str()).as_ref() != Some(&request.host) {
        return Err(bad(format!("it leads elsewhere than to `{}`", request.host)));
    }
    let is_own = request.may_be_private && is_private_host(&request.host);
    if url.scheme() == "http" && !is_own && url.set_scheme("https").is_err() {
        return Err(bad("it cannot be asked for over https".to_owned()));
    }
    Ok(url)
}

async fn fetch(env: Env, mut url: Url, may_be_private: bool) -> Result<PageAnswer, String> {
    let server = url.clone();
    // With TLS certificates are read, which is not for an async thread.
    let client = tokio::task::spawn_blocking(move || page_client(&env, &server, may_be_private));
    let client = client.await.map_err(|error| error.to_string())??;
    for _ in 0..=MAX_REDIRECTS {
        let request = client.get(url.clone()).header(ACCEPT, ACCEPTED);
        let request = request.header(USER_AGENT, concat!("loci/", env!("CARGO_PKG_VERSION")));
        let response = request
            .send()
            .await
            .map_err(|error| format!("`{url}` did not answer: {}", root_words(&error)))?;
        match redirect_target(&response, &url)? {
            None => return read(response, url).await.map(PageAnswer::Page),
            Some(to) if is_followed(&url, &to) => url = to,
            Some(to) => {
                let status = response.status().as_u16();
                return Ok(PageAnswer::Elsewhere(Redirect { from: url.into(), to: to.into(), status }));
            }
        }
    }
    Err(format!("`{url}` sends its readers in circles: {MAX_REDIRECTS} redirects were followed"))
}

/// Builds a client for one host: one that cannot be led to a private network, unless that was allowed.
fn page_client(env: &Env, server: &Url, may_be_private: bool) -> Result<Client, String> {
    let failed = |failure: loci_core::stream::Failure| failure.message;
    let mut settings = NetworkSettings::from_env(env).map_err(failed)?;
    // It is meant for the model's provider, and says who the user is.
    settings.client_identity = None;
    let transport = Transport::new(&settings, server);
    let mut builder = transport.builder().map_err(failed)?;
    if !may_be_private {
        check_literal(server)?;
        if !transport.has_proxy() {
            builder = builder.dns_resolver(Arc::new(PublicOnly));
        }
    }
    builder.build().map_err(|error| not_built(&error).message)
}

/// Refuses an address that is spelled out, since nothing looks it up.
fn check_literal(server: &Url) -> Result<(), String> {
    let host = server.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(address) if is_private_address(address) => Err(refusal(host)),
        _ => Ok(()),
    }
}

fn refusal(host: &str) -> String {
    format!(
        "`{host}` leads to this machine or a private network; only a rule that names it, `WebFetch(domain:{host})`, lets it be fetched"
    )
}

/// Returns where an answer sends its readers, if it does.
fn redirect_target(response: &Response, url: &Url) -> Result<Option<Url>, String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let target = location.to_str().ok().and_then(|to| url.join(to).ok());
    target.map(Some).ok_or_else(|| format!("`{url}` sends its readers to an address that cannot be read"))
}

fn is_followed(from: &Url, to: &Url) -> bool {
    let port = |url: &Url| url.port_or_known_default();
    let is_upgrade = from.scheme() == "http" && to.scheme() == "https";
    from.host_str() == to.host_str()
        && to.username().is_empty()
        && to.password().is_none()
        && ((from.scheme() == to.scheme() && port(from) == port(to)) || is_upgrade)
}

async fn read(mut response: Response, url: Url) -> Result<Page, String> {
    let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let mut page = Page {
        url: url.to_string(),
        status: response.status().as_u16(),
        status_text: response.status().canonical_reason().unwrap_or_default().to_owned(),
        content_type: header.unwrap_or_default().to_owned(),
        body: Vec::new(),
    };
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if page.body.len() + chunk.len() <= MAX_BYTES => {
                page.body.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => {
                return Err(format!("`{url}` has more than {} MiB, which is not read", MAX_BYTES >> 20));
            }
            Ok(None) => return Ok(page),
            Err(error) => return Err(format!("`{url}` broke off: {}", root_words(&error))),
        }
    }
}

/// Looks names up and leaves out what is private; a name with nothing else leads nowhere.
#[derive(Debug)]
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|it| !is_private_address(it.ip())).collect();
            match public.is_empty() {
                true => Err(refusal(&host).into()),
                false => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(url: &str, host: &str, may_be_private: bool) -> Result<String, String> {
        let request = PageRequest { url: url.to_owned(), host: host.to_owned(), may_be_private };
        judged_url(&request).map(String::from)
    }

    #[test]
    fn address_leads_to_the_judged_host_over_https() {
        for (address, host, expected) in [
            ("http://example.com/a?b#c", "example.com", "https://example.com/a?b#c"),
            ("http://example.com:80/", "example.com", "https://example.com/"),
            ("https://EXAMPLE.com./", "example.com", "https://example.com./"),
            ("http://0x7f.1/", "127.0.0.1", "https://127.0.0.1/"),
        ] {
            assert_eq!(url(address, host, false).unwrap(), expected, "{address}");
        }
        for (address, host) in [
            ("http://localhost:3000/", "localhost"),
            ("http://192.168.1.7/", "192.168.1.7"),
            ("http://wiki/", "wiki"),
        ] {
            assert_eq!(url(address, host, true).unwrap(), address);
        }
        let named = url("http://site.test/", "site.test", true);
        assert_eq!(named.unwrap(), "https://site.test/", "a public name that a rule names");
        for (address, host, why) in [
            ("ftp://example.com/", "example.com", "not an address of the web"),
            ("https://u:p@example.com/", "example.com", "a name or a password"),
            ("https://evil.test/", "example.com", "leads elsewhere"),
            ("https://exämple.com/", "example.com", "leads elsewhere"),
            ("nonsense", "example.com", "cannot be fetched"),
        ] {
            assert!(url(address, host, false).unwrap_err().contains(why), "{address}");
        }
    }

    #[test]
    fn redirects_are_followed_on_the_same_host_only() {
        for (from, to, expected) in [
            ("https://a.test/1", "https://a.test/2", true),
            ("http://a.test/1", "https://a.test/1", true),
            ("https://a.test/1", "http://a.test/1", false),
            ("https://a.test/1", "https://b.test/1", false),
            ("https://a.test/1", "https://www.a.test/1", false),
            ("https://a.test/1", "https://a.test:8443/1", false),
            ("https://a.test/1", "https://u@a.test/1", false),
        ] {
            let url = |text: &str| Url::parse(text).unwrap();
            assert_eq!(is_followed(&url(from), &url(to)), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn socket_leads_to_the_judged_host_on_a_public_address() {
        let env = Env::for_test("/nowhere", "/nowhere");
        let client = |url: &str, host: &str, may_be_private| {
            socket_client(&env, url, host, may_be_private).map(drop).unwrap_or_else(|why| panic!("{why}"));
        };
        client("ws://127.0.0.1:1/feed", "127.0.0.1", true);
        for (url, host, why) in [
            ("ws://127.0.0.1/feed", "127.0.0.1", "private network"),
            ("wss://evil.test/", "example.com", "leads elsewhere"),
            ("https://example.com/", "example.com", "leads elsewhere"),
        ] {
            let error = socket_client(&env, url, host, false).map(drop).unwrap_err();
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[tokio::test]
    async fn names_that_lead_to_this_machine_are_refused_before_anything_is_connected() {
        let env = Env::for_test("/nowhere", "/nowhere");
        for (address, host) in [
            ("https://localhost/", "localhost"),
            ("https://127.0.0.1/", "127.0.0.1"),
            ("https://[::1]/", "[::1]"),
        ] {
            let request =
                PageRequest { url: address.to_owned(), host: host.to_owned(), may_be_private: false };
            let error = fetch_page(&env, request).await.unwrap_err();
            assert!(error.contains("private network"), "{address}: {error}");
        }
    }
}
