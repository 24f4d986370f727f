//! The server over HTTP.
//!
//! ```text
//! GET /v1/repositories/<repository>/entries          {"entries": {"<name>": "<hash>", ...}}
//! GET /v1/repositories/<repository>/entries/<name>   the text; its hash is the ETag
//! PUT /v1/repositories/<repository>/entries/<name>   the text, with If-Match: "<hash>" or If-None-Match: *
//! ```
//!
//! Every text that arrives is held against its hash, so one that was cut or changed on the way is never taken.

use std::collections::BTreeMap;
use std::time::Duration;

use loci_context::{ContentHash, EntryName, Hashes, TEAM_ENTRIES, TEAM_ENTRY_BYTES};
use loci_core::stream::Failure;
use loci_http::{NetworkSettings, Secret, http_client};
use loci_stdx::Env;
use reqwest::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;

use crate::remote::{Expected, Remote, RemoteError, Stored};

/// For one whole request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A list or a text beyond this is not read.
const MOST_LIST_BYTES: usize = TEAM_ENTRIES * 400;
/// What the server says about a failure is shown up to this.
const MOST_WORDS: usize = 300;

/// The name of a repository on the server: letters, digits and `-_.`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryName(String);

impl RepositoryName {
    /// Takes a name, if it is one.
    pub fn parse(name: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_fine = (1..=100).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('.');
        is_fine.then(|| Self(name.to_owned()))
    }

    /// Returns it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Takes a server's address: with TLS, or on this machine, because a token goes with every request.
pub fn check_address(address: &str) -> Result<Url, String> {
    let url = Url::parse(address.trim()).map_err(|error| format!("it is not an address ({error})"))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback());
    match (url.scheme(), is_here) {
        _ if !url.username().is_empty() || url.password().is_some() => {
            Err("credentials do not belong in it".to_owned())
        }
        ("https", _) | ("http", true) => Ok(url),
        ("http", false) => Err("without TLS the token would be read on the way; use https".to_owned()),
        _ => Err("it is neither http nor https".to_owned()),
    }
}

/// A repository on a server.
#[derive(Debug)]
pub struct HttpRemote {
    client: reqwest::Client,
    entries: String,
    token: Secret,
}

#[derive(Deserialize)]
struct List {
    entries: BTreeMap<String, String>,
}

impl HttpRemote {
    /// Notes where a repository is, with the proxy and the certificates that the environment names; nothing is sent yet.
    pub fn new(
        env: &Env,
        address: &Url,
        repository: &RepositoryName,
        token: Secret,
    ) -> Result<Self, Failure> {
        let client = http_client(&NetworkSettings::from_env(env)?, address)?;
        let base = address.as_str().trim_end_matches('/');
        Ok(Self { client, entries: format!("{base}/v1/repositories/{}/entries", repository.as_str()), token })
    }

    fn request(&self, method: Method, name: Option<&EntryName>) -> RequestBuilder {
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        let request = self.client.request(method, format!("{}{name}", self.entries));
        request.timeout(TIMEOUT).bearer_auth(self.token.expose())
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, RemoteError> {
        request.send().await.map_err(|error| self.lost(error))
    }

    /// Reads an answer up to a bound.
    async fn body(&self, mut response: Response, most: usize) -> Result<String, RemoteError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.lost(error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > most {
                return Err(RemoteError::Answer(format!("more than {most} bytes")));
            }
        }
        String::from_utf8(bytes).map_err(|_| RemoteError::Answer("it is not text".to_owned()))
    }

    async fn refusal(&self, response: Response) -> RemoteError {
        let status = response.status().as_u16();
        RemoteError::Refused { status, why: self.error_text(response).await }
    }

    /// Returns what the server said, in so far as it can be shown.
    async fn error_text(&self, response: Response) -> String {
        let words = self.body(response, MOST_LIST_BYTES).await.unwrap_or_default();
        let why: String = words.chars().filter(|it| !it.is_control()).take(MOST_WORDS).collect();
        why.replace(self.token.expose(), "[redacted]")
    }

