//! What people read when a run cannot start: one clause, its cause, the next step.

use std::fmt;

/// An error for people.
#[derive(Debug)]
pub struct UserError {
    message: String,
    hint: Option<String>,
}

impl UserError {
    /// Says what is wrong, in one clause.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Takes an error with all its causes.
    pub fn from_error(error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            message.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        Self::new(message)
    }

    /// Adds the next step.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns the error's text without the hint.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for UserError {
    /// Writes the text and, on a line of its own, the hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n{hint}"))
    }
}

impl From<loci_core::stream::Failure> for UserError {
    fn from(failure: loci_core::stream::Failure) -> Self {
        Self { message: failure.message, hint: failure.hint }
    }
}
