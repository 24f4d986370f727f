//! What is to be done about findings, as a value: it can be looked at before it is done.

use std::path::PathBuf;

use loci_core::ids::SessionId;

use super::finding::{Finding, RepairOutcome};
use crate::layout::SessionPlace;

/// Findings that one fix mends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) findings: Vec<Finding>,
    pub(super) fix: Fix,
}

/// What a repair does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fix {
    /// Keeps the transcript aside and writes it anew, with every entry that can be read.
    Rewrite { file: PathBuf, is_agent: bool },
    /// Does the same with a log of changes to files.
    RewriteLog { file: PathBuf },
    /// Keeps the content of a file in the store that all sessions share.
    Keep { path: PathBuf },
    /// Writes a file that is missing.
    Write { path: PathBuf, bytes: Vec<u8>, said: String },
    /// Takes everybody else's rights away.
    Close { paths: Vec<PathBuf> },
    /// Moves things aside.
    MoveAside { paths: Vec<PathBuf> },
    /// Moves a session, with what belongs to it, to another project's directory.
    Move { place: SessionPlace, to: PathBuf },
    /// Moves something back to where it was, and what is left of `then` aside.
    BringBack { from: PathBuf, to: PathBuf, then: Option<PathBuf> },
    /// Removes what can be made anew at any time.
    Discard { paths: Vec<PathBuf> },
    /// Takes the free lease of a session and gives it back, which leaves nothing behind.
    FreeLease { session: SessionId, others: Vec<PathBuf> },
    /// Finishes the rewinds that were cut short.
    FinishRewinds,
    /// Appends what a run could not save.
    BringBackUnsaved,
    /// Nothing can be done.
    Nothing { why: String },
}

impl Case {
    pub(super) fn new(finding: Finding, fix: Fix) -> Self {
        Self { findings: vec![finding], fix }
    }

    /// Makes the case of something that nobody can mend.
    pub(super) fn unfixable(finding: Finding, why: impl Into<String>) -> Self {
        let why = why.into();
        Self::new(finding.remedy(format!("nothing: {why}")), Fix::Nothing { why })
    }

    /// Returns the file that it is about.
    pub(super) fn file(&self) -> PathBuf {
        self.findings.first().map(|finding| finding.file.clone()).unwrap_or_default()
    }

    /// Returns the session that it is about.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.findings.first().and_then(|finding| finding.session.clone())
    }

    pub(super) fn set(&mut self, outcome: &RepairOutcome) {
        self.findings.iter_mut().for_each(|finding| finding.outcome = outcome.clone());
    }
}
