//! An inbox on disk: a file of whole lines beside a transcript, `inbox.jsonl` in the session's companion directory.
//!
//! Anybody who may write there may post, any number at a time. What must stay true:
//!
//! 1. [`InboxFile::post`] returns once the message is on disk: it survives a process that is killed, and a power cut.
//! 2. Nothing is rewritten. A line that was torn costs nothing but itself; the next one stands alone.
//! 3. A message that was marked as read is never unread again, whoever posts it anew under the same id.

use std::io;
use std::path::{Path, PathBuf};

use loci_core::inbox::{Inbox, InboxMessage, InboxRecord};
use loci_stdx::{AppendError, AppendFile, lines, read_regular};

/// The file in the companion directory.
const FILE: &str = "inbox.jsonl";

/// The inbox of a session, or of one of its agents.
#[derive(Debug, Clone)]
pub struct InboxFile {
    path: PathBuf,
}

/// Why an inbox could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The message may not be on disk.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The file is there and cannot be read.
    #[error("Failed to read inbox: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A message could not be put into words.
    #[error("Failed to write a message as JSON")]
    Encode(#[from] serde_json::Error),
}

/// What is in an inbox, and how much of its file is not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadedInbox {
    /// What is in it.
    pub inbox: Inbox,
    /// Lines that hold no record: torn ones, and those of others.
    pub n_skipped: usize,
}

impl InboxFile {
    /// Names the inbox of the session whose companion directory this is.
    pub fn in_companion(dir: &Path) -> Self {
        Self { path: dir.join(FILE) }
    }

    /// Names an inbox by its file.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the file, which exists from the first message on.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a message; once this returns it is on disk.
    pub fn post(&self, message: &InboxMessage) -> Result<(), InboxError> {
        self.append(&InboxRecord::Message(message.clone()))
    }

    /// Keeps that messages were read.
    pub fn mark_read(&self, ids: &[String]) -> Result<(), InboxError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.append(&InboxRecord::Read { msg_ids: ids.to_vec() })
    }

    /// Returns what is in it; an inbox without a file is empty.
    pub fn read(&self) -> Result<LoadedInbox, InboxError> {
        let bytes = match read_regular(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LoadedInbox::default()),
            Err(source) => return Err(InboxError::Read { path: self.path.clone(), source }),
        };
        let mut loaded = LoadedInbox::default();
        for line in lines(&bytes) {
            match serde_json::from_slice(line.bytes) {
                Ok(record) => drop(loaded.inbox.apply(record)),
                Err(_) => loaded.n_skipped += 1,
            }
        }
        Ok(loaded)
    }

    fn append(&self, record: &InboxRecord) -> Result<(), InboxError> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let mut file = AppendFile::open(&self.path, AppendFile::PRIVATE)?;
        file.append_lines(&line)?;
        file.sync()?;
        Ok(())
    }
}
