//! OpenAI's Responses, without anything kept at the server: each request says all (`store: false`), and sealed reasoning
//! comes with the answer and goes back with the next request.

mod decode;
mod encode;

use std::sync::Arc;

use bytes::Bytes;
use loci_core::ids::RequestId;
use loci_core::stream::{Failure, StreamEvent};
use reqwest::header::HeaderMap;

use self::decode::Decoder;
use crate::config::NamedProvider;
use crate::failure::{self, RequestFacts};
use crate::provider::{Decode, Protocol};
use crate::request::Request;

/// The protocol of `POST /responses`.
#[derive(Debug)]
pub(crate) struct Responses {
    provider: String,
}

impl Responses {
    /// Takes from the configuration what concerns the protocol.
    pub(crate) fn new(named: &NamedProvider) -> Self {
        Self { provider: named.name.clone() }
    }
}

impl Protocol for Responses {
    fn headers(&self, _request: &Request) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn body(&self, request: &Request) -> Bytes {
        encode::body(request, &self.provider)
    }

    fn decoder(&self, request: &Arc<Request>, request_id: Option<RequestId>) -> Box<dyn Decode> {
        Box::new(Decoder::new(request, request_id, &self.provider))
    }

    fn read_whole(
        &self,
        request: &Arc<Request>,
        body: &[u8],
        request_id: Option<RequestId>,
    ) -> Result<Vec<StreamEvent>, Failure> {
        decode::read_whole(Decoder::new(request, request_id, &self.provider), body)
    }

    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8], asked: RequestFacts<'_>) -> Failure {
        failure::from_answer(status, headers, body, asked)
    }
}
