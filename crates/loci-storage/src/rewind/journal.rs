//! What a rewind is about to do, written down before it does it.
//!
//! ```text
//! <config home>/loci/rewinds/<id>.pending.json    being done, or cut short
//!                            <id>.done.json       done; can be undone
//!                            <id>.undone.json     undone
//!                            lock                 held by whoever rewinds
//! ```
//!
//! An id begins with the time, moved on where another has it, so that names sort as they happened. Everything that
//! the journal names is kept and synced before the journal appears; a journal that is pending can therefore always be
//! finished.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::file_history::{PathText, Step};
use loci_core::ids::{EntryId, SessionId};
use loci_stdx::{FileLock, LockError, Timestamp, WriteOptions, write_atomic};
use serde::{Deserialize, Serialize};

use crate::layout::ConfigHome;

/// How long another rewind is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A rewind, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    /// Its name; sorts by time.
    pub(super) id: String,
    /// The session it is of.
    pub(super) session: SessionId,
    /// The prompt that it goes back to.
    pub(super) prompt: Option<EntryId>,
    /// When it began.
    pub(super) at: String,
    /// The project.
    pub(super) root: PathText,
    /// The rewind that it undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undoes: Option<String>,
    /// What it does, in order.
    pub(super) steps: Vec<Step>,
    /// How the conversation changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<Turnback>,
}

/// A conversation that goes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turnback {
    /// The transcript.
    pub(super) file: PathText,
    /// Where it stood.
    pub(super) from: Option<EntryId>,
    /// Where it will stand; at its beginning, when absent.
    pub(super) to: Option<EntryId>,
    /// The id of the entry that marks it, so that it is written once.
    pub(super) mark: EntryId,
}

/// What became of a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Done,
    Undone,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Done => "done",
            Self::Undone => "undone",
        }
    }
}

/// Returns the directory of journals.
pub(super) fn dir(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("rewinds")
}

/// Waits for the right to rewind.
pub(super) fn lock(home: &ConfigHome) -> Result<FileLock, LockError> {
    FileLock::acquire(&dir(home).join("lock"), PATIENCE)
}

/// Takes the right to rewind, if nobody has it.
pub(super) fn try_lock(home: &ConfigHome) -> Result<Option<FileLock>, LockError> {
    FileLock::try_acquire(&dir(home).join("lock"))
}

/// Returns the name of a rewind that begins now. It sorts behind all that are there, whatever the clock says: two
/// rewinds in one moment are two. Ask for it while holding the lock.
pub(super) fn next_id(home: &ConfigHome, session: &SessionId, now: Timestamp) -> io::Result<String> {
    let names = match fs::read_dir(dir(home)) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<OsString>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let moments = names.iter().filter_map(|name| name.to_str()?.split_once('-')?.0.parse::<i64>().ok());
    let after = moments.max().map_or(0, |last| last.saturating_add(1));
    Ok(format!("{:020}-{session}", now.as_millisecond().max(after)))
}

impl Journal {
    fn path(&self, home: &ConfigHome, phase: Phase) -> PathBuf {
        dir(home).join(format!("{}.{}.json", self.id, phase.name()))
    }

    /// Writes it down; the rewind may begin when this returns.
    pub(super) fn begin(&self, home: &ConfigHome) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        let options = WriteOptions::private().creating_parents();
        write_atomic(&self.path(home, Phase::Pending), &text, &options).map_err(io::Error::other)
    }

    /// Notes what became of it.
    pub(super) fn turn(&self, home: &ConfigHome, from: Phase, to: Phase) -> io::Result<()> {
        fs::rename(self.path(home, from), self.path(home, to))
    }
}

/// Returns the journals of one phase, oldest first; one that cannot be read is an error with its place.
pub(super) fn journals(home: &ConfigHome, phase: Phase) -> Result<Vec<Journal>, (PathBuf, io::Error)> {
    let dir = dir(home);
    let names = match fs::read_dir(&dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let mut names = names.map_err(|error| (dir, error))?;
    let ending = format!(".{}.json", phase.name());
    names.retain(|path| path.to_str().is_some_and(|path| path.ends_with(&ending)));
    names.sort();
    names.into_iter().map(|path| read(&path).map_err(|error| (path, error))).collect()
}

/// Returns the journals that are pending, each with its session if it can be read.
pub(super) fn pending(home: &ConfigHome) -> Vec<(PathBuf, Option<SessionId>)> {
    let ending = format!(".{}.json", Phase::Pending.name());
    let paths = fs::read_dir(dir(home)).into_iter().flatten().flatten().map(|entry| entry.path());
    let pending = paths.filter(|path| path.to_str().is_some_and(|path| path.ends_with(&ending)));
    let mut found: Vec<_> =
        pending.map(|path| (read(&path).ok().map(|journal| journal.session), path)).collect();
    found.sort();
    found.into_iter().map(|(session, path)| (path, session)).collect()
}

fn read(path: &Path) -> io::Result<Journal> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Returns every step of every journal; they name contents that must stay.
pub(crate) fn journaled_steps(home: &ConfigHome) -> Result<Vec<Step>, (PathBuf, io::Error)> {
    let phases = [Phase::Pending, Phase::Done, Phase::Undone];
    let journals: Result<Vec<Vec<Journal>>, _> = phases.iter().map(|phase| journals(home, *phase)).collect();
    Ok(journals?.into_iter().flatten().flat_map(|journal| journal.steps).collect())
}
