//! Requests to a server with an address: one client, its headers, and redirects that stay at home.
//!
//! The client is made when it is first needed: with TLS it reads certificates. A redirect is followed a few times with
//! the same method and body; to another origin the entry's headers do not go along.

use std::sync::Arc;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, USER_AGENT, WWW_AUTHENTICATE};
use reqwest::{Client, Method, Response, Url};
use tokio::sync::OnceCell;

use super::TransportError;
use super::headers::HeaderSource;
use crate::authorizer::AfterChallenge;
use crate::names::brief;

/// Makes the HTTP client for an address; it may read files.
pub type HttpClients = Arc<dyn Fn(&Url) -> Result<Client, String> + Send + Sync>;

/// The most of an answer that is read.
const BODY_LIMIT: usize = 64 << 20;
const MOST_REDIRECTS: usize = 5;
/// What is shorter is taken for a word rather than a secret.
const SECRET_LENGTH: usize = 6;

/// The way to an address.
pub(crate) struct Web {
    pub(crate) url: Url,
    pub(crate) clients: HttpClients,
    pub(crate) client: OnceCell<Client>,
    pub(crate) headers: HeaderSource,
    pub(crate) user_agent: String,
    /// Whether a connection becomes a web socket, which newer HTTP does not do.
    pub(crate) is_web_socket: bool,
}

impl Web {
    /// Sends a request; an answer that is no success is an error. Where the server wants to know who asks, it is told
    /// once more.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        extra: &HeaderMap,
        body: Option<String>,
    ) -> Result<Response, TransportError> {
        let mut has_tried = false;
        loop {
            let own = self.headers.headers().await?;
            let response = self.follow(method.clone(), url, (&own, extra), body.clone()).await?;
            let status = response.status().as_u16();
            if !matches!(status, 401 | 403) {
                return Ok(response);
            }
            let challenge =
                response.headers().get(WWW_AUTHENTICATE).and_then(|it| it.to_str().ok()).map(str::to_owned);
            match self.headers.refused(&own, status, challenge.clone()).await {
                AfterChallenge::Retry if !has_tried => has_tried = true,
                AfterChallenge::Retry | AfterChallenge::NeedsLogin => {
                    return Err(TransportError::Unauthorized { status, challenge });
                }
                AfterChallenge::Refused => return Err(without_secrets(refused(response).await, &own)),
                AfterChallenge::Failed(why) => return Err(TransportError::Refused { status, why }),
            }
        }
    }

    async fn follow(
        &self,
        method: Method,
        url: &Url,
        (own, extra): (&HeaderMap, &HeaderMap),
        body: Option<String>,
    ) -> Result<Response, TransportError> {
        let client = self.client().await?;
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let mut headers = extra.clone();
            if let Ok(agent) = HeaderValue::from_str(&self.user_agent) {
                headers.insert(USER_AGENT, agent);
            }
            if url.origin() == self.url.origin() {
                headers.extend(own.clone());
            }
            let mut request = client.request(method.clone(), url.clone()).headers(headers);
            if let Some(body) = &body {
                request = request.body(body.clone());
            }
            let response = request.send().await.map_err(|error| failed(&error))?;
            let next = matches!(response.status().as_u16(), 301 | 302 | 307 | 308)
                .then(|| response.headers().get(LOCATION)?.to_str().ok().and_then(|to| url.join(to).ok()))
                .flatten();
            match next {
                // What was said under TLS is not said in the clear.
                Some(next) if next.scheme() == url.scheme() || next.scheme() == "https" => url = next,
                _ => return Ok(response),
            }
        }
        Err(TransportError::Failed("the server redirects without end".to_owned()))
    }

    /// Returns the address as whoever makes clients sees it: the scheme says what is spoken there.
    fn client_url(&self) -> Url {
        let mut url = self.url.clone();
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        if self.is_web_socket && url.set_scheme(scheme).is_err() {
            tracing::debug!(target: "loci::mcp", "an address kept its scheme");
        }
        url
    }

    async fn client(&self) -> Result<&Client, TransportError> {
        self.client
            .get_or_try_init(|| async {
                let (clients, url) = (Arc::clone(&self.clients), self.client_url());
                let made = tokio::task::spawn_blocking(move || clients(&url)).await;
                made.map_err(|error| error.to_string()).and_then(|made| made).map_err(TransportError::Failed)
            })
            .await
    }
}

/// Returns the headers of a message that is sent.
pub(crate) fn message_headers() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ])
}

/// Returns the headers of a stream that is listened to.
pub(crate) fn stream_headers() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))])
}

/// Tells whether an answer is a stream of events.
pub(crate) fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

/// Reads an answer, as far as it may go.
pub(crate) async fn body(mut response: Response) -> Result<Vec<u8>, TransportError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
        if bytes.len() + chunk.len() > BODY_LIMIT {
            return Err(TransportError::Failed("the answer is larger than 64 MB".to_owned()));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Returns an answer that refuses as an error.
pub(crate) async fn refused(response: Response) -> TransportError {
    let status = response.status().as_u16();
    let body = body(response).await.unwrap_or_default();
    TransportError::Status { status, body: brief(&String::from_utf8_lossy(&body[..body.len().min(2000)])) }
}

/// Takes what was sent as headers out of what a server said: some show what they were sent.
fn without_secrets(error: TransportError, sent: &HeaderMap) -> TransportError {
    let TransportError::Status { status, mut body } = error else { return error };
    for value in sent.values().filter_map(|it| it.to_str().ok()) {
        let secret = value.rsplit(' ').next().unwrap_or(value);
        if secret.len() >= SECRET_LENGTH {
            body = body.replace(secret, "[…]");
        }
    }
    TransportError::Status { status, body }
}

/// Says why a request failed, without its address, which may hold a secret.
pub(crate) fn failed(error: &reqwest::Error) -> TransportError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let what = if error.is_connect() { "it cannot be reached" } else { "the exchange broke off" };
    TransportError::Failed(format!("{what}: {cause}"))
}
