//! The journal file: every change to memories, one line each: what it was before and after, when, by whom, and from where.

mod archive;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use loci_stdx::{private_file, read_regular};
use serde::{Deserialize, Serialize};

use super::MemoryContent;
pub(super) use archive::{trim, with_archived};

/// One change, which may touch several files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Counted from one.
    pub id: u64,
    /// When.
    pub at: String,
    /// What was done.
    pub act: ChangeKind,
    /// By whom.
    pub by: Author,
    /// The session it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The call, message or agent of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The change that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// What became of each file.
    pub files: Vec<FileChange>,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Where it lies.
    #[serde(default, rename = "shelf")]
    pub area: MemoryArea,
    /// Its name.
    pub file: String,
    /// What it held before; none when it was not there.
    pub before: Option<MemoryContent>,
    /// What it held after; none when it is gone.
    pub after: Option<MemoryContent>,
}

/// Where a file lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryArea {
    /// Among the memories.
    #[default]
    Memory,
    /// Among the proposals.
    Pending,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// A memory was written.
    Write,
    /// One was proposed.
    Propose,
    /// A proposal was accepted.
    Accept,
    /// A proposal was turned down.
    Reject,
    /// A person changed one.
    Edit,
    /// A person had one forgotten.
    Forget,
    /// One came from the team's server.
    Pull,
    /// A change was taken back.
    Undo,
}

impl ChangeKind {
    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Propose => "propose",
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Edit => "edit",
            Self::Forget => "forget",
            Self::Pull => "pull",
            Self::Undo => "undo",
        }
    }
}

/// Who made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// The model, in the conversation.
    Model,
    /// The agent that looks for memories beside it.
    Extraction,
    /// A person, with our commands.
    Person,
    /// Somebody of the team, through its server.
    Team,
}

impl Author {
    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Extraction => "extraction",
            Self::Person => "person",
            Self::Team => "team",
        }
    }
}

/// Reads all changes, oldest first; lines that cannot be read are skipped.
pub(super) fn read(path: &Path) -> io::Result<Vec<Change>> {
    let bytes = match read_regular(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(changes_in(&bytes))
}

fn changes_in(bytes: &[u8]) -> Vec<Change> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Appends a change and makes it safe on disk. What a crash cut short before is ended first, so that it costs its own
/// line alone.
pub(super) fn append(path: &Path, change: &Change) -> io::Result<()> {
    let mut file = private_file().read(true).append(true).create(true).open(path)?;
    let mut line = if is_torn(&mut file)? { vec![b'\n'] } else { Vec::new() };
    serde_json::to_writer(&mut line, change)?;
    line.push(b'\n');
    file.write_all(&line)?;
    file.sync_all()
}

fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
