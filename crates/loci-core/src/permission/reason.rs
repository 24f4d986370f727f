//! Why a call was judged as it was, for code and for people (S-10).

use std::fmt;
use std::path::{Path, PathBuf};

use super::{BlockedAccess, Mode, Rule};
use crate::tool::{ASKS_OUTSIDE, Interaction};

/// Why a call was judged as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A rule decided.
    Rule(Rule),
    /// Whoever offers the tool forbids it, and why.
    Forbidden(String),
    /// A hook decided, and said why.
    Hook(String),
    /// A classifier decided, and said why.
    Classifier(String),
    /// A rule that restricts may match, depending on what is only known when the command runs.
    MayMatch(Rule, String),
    /// Only reading, in the session's directories.
    ReadOnly,
    /// It writes the plan that is being made.
    Plan(PathBuf),
    /// It writes a memory, in the directory that is there for them.
    Memory(PathBuf),
    /// Fetching from the built-in list of documentation.
    Documentation(String),
    /// It runs in the sandbox.
    Sandbox,
    /// The mode lets it run.
    Mode(Mode),
    /// The mode denies what it would have to ask about, for this reason.
    NotAsked(Mode, Box<Reason>),
    /// Settings deny what would have to be asked about, for this reason (`permissions.denyInsteadOfPrompting`).
    PromptsDenied(Box<Reason>),
    /// It reaches outside the session's directories, where settings let nothing be read or written.
    Blocked(BlockedAccess, String),
    /// It would remove a root, a home or the project.
    CriticalRemoval(String),
    /// It would contact this machine or a network of its own.
    PrivateHost(String),
    /// Its address carries so much that it could tell the host what it should not know.
    CarriesData(String),
    /// It would write a path that steers tools.
    ProtectedPath(PathBuf),
    /// It reaches outside the session's directories.
    OutsideDirectories(PathBuf),
    /// It would change, or work in, the checkout that the worktree is there to leave alone.
    OutsideWorktree {
        /// What it would change, or where it would go.
        path: PathBuf,
        /// Where the work is to be done.
        worktree: PathBuf,
    },
    /// Nobody can say that it stays in the worktree.
    UnclearInWorktree {
        /// What only the run will tell.
        what: String,
        /// Where the work is to be done.
        worktree: PathBuf,
    },
    /// It would move the session, and what that may write to, to another place.
    SessionMove(PathBuf),
    /// It reads or writes a path that is only known when the command runs.
    UnclearPath(String),
    /// Part of it could not be understood.
    NotUnderstood(String),
    /// It turns to a person, in whose place nobody answers.
    Interaction(Interaction),
    /// It would let later calls run unasked; the rules, joined.
    Grants(String),
    /// It contacts this host, and nothing allows that.
    Reaches(String),
    /// It changes something, and nothing allows that.
    NeedsApproval,
}

