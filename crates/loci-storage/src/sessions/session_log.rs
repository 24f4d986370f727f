//! The one writer of a session file.
//!
//! An append is one `write` of whole lines, newline last. The file is made with the first of them, so a
//! session in which nothing was said leaves nothing behind. A write that fails (a full disk, a vanished
//! mount) loses nothing: the lines wait in memory, in order, and go first at the next append or sync. The
//! user hears of it once, and once more when all is saved again. Below the log is a [`Sink`], which is the
//! disk, memory, or a test's idea of a failing disk.
//!
//! What `write` took may still be lost until it is synced: a file system that turns read-only, or is lost, drops what
//! it had not written down. So lines are held until a sync has succeeded (the conversation holds the same text, which is
//! not copied), and what is put aside at the end begins with the first of them. Syncing before the first request instead
//! would have every prompt wait for the disk.

mod sink;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_stdx::{Attachment, single_line};

use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::lease::Lease;
use crate::sessions::unsaved;

use sink::DiskSink;
pub use sink::{MemorySink, Sink};

/// The most characters of a prompt that a `last-prompt` entry repeats.
const LAST_PROMPT_LIMIT: usize = 200;

/// So many bytes of lines may be unsynced before there is a sync in the middle of a turn.
const MOST_UNSYNCED: usize = 16 << 20;

/// Hears of every line that is written to a file, in order.
#[derive(Clone)]
pub struct LineMirror(Arc<HearLines>);

/// Takes a file and its new lines.
type HearLines = dyn Fn(&Path, Vec<String>) + Send + Sync;

impl LineMirror {
    /// Tells `hear` of the file and its new lines.
    pub fn new(hear: impl Fn(&Path, Vec<String>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }
}

impl std::fmt::Debug for LineMirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LineMirror")
    }
}

/// The log of one session.
#[derive(Debug)]
pub struct SessionLog {
    sink: Box<dyn Sink>,
    path: Option<PathBuf>,
    /// Whole lines that are not in the file yet.
    pending: Vec<u8>,
    /// All lines since the last sync that succeeded, those in the file among them.
    unsynced: Unsynced,
    /// Why they are not.
    failing: Option<io::ErrorKind>,
    warning: Option<LogWarning>,
    /// Where they go at the end, should the disk never take them.
    fallback: Option<(ConfigHome, SessionPlace)>,
    /// Whether lines are neither in the file nor anywhere else, now that the log is closed.
    has_lost_lines: bool,
    /// Who hears of every line.
    mirror: Option<LineMirror>,
}

