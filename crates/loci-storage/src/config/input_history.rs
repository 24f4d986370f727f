//! What was typed: `history.jsonl`, one line a prompt, shared by all sessions and projects.
//!
//! ```text
//! {"display":"fix it","pastedContents":{"1":{"id":1,"type":"text","content":"…"}},"timestamp":1767323045000,
//!  "project":"/home/dev/project","sessionId":"…"}
//! ```
//!
//! Long pastes lie in files of their own (`paste_cache`): such a one has a `contentHash` in the place of its `content`.
//! Lines are appended under a lock, whole, after a torn one on a line of their own. Reading goes from the end and
//! gives each prompt once, the latest; lines that are none are passed over. Fields we do not know are left alone,
//! since nothing is ever written again. The terminal front end is its user.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_stdx::{AppendError, AppendFile, FileLock, LockError, ReverseLines, WriteError, open_regular};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::paste_cache::{PasteCache, READ_BUDGET};
use crate::layout::ConfigHome;

/// How long to wait for other writers; each needs less than a millisecond, unless the machine is very busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// One prompt as it was typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputEntry {
    /// The text of the input line; long pastes stand in it as `[Pasted text #1 +39 lines]`.
    pub display: String,
    /// What the placeholders stand for, by number.
    #[serde(default)]
    pub pasted_contents: Map<String, Value>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: i64,
    /// The working directory.
    #[serde(default)]
    pub project: PathBuf,
    /// The session it was typed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Whose prompts to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputScope<'a> {
    /// Those typed in one directory.
    Project(&'a Path),
    /// All of them.
    Everywhere,
}

/// Why the history was not read or not written.
#[derive(Debug, thiserror::Error)]
pub enum InputHistoryError {
    /// The prompt could not be made a line.
    #[error("Failed to write the prompt as JSON")]
    Seal(#[from] serde_json::Error),
    /// Somebody held the lock all the time, or there can be none.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The line could not be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A long paste could not be put into its file.
    #[error(transparent)]
    Paste(#[from] WriteError),
    /// The file could not be read.
    #[error("Failed to read input history: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The history of one config home.
#[derive(Debug, Clone)]
pub struct InputHistory {
    file: PathBuf,
    lock: PathBuf,
    pastes: PasteCache,
}

impl InputHistory {
    /// Names the files; nothing is touched yet.
    pub fn new(home: &ConfigHome) -> Self {
        Self {
            file: home.root().join("history.jsonl"),
            lock: home.loci_dir().join("history.lock"),
            pastes: PasteCache::new(home.root().join("paste-cache")),
        }
    }

    /// Adds a prompt.
    pub fn append(&self, entry: &InputEntry) -> Result<(), InputHistoryError> {
        let kept =
            InputEntry { pasted_contents: self.pastes.put_away(&entry.pasted_contents)?, ..entry.clone() };
        let line = serde_json::to_string(&kept)?;
        let _lock = FileLock::acquire(&self.lock, PATIENCE)?;
        AppendFile::open(&self.file, AppendFile::PRIVATE)?.append_lines(line.as_bytes())?;
        Ok(())
    }

    /// Returns up to `limit` prompts, the latest first, each once.
    pub fn recent(&self, scope: InputScope<'_>, limit: usize) -> Result<Vec<InputEntry>, InputHistoryError> {
        let failed = |source| InputHistoryError::Read { path: self.file.clone(), source };
        let file = match open_regular(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut lines = ReverseLines::new(file).map_err(failed)?;
        let mut seen = HashSet::new();
        let mut found: Vec<InputEntry> = Vec::new();
        while found.len() < limit {
            let Some(line) = lines.next_line().map_err(failed)? else { break };
            let entry: Option<InputEntry> = serde_json::from_slice(line.bytes).ok();
            found.extend(entry.filter(|entry| scope.covers(entry) && seen.insert(sameness(entry))));
        }
        let mut budget = READ_BUDGET;
        for entry in &mut found {
            self.pastes.bring_back(&mut entry.pasted_contents, &mut budget);
        }
        Ok(found)
    }
}

impl InputScope<'_> {
    fn covers(&self, entry: &InputEntry) -> bool {
        match self {
            Self::Project(project) => entry.project == *project,
            Self::Everywhere => true,
        }
    }
}

/// Two prompts are one when they read alike and would paste the same.
fn sameness(entry: &InputEntry) -> String {
    let pasted = Value::Object(entry.pasted_contents.clone());
    if entry.pasted_contents.is_empty() {
        entry.display.clone()
    } else {
        format!("{}\0{pasted}", entry.display)
    }
}
