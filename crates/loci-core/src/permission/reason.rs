//! Why a call was judged as it was, for code and for people (S-10).

use std::fmt;
use std::path::PathBuf;

use super::{Mode, Rule};

/// Why a call was judged as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A rule decided.
    Rule(Rule),
    /// A rule that restricts may match, depending on what is only known when the command runs.
    MayMatch(Rule, String),
    /// Only reading, in the session's directories.
    ReadOnly,
    /// Fetching from the built-in list of documentation.
    Documentation(String),
    /// The mode lets it run.
    Mode(Mode),
    /// The mode denies what it would have to ask about, for this reason.
    NotAsked(Mode, Box<Reason>),
    /// It would remove a root, a home or the project.
    CriticalRemoval(String),
    /// It would write a path that steers tools.
    ProtectedPath(PathBuf),
    /// It reaches outside the session's directories.
    Outside(PathBuf),
    /// It reads or writes a path that is only known when the command runs.
    UnclearPath(String),
    /// Part of it could not be understood.
    NotUnderstood(String),
    /// It changes something, and nothing allows that.
    NeedsApproval,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "the rule {rule}"),
            Self::MayMatch(rule, what) => write!(f, "the rule {rule} may apply: {what}"),
            Self::ReadOnly => f.write_str("it only reads, inside the working directories"),
            Self::Documentation(host) => write!(f, "`{host}` is documentation that may be fetched"),
            Self::Mode(mode) => write!(f, "permission mode {mode}"),
            Self::NotAsked(mode, reason) => write!(f, "{reason}, and mode {mode} does not ask"),
            Self::CriticalRemoval(target) => write!(f, "it would remove `{target}`"),
            Self::ProtectedPath(path) => write!(f, "`{}` is a protected path", path.display()),
            Self::Outside(path) => write!(f, "`{}` is outside the working directories", path.display()),
            Self::UnclearPath(text) => write!(f, "the path `{text}` is only known when the command runs"),
            Self::NotUnderstood(what) => write!(f, "it could not be fully understood: {what}"),
            Self::NeedsApproval => f.write_str("it changes something and no rule allows it"),
        }
    }
}
