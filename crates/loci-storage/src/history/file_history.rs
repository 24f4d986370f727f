//! File history in the shared format: the content of files before tools changed them.
//!
//! ```text
//! <config home>/file-history/<session>/<first 16 hex of SHA-256 of the absolute path>@v<N>
//! ```
//!
//! A backup is the raw file with its mode. Which backup belongs to which prompt is said by snapshots in the
//! transcript ([`loci_core::file_history`]). A file is tracked from the first time that a tool is about to change it;
//! every prompt looks at all tracked files and keeps those that changed, whoever changed them.
//!
//! 1. A backup is complete and synced before the change it is for is made, and is never changed afterwards.
//! 2. A version number is used for one content only; it grows when the content really changed.

mod backup;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use loci_core::file_history::{Backup, Snapshot, SnapshotEntry, path_of_key, tracked_key};
use loci_core::ids::{EntryId, SessionId};

use crate::layout::ConfigHome;

pub(crate) use backup::read_backup;

/// Snapshots that are kept; the oldest go first.
const MOST_SNAPSHOTS: usize = 100;

/// Why a file's content was not kept.
#[derive(Debug, thiserror::Error)]
#[error("Failed to keep a copy of `{}`", path.display())]
pub struct BackupError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// The file history of a running session.
#[derive(Debug)]
pub struct FileHistory {
    dir: PathBuf,
    cwd: PathBuf,
    /// Oldest first; the last is the current prompt's.
    snapshots: Vec<Snapshot>,
}

impl FileHistory {
    /// Goes on from the snapshots that are known, oldest first; `cwd` is what keys are relative to.
    pub fn new(home: &ConfigHome, session: &SessionId, cwd: &Path, known: Vec<Snapshot>) -> Self {
        Self { dir: home.file_history_dir(session), cwd: cwd.to_owned(), snapshots: known }
    }

    /// Makes the snapshot of a new prompt. Files that could not be kept stay at their last version and are told.
    pub fn begin_prompt(&mut self, prompt: &EntryId, now: &str) -> (SnapshotEntry, Vec<BackupError>) {
        let mut problems = Vec::new();
        let before = self.snapshots.last().map(|last| last.backups.clone()).unwrap_or_default();
        let backups = before.into_iter().map(|(key, backup)| match self.renewed(&key, &backup, now) {
            Ok(renewed) => (key, renewed.unwrap_or(backup)),
            Err(source) => {
                problems.push(BackupError { path: path_of_key(&self.cwd, &key), source });
                (key, backup)
            }
        });
        let snapshot =
            Snapshot { message: prompt.clone(), timestamp: now.to_owned(), backups: backups.collect() };
        self.snapshots.push(snapshot.clone());
        self.forget_oldest();
        (SnapshotEntry { written_for: prompt.clone(), is_update: false, snapshot }, problems)
    }

    /// Keeps the content of a file that is about to be changed, unless it is tracked already; returns the snapshot
    /// to write again. Links and special files are not tracked.
    pub fn track(&mut self, path: &Path, now: &str) -> Result<Option<Snapshot>, BackupError> {
        let Some(key) = tracked_key(&self.cwd, path) else { return Ok(None) };
        let Some(current) = self.snapshots.last() else { return Ok(None) };
        if current.find(&key).is_some() {
            return Ok(None);
        }
        let failed = |source| BackupError { path: path.to_owned(), source };
        let version = backup::next_version(&self.dir, path).map_err(failed)?;
        let Some(backup) = backup::write_backup(&self.dir, path, version, now).map_err(failed)? else {
            return Ok(None);
        };
        let Some(current) = self.snapshots.last_mut() else { return Ok(None) };
        current.backups.push((key, backup));
        Ok(Some(current.clone()))
    }

    /// Returns the next version of a tracked file, when it changed.
    fn renewed(&self, key: &str, last: &Backup, now: &str) -> io::Result<Option<Backup>> {
        let path = path_of_key(&self.cwd, key);
        if !backup::has_changed(&self.dir, &path, last)? {
            return Ok(None);
        }
        backup::write_backup(&self.dir, &path, last.version + 1, now)
    }

    /// Lets the oldest snapshots go, and the backups that only they named; each file's first version stays.
    fn forget_oldest(&mut self) {
        while self.snapshots.len() > MOST_SNAPSHOTS {
            let oldest = self.snapshots.remove(0);
            let named = |snapshot: &Snapshot| -> HashSet<String> {
                snapshot.backups.iter().filter_map(|(_, backup)| backup.file_name.clone()).collect()
            };
            let still: HashSet<String> = self.snapshots.iter().flat_map(named).collect();
            for (_, backup) in oldest.backups.iter().filter(|(_, backup)| backup.version > 1) {
                if let Some(name) = backup.file_name.as_ref().filter(|name| !still.contains(*name)) {
                    // One that is gone already is as good.
                    fs::remove_file(self.dir.join(name)).ok();
                }
            }
        }
    }
}
