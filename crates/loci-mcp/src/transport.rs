//! How messages travel. A transport sends one message at a time and puts what comes back, in the order it came, into a
//! bounded channel: a server that talks faster than it is listened to waits, and costs no memory.
//!
//! What must stay true of every transport:
//!
//! 1. A message is sent whole or not at all, whatever is dropped meanwhile.
//! 2. After [`Inbound::Closed`] nothing comes any more; it comes once, when the other side has gone.
//! 3. What is no message is noted and skipped.

pub(crate) mod bridge;
pub(crate) mod headers;
pub(crate) mod http;
pub(crate) mod legacy_sse;
pub(crate) mod line_reader;
pub(crate) mod oversized;
pub(crate) mod routing_headers;
pub(crate) mod stdio;
pub(crate) mod web;
pub(crate) mod web_socket;

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::message::Message;

/// Something that takes a while.
pub(crate) type Travel<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How many messages of a server wait to be seen to.
const INBOX: usize = 64;

/// A way to one server.
pub(crate) trait Transport: Send + Sync {
    /// Sends a message. Answers come through the channel; an error means that none to this one will.
    fn send(&self, message: Value) -> Travel<'_, Result<(), TransportError>>;

    /// Sends a message with headers of its own, where messages have headers.
    fn send_with_headers(
        &self,
        message: Value,
        _headers: Vec<(String, String)>,
    ) -> Travel<'_, Result<(), TransportError>> {
        self.send(message)
    }

    /// Tells whether messages have headers.
    fn has_headers(&self) -> bool {
        false
    }

    /// Is told which revision of the protocol is spoken from now on.
    fn negotiated(&self, _version: &str) {}

    /// Is told that nobody waits for the answer to a request any more; tells whether the server knows by that.
    fn abandon(&self, _id: u64) -> bool {
        false
    }

    /// Ends it, with everything that was started for it. May be called again.
    fn close(&self) -> Travel<'_, ()>;
}

/// What comes from a server.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// It says something.
    Message(Message),
    /// The answer to a request will not come.
    Lost { id: u64, error: TransportError },
    /// An answer will not come, and nobody can tell to which request.
    LostUnknown(TransportError),
    /// It has gone, and why.
    Closed(String),
}

pub(crate) type InboundSender = mpsc::Sender<Inbound>;
pub(crate) type InboundReceiver = mpsc::Receiver<Inbound>;

/// Returns the two ends of what comes from a server.
pub(crate) fn inbox() -> (InboundSender, InboundReceiver) {
    mpsc::channel(INBOX)
}

/// Why a message did not get through.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The server has gone.
    #[error("the server has gone: {0}")]
    Closed(String),
    /// The server has forgotten the session; a new one must be begun.
    #[error("the server has forgotten the session")]
    SessionExpired,
    /// The server wants to know who asks.
    #[error("the server wants a login (HTTP {status})")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// What the `WWW-Authenticate` header says.
        challenge: Option<String>,
    },
    /// The server wants to know who asks, and nobody can tell it.
    #[error("the server refuses who asks (HTTP {status}): {why}")]
    Refused {
        /// 401 or 403.
        status: u16,
        /// Why nothing can be done about it.
        why: String,
    },
    /// The server refused the message.
    #[error("the server answered with HTTP {status}{}", body_suffix(body))]
    Status {
        /// The status.
        status: u16,
        /// The beginning of what it said.
        body: String,
    },
    /// What it said is longer than is read.
    #[error("its answer has {n_bytes} bytes, and no more than 64 MiB are read; ask for less at once")]
    TooLarge {
        /// How long it is.
        n_bytes: u64,
    },
    /// It could not be reached, or broke off.
    #[error("{0}")]
    Failed(String),
}

fn body_suffix(body: &str) -> String {
    match body.is_empty() {
        true => String::new(),
        false => format!(": {body}"),
    }
}

impl TransportError {
    /// Tells whether trying again may help.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Failed(_) => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Closed(_)
            | Self::SessionExpired
            | Self::TooLarge { .. }
            | Self::Unauthorized { .. }
            | Self::Refused { .. } => false,
        }
    }
}
