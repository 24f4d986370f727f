//! Why a request is refused, or could not be carried out.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why there is no answer: a kind for programs, a clause and the next step for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestError {
    /// The kind.
    pub kind: ErrorKind,
    /// What was tried, on what, and why it was not done.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Kinds of refusal that a client acts upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Somebody else has the writer's seat.
    NotWriter,
    /// The one who asks may look on, and no more.
    ReadOnly,
    /// The question is answered already, or withdrawn.
    AlreadyAnswered,
    /// There is no such thing.
    NotFound,
    /// It was understood, and could not be done.
    Failed,
    /// It was not understood.
    Malformed,
    /// The session is over.
    SessionOver,
    /// The connection to the session is gone.
    Disconnected,
}

impl RequestError {
    /// Makes an error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Makes the error of something that could not be done.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Says that the session is over.
    pub fn session_over() -> Self {
        Self::new(ErrorKind::SessionOver, "The session is over")
    }

    /// Says that there is no way to the session any more.
    pub fn disconnected() -> Self {
        Self::new(ErrorKind::Disconnected, "The connection to the session is gone")
    }

    /// Adds the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RequestError {}
