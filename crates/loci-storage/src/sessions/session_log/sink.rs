//! Where the bytes of a log go: the disk, memory, nowhere.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loci_stdx::{AppendError, AppendFile, Attachment};

use crate::sessions::lease::{Lease, LeaseStanding};

/// A place that lines are appended to.
pub trait Sink: fmt::Debug + Send {
    /// Appends whole lines, newline last, and says whether earlier ones are still there.
    ///
    /// After an error some of the bytes may have been appended all the same; the next append begins on a line
    /// of its own.
    fn append(&mut self, lines: &[u8]) -> io::Result<Attachment>;

    /// Makes what was appended survive a power cut.
    fn sync(&mut self) -> io::Result<Attachment>;
}

/// A session file on disk, made with the first append.
#[derive(Debug)]
pub(super) struct DiskSink {
    path: PathBuf,
    file: Option<AppendFile>,
    lease: Option<Lease>,
    /// Where the file ended when we last looked.
    end: u64,
    /// Whether another process goes on with the session.
    is_taken: bool,
}

impl DiskSink {
    /// Names the file; nothing is touched yet.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, lease: None, end: 0, is_taken: false }
    }

    /// Names the file and writes it only while the lease is ours.
    pub(super) fn leased(path: &Path, lease: Lease) -> Self {
        Self { lease: Some(lease), end: length(path), ..Self::new(path) }
    }

    fn check_lease(&mut self) -> io::Result<()> {
        self.is_taken |= match self.lease.as_mut().map(Lease::standing) {
            None | Some(LeaseStanding::Held) => false,
            Some(LeaseStanding::MadeAnew) => length(&self.path) > self.end,
            Some(LeaseStanding::Lost) => true,
        };
        if !self.is_taken {
            return Ok(());
        }
        // Made anew it would keep others out.
        self.lease = None;
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process has taken over this session"))
    }
}

impl Sink for DiskSink {
    fn append(&mut self, lines: &[u8]) -> io::Result<Attachment> {
        self.check_lease()?;
        let file = match self.file.take() {
            Some(file) => file,
            None => AppendFile::open(&self.path, AppendFile::PRIVATE).map_err(cause)?,
        };
        let appended = self.file.insert(file).append_lines(lines).map_err(cause);
        if self.lease.is_some() {
            self.end = length(&self.path);
        }
        appended
    }

    fn sync(&mut self) -> io::Result<Attachment> {
        self.file.as_mut().map_or(Ok(Attachment::Kept), |file| file.sync().map_err(cause))
    }
}

/// Returns how long a file is; one that is not there has no length.
fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns what the system said; the log adds the rest.
fn cause(error: AppendError) -> io::Error {
    match error {
        AppendError::Open { source, .. }
        | AppendError::Append { source, .. }
        | AppendError::Sync { source, .. } => source,
    }
}

/// A file that is not there: what is appended is forgotten.
#[derive(Debug)]
pub(super) struct NullSink;

impl Sink for NullSink {
    fn append(&mut self, _lines: &[u8]) -> io::Result<Attachment> {
        Ok(Attachment::Kept)
    }

    fn sync(&mut self) -> io::Result<Attachment> {
        Ok(Attachment::Kept)
    }
}

/// A file in memory, which clones of this value share.
#[derive(Debug, Clone, Default)]
pub struct MemorySink {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl MemorySink {
    /// Returns what was appended so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.guard().clone()
    }

    fn guard(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for MemorySink {
    fn append(&mut self, lines: &[u8]) -> io::Result<Attachment> {
        self.guard().extend_from_slice(lines);
        Ok(Attachment::Kept)
    }

    fn sync(&mut self) -> io::Result<Attachment> {
        Ok(Attachment::Kept)
    }
}
