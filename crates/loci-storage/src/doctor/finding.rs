//! What is said about one thing that is wrong.

use std::fmt;
use std::path::PathBuf;

use loci_core::ids::SessionId;

/// The kinds of things that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// The last line of a transcript has no end.
    TornTail,
    /// A line is no entry.
    BrokenLine,
    /// A line has NUL bytes, as file systems leave them after a crash.
    NulBytes,
    /// Several entries are on one line.
    GluedLines,
    /// A line is not UTF-8.
    NotUtf8,
    /// The parent of an entry is nowhere.
    LostParent,
    /// Entries are each other's parents.
    Circle,
    /// Two entries of one id say different things.
    DoubleId,
    /// A snapshot names a backup of a file that is not there.
    MissingBackup,
    /// The log of a session's changes names a content that is not kept.
    MissingContent,
    /// A result that was put into a file is not there.
    MissingResult,
    /// A lease or a registration of a process that is gone.
    StaleLease,
    /// Others can read it.
    Exposed,
    /// A session lies in the directory of a project that it never was in.
    WrongProject,
    /// What belongs to a session, without the session.
    LostCompanion,
    /// A rewind that was cut short.
    HalfRewind,
    /// A session that was put away or brought back halfway.
    HalfArchive,
    /// A session that was removed or restored halfway.
    HalfRemoval,
    /// Lines that a run could not save.
    Unsaved,
    /// A temporary file of a process that did not live to use it.
    Leftover,
    /// The index or the list does not agree with the files.
    StaleIndex,
    /// It cannot be read.
    Unreadable,
}

impl FindingKind {
    /// Every kind, in the order of their names above.
    pub const ALL: [Self; 22] = [
        Self::TornTail,
        Self::BrokenLine,
        Self::NulBytes,
        Self::GluedLines,
        Self::NotUtf8,
        Self::LostParent,
        Self::Circle,
        Self::DoubleId,
        Self::MissingBackup,
        Self::MissingContent,
        Self::MissingResult,
        Self::StaleLease,
        Self::Exposed,
        Self::WrongProject,
        Self::LostCompanion,
        Self::HalfRewind,
        Self::HalfArchive,
        Self::HalfRemoval,
        Self::Unsaved,
        Self::Leftover,
        Self::StaleIndex,
        Self::Unreadable,
    ];

    /// Returns the name that programs read.
    pub fn name(self) -> &'static str {
        match self {
            Self::TornTail => "torn-tail",
            Self::BrokenLine => "broken-line",
            Self::NulBytes => "nul-bytes",
            Self::GluedLines => "glued-lines",
            Self::NotUtf8 => "not-utf8",
            Self::LostParent => "lost-parent",
            Self::Circle => "circle",
            Self::DoubleId => "double-id",
            Self::MissingBackup => "missing-backup",
            Self::MissingContent => "missing-content",
            Self::MissingResult => "missing-result",
            Self::StaleLease => "stale-lease",
            Self::Exposed => "exposed",
            Self::WrongProject => "wrong-project",
            Self::LostCompanion => "lost-companion",
            Self::HalfRewind => "half-rewind",
            Self::HalfArchive => "half-archive",
            Self::HalfRemoval => "half-removal",
            Self::Unsaved => "unsaved",
            Self::Leftover => "leftover",
            Self::StaleIndex => "stale-index",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// The session it belongs to, if it belongs to one.
    pub session: Option<SessionId>,
    /// Where.
    pub file: PathBuf,
    /// At which byte of the file.
    pub offset: Option<u64>,
    /// What it means.
    pub meaning: String,
    /// What a repair does about it.
    pub remedy: String,
    /// What became of it.
    pub outcome: RepairOutcome,
}

/// What became of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairOutcome {
    /// Nothing was tried.
    Found,
    /// It is mended; this was done.
    Mended(String),
    /// It is still there; this is why.
    Left(String),
}

impl Finding {
    pub(super) fn new(kind: FindingKind, file: impl Into<PathBuf>, meaning: impl Into<String>) -> Self {
        Self {
            kind,
            session: None,
            file: file.into(),
            offset: None,
            meaning: meaning.into(),
            remedy: String::new(),
            outcome: RepairOutcome::Found,
        }
    }

    pub(super) fn in_session(self, session: &SessionId) -> Self {
        Self { session: Some(session.clone()), ..self }
    }

    pub(super) fn at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    pub(super) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    pub(super) fn with(self, outcome: RepairOutcome) -> Self {
        Self { outcome, ..self }
    }

    /// Returns true when it is no longer there.
    pub fn is_mended(&self) -> bool {
        matches!(self.outcome, RepairOutcome::Mended(_))
    }
}
