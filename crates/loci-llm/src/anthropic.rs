//! The Anthropic Messages protocol: headers, body, features, and both forms of answer.

mod answer;
mod block;
mod body;
mod cache;
mod decode;
mod features;

use bytes::Bytes;
use loci_core::ids::RequestId;
use loci_core::stream::{Failure, StreamEvent};
use reqwest::header::HeaderMap;

use self::features::Features;
use crate::config::ProviderConfig;
use crate::failure::{self, RequestFacts};
use crate::provider::{Decode, Protocol};
use crate::request::Request;

pub use self::block::UNPARSED_INPUT;

pub(crate) const API_VERSION: &str = "2023-06-01";

/// The protocol of `POST /v1/messages`.
#[derive(Debug)]
pub(crate) struct Anthropic {
    features: Features,
    extra_betas: Vec<String>,
}

impl Anthropic {
    /// Takes from the configuration what concerns the protocol.
    pub(crate) fn new(config: &ProviderConfig) -> Self {
        let features =
            if config.allows_experimental_betas { Features::Experimental } else { Features::StableOnly };
        Self { features, extra_betas: config.extra_betas.clone() }
    }
}

impl Protocol for Anthropic {
    fn headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", API_VERSION.to_owned()), ("x-app", "cli".to_owned())];
        let betas = self.features.betas(request, &self.extra_betas);
        if !betas.is_empty() {
            headers.push(("anthropic-beta", betas.join(",")));
        }
        let ids = [
            ("x-claude-code-session-id", &request.session_id),
            ("x-claude-code-agent-id", &request.agent_id),
            ("x-client-request-id", &request.client_request_id),
        ];
        headers.extend(ids.into_iter().filter_map(|(name, id)| Some((name, id.clone()?))));
        headers
    }

    fn body(&self, request: &Request) -> Bytes {
        body::write(request, self.features)
    }

    fn decoder(&self, request: &Request, request_id: Option<RequestId>) -> Box<dyn Decode> {
        Box::new(decode::Decoder::new(request.wants_wire_events, request_id))
    }

    fn read_whole(&self, body: &[u8], request_id: Option<RequestId>) -> Result<Vec<StreamEvent>, Failure> {
        answer::read(body, request_id)
    }

    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8], asked: RequestFacts<'_>) -> Failure {
        failure::from_answer(status, headers, body, asked)
    }
}
