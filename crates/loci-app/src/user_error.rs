//! What people read when a run cannot start: one clause, its cause, the next step.

use std::io::Write;
use std::process::ExitCode;

/// An error for people.
#[derive(Debug)]
pub struct Complaint {
    message: String,
    hint: Option<String>,
}

impl Complaint {
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

    /// Says it and returns the exit code.
    pub fn exit(&self, stderr: &mut dyn Write) -> ExitCode {
        let hint = self.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
        // A closed stderr leaves nobody to tell; the exit code says it all the same.
        // Names of files come from anywhere: at a terminal they are read, and do nothing.
        let text = loci_stdx::printable(&format!("Error: {}{hint}", self.message));
        drop(writeln!(stderr, "{text}"));
        ExitCode::FAILURE
    }
}

impl From<loci_core::stream::Failure> for Complaint {
    fn from(failure: loci_core::stream::Failure) -> Self {
        Self { message: failure.message, hint: failure.hint }
    }
}
