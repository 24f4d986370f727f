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
use loci_http::{Post, Secret, SseReader, bad_header};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::anthropic::{API_VERSION, Anthropic};
use crate::auth::{Auth, AuthSource};
use crate::chat::Chat;
use crate::clouds::event_stream::EventStreamReader;
use crate::clouds::{
    BedrockConfig, Cloud, HostConfig, VertexConfig, bedrock_base, bedrock_path, profile_path, vertex_base,
    vertex_path,
};
use crate::config::{Dialect, NamedProvider, ProviderConfig, WireProtocol};
use crate::endpoint::{Endpoint, parse_base};
use crate::failure::RequestFacts;
use crate::framing::{Frame, Framing};
use crate::model_list::list_url;
use crate::request::Request;
use crate::responses::Responses;

/// Knows what the bytes of request and answer mean.
pub(crate) trait Protocol: Debug + Send + Sync {
    /// Returns the headers that belong to the protocol.
    fn headers(&self, request: &Request) -> Vec<(&'static str, String)>;
    /// Writes the request.
    fn body(&self, request: &Request) -> Bytes;
    /// Makes a decoder for one streamed answer.
    fn decoder(&self, request: &Arc<Request>, request_id: Option<RequestId>) -> Box<dyn Decode>;
    /// Reads an answer that came whole.
    fn read_whole(
        &self,
        request: &Arc<Request>,
        body: &[u8],
        request_id: Option<RequestId>,
    ) -> Result<Vec<StreamEvent>, Failure>;
    /// Classifies an answer whose status is not a success.
    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8], asked: RequestFacts<'_>) -> Failure;
}

/// Turns the frames of one answer into events.
pub(crate) trait Decode: Debug + Send + Sync {
    /// Decodes one frame and adds what it says to `out`.
    fn decode(&mut self, frame: &Frame<'_>, out: &mut VecDeque<StreamEvent>) -> Result<Pulse, Failure>;
    /// Hears that no more frames come; an answer that only lacks a word of farewell is complete then.
    fn end_of_stream(&mut self, _out: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        Ok(())
    }
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
    /// The provider's name and what it says of its models, if it has one.
    named: Option<NamedProvider>,
    /// What people set to change its address, for hints.
    address_setting: String,
    /// Whether it is a cloud that does not edit conversations.
    is_cloud: bool,
    /// Where Bedrock describes what an account has.
    control_plane: Option<Url>,
    user_agent: HeaderValue,
    custom_headers: HeaderMap,
    /// Whatever must not show up in a message.
    secrets: Vec<Secret>,
}

impl Provider {
    /// Puts together the provider that a configuration asks for: the one place to choose between several.
    pub(crate) fn from_config(config: &ProviderConfig, source: Arc<dyn AuthSource>) -> Result<Self, Failure> {
        match &config.dialect {
            Dialect::Anthropic => Self::anthropic(config, source),
            Dialect::Host(host) => Self::host(config, host, source),
            Dialect::Named(named) => Self::named(config, named, source),
            Dialect::Bedrock(bedrock) => Self::bedrock(config, bedrock, source),
            Dialect::Vertex(vertex) => Self::vertex(config, vertex, source),
        }
    }

    fn bedrock(
        config: &ProviderConfig,
        bedrock: &BedrockConfig,
        source: Arc<dyn AuthSource>,
    ) -> Result<Self, Failure> {
        let own = bedrock.clone();
        let path = move |request: &Request| bedrock_path(&own, request);
        let endpoint = Endpoint::with_path("ANTHROPIC_BEDROCK_BASE_URL", &config.base_url, path)?;
        let own = bedrock.clone();
        let endpoint = endpoint.with_host(move |request| {
            let region = own.region_of(request.model_and_window().0);
            (!own.has_own_address && region != own.region).then(|| bedrock_base(region))
        });
        let control_plane = bedrock.control_plane.as_deref();
        let control_plane =
            control_plane.map(|url| parse_base("AWS_ENDPOINT_URL_BEDROCK", url)).transpose()?;
        let protocol = Box::new(Cloud::bedrock(config, bedrock));
        let framing: Framing = || Box::new(EventStreamReader::default());
        let assembled = Self::assembled(config, protocol, endpoint, source)?;
        let address_setting = "ANTHROPIC_BEDROCK_BASE_URL".to_owned();
        Ok(Self { framing, is_cloud: true, control_plane, address_setting, ..assembled })
    }

