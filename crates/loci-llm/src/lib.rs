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

mod anthropic;
mod auth;
mod client;
mod config;
mod endpoint;
mod exchange;
mod failure;
mod framing;
mod json_post;
mod model_list;
mod page_fetch;
mod provider;
mod proxy;
mod request;
mod retry;
mod scripted;
mod secret;
mod sse;
mod tls;
mod transport;

pub use anthropic::UNPARSED_INPUT;
pub use auth::{Auth, AuthFuture, AuthSource};
pub use client::{Client, EventStream};
pub use config::{CertStore, ClientIdentity, ProviderConfig, Timeouts};
pub use failure::{Overflow, overflow};
pub use json_post::{JsonPost, JsonPostError, post_json};
pub use page_fetch::fetch_page;
pub use proxy::{NoProxy, ProxySettings};
pub use request::{ClearResults, Request, SystemBlock, Thinking, ToolSpec, extra_body_from_env};
pub use retry::{RetryPolicy, delay};
pub use scripted::{Played, PlayedResponse};
pub use secret::Secret;
pub use transport::http_client;
