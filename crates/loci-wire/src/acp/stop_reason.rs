//! How a turn ended, as the answer to its prompt.

use loci_core::stream::FailureKind;
use loci_engine::TurnReport;
use loci_engine::turn::Outcome;
use serde_json::{Value, json};

use super::rpc::{AUTH_REQUIRED, INTERNAL_ERROR, RpcError};
use crate::result_frame::outcome_text;

/// How a prompt is answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PromptEnd {
    /// What the person is told first, where the turn said nothing of it.
    pub(super) note: Option<String>,
    /// The answer.
    pub(super) answer: Result<Value, RpcError>,
}

impl PromptEnd {
    fn stop(reason: &str) -> Self {
        Self { note: None, answer: Ok(json!({"stopReason": reason})) }
    }

    fn noted(self, note: String) -> Self {
        Self { note: Some(note), ..self }
    }

    fn failed(code: i64, message: String) -> Self {
        Self { note: None, answer: Err(RpcError::new(code, message)) }
    }

    /// A prompt that was called off.
    pub(super) fn cancelled() -> Self {
        Self::stop("cancelled")
    }

    /// A prompt whose session has ended.
    pub(super) fn session_ended() -> Self {
        Self::failed(INTERNAL_ERROR, "The session has ended".to_owned())
    }

    /// Returns the answer to the prompt of a turn.
    pub(super) fn of(report: &TurnReport) -> Self {
        match &report.outcome {
            Outcome::Completed | Outcome::Structured(_) => Self::stop(match report.stop_reason.as_deref() {
                Some("max_tokens") => "max_tokens",
                Some("refusal") => "refusal",
                _ => "end_turn",
            }),
            Outcome::Refused => Self::stop("refusal"),
            Outcome::MaxTurns(_) => Self::stop("max_turn_requests"),
            Outcome::MaxBudget(_) => Self::stop("max_turn_requests").noted(outcome_text(report)),
            Outcome::Interrupted(_) => Self::cancelled(),
            // The command has said why.
            Outcome::CommandFailed => Self::stop("end_turn"),
            Outcome::Blocked(reason) | Outcome::Halted(reason) => {
                Self::stop("end_turn").noted(reason.clone())
            }
            Outcome::Deferred(_) | Outcome::DeferredUnavailable(_) => {
                Self::stop("end_turn").noted(outcome_text(report))
            }
            Outcome::MaxStructuredAttempts(_) => Self::failed(INTERNAL_ERROR, outcome_text(report)),
            Outcome::ApiError(failure) if report.stop_reason.as_deref() == Some("max_tokens") => {
                Self::stop("max_tokens").noted(failure.message.clone())
            }
            Outcome::ApiError(failure) => {
                let code =
                    if failure.kind == FailureKind::Unauthenticated { AUTH_REQUIRED } else { INTERNAL_ERROR };
                let hint = failure.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
                Self::failed(code, format!("{}{hint}", failure.message))
            }
        }
    }
}
