//! One JSON object sent to an address that is no model's, such as a hook's: same proxy, certificates and caution.
//!
//! Nothing is followed elsewhere, and no more of the answer is read than the limit.

use std::time::Duration;

use loci_stdx::Env;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};

use crate::connection_failure::root_words;
use crate::settings::NetworkSettings;
use crate::transport::http_client;

/// What is sent, and what it may take.
#[derive(Debug, Clone)]
pub struct JsonPost {
    /// The address.
    pub url: String,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// The object, as text.
    pub body: String,
    /// How long it may take in all.
    pub limit: Duration,
    /// How much of the answer is read.
    pub max_bytes: usize,
}

/// A small request to an address that is no model's: for a token, say.
#[derive(Debug, Clone)]
pub struct HttpCall {
    /// `GET`, `POST` or `PUT`.
    pub method: &'static str,
    /// The address.
    pub url: String,
    /// All headers but the body's type.
    pub headers: Vec<(String, String)>,
    /// The body and its type.
    pub body: Option<(&'static str, String)>,
    /// How long it may take in all.
    pub limit: Duration,
}

/// The most of an answer to a small request.
const MOST_BYTES: usize = 1024 * 1024;

/// Makes a small request; returns the status and the body of the answer.
pub async fn http_call(env: &Env, call: HttpCall) -> Result<(u16, String), JsonPostError> {
    let limit = call.limit;
    match tokio::time::timeout(limit, send(env.clone(), call, MOST_BYTES)).await {
        Ok(answer) => answer.map_err(JsonPostError::Failed),
        Err(_) => Err(JsonPostError::TimedOut),
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum JsonPostError {
    /// It took too long.
    TimedOut,
    /// It could not be sent, or the answer not read; this is why.
    Failed(String),
}

/// Sends it; returns the status and the body of the answer.
pub async fn post_json(env: &Env, post: JsonPost) -> Result<(u16, String), JsonPostError> {
    let (limit, max_bytes) = (post.limit, post.max_bytes);
    let call = HttpCall {
        method: "POST",
        url: post.url,
        headers: post.headers,
        body: Some(("application/json", post.body)),
        limit,
    };
    match tokio::time::timeout(limit, send(env.clone(), call, max_bytes)).await {
        Ok(answer) => answer.map_err(JsonPostError::Failed),
        Err(_) => Err(JsonPostError::TimedOut),
    }
}

async fn send(env: Env, post: HttpCall, max_bytes: usize) -> Result<(u16, String), String> {
    let url = Url::parse(&post.url).map_err(|error| format!("`{}` is no address: {error}", post.url))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{}` is no address of the web", post.url));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &post.headers {
        let name: HeaderName = name.parse().map_err(|_| format!("`{name}` is no name of a header"))?;
        // The value may hold a secret, so it is not repeated.
        let value: HeaderValue =
            value.parse().map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        headers.insert(name, value);
    }
    if let Some((kind, _)) = &post.body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    let server = url.clone();
    // With TLS certificates are read, which is not for an async thread.
    let client = tokio::task::spawn_blocking(move || http_client(&NetworkSettings::from_env(&env)?, &server));
    let client = client.await.map_err(|error| error.to_string())?.map_err(|failure| failure.message)?;
    let method = Method::from_bytes(post.method.as_bytes()).map_err(|error| error.to_string())?;
    let body = post.body.map(|(_, body)| body).unwrap_or_default();
    let sent = client.request(method, url).headers(headers).body(body).send().await;
    let mut response = sent.map_err(|error| format!("the address did not answer: {}", root_words(&error)))?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= max_bytes => body.extend_from_slice(&chunk),
            Ok(Some(_)) => return Err(format!("the answer is larger than {} KiB", max_bytes / 1024)),
            Ok(None) => return Ok((status, String::from_utf8_lossy(&body).into_owned())),
            Err(error) => return Err(format!("the answer broke off: {}", root_words(&error))),
        }
    }
}
