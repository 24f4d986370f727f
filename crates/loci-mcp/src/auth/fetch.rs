//! Requests to authorization servers: bounded in time and size, and redirected within their own origin only.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, USER_AGENT};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::Value;

use super::LoginTarget;
use super::token::TokenForm;
use crate::transport::web::failed;

/// How long one exchange may take.
const LIMIT: Duration = Duration::from_secs(15);
/// The most of an answer that is read.
const BODY_LIMIT: usize = 1 << 20;
const MOST_REDIRECTS: usize = 3;

/// What came back: the status, and the JSON that was in it.
pub(crate) struct JsonResponse {
    pub(crate) status: u16,
    pub(crate) value: Value,
}

impl JsonResponse {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl LoginTarget {
    /// Gets a description; a redirect is followed as far as it stays at its origin.
    pub(crate) async fn get_json(&self, url: &Url) -> Result<JsonResponse, String> {
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let client = self.client(&url).await?;
            let request = client.get(url.clone()).header("MCP-Protocol-Version", "2025-11-25");
            let response = self.send(request).await?;
            let next = response.status().is_redirection().then(|| {
                response.headers().get(LOCATION)?.to_str().ok().and_then(|place| url.join(place).ok())
            });
            match next.flatten() {
                Some(next) if next.origin() == url.origin() => url = next,
                Some(_) => return Err("it redirects to another host, which is not followed".to_owned()),
                None => return answer(response).await,
            }
        }
        Err("it redirects without end".to_owned())
    }

    /// Posts JSON, as a registration is.
    pub(crate) async fn post_json(&self, url: &str, body: &Value) -> Result<JsonResponse, String> {
        let url = parse(url)?;
        let client = self.client(&url).await?;
        let request = client.post(url).header(CONTENT_TYPE, "application/json").body(body.to_string());
        answer(self.send(request).await?).await
    }

    /// Posts a form, with what says who asks.
    pub(crate) async fn post_form(&self, url: &str, form: TokenForm) -> Result<JsonResponse, String> {
        let url = parse(url)?;
        let client = self.client(&url).await?;
        let mut request =
            client.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.body);
        if let Some(authorization) = form.authorization {
            let value = HeaderValue::from_str(&authorization);
            let mut value = value.map_err(|_| "the client's secret cannot be sent".to_owned())?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        answer(self.send(request).await?).await
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, String> {
        let request =
            request.header(USER_AGENT, &self.user_agent).header(ACCEPT, "application/json").timeout(LIMIT);
        request.send().await.map_err(|error| failed(&error).to_string())
    }

    pub(crate) async fn client(&self, url: &Url) -> Result<Client, String> {
        let (clients, url) = (Arc::clone(&self.clients), url.clone());
        // With TLS it reads certificates.
        let made = tokio::task::spawn_blocking(move || clients(&url)).await;
        made.map_err(|error| error.to_string()).and_then(|made| made)
    }
}

fn parse(url: &str) -> Result<Url, String> {
    Url::parse(url).map_err(|error| format!("an endpoint has no address: {error}"))
}

/// Reads an answer; what is no JSON is nothing.
async fn answer(mut response: Response) -> Result<JsonResponse, String> {
    let status = response.status().as_u16();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error).to_string())? {
        if bytes.len() + chunk.len() > BODY_LIMIT {
            return Err("the answer is larger than 1 MB".to_owned());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(JsonResponse { status, value: serde_json::from_slice(&bytes).unwrap_or_default() })
}
