//! Writing settings back: one key, under a lock, all or nothing.
//!
//! 1. The file is read again under the lock, so that what others wrote meanwhile stays.
//! 2. Only the key's own bytes change.
//! 3. A file that is not valid is left alone.
//! 4. The new text is written beside the file, synced and renamed; a link stays a link and its target changes.
//! 5. A program that does not know our lock and wrote in between is noticed, and the edit is made again.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_settings::edit::EditError;
use loci_stdx::{FileLock, LockError, WriteError, WriteOptions, read_regular_to_string, write_atomic};

use crate::layout::ConfigHome;

/// How long to wait for other processes, each of which takes milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
/// How often to begin again when another program keeps writing.
const ATTEMPTS: usize = 5;

/// Why a settings file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SettingsEditError {
    /// It could not be read.
    #[error("Failed to read settings: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be edited as it is.
    #[error("Failed to edit settings: `{}`", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// What is in the way.
        source: EditError,
    },
    /// Another process held the lock.
    #[error("Failed to lock settings")]
    Lock(#[from] LockError),
    /// It could not be replaced.
    #[error("Failed to save settings")]
    Write(#[from] WriteError),
    /// Another program wrote it again and again.
    #[error("Failed to save settings, another program keeps changing them: `{}`", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

/// Changes the text of a settings file by `edit`; returns whether it changed. The lock lies in `home`.
pub fn edit_settings(
    home: &ConfigHome,
    path: &Path,
    options: &WriteOptions,
    edit: impl Fn(&str) -> Result<String, EditError>,
) -> Result<bool, SettingsEditError> {
    let _lock = FileLock::acquire(&home.loci_dir().join("settings.lock"), LOCK_TIMEOUT)?;
    for _ in 0..ATTEMPTS {
        let before = text_of(path)?;
        let after =
            edit(&before).map_err(|source| SettingsEditError::Edit { path: path.to_owned(), source })?;
        if after == before {
            return Ok(false);
        }
        if text_of(path)? == before {
            write_atomic(path, after.as_bytes(), &options.creating_parents())?;
            return Ok(true);
        }
    }
    Err(SettingsEditError::Busy { path: path.to_owned() })
}

/// Reads a file as text; one that does not exist is empty.
fn text_of(path: &Path) -> Result<String, SettingsEditError> {
    match read_regular_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(SettingsEditError::Read { path: path.to_owned(), source }),
    }
}
