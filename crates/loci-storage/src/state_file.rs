//! The global state file, `.claude.json`, which other programs write too.
//!
//! One JSON object, pretty-printed with two spaces. It is changed key by key: read again under a lock, one
//! value set, written beside and renamed. All other values keep their bytes. A file that is not a JSON object
//! is left alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::raw::{RawObject, json_string};
use loci_stdx::{FileLock, LockError, Random, WriteError, WriteOptions, write_atomic};

use crate::layout::ConfigHome;

/// How long to wait for another process that is changing the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The key of the id that requests carry.
const USER_ID: &str = "userID";

/// Why the state file could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// It could not be read.
    #[error("Failed to read state: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not a JSON object, so it is not written over.
    #[error("Failed to parse state: `{}`", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Another process held the lock.
    #[error("Failed to lock state")]
    Lock(#[from] LockError),
    /// It could not be replaced.
    #[error("Failed to save state")]
    Write(#[from] WriteError),
}

/// Returns the user's id if one is kept; nothing is written, and a broken file is no obstacle.
pub fn known_user_id(home: &ConfigHome) -> Option<String> {
    let path = home.state_file();
    stored_id(path, &read(path).ok()?).ok()?
}

/// Returns the user's id, 64 hexadecimal digits, making and keeping one when there is none.
pub fn user_id(home: &ConfigHome, random: &dyn Random) -> Result<String, StateFileError> {
    let path = home.state_file();
    if let Some(id) = stored_id(path, &read(path)?)? {
        return Ok(id);
    }
    let _lock = FileLock::acquire(&home.loci_dir().join("state.lock"), LOCK_TIMEOUT)?;
    let text = read(path)?;
    if let Some(id) = stored_id(path, &text)? {
        return Ok(id);
    }
    let id = random.hex(64);
    let mut object = parse(path, &text)?;
    let parse_error = |source| StateFileError::Parse { path: path.to_owned(), source };
    object.set(USER_ID, &id).map_err(parse_error)?;
    write_atomic(path, to_pretty(&object).as_bytes(), &WriteOptions::private().creating_parents())?;
    Ok(id)
}

/// Reads the file; one that does not exist is empty.
fn read(path: &Path) -> Result<String, StateFileError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(StateFileError::Read { path: path.to_owned(), source }),
    }
}

fn parse<'a>(path: &Path, text: &'a str) -> Result<RawObject<'a>, StateFileError> {
    if text.trim().is_empty() {
        return Ok(RawObject::default());
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    RawObject::parse(text).map_err(|source| StateFileError::Parse { path: path.to_owned(), source })
}

fn stored_id(path: &Path, text: &str) -> Result<Option<String>, StateFileError> {
    Ok(parse(path, text)?.read::<String>(USER_ID).filter(|id| !id.is_empty()))
}

/// Writes one key a line; values were pretty-printed at this depth and stay as they are.
fn to_pretty(object: &RawObject<'_>) -> String {
    let fields: Vec<String> =
        object.iter().map(|(key, value)| format!("  {}: {}", json_string(key), value.get())).collect();
    if fields.is_empty() { "{}".to_owned() } else { format!("{{\n{}\n}}", fields.join(",\n")) }
}