    fn vertex(
        config: &ProviderConfig,
        vertex: &VertexConfig,
        source: Arc<dyn AuthSource>,
    ) -> Result<Self, Failure> {
        let own = vertex.clone();
        let endpoint = Endpoint::with_path("ANTHROPIC_VERTEX_BASE_URL", &config.base_url, move |request| {
            vertex_path(&own, request).1
        })?;
        let own = vertex.clone();
        let endpoint = endpoint.with_host(move |request| {
            let region = vertex_path(&own, request).0;
            (!own.has_own_address && region != own.region).then(|| vertex_base(&region))
        });
        let protocol = Box::new(Cloud::vertex(config));
        let address_setting = "ANTHROPIC_VERTEX_BASE_URL".to_owned();
        let assembled = Self::assembled(config, protocol, endpoint, source)?;
        Ok(Self { is_cloud: true, address_setting, ..assembled })
    }

    /// Puts together a provider of the settings.
    fn named(
        config: &ProviderConfig,
        named: &NamedProvider,
        source: Arc<dyn AuthSource>,
    ) -> Result<Self, Failure> {
        let setting = format!("providers.{}.baseUrl", named.name);
        let (protocol, path): (Box<dyn Protocol>, _) = match named.protocol {
            WireProtocol::Chat => (Box::new(Chat::new(named, &config.base_url)), "/chat/completions"),
            WireProtocol::Responses => (Box::new(Responses::new(named)), "/responses"),
            WireProtocol::Messages => (Box::new(Anthropic::named(&named.name)), "/messages"),
        };
        let endpoint = Endpoint::below(&setting, &config.base_url, path)?;
        let assembled = Self::assembled(config, protocol, endpoint, source)?;
        Ok(Self { named: Some(named.clone()), address_setting: format!("`{setting}`"), ..assembled })
    }

    /// Puts together the Anthropic API, or a gateway that speaks like it.
    fn anthropic(config: &ProviderConfig, source: Arc<dyn AuthSource>) -> Result<Self, Failure> {
        let endpoint = Endpoint::messages("ANTHROPIC_BASE_URL", &config.base_url)?;
        Self::assembled(config, Box::new(Anthropic::new(config)), endpoint, source)
    }

    /// Puts together another host of the same API.
    fn host(
        config: &ProviderConfig,
        host: &HostConfig,
        source: Arc<dyn AuthSource>,
    ) -> Result<Self, Failure> {
        let mut endpoint = Endpoint::messages(host.address_variable, &config.base_url)?;
        if let Some((small, base)) = host.small.clone() {
            endpoint = endpoint.with_host(move |request| {
                let model = request.model_and_window().0;
                small.models.iter().any(|small| small == model).then(|| base.clone())
            });
        }
        let protocol = Box::new(Anthropic::hosted(config, host));
        Ok(Self {
            is_cloud: !host.edits_context,
            address_setting: host.address_variable.to_owned(),
            ..Self::assembled(config, protocol, endpoint, source)?
        })
    }

    fn assembled(
        config: &ProviderConfig,
        protocol: Box<dyn Protocol>,
        endpoint: Endpoint,
        source: Arc<dyn AuthSource>,
    ) -> Result<Self, Failure> {
        let custom_headers = config
            .custom_headers
            .iter()
            .map(|(name, value)| Ok((header_name(name)?, header_value(name, value)?)))
            .collect::<Result<_, Failure>>()?;
        config.auth.headers()?;
        Ok(Self {
            protocol,
            endpoint,
            source,
            named: None,
            address_setting: "ANTHROPIC_BASE_URL".to_owned(),
            is_cloud: false,
            control_plane: None,
            framing: || Box::new(SseReader::default()),
            user_agent: header_value("user-agent", &config.user_agent)?,
            custom_headers,
            secrets: secrets(config),
        })
    }

    /// Makes a request ready; headers the user wants come last and win.
    pub(crate) fn prepare(&self, request: &Request, auth: &Auth) -> Result<Post, Failure> {
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
        let (url, body) = (self.endpoint.url(request), self.protocol.body(request));
        if let Auth::Aws(signer) = auth {
            signer.sign("POST", &url, &mut headers, &body)?;
        }
        Ok(Post { url, headers, body })
    }

