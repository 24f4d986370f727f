//! What is wrong with a settings file: where, which key, and what to do.

use std::fmt;

use super::Origin;

/// One thing a person should know about a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub origin: Origin,
    /// The line, counted from one.
    pub line: Option<usize>,
    /// The key, with dots between its parts.
    pub key: Option<String>,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong, one clause.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth a line in `loci doctor` only.
    Note,
    /// A value is not used.
    Warning,
    /// The file is not what its author thinks it is.
    Error,
}

impl Diagnostic {
    pub(super) fn new(origin: &Origin, severity: Severity, message: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), String::new());
        Self { origin: origin.clone(), line: None, key: None, severity, message, hint }
    }

    pub(super) fn line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    pub(super) fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// Makes the diagnostic of a file that could not be read at all.
    pub fn unread(origin: &Origin, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(origin, Severity::Error, message).hint(hint)
    }

    /// Makes a warning about a file as a whole.
    pub fn warning(origin: &Origin, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(origin, Severity::Warning, message).hint(hint)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin.name)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": `{key}`")?;
        }
        write!(f, ": {}", self.message)?;
        if !self.hint.is_empty() {
            write!(f, " ({})", self.hint)?;
        }
        Ok(())
    }
}
