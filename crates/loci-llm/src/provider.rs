//! A provider is four small parts: protocol, endpoint, authentication, framing.
//!
//! | part | question | Anthropic's answer |
//! |---|---|---|
//! | [`Protocol`] | what the bytes of request and answer mean | Messages API |
//! | [`Endpoint`] | where they go | `{base}/v1/messages?beta=true` |
//! | [`Auth`] | how we prove who we are | `x-api-key` or `authorization: Bearer` |
//! | [`Framing`] | how an answer's bytes are cut into frames | server-sent events |
//!
//! Another provider is another constructor like [`Provider::anthropic`] and whatever part it has of its own.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use loci_core::ids::RequestId;
use loci_core::stream::{Failure, FailureKind, StreamEvent};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::anthropic::{API_VERSION, Anthropic};
use crate::auth::{Auth, AuthSource};
use crate::config::ProviderConfig;
use crate::endpoint::Endpoint;
use crate::failure::RequestFacts;
use crate::framing::{Frame, Framing};
use crate::model_list::list_url;
use crate::request::Request;
use crate::secret::Secret;
use crate::sse::SseReader;

/// Knows what the bytes of request and answer mean.
pub(crate) trait Protocol: Debug + Send + Sync {
    /// Returns the headers that belong to the protocol.
    fn headers(&self, request: &Request) -> Vec<(&'static str, String)>;
    /// Writes the request.
    fn body(&self, request: &Request) -> Bytes;
    /// Makes a decoder for one streamed answer.
    fn decoder(&self, request: &Request, request_id: Option<RequestId>) -> Box<dyn Decode>;
    /// Reads an answer that came whole.
    fn read_whole(&self, body: &[u8], request_id: Option<RequestId>) -> Result<Vec<StreamEvent>, Failure>;
    /// Classifies an answer whose status is not a success.
    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8], asked: RequestFacts<'_>) -> Failure;
}

/// Turns the frames of one answer into events.
pub(crate) trait Decode: Debug + Send + Sync {
    /// Decodes one frame and adds what it says to `out`.
    fn decode(&mut self, frame: &Frame<'_>, out: &mut VecDeque<StreamEvent>) -> Result<Pulse, Failure>;
    /// Tells whether the answer is complete.
    fn has_ended(&self) -> bool;
    /// Says that the stream ended before the answer did.
    fn cut(&self, how: &str) -> Failure;
}

/// What a frame meant for whoever watches the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulse {
    /// Something about the answer.
    Progress,
    /// Only a sign of life.
    Ping,
}

/// A provider, put together and checked.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) protocol: Box<dyn Protocol>,
    pub(crate) endpoint: Endpoint,
    pub(crate) source: Arc<dyn AuthSource>,
    pub(crate) framing: Framing,
    user_agent: HeaderValue,
    custom_headers: HeaderMap,
    /// Whatever must not show up in a message.
    secrets: Vec<Secret>,
}

/// A request ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Provider {
    /// Puts together the provider that a configuration asks for: the one place to choose between several.
    pub(crate) fn from_config(config: &ProviderConfig, source: Arc<dyn AuthSource>) -> Result<Self, Failure> {
        Self::anthropic(config, source)
    }

    /// Puts together the Anthropic API, or a gateway that speaks like it.
    fn anthropic(config: &ProviderConfig, source: Arc<dyn AuthSource>) -> Result<Self, Failure> {
        let custom_headers = config
            .custom_headers
            .iter()
            .map(|(name, value)| Ok((header_name(name)?, header_value(name, value)?)))
            .collect::<Result<_, Failure>>()?;
        config.auth.headers()?;
        Ok(Self {
            protocol: Box::new(Anthropic::new(config)),
            endpoint: Endpoint::messages(&config.base_url)?,
            source,
            framing: || Box::new(SseReader::default()),
            user_agent: header_value("user-agent", &config.user_agent)?,
            custom_headers,
            secrets: secrets(config),
        })
    }

    /// Makes a request ready; headers the user wants come last and win.
    pub(crate) fn prepare(&self, request: &Request, auth: &Auth) -> Result<Prepared, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(reqwest::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(reqwest::header::USER_AGENT, self.user_agent.clone());
        for (name, value) in self.protocol.headers(request) {
            headers.insert(HeaderName::from_static(name), header_value(name, &value)?);
        }
        headers.extend(auth.headers()?);
        for (name, value) in &self.custom_headers {
            headers.insert(name, value.clone());
        }
        Ok(Prepared { url: self.endpoint.url(request), headers, body: self.protocol.body(request) })
    }

    /// Returns the address and headers of a request for the list of models.
    pub(crate) fn model_list(&self, auth: &Auth) -> Result<(Url, HeaderMap), Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(reqwest::header::USER_AGENT, self.user_agent.clone());
        headers.insert("anthropic-version", HeaderValue::from_static(API_VERSION));
        headers.extend(auth.headers()?);
        for (name, value) in &self.custom_headers {
            headers.insert(name, value.clone());
        }
        Ok((list_url(self.endpoint.base()), headers))
    }

    /// Masks credentials that a server or library repeated in its words; `auth` is what was sent.
    pub(crate) fn redacted(&self, mut failure: Failure, auth: &Auth) -> Failure {
        for secret in self.secrets.iter().chain(auth.secret()) {
            failure.message = secret.redact(&failure.message);
        }
        failure
    }
}

/// Custom headers often hold credentials; short values are left alone, for masking them would garble words.
fn secrets(config: &ProviderConfig) -> Vec<Secret> {
    let custom = config.custom_headers.iter().map(|(_, value)| value.as_str());
    let custom = custom.map(|value| value.strip_prefix("Bearer ").unwrap_or(value));
    let password = config.proxy.as_ref().and_then(|proxy| proxy.url.password());
    let others = custom.chain(password).filter(|value| value.len() >= 8).map(Secret::new);
    config.auth.secret().cloned().into_iter().chain(others).collect()
}

fn header_name(name: &str) -> Result<HeaderName, Failure> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad_header(name))
}

/// The value is not shown: it may be a credential.
fn header_value(name: &str, value: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(value).map_err(|_| bad_header(name))
}

fn bad_header(name: &str) -> Failure {
    Failure::new(FailureKind::InvalidRequest, format!("Not a header that can be sent: `{name}`"))
        .with_hint("Header names are letters, digits and dashes; values have no line breaks.")
}
