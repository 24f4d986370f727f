//! Removing a session, in a way that can be undone.
//!
//! ```text
//! <config home>/loci/trash/<time>-<id>/
//!   origin.json          where it lay
//!   <id>.jsonl           the transcript
//!   <id>/                what belonged to it: subagents, spilled results
//! <config home>/loci/audit.log          one JSON line for each removal and each return
//! ```
//!
//! 1. The log is written before anything moves; nothing is ever unlinked while it is the only copy.
//! 2. A session that a living process works on is refused.
//! 3. Bringing one back never writes over a file.

mod audit;
mod in_use;
mod move_path;

pub(crate) use audit::record as audit_record;
pub(crate) use in_use::process_on;
pub(crate) use move_path::move_path;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_stdx::{
    Timestamp, WriteOptions, create_private_dir, create_private_dir_all, read_regular, rfc3339_millis,
    write_atomic,
};
use serde::{Deserialize, Serialize};

use crate::layout::{ConfigHome, SessionPlace};

/// Why a session was not removed or not brought back.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// A living process works on it.
    #[error("Session {id} is in use by process {pid}")]
    InUse {
        /// The session.
        id: SessionId,
        /// The process.
        pid: i32,
    },
    /// The trash has no such session.
    #[error("No removed session has this id: {id}")]
    NotInTrash {
        /// The session.
        id: SessionId,
    },
    /// Something lies where the session would go back to.
    #[error("Cannot bring the session back, the file exists: `{}`", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be read, written or moved.
    #[error("Failed to {action}: `{}`", path.display())]
    Disk {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn disk(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RemoveError {
    let path = path.to_owned();
    move |source| RemoveError::Disk { action, path, source }
}

/// Where a removed session lay.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TrashManifest {
    session_id: SessionId,
    file: PathBuf,
    removed_at: String,
}

/// Moves a session to the trash and returns its place there.
pub fn remove_session(
    home: &ConfigHome,
    place: &SessionPlace,
    now: Timestamp,
) -> Result<PathBuf, RemoveError> {
    let id = place.id();
    if let Some(pid) = in_use::process_on(home, id) {
        return Err(RemoveError::InUse { id: id.clone(), pid });
    }
    let time = rfc3339_millis(now);
    let trash = new_trash_dir(home, id, &time)?;
    let origin =
        TrashManifest { session_id: id.clone(), file: place.file().to_owned(), removed_at: time.clone() };
    let origin_file = trash.join("origin.json");
    let text = serde_json::to_vec(&origin).unwrap_or_default();
    write_atomic(&origin_file, &text, &WriteOptions::private())
        .map_err(|error| disk("write", &origin_file)(io::Error::other(error)))?;
    audit::record(home, &time, "remove", id.as_str(), place.file(), &trash)?;
    move_if_there(&place.dir(), &trash.join(id.as_str()))?;
    move_path(place.file(), &trash.join(format!("{id}.jsonl"))).map_err(disk("move", place.file()))?;
    Ok(trash)
}

/// Brings back the session that was removed last under this id, and returns its place.
pub fn restore_session(
    home: &ConfigHome,
    id: &SessionId,
    now: Timestamp,
) -> Result<SessionPlace, RemoveError> {
    let not_there = || RemoveError::NotInTrash { id: id.clone() };
    let trash = removed(home)?.into_iter().filter(|dir| is_of(dir, id)).max().ok_or_else(not_there)?;
    let origin_file = trash.join("origin.json");
    let text = read_regular(&origin_file).map_err(disk("read", &origin_file))?;
    let origin: TrashManifest = serde_json::from_slice(&text)
        .map_err(|error| disk("read", &origin_file)(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    let place = SessionPlace::new(origin.file, id.clone());
    for path in [place.file().to_owned(), place.dir()] {
        if path.exists() {
            return Err(RemoveError::Exists { path });
        }
    }
    if let Some(parent) = place.file().parent() {
        create_private_dir_all(parent).map_err(disk("create", parent))?;
    }
    audit::record(home, &rfc3339_millis(now), "restore", id.as_str(), place.file(), &trash)?;
    move_if_there(&trash.join(id.as_str()), &place.dir())?;
    move_path(&trash.join(format!("{id}.jsonl")), place.file()).map_err(disk("move", place.file()))?;
    // Only our own note is left; should it stay, it does no harm but to a second return.
    fs::remove_file(&origin_file).map_err(disk("remove", &origin_file))?;
    fs::remove_dir(&trash).map_err(disk("remove", &trash))?;
    Ok(place)
}

/// Returns the ids in the trash, the latest first.
pub fn removed_sessions(home: &ConfigHome) -> Result<Vec<SessionId>, RemoveError> {
    let mut dirs = removed(home)?;
    dirs.sort();
    Ok(dirs.iter().rev().filter_map(|dir| id_of(dir)).collect())
}

/// Returns where the session lay that a directory of the trash is of.
pub(crate) fn origin_of(trash: &Path) -> Option<PathBuf> {
    let text = read_regular(trash.join("origin.json")).ok()?;
    serde_json::from_slice::<TrashManifest>(&text).ok().map(|origin| origin.file)
}

fn new_trash_dir(home: &ConfigHome, id: &SessionId, time: &str) -> Result<PathBuf, RemoveError> {
    // Names sort by time, and no file system minds them.
    let dir = trash_dir(home).join(format!("{}-{id}", time.replace([':', '.'], "")));
    create_private_dir_all(&trash_dir(home)).map_err(disk("create", &trash_dir(home)))?;
    create_private_dir(&dir).map_err(disk("create", &dir))?;
    Ok(dir)
}

fn trash_dir(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("trash")
}

fn removed(home: &ConfigHome) -> Result<Vec<PathBuf>, RemoveError> {
    let trash = trash_dir(home);
    match fs::read_dir(&trash) {
        Ok(entries) => Ok(entries.filter_map(Result::ok).map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(disk("read", &trash)(error)),
    }
}

fn id_of(trash: &Path) -> Option<SessionId> {
    let name = trash.file_name()?.to_str()?;
    SessionId::parse(name.get(name.len().checked_sub(36)?..)?).ok()
}

fn is_of(trash: &Path, id: &SessionId) -> bool {
    id_of(trash).as_ref() == Some(id)
}

fn move_if_there(from: &Path, to: &Path) -> Result<(), RemoveError> {
    if from.exists() { move_path(from, to).map_err(disk("move", from)) } else { Ok(()) }
}
