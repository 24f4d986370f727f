//! Model providers: protocol, endpoint, authentication and framing; knows nothing of sessions.
//!
//! A [`Client`] sends one [`Request`] and gives back an [`EventStream`] of [`loci_core::stream::StreamEvent`]s.
//! It never retries and never decides: failures come back classified as [`loci_core::stream::Failure`], and
//! [`RetryPolicy`] tells the caller how long to wait.
//!
//! What must stay true:
//! 1. Nothing slow happens before the first request: no TLS, no certificates, no DNS. See [`Client::new`].
//! 2. A block that was received or stored goes out again byte for byte, and every request's body is the
//!    previous one plus new messages (the cache mark aside), so the server's prompt cache always fits.
//! 3. Credentials appear in no `Debug` output, no error and no hint.
//! 4. Dropping the stream, or cancelling it, aborts the request.

mod announcer;
mod answer_builder;
mod anthropic;
mod auth;
mod chat;
mod client;
mod clouds;
mod config;
mod endpoint;
mod exchange;
mod failure;
mod framing;
mod google;
mod kept_wire;
mod lenient_json;
mod model_list;
mod model_traits;
mod prompt_caching;
mod provider;
mod rate_limits;
mod request;
mod responses;
mod retry;
mod router;
mod scripted;
mod wire_names;

pub use announcer::Announcer;
pub use anthropic::UNPARSED_INPUT;
pub use auth::{Auth, AuthFuture, AuthSource};
pub use client::{Client, EventStream};
pub use clouds::{
    BedrockConfig, HostConfig, HostIds, SmallModelRegion, VertexConfig, anthropic_aws_base, is_geography,
    is_inference_profile, is_mantle_id, mantle_base,
};
pub use config::{Dialect, NamedProvider, ProviderConfig, Timeouts, WireProtocol, is_location};
pub use failure::{Overflow, overflow};
pub use google::service_account_jwt;
pub use model_list::{ListedModel, ServerFacts};
pub use model_traits::ModelTraits;
pub use prompt_caching::{CacheLife, PromptCaching};
pub use request::{ClearResults, Request, SystemBlock, Thinking, ToolSpec, extra_body_from_env};
pub use retry::{RetryPolicy, delay};
pub use router::Router;
pub use scripted::{Played, PlayedResponse};
