//! One way to the network: transport, proxy, TLS, signatures, server-sent events, pages. It knows no protocol above HTTP.
//!
//! A [`Transport`] leads to one server and keeps its connections; [`http_client`], [`http_call`], [`post_json`] and
//! [`fetch_page`] are for everything else. All of them go by the same [`NetworkSettings`].
//!
//! What must stay true:
//! 1. Nothing slow happens before the first request: no TLS, no certificates, no DNS.
//! 2. Credentials appear in no `Debug` output, no error and no hint.
//! 3. No redirect is followed with credentials; pages are fetched from the address that was judged.

mod aws;
mod connection_failure;
mod json_post;
mod page_fetch;
mod proxy;
mod secret;
mod settings;
mod sse;
mod tls;
mod transport;

pub use aws::{AwsKeys, AwsSigner, FORM, bad_header, is_region, sha1_hex};
pub use connection_failure::{
    CONNECT_HINT, PROXY_HINT, Route, STALLED_HINT, TLS_HINT, no_answer, root_words, stalled,
};
pub use json_post::{HttpCall, JsonPost, JsonPostError, http_call, post_json};
pub use page_fetch::{fetch_page, socket_client};
pub use proxy::{NoProxy, ProxySettings};
pub use secret::Secret;
pub use settings::{CertStore, ClientIdentity, NetworkSettings, bad_value};
pub use sse::{EVENT_CAP, SseError, SseEvent, SseReader};
pub use transport::{Post, Transport, http_client};
