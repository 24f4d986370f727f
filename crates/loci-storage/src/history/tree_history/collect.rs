//! Removing contents that nothing refers to.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::PathBuf;

use loci_core::file_history::{FileContent, PathState, changes};
use loci_stdx::{create_private_dir_all, private_file};

use super::blobs::{BlobStore, BlobUsage, Digest32};
use super::log::{logs_dir, read_log};
use crate::layout::ConfigHome;

/// The file that collecting and keeping take turns by.
const LOCK: &str = "blobs.lock";

/// What a collection found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectReport {
    /// What was there before.
    pub before: BlobUsage,
    /// What was removed.
    pub removed: BlobUsage,
}

/// Why nothing was collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// A living session keeps contents that no log names yet.
    #[error("A session that keeps files is running")]
    InUse,
    /// Something could not be read or removed.
    #[error("Failed to collect what nothing refers to: `{}`", path.display())]
    Disk {
        /// What.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Keeps others from collecting until dropped. Without a lock, contents may be collected that a log does not name yet.
pub(super) fn guard(home: &ConfigHome) -> Option<File> {
    let file = lock_file(home).ok()?;
    file.try_lock_shared().ok()?;
    Some(file)
}

/// Removes contents that no log and no rewind refers to; with `is_trial` it only says what would go.
pub fn collect_blobs(home: &ConfigHome, is_trial: bool) -> Result<CollectReport, CollectError> {
    let failed = |path: PathBuf| move |source| CollectError::Disk { path, source };
    let path = home.loci_dir().join(LOCK);
    let lock = lock_file(home).map_err(failed(path.clone()))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(CollectError::InUse),
        Err(TryLockError::Error(source)) => return Err(CollectError::Disk { path, source }),
    }
    let needed = needed(home)?;
    let store = BlobStore::new(home);
    let blobs = home.loci_dir().join("blobs");
    let before = store.usage().map_err(failed(blobs.clone()))?;
    let removed = store.sweep(|digest| needed.contains(digest), is_trial).map_err(failed(blobs))?;
    Ok(CollectReport { before, removed })
}

/// Returns every content that some log or journal names. A log that cannot be read stops the collection.
fn needed(home: &ConfigHome) -> Result<HashSet<Digest32>, CollectError> {
    let mut needed = HashSet::new();
    let mut need = |state: &PathState| {
        if let PathState::File { content: FileContent::Blob(digest), .. } = state {
            needed.insert(*digest);
        }
    };
    let dir = logs_dir(home);
    let logs = match fs::read_dir(&dir) {
        Ok(logs) => logs.collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    for log in logs.map_err(|source| CollectError::Disk { path: dir, source })? {
        let path = log.path();
        let lines = read_log(&path).map_err(|source| CollectError::Disk { path, source })?;
        changes(&lines).for_each(|(_, change)| {
            need(&change.before);
            need(&change.after);
        });
    }
    for step in crate::history::rewind::journaled_steps(home)
        .map_err(|(path, source)| CollectError::Disk { path, source })?
    {
        need(&step.from);
        need(&step.to);
    }
    Ok(needed)
}

fn lock_file(home: &ConfigHome) -> io::Result<File> {
    create_private_dir_all(&home.loci_dir())?;
    private_file().create(true).truncate(false).write(true).open(home.loci_dir().join(LOCK))
}