    fn lost(&self, error: reqwest::Error) -> RemoteError {
        let error = error.without_url();
        let mut why = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            why = inner.to_string();
            cause = inner.source();
        }
        RemoteError::Connection { address: self.entries.clone(), why }
    }
}

impl Remote for HttpRemote {
    fn id(&self) -> String {
        self.entries.clone()
    }

    async fn list(&self) -> Result<Hashes, RemoteError> {
        let response = self.send(self.request(Method::GET, None)).await?;
        if response.status() != StatusCode::OK {
            return Err(self.refusal(response).await);
        }
        let text = self.body(response, MOST_LIST_BYTES).await?;
        let list: List =
            serde_json::from_str(&text).map_err(|error| RemoteError::Answer(error.to_string()))?;
        if list.entries.len() > TEAM_ENTRIES {
            return Err(RemoteError::Answer(format!("more than {TEAM_ENTRIES} entries")));
        }
        list.entries.iter().map(|(name, hash)| entry(name, hash)).collect()
    }

    async fn fetch(&self, name: &EntryName) -> Result<Option<String>, RemoteError> {
        let response = self.send(self.request(Method::GET, Some(name))).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            _ => return Err(self.refusal(response).await),
        }
        let promised = etag(&response);
        let text = self.body(response, TEAM_ENTRY_BYTES).await?;
        match promised == Some(ContentHash::of(&text)) {
            true => Ok(Some(text)),
            false => Err(RemoteError::Answer(format!("`{name}` is not what its hash says"))),
        }
    }

    async fn store(&self, name: &EntryName, text: &str, expected: &Expected) -> Result<Stored, RemoteError> {
        let request = self.request(Method::PUT, Some(name)).body(text.to_owned());
        let request = match expected {
            Expected::Absent => request.header(IF_NONE_MATCH, "*"),
            Expected::Hash(hash) => request.header(IF_MATCH, format!("\"{hash}\"")),
        };
        let response = self.send(request).await?;
        match response.status() {
            StatusCode::OK | StatusCode::CREATED | StatusCode::NO_CONTENT => Ok(Stored::Done),
            StatusCode::PRECONDITION_FAILED if etag(&response) == Some(ContentHash::of(text)) => {
                Ok(Stored::Done)
            }
            StatusCode::PRECONDITION_FAILED => Ok(Stored::Conflict),
            StatusCode::CONFLICT | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Ok(Stored::Refused(self.error_text(response).await))
            }
            _ => Err(self.refusal(response).await),
        }
    }
}

fn entry(name: &str, hash: &str) -> Result<(EntryName, ContentHash), RemoteError> {
    let name = EntryName::parse(name).map_err(|error| RemoteError::Answer(error.to_string()))?;
    let hash =
        ContentHash::parse(hash).ok_or_else(|| RemoteError::Answer(format!("`{name}` has no hash")))?;
    Ok((name, hash))
}

fn etag(response: &Response) -> Option<ContentHash> {
    ContentHash::parse(response.headers().get(ETAG)?.to_str().ok()?.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_over_tls_or_stays_on_this_machine() {
        for address in
            ["https://team.example.com", "http://127.0.0.1:9000", "http://[::1]:9/x", "http://localhost"]
        {
            assert!(check_address(address).is_ok(), "{address}");
        }
        for address in [
            "http://team.example.com",
            "https://me:pw@team.example.com",
            "ftp://x",
            "x",
            "",
            "http://127.evil.com",
        ] {
            assert!(check_address(address).is_err(), "{address}");
        }
    }

    #[test]
    fn repositories_have_plain_names() {
        for (name, is_fine) in
            [("loci", true), ("a.b-c_1", true), ("", false), ("a/b", false), ("..", false), ("a b", false)]
        {
            assert_eq!(RepositoryName::parse(name).is_some(), is_fine, "{name}");
        }
    }
}
