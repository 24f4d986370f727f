//! What a model provider says while it answers, and how it fails: the words between `loci-llm` and the engine.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{MessageId, RequestId};
use crate::message::Block;
use crate::raw::RawJson;
use crate::serde_form::opt_millis;
use crate::usage::Usage;

/// One event of a streamed response, already decoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamEvent {
    /// The server's own event, unchanged; sent before its decoded form, only when the request asked for it.
    Wire(RawJson),
    /// The response began.
    Started(Started),
    /// A block began; `name` is the tool's for a tool call.
    BlockStarted {
        /// Position in the response.
        index: usize,
        /// The wire name of the block's kind.
        kind: String,
        /// The tool's name, for tool calls.
        name: Option<String>,
    },
    /// A block grew.
    Delta {
        /// Position in the response.
        index: usize,
        /// What was added.
        delta: Delta,
    },
    /// A block is complete.
    BlockDone {
        /// Position in the response.
        index: usize,
        /// The whole block.
        block: Block,
    },
    /// The response is complete; nothing follows.
    Ended(Ended),
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The API's message id.
    pub message_id: MessageId,
    /// The model that answers, as the server names it.
    pub model: String,
    /// Usage so far (input side).
    pub usage: Usage,
    /// The `request-id` header, if there was one.
    pub request_id: Option<RequestId>,
    /// How much of what the account may use is used, where the server tells.
    pub rate_limits: Option<Box<RateLimits>>,
}

/// How much of what an account may use is used, as a server tells it with its answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RateLimits {
    /// `allowed`, `allowed_warning` or `rejected`.
    pub status: String,
    /// When it begins anew, in seconds since 1970.
    pub resets_at: Option<u64>,
    /// The limit that is nearest: `five_hour`, `seven_day`, ..
    pub kind: Option<String>,
    /// How much of that is used; 1 is all.
    pub utilization: Option<f64>,
    /// The share that was passed last.
    pub surpassed_threshold: Option<f64>,
    /// How what is paid for beyond it stands, likewise.
    pub overage_status: Option<String>,
    /// When that begins anew.
    pub overage_resets_at: Option<u64>,
    /// Why nothing can be paid for.
    pub overage_disabled_reason: Option<String>,
    /// The limit of five hours, where the server has figures for it.
    pub five_hour: Option<RateWindow>,
    /// The limit of seven days, likewise.
    pub seven_day: Option<RateWindow>,
}

/// How much of one limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateWindow {
    /// The share; 1 is all.
    pub utilization: f64,
    /// When it begins anew, in seconds since 1970.
    pub resets_at: Option<u64>,
}

/// A piece of a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Text(String),
    /// More reasoning.
    Thinking(String),
    /// More of a tool call's arguments.
    InputJson(String),
}

impl Delta {
    /// Returns what is added, whatever it is added to.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Thinking(text) | Self::InputJson(text) => text,
        }
    }
}

/// The end of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Why the model stopped (`end_turn`, `tool_use`, `max_tokens`, `refusal`, …).
    pub stop_reason: Option<String>,
    /// The stop sequence that was met.
    pub stop_sequence: Option<String>,
    /// Usage of the whole response.
    pub usage: Usage,
    /// What the server says it did to the conversation before the model read it, as it said so.
    pub context_management: Option<Box<Value>>,
}

/// Why a request failed, as far as code needs to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No connection, or it broke before an answer.
    Connect,
    /// This machine refused the connection: nobody listens there.
    NoListener,
    /// The connection broke in the middle of the answer.
    Cut,
    /// The server went silent.
    Stalled,
    /// TLS could not be agreed.
    Tls,
    /// The answer was not what the protocol says.
    Malformed,
    /// 429.
    RateLimited,
    /// 429 that waiting does not mend: a spend limit.
    SpendLimit,
    /// 529 or an overloaded event.
    Overloaded,
    /// Any other 5xx, and server errors in the stream.
    Server,
    /// 400: the prompt does not fit the window.
    PromptTooLong,
    /// 400: the prompt fits, but not together with the asked-for output.
    OutputTooLong,
    /// 413: the request has too many bytes.
    TooLarge,
    /// 401.
    Unauthenticated,
    /// 403.
    Forbidden,
    /// Out of credit.
    Billing,
    /// 404: usually the model's name.
    NotFound,
    /// 400: the server does not edit conversations (`context_management`).
    EditingRefused,
    /// Any other 4xx.
    InvalidRequest,
}

/// A failed request: what happened and what to do next.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Failure {
    /// For code.
    pub kind: FailureKind,
    /// The HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// For people: one clause.
    pub message: String,
    /// The next step, for people.
    pub hint: Option<String>,
    /// How long the server asked us to wait.
    #[serde(rename = "retry_after_ms", with = "opt_millis", default)]
    pub retry_after: Option<Duration>,
    /// For support.
    pub request_id: Option<RequestId>,
    /// How much of what the account may use is used, where the server told.
    pub rate_limits: Option<Box<RateLimits>>,
}

impl Failure {
    /// Makes a failure that never reached an answer.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            message: message.into(),
            hint: None,
            retry_after: None,
            request_id: None,
            rate_limits: None,
        }
    }

    /// Adds the next step.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns true when the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            FailureKind::Connect
            | FailureKind::Cut
            | FailureKind::Stalled
            | FailureKind::Malformed
            | FailureKind::RateLimited
            | FailureKind::Overloaded
            | FailureKind::Server => true,
            FailureKind::NoListener
            | FailureKind::Tls
            | FailureKind::SpendLimit
            | FailureKind::PromptTooLong
            | FailureKind::OutputTooLong
            | FailureKind::TooLarge
            | FailureKind::Unauthenticated
            | FailureKind::Forbidden
            | FailureKind::Billing
            | FailureKind::NotFound
            | FailureKind::EditingRefused
            | FailureKind::InvalidRequest => false,
        }
    }

    /// Returns true when another model may do better: overload and server trouble, never our own fault.
    pub fn allows_fallback(&self) -> bool {
        matches!(self.kind, FailureKind::Overloaded | FailureKind::Server)
    }

    /// Returns the category that headless clients know (`rate_limit`, `overloaded`, …).
    pub fn category(&self) -> &'static str {
        match self.kind {
            FailureKind::Unauthenticated | FailureKind::Forbidden => "authentication_failed",
            FailureKind::Billing | FailureKind::SpendLimit => "billing_error",
            FailureKind::RateLimited => "rate_limit",
            FailureKind::Overloaded => "overloaded",
            FailureKind::PromptTooLong
            | FailureKind::OutputTooLong
            | FailureKind::TooLarge
            | FailureKind::EditingRefused
            | FailureKind::InvalidRequest => "invalid_request",
            FailureKind::NotFound => "model_not_found",
            FailureKind::Server => "server_error",
            FailureKind::Connect
            | FailureKind::NoListener
            | FailureKind::Cut
            | FailureKind::Stalled
            | FailureKind::Tls
            | FailureKind::Malformed => "unknown",
        }
    }
}