impl Reason {
    /// Returns its kind, as clients are told.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Rule(_) | Self::MayMatch(..) | Self::Forbidden(_) | Self::PromptsDenied(_) => "rule",
            Self::Hook(_) => "hook",
            Self::Classifier(_) => "classifier",
            Self::Mode(_) | Self::NotAsked(..) => "mode",
            Self::CriticalRemoval(_)
            | Self::ProtectedPath(_)
            | Self::PrivateHost(_)
            | Self::CarriesData(_)
            | Self::SessionMove(_) => "safetyCheck",
            Self::OutsideDirectories(_)
            | Self::Blocked(..)
            | Self::OutsideWorktree { .. }
            | Self::UnclearInWorktree { .. } => "workingDir",
            Self::ReadOnly
            | Self::Sandbox
            | Self::Plan(_)
            | Self::Memory(_)
            | Self::Documentation(_)
            | Self::UnclearPath(_)
            | Self::NotUnderstood(_)
            | Self::Interaction(_)
            | Self::Grants(_)
            | Self::Reaches(_)
            | Self::NeedsApproval => "other",
        }
    }

    /// Returns the path that is in the way.
    pub fn path(&self) -> Option<&Path> {
        match self.root() {
            Self::ProtectedPath(path) | Self::OutsideDirectories(path) | Self::SessionMove(path) => {
                Some(path)
            }
            _ => None,
        }
    }

    /// Returns the rule that decided, or may apply.
    pub fn rule(&self) -> Option<&Rule> {
        match self.root() {
            Self::Rule(rule) | Self::MayMatch(rule, _) => Some(rule),
            _ => None,
        }
    }

    /// Returns why it was asked about, whatever a mode made of that.
    pub fn root(&self) -> &Self {
        match self {
            Self::NotAsked(_, reason) | Self::PromptsDenied(reason) => reason.root(),
            other => other,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "the rule {rule}"),
            Self::Forbidden(why) => f.write_str(why),
            Self::Hook(said) if said.is_empty() => f.write_str("a hook"),
            Self::Hook(said) => write!(f, "a hook: {said}"),
            Self::Classifier(said) if said.is_empty() => f.write_str("the classifier"),
            Self::Classifier(said) => write!(f, "the classifier: {said}"),
            Self::MayMatch(rule, what) => write!(f, "the rule {rule} may apply: {what}"),
            Self::ReadOnly => f.write_str("it only reads, inside the working directories"),
            Self::Plan(path) => write!(f, "`{}` is the plan", path.display()),
            Self::Memory(path) => write!(f, "`{}` is a memory", path.display()),
            Self::Documentation(host) => write!(f, "`{host}` is documentation that may be fetched"),
            Self::Sandbox => f.write_str("it runs in the sandbox"),
            Self::Mode(mode) => write!(f, "permission mode {mode}"),
            Self::NotAsked(mode, reason) => write!(f, "{reason}, and mode {mode} does not ask"),
            Self::PromptsDenied(reason) => {
                write!(
                    f,
                    "{reason}, and settings deny what would be asked about (permissions.denyInsteadOfPrompting)"
                )
            }
            Self::Blocked(access, path) => write!(
                f,
                "`{path}` is outside the working directories, and settings keep {} inside them ({access}). Ask the user to add \
                 its directory with /add-dir, if it is needed",
                match access {
                    BlockedAccess::Reads => "reads",
                    BlockedAccess::Writes => "writes",
                }
            ),
            Self::CriticalRemoval(target) => write!(f, "it would remove `{target}`"),
            Self::ProtectedPath(path) => write!(f, "`{}` is a protected path", path.display()),
            Self::PrivateHost(host) => write!(f, "`{host}` is this machine or on a private network"),
            Self::CarriesData(host) => {
                write!(f, "the address would tell `{host}` more than what to answer with")
            }
            Self::OutsideDirectories(path) => {
                write!(f, "`{}` is outside the working directories", path.display())
            }
            Self::OutsideWorktree { path, worktree } => write!(
                f,
                "`{}` belongs to the main checkout, and this conversation works in the worktree `{}`: use the path below that",
                path.display(),
                worktree.display()
            ),
            Self::UnclearInWorktree { what, worktree } => write!(
                f,
                "nobody can say that it stays in the worktree `{}`: {what}. Write it as plain, separate commands with paths \
                 below that",
                worktree.display()
            ),
            Self::SessionMove(path) => write!(
                f,
                "it would move the session to `{}`: what it may write, and which settings count, would be those of that place",
                path.display()
            ),
            Self::UnclearPath(text) => write!(f, "the path `{text}` is only known when the command runs"),
            Self::NotUnderstood(what) if what == ASKS_OUTSIDE => write!(f, "it {what}"),
            Self::NotUnderstood(what) => write!(f, "it could not be fully understood: {what}"),
            Self::Interaction(Interaction::Answers) => f.write_str("it asks the user something"),
            Self::Interaction(Interaction::PlanApproval) => f.write_str("the user has to approve the plan"),
            Self::Interaction(Interaction::Confirmation) => f.write_str("a person has to be asked each time"),
            Self::Grants(rules) => write!(f, "it would let calls run unasked: {rules}"),
            Self::Reaches(host) => write!(f, "no rule allows it to reach `{host}`"),
            Self::NeedsApproval => f.write_str("it changes something and no rule allows it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_that_asks_to_leave_the_sandbox_is_not_said_to_be_unclear() {
        let said = |what: &str| Reason::NotUnderstood(what.to_owned()).to_string();
        assert_eq!(said(ASKS_OUTSIDE), "it asks to run outside the sandbox");
        assert_eq!(said("a loop"), "it could not be fully understood: a loop");
    }
}
