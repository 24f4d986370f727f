//! What a rewind is about to do, written down before it does it.
//!
//! ```text
//! <config home>/loci/rewinds/<id>.pending.json    being done, or cut short
//!                            <id>.done.json       done; can be undone
//!                            <id>.undone.json     undone
//!                            <id>.unreadable.json was pending, and says nothing; set aside by the next start
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

use loci_core::file_history::{PathText, RewindStep};
use loci_core::ids::{EntryId, SessionId};
use loci_stdx::{FileLock, LockError, Timestamp, WriteOptions, read_regular, write_atomic};
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
    pub(super) steps: Vec<RewindStep>,
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
    /// What stands for all that came after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<TurnbackSummary>,
}

/// A text in the place of what came after the point that a conversation went back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnbackSummary {
    /// The id of its entry.
    pub id: EntryId,
    /// What it says, for the model.
    pub text: String,
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
fn journals(home: &ConfigHome, phase: Phase) -> Result<Vec<Journal>, (PathBuf, io::Error)> {
    let paths = paths(home, phase).map_err(|error| (dir(home), error))?;
    paths.into_iter().map(|path| read(&path).map_err(|error| (path, error))).collect()
}

/// Returns the last journal of a session in one phase. Names tell whose they are, so one of another session that cannot be
/// read is not in the way.
pub(super) fn last_of(
    home: &ConfigHome,
    phase: Phase,
    session: &SessionId,
) -> Result<Option<Journal>, (PathBuf, io::Error)> {
    let paths = paths(home, phase).map_err(|error| (dir(home), error))?;
    let ending = format!("-{session}.{}.json", phase.name());
    let last = paths.into_iter().rfind(|path| path.to_str().is_some_and(|path| path.ends_with(&ending)));
    last.map(|path| read(&path).map_err(|error| (path, error))).transpose()
}

/// Returns the journal of this name, if it is in this phase.
pub(super) fn by_id(
    home: &ConfigHome,
    phase: Phase,
    id: &str,
) -> Result<Option<Journal>, (PathBuf, io::Error)> {
    let path = dir(home).join(format!("{id}.{}.json", phase.name()));
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        journal => journal.map(Some).map_err(|error| (path, error)),
    }
}

/// Returns the journals that are pending, oldest first, each as far as it can be read.
pub(super) fn pending(home: &ConfigHome) -> Vec<(PathBuf, io::Result<Journal>)> {
    let paths = paths(home, Phase::Pending).unwrap_or_default();
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// Sets a pending journal aside that says nothing; returns where it is then.
pub(super) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = path.with_file_name(name.replace(".pending.json", ".unreadable.json"));
    fs::rename(path, &aside)?;
    Ok(aside)
}

fn paths(home: &ConfigHome, phase: Phase) -> io::Result<Vec<PathBuf>> {
    let mut paths = match fs::read_dir(dir(home)) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let ending = format!(".{}.json", phase.name());
    paths.retain(|path| path.to_str().is_some_and(|path| path.ends_with(&ending)));
    paths.sort();
    Ok(paths)
}

/// Reads a journal; one whose words are no journal is [`io::ErrorKind::InvalidData`].
fn read(path: &Path) -> io::Result<Journal> {
    let text = read_regular(path)?;
    serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Returns every step of every journal; they name contents that must stay.
pub(crate) fn journaled_steps(home: &ConfigHome) -> Result<Vec<RewindStep>, (PathBuf, io::Error)> {
    let phases = [Phase::Pending, Phase::Done, Phase::Undone];
    let journals: Result<Vec<Vec<Journal>>, _> = phases.iter().map(|phase| journals(home, *phase)).collect();
    Ok(journals?.into_iter().flatten().flat_map(|journal| journal.steps).collect())
}