    /// Returns the address and headers of a request for what an inference profile stands for, where somebody can be asked.
    pub(crate) fn profile(&self, arn: &str, auth: &Auth) -> Result<Option<(Url, HeaderMap)>, Failure> {
        let Some(base) = &self.control_plane else { return Ok(None) };
        let url = list_url(base, &profile_path(arn));
        let mut headers = HeaderMap::new();
        headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(reqwest::header::USER_AGENT, self.user_agent.clone());
        headers.extend(auth.headers()?);
        if let Auth::Aws(signer) = auth {
            signer.sign("GET", &url, &mut headers, b"")?;
        }
        Ok(Some((url, headers)))
    }

    /// Returns the address and headers of a request for the list of models.
    pub(crate) fn model_list(&self, auth: &Auth) -> Result<(Url, HeaderMap), Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(reqwest::header::USER_AGENT, self.user_agent.clone());
        if self.named.as_ref().is_none_or(|it| it.protocol == WireProtocol::Messages) {
            headers.insert("anthropic-version", HeaderValue::from_static(API_VERSION));
        }
        headers.extend(auth.headers()?);
        for (name, value) in &self.custom_headers {
            headers.insert(name, value.clone());
        }
        let path = if self.named.is_some() { "/models" } else { "/v1/models" };
        let mut url = list_url(self.endpoint.base(), path);
        if self.named.is_none() {
            // Otherwise it is the first twenty.
            url.query_pairs_mut().append_pair("limit", "1000");
        }
        Ok((url, headers))
    }

    /// Returns the provider's name, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.named.as_ref().map(|named| named.name.as_str())
    }

    /// Returns the request as this provider's model takes it.
    pub(crate) fn fit(&self, request: &Arc<Request>) -> Arc<Request> {
        if self.is_cloud && request.edits_context {
            return Arc::new(Request { edits_context: false, ..Request::clone(request) });
        }
        let Some(named) = &self.named else { return Arc::clone(request) };
        let traits = named.models.get(request.model_in(&named.name)).copied().unwrap_or_default();
        let request = traits.fit(request);
        let has_more = request.extra_body.is_some() || request.user_id.is_some() || !request.betas.is_empty();
        if named.protocol != WireProtocol::Messages || !has_more {
            return request;
        }
        // What is meant for the first provider.
        Arc::new(Request { extra_body: None, user_id: None, betas: Vec::new(), ..Request::clone(&request) })
    }

    /// Says the next step in the words of this provider.
    pub(crate) fn explained(&self, mut failure: Failure) -> Failure {
        failure.hint = failure.hint.map(|hint| hint.replace("ANTHROPIC_BASE_URL", &self.address_setting));
        let Some(named) = &self.named else { return failure };
        failure.hint = failure.hint.map(|hint| match failure.kind {
            FailureKind::Unauthenticated => format!(
                "Check {}: the key may be mistyped, revoked, or meant for another server.",
                named.key_setting
            ),
            FailureKind::EditingRefused | FailureKind::InvalidRequest if !hint.contains("baseUrl") => {
                format!(
                    "Check `providers.{}` in your settings: its protocol, and what it says of the model.",
                    named.name
                )
            }
            _ => hint,
        });
        failure
    }

    /// Masks credentials that a server or library repeated in its words; `auth` is what was sent.
    pub(crate) fn redacted(&self, mut failure: Failure, auth: &Auth) -> Failure {
        for secret in self.secrets.iter().chain(auth.secrets()) {
            failure.message = secret.redact(&failure.message);
        }
        failure
    }
}

/// Custom headers often hold credentials; short values are left alone, for masking them would garble words.
fn secrets(config: &ProviderConfig) -> Vec<Secret> {
    let custom = config.custom_headers.iter().map(|(_, value)| value.as_str());
    let custom = custom.map(|value| value.strip_prefix("Bearer ").unwrap_or(value));
    let password = config.network.proxy.as_ref().and_then(|proxy| proxy.url.password());
    let others = custom.chain(password).filter(|value| value.len() >= 8).map(Secret::new);
    config.auth.secrets().into_iter().cloned().chain(others).collect()
}

fn header_name(name: &str) -> Result<HeaderName, Failure> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad_header(name))
}

/// The value is not shown: it may be a credential.
fn header_value(name: &str, value: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(value).map_err(|_| bad_header(name))
}
