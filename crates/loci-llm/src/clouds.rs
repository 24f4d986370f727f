//! The Messages protocol behind other doors: Bedrock and Vertex.
//!
//! Both take the body of the Messages API with few changes: the model is in the address, a version is in the body, and Bedrock
//! has the beta features in the body, too. Ids are theirs; ours are mapped, and whatever is no id of ours is passed on.

mod bedrock;
pub(crate) mod event_stream;
mod host;
mod inference_profile;
mod vertex;

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use loci_core::ids::RequestId;
use loci_core::stream::{Failure, FailureKind, StreamEvent};
use reqwest::header::HeaderMap;

pub use bedrock::is_geography;
pub(crate) use bedrock::{bedrock_base, bedrock_path};
pub use host::{HostConfig, HostIds, anthropic_aws_base, is_mantle_id, mantle_base};
pub use inference_profile::is_inference_profile;
pub(crate) use inference_profile::{model_of_profile, profile_path};
pub(crate) use vertex::{vertex_base, vertex_path};

use self::event_stream::{EventStreamReader, is_event_stream};
use crate::anthropic::{Addressee, Anthropic};
use crate::config::ProviderConfig;
use crate::failure::{self, RequestFacts};
use crate::framing::FrameReader;
use crate::provider::{Decode, Protocol};
use crate::request::Request;

/// Where Bedrock is, and how it names models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BedrockConfig {
    /// The region.
    pub region: String,
    /// The geography that is preferred (`us`, `eu`, `global`), where the region is not told by it.
    pub prefix: Option<String>,
    /// What settings call our ids there (`modelOverrides`).
    pub overrides: BTreeMap<String, String>,
    /// The tier that is asked for.
    pub service_tier: Option<String>,
    /// Where the small model is, if it is elsewhere.
    pub small: Option<SmallModelRegion>,
    /// Whether the address was given, so that no host is made of a region.
    pub has_own_address: bool,
    /// Where profiles are described; nowhere behind a gateway that does not say.
    pub control_plane: Option<String>,
}

/// Models that are in a region of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallModelRegion {
    /// Their ids.
    pub models: Vec<String>,
    /// The region.
    pub region: String,
}

/// Where Vertex is, and whose project pays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexConfig {
    /// The project.
    pub project: String,
    /// The region of models that have none of their own.
    pub region: String,
    /// Regions of single models: the words of the variable behind `VERTEX_REGION_CLAUDE_`, and the region.
    pub model_regions: Vec<(String, String)>,
    /// What settings call our ids there (`modelOverrides`).
    pub overrides: BTreeMap<String, String>,
    /// Whether the address was given, so that no host is made of a region.
    pub has_own_address: bool,
}

/// A host of the Messages protocol.
#[derive(Debug)]
pub(crate) struct Cloud {
    protocol: Anthropic,
    service_tier: Option<String>,
    is_bedrock: bool,
}

impl Cloud {
    pub(crate) fn bedrock(config: &ProviderConfig, bedrock: &BedrockConfig) -> Self {
        Self {
            protocol: Anthropic::new(config).addressed_to(Addressee::Bedrock),
            service_tier: bedrock.service_tier.clone(),
            is_bedrock: true,
        }
    }

    pub(crate) fn vertex(config: &ProviderConfig) -> Self {
        Self {
            protocol: Anthropic::new(config).addressed_to(Addressee::Vertex),
            service_tier: None,
            is_bedrock: false,
        }
    }
}

impl Protocol for Cloud {
    fn headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        if !self.is_bedrock {
            return self.protocol.headers(request);
        }
        let tier = self.service_tier.clone();
        tier.map(|tier| ("x-amzn-bedrock-service-tier", tier)).into_iter().collect()
    }

    fn body(&self, request: &Request) -> Bytes {
        self.protocol.body(request)
    }

    fn decoder(&self, request: &Arc<Request>, request_id: Option<RequestId>) -> Box<dyn Decode> {
        self.protocol.decoder(request, request_id)
    }

    fn read_whole(
        &self,
        request: &Arc<Request>,
        body: &[u8],
        request_id: Option<RequestId>,
    ) -> Result<Vec<StreamEvent>, Failure> {
        // A proxy may have called the stream JSON; asking again would be paid for twice.
        if self.is_bedrock && is_event_stream(body) {
            return read_frames(self.decoder(request, request_id), body);
        }
        self.protocol.read_whole(request, body, request_id)
    }

    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8], asked: RequestFacts<'_>) -> Failure {
        let mut failure = failure::from_answer(status, headers, body, asked);
        let said = failure.message.to_ascii_lowercase();
        if self.is_bedrock && said.contains("on-demand throughput") {
            failure = failure.with_hint(
                "This model is reached through an inference profile: name it with its geography, such as \
                 `us.anthropic.claude-opus-5`, or by the ARN of a profile of yours.",
            );
        } else if matches!(failure.kind, FailureKind::Unauthenticated | FailureKind::Forbidden) {
            failure = failure.with_hint(match self.is_bedrock {
                true => "Renew the credentials (for example `aws sso login`), set `awsAuthRefresh`, or ask for access to the model.",
                false => "Renew the credentials (`gcloud auth application-default login`), set `gcpAuthRefresh`, or ask for access to the model.",
            });
        }
        failure
    }
}

/// Reads a whole stream of frames.
fn read_frames(mut decoder: Box<dyn Decode>, body: &[u8]) -> Result<Vec<StreamEvent>, Failure> {
    let mut frames = EventStreamReader::default();
    let mut out = VecDeque::new();
    frames.push(body);
    while !decoder.has_ended() {
        let frame = frames.next_frame().map_err(|error| failure::malformed(&error.to_string()))?;
        let Some(frame) = frame else { return Err(decoder.cut("the stream ended early")) };
        decoder.decode(&frame, &mut out)?;
    }
    Ok(out.into())
}
