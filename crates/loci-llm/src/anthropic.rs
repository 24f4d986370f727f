//! The Anthropic Messages protocol: headers, body, features, and both forms of answer.

mod answer;
mod block;
mod body;
mod cache;
mod decode;
mod features;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use loci_core::ids::RequestId;
use loci_core::stream::{Failure, FailureKind, StreamEvent};
use reqwest::header::HeaderMap;

use self::body::Wording;
use self::features::{Features, INTERLEAVED_THINKING};
use crate::clouds::{HostConfig, HostIds};
use crate::config::ProviderConfig;
use crate::failure::{self, RequestFacts};
use crate::prompt_caching::{Asker, PromptCaching};
use crate::provider::{Decode, Protocol};
use crate::request::Request;

pub use self::block::UNPARSED_INPUT;
pub(crate) use self::block::input_object;

pub(crate) const API_VERSION: &str = "2023-06-01";

/// Whom a body is for: each takes it with a few changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Addressee {
    /// The Anthropic API, or a host of it that has ids of its own for models.
    Api(HostIds),
    /// A provider of this name, which stands before the ids of its models.
    Named(String),
    /// Bedrock: the model is in the address, the beta features are in the body.
    Bedrock,
    /// Vertex: the model is in the address.
    Vertex,
}

/// The protocol of `POST /v1/messages`.
#[derive(Debug)]
pub(crate) struct Anthropic {
    features: Features,
    extra_betas: Vec<String>,
    addressee: Addressee,
    /// What settings call our ids at the server.
    overrides: BTreeMap<String, String>,
    /// The workspace that every request names.
    workspace_id: Option<String>,
    /// What to do about credentials that are refused, where the usual words do not fit.
    credential_hint: Option<&'static str>,
    /// Whether requests say who asks, for gateways that attribute usage.
    tells_ids: bool,
    /// Whether a model with a budget of thinking may think between calls, too.
    interleaves_thinking: bool,
    caching: PromptCaching,
}

impl Anthropic {
    /// Takes from the configuration what concerns the protocol.
    pub(crate) fn new(config: &ProviderConfig) -> Self {
        let features =
            if config.allows_experimental_betas { Features::Experimental } else { Features::StableOnly };
        Self {
            features,
            extra_betas: config.extra_betas.clone(),
            addressee: Addressee::Api(HostIds::Same),
            overrides: config.model_overrides.clone(),
            workspace_id: None,
            credential_hint: None,
            tells_ids: true,
            interleaves_thinking: config.interleaves_thinking,
            caching: config.caching.clone(),
        }
    }

    /// Speaks to another host of the same protocol.
    pub(crate) fn addressed_to(self, addressee: Addressee) -> Self {
        Self { addressee, ..self }
    }

    /// Speaks to a host of the same API.
    pub(crate) fn hosted(config: &ProviderConfig, host: &HostConfig) -> Self {
        Self {
            addressee: Addressee::Api(host.ids),
            workspace_id: host.workspace_id.clone(),
            credential_hint: Some(host.credential_hint),
            ..Self::new(config)
        }
    }

    /// Speaks to a provider of the settings: what the environment wants of the first one does not concern it.
    pub(crate) fn named(provider: &str) -> Self {
        Self {
            features: Features::StableOnly,
            extra_betas: Vec::new(),
            addressee: Addressee::Named(provider.to_owned()),
            overrides: BTreeMap::new(),
            workspace_id: None,
            credential_hint: None,
            tells_ids: false,
            interleaves_thinking: true,
            caching: PromptCaching::default(),
        }
    }
}

impl Anthropic {
    /// Returns the beta features that a request asks for.
    fn betas(&self, request: &Request) -> Vec<String> {
        let mut betas = self.features.betas(request, &self.extra_betas);
        betas.retain(|name| self.interleaves_thinking || name != INTERLEAVED_THINKING);
        betas
    }

    /// Returns what a model is called in the transcript, where that is not what the server calls it.
    fn full_name(&self, request: &Request) -> Option<String> {
        matches!(self.addressee, Addressee::Named(_)).then(|| request.model.trim().to_owned())
    }
}

impl Protocol for Anthropic {
    fn headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", API_VERSION.to_owned())];
        if !self.tells_ids {
            return headers;
        }
        headers.push(("x-app", "cli".to_owned()));
        headers.extend(self.workspace_id.clone().map(|id| ("anthropic-workspace-id", id)));
        let betas = self.betas(request);
        if !betas.is_empty() {
            headers.push(("anthropic-beta", betas.join(",")));
        }
        let ids = [
            ("x-claude-code-session-id", &request.session_id),
            ("x-claude-code-agent-id", &request.agent_id),
            ("x-claude-code-parent-agent-id", &request.parent_agent_id),
            ("x-client-request-id", &request.client_request_id),
        ];
        headers.extend(ids.into_iter().filter_map(|(name, id)| Some((name, id.clone()?))));
        headers
    }

    fn body(&self, request: &Request) -> Bytes {
        let betas = match self.addressee {
            Addressee::Bedrock => self.betas(request),
            Addressee::Api(_) | Addressee::Named(_) | Addressee::Vertex => Vec::new(),
        };
        let asker = if request.agent_id.is_some() { Asker::Agent } else { Asker::MainLine };
        let cache_mark = self.caching.mark(&request.model, asker);
        let (features, addressee, overrides) = (self.features, &self.addressee, &self.overrides);
        body::write(request, Wording { features, addressee, overrides, betas: &betas, cache_mark })
    }

    fn decoder(&self, request: &Arc<Request>, request_id: Option<RequestId>) -> Box<dyn Decode> {
        let decoder = decode::Decoder::new(request.wants_wire_events, request_id);
        Box::new(decoder.called(self.full_name(request)))
    }

    fn read_whole(
        &self,
        request: &Arc<Request>,
        body: &[u8],
        request_id: Option<RequestId>,
    ) -> Result<Vec<StreamEvent>, Failure> {
        let mut events = answer::read(body, request_id)?;
        if let (Some(name), Some(StreamEvent::Started(started))) =
            (self.full_name(request), events.first_mut())
        {
            started.model = name;
        }
        Ok(events)
    }

    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8], asked: RequestFacts<'_>) -> Failure {
        let failure = failure::from_answer(status, headers, body, asked);
        match (failure.kind, self.credential_hint) {
            (FailureKind::Unauthenticated, Some(hint)) => failure.with_hint(hint),
            _ => failure,
        }
    }
}
