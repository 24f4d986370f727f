//! Sessions that stay, however old they are. A log of one line a change; the last line about a session counts.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use loci_core::ids::SessionId;
use loci_stdx::{AppendFile, Timestamp, read_regular_to_string, rfc3339_millis};
use serde::{Deserialize, Serialize};

use super::{ArchiveError, disk};
use crate::layout::ConfigHome;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PinLine {
    time: String,
    session_id: String,
    is_pinned: bool,
}

/// Keeps a session from being put away.
pub fn pin_session(home: &ConfigHome, id: &SessionId, now: Timestamp) -> Result<(), ArchiveError> {
    append(home, id, now, true)
}

/// Lets a session be put away again.
pub fn unpin_session(home: &ConfigHome, id: &SessionId, now: Timestamp) -> Result<(), ArchiveError> {
    append(home, id, now, false)
}

/// Returns the sessions that stay, in the order of their ids.
pub fn pinned_sessions(home: &ConfigHome) -> Result<Vec<String>, ArchiveError> {
    let path = file(home);
    let text = match read_regular_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(disk("read", &path)(error)),
    };
    let lines = text.lines().filter_map(|line| serde_json::from_str::<PinLine>(line).ok());
    let last: BTreeMap<String, bool> = lines.map(|line| (line.session_id, line.is_pinned)).collect();
    Ok(last.into_iter().filter(|(_, is_pinned)| *is_pinned).map(|(id, _)| id).collect())
}

/// Returns true when a session stays.
pub(super) fn is_pinned(home: &ConfigHome, id: &SessionId) -> Result<bool, ArchiveError> {
    Ok(pinned_sessions(home)?.iter().any(|pinned| pinned == id.as_str()))
}

fn append(home: &ConfigHome, id: &SessionId, now: Timestamp, is_pinned: bool) -> Result<(), ArchiveError> {
    let line = PinLine { time: rfc3339_millis(now), session_id: id.to_string(), is_pinned };
    let path = file(home);
    let write = || -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let text = serde_json::to_string(&line)?;
        let mut log = AppendFile::open(&path, AppendFile::PRIVATE)?;
        log.append_lines(text.as_bytes())?;
        log.sync()?;
        Ok(())
    };
    write().map_err(|error| disk("write", &path)(io::Error::other(error)))
}

fn file(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("pins.jsonl")
}