/// Why lines are not on disk; they are kept and tried again.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The lines could not be written.
    #[error("Failed to append to session log")]
    Append(#[source] io::Error),
    /// The lines were written, but may not survive a power cut.
    #[error("Failed to sync session log")]
    Sync(#[source] io::Error),
}

/// A change in whether the session is being saved, for the user to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogWarning {
    /// From now on entries are kept in memory only.
    Began {
        /// What happened, to what.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// Everything is on disk again.
    Ended,
    /// The session is over and entries were not on disk; they were put elsewhere.
    Kept {
        /// Where they are, or that they are nowhere.
        message: String,
    },
    /// The file was taken away, and put back or begun anew.
    Replaced {
        /// What happened, to what.
        message: String,
    },
}

impl SessionLog {
    /// Opens the log of the session file at `path`, which need not exist.
    pub fn on_disk(path: &Path) -> Self {
        let log = Self::with_sink(Box::new(DiskSink::new(path)));
        Self { path: Some(path.to_owned()), ..log }
    }

    /// Opens the log of the session file at `path`, to be written only while the lease is ours.
    pub fn leased(path: &Path, lease: Lease) -> Self {
        let log = Self::with_sink(Box::new(DiskSink::leased(path, lease)));
        Self { path: Some(path.to_owned()), ..log }
    }

    /// Lets [`SessionLog::close`] keep elsewhere what this session's file never took.
    #[must_use]
    pub fn with_fallback(self, home: &ConfigHome, place: &SessionPlace) -> Self {
        Self { fallback: Some((home.clone(), place.clone())), ..self }
    }

    /// Makes a log that writes nothing, for sessions that are not to be saved.
    pub fn in_memory() -> Self {
        Self::with_sink(Box::new(sink::NullSink))
    }

    /// Makes a log above any sink.
    pub fn with_sink(sink: Box<dyn Sink>) -> Self {
        Self {
            sink,
            path: None,
            pending: Vec::new(),
            unsynced: Unsynced::default(),
            failing: None,
            warning: None,
            fallback: None,
            has_lost_lines: false,
            mirror: None,
        }
    }

    /// Tells somebody of every line that is appended from now on.
    #[must_use]
    pub fn with_mirror(self, mirror: Option<LineMirror>) -> Self {
        Self { mirror, ..self }
    }

    /// Returns the file, unless the log is not on disk.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Appends entries, after those that an earlier failure left behind.
    ///
    /// `Ok` means every line so far is in the file; `Err` that some wait in memory.
    pub fn append(&mut self, entries: &[&Entry]) -> Result<(), AppendError> {
        for entry in entries {
            push_line(&mut self.pending, entry.line());
            if self.fallback.is_some() {
                self.unsynced.push(entry);
            }
        }
        if let (Some(LineMirror(hear)), Some(path)) = (&self.mirror, &self.path) {
            hear(path, entries.iter().map(|entry| one_line(entry.line()).into_owned()).collect());
        }
        self.flush()?;
        if self.unsynced.is_due() {
            let synced = self.sync_sink();
            synced.unwrap_or_else(|error| tracing::warn!(target: "loci::storage", %error, "lines are held until a sync succeeds"));
        }
        Ok(())
    }

    /// Writes what is waiting and makes everything survive a power cut.
    pub fn sync(&mut self) -> Result<(), AppendError> {
        self.flush()?;
        self.sync_sink()
    }

    fn sync_sink(&mut self) -> Result<(), AppendError> {
        match self.sink.sync() {
            Ok(attachment) => {
                self.unsynced.synced();
                self.warn_if_replaced(attachment);
                Ok(())
            }
            Err(error) => {
                self.unsynced.sync_failed();
                Err(AppendError::Sync(error))
            }
        }
    }

    /// Writes what is waiting, for the last time: what the disk does not take is kept elsewhere, and
    /// [`recover_unsaved`](super::unsaved::recover_unsaved) finds it there.
    ///
    /// What a process says after it lost its session to another one is not kept: the other goes on without it.
    pub fn close(&mut self) -> Result<(), AppendError> {
        let result = self.sync();
        let may_be_lost = self.has_unsaved() || self.unsynced.has_failed;
        if let (true, Some((home, place))) = (may_be_lost && !self.has_lost_lease(), &self.fallback) {
            let message = match unsaved::save_unsaved(home, place, &self.unsynced.to_bytes()) {
                Ok(path) => format!(
                    "What could not be saved is kept in `{}`; the next run of loci adds it to the session",
                    path.display()
                ),
                Err(error) => {
                    self.has_lost_lines = true;
                    format!("What could not be saved is lost: {error}")
                }
            };
            self.pending = Vec::new();
            self.unsynced = Unsynced::default();
            self.warning = Some(LogWarning::Kept { message });
        }
        self.has_lost_lines |= self.has_unsaved();
        result
    }

    /// Returns true when the log is closed and lines are neither in the file nor anywhere else.
    pub fn has_lost_lines(&self) -> bool {
        self.has_lost_lines
    }

    fn has_lost_lease(&self) -> bool {
        self.failing == Some(io::ErrorKind::ResourceBusy)
    }

    /// Returns true while lines wait in memory.
    pub fn has_unsaved(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns what the user should be told since the last call, if anything.
    pub fn take_warning(&mut self) -> Option<LogWarning> {
        self.warning.take()
    }

    fn flush(&mut self) -> Result<(), AppendError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        match self.sink.append(&self.pending) {
            Ok(attachment) => {
                // The buffer is given back: after a long outage it may be large.
                self.pending = Vec::new();
                self.end_warning();
                self.warn_if_replaced(attachment);
                Ok(())
            }
            Err(error) => {
                self.begin_warning(&error);
                Err(AppendError::Append(error))
            }
        }
    }

    fn warn_if_replaced(&mut self, attachment: Attachment) {
        let what = match attachment {
            Attachment::Kept => return,
            Attachment::Restored => "removed by another program and has been written again",
            Attachment::Renewed => "replaced by another program; what was said before is no longer in it",
        };
        self.warning =
            Some(LogWarning::Replaced { message: format!("The session file was {what}{}", self.place()) });
    }

    fn begin_warning(&mut self, error: &io::Error) {
        if self.failing.replace(error.kind()).is_none() {
            let message = format!("Failed to save the session ({error}){}", self.place());
            self.warning = Some(LogWarning::Began { message, hint: hint(error).to_owned() });
        }
    }

    fn end_warning(&mut self) {
        if self.failing.take().is_some() {
            self.warning = match self.warning.take() {
                // Over before anybody was told.
                Some(LogWarning::Began { .. }) => None,
                Some(LogWarning::Ended | LogWarning::Kept { .. } | LogWarning::Replaced { .. }) | None => {
                    Some(LogWarning::Ended)
                }
            };
        }
    }

    fn place(&self) -> String {
        self.path.as_ref().map_or_else(String::new, |path| format!(": `{}`", path.display()))
    }
}

/// Lines that a power cut, or a file system that turns read-only, could still take back.
#[derive(Debug, Default)]
struct Unsynced {
    lines: Vec<Arc<str>>,
    n_bytes: usize,
    /// After so many bytes there is a sync in the middle of a turn.
    due_at: usize,
    /// Whether a sync has failed. A later one that succeeds says nothing of what this one should have written.
    has_failed: bool,
}

impl Unsynced {
    fn push(&mut self, entry: &Entry) {
        self.n_bytes += entry.line().len();
        self.lines.push(entry.shared_line());
    }

    /// Tells whether there is so much that holding it costs more than a sync.
    fn is_due(&self) -> bool {
        self.n_bytes >= self.due_at.max(MOST_UNSYNCED)
    }

    fn synced(&mut self) {
        if !self.has_failed {
            *self = Self::default();
        }
        self.due_at = self.n_bytes + MOST_UNSYNCED;
    }

    fn sync_failed(&mut self) {
        self.has_failed = true;
        self.due_at = self.n_bytes + MOST_UNSYNCED;
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.n_bytes + self.lines.len());
        self.lines.iter().for_each(|line| push_line(&mut bytes, line));
        bytes
    }
}

/// Adds a line.
fn push_line(buffer: &mut Vec<u8>, line: &str) {
    buffer.extend_from_slice(one_line(line).as_bytes());
    buffer.push(b'\n');
}

/// Returns an entry as its line: line breaks between the tokens of hand-written JSON become spaces.
fn one_line(line: &str) -> Cow<'_, str> {
    // Lines may be long and hardly any has a break: bytes are looked at, not characters.
    match memchr::memchr2(b'\n', b'\r', line.as_bytes()).is_some() {
        true => line.replace(['\n', '\r'], " ").into(),
        false => line.into(),
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "Free some space; the session is kept in memory and saved as soon as there is room"
        }
        io::ErrorKind::ResourceBusy => {
            "What is said here from now on is not saved; resume the session again, or fork it, to go on"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Make the file writable; the session is kept in memory until then"
        }
        _ => "The session is kept in memory and saving is tried again with every entry",
    }
}

/// Returns a prompt as a `last-prompt` entry repeats it: one line of at most 200 characters.
pub fn last_prompt_text(prompt: &str) -> String {
    single_line(prompt, LAST_PROMPT_LIMIT)
}
