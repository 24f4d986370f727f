//! A lock between processes: one holder of a lock file at a time, let go when the holder is dropped or dies.
//!
//! The lock is the operating system's advisory lock on an open file, so nothing is left behind by a
//! crash. The file itself stays and is never read; a lock file that somebody removed or replaced while
//! we waited is noticed, since a lock on a file nobody else can reach keeps nobody out.

#[cfg(test)]
mod tests;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::dirs::{create_private_dir_all, parent_of};
use crate::private::private_file;
use crate::same_file::is_at_path;

/// The pauses between attempts start here and double up to [`LONGEST_PAUSE`]. Long ones would let a process that
/// takes the lock again and again keep all others out.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// The right to do what the lock file stands for, until dropped.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The lock file could not be opened or created.
    #[error("Failed to open lock file: `{}`", path.display())]
    Open {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to lock at all.
    #[error("Failed to lock file: `{}`", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else held the lock all the time.
    #[error("Failed to lock file within {timeout:?}, another process holds it: `{}`", path.display())]
    Timeout {
        /// The lock file.
        path: PathBuf,
        /// How long we waited.
        timeout: Duration,
    },
}

impl FileLock {
    /// Takes the lock at `path`, waiting up to `timeout` for whoever holds it.
    ///
    /// Blocks the thread. The file is created with mode 0600, missing parents with 0700.
    pub fn acquire(path: &Path, timeout: Duration) -> Result<Self, LockError> {
        let started = Instant::now();
        let mut pause = SHORTEST_PAUSE;
        loop {
            if let Some(lock) = Self::try_acquire(path)? {
                return Ok(lock);
            }
            let remaining = timeout.saturating_sub(started.elapsed());
            if remaining.is_zero() {
                return Err(LockError::Timeout { path: path.to_owned(), timeout });
            }
            thread::sleep(pause.min(remaining));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns true while the locked file is still the one at its path; a lock file that somebody removed or
    /// replaced keeps nobody out any more. When it cannot be told, nothing speaks against it.
    #[must_use]
    pub fn is_current(&self) -> bool {
        is_at_path(&self.file, &self.path).unwrap_or(true)
    }

    /// Takes the lock at `path` if nobody holds it.
    pub fn try_acquire(path: &Path) -> Result<Option<Self>, LockError> {
        let file = open(path).map_err(|source| LockError::Open { path: path.to_owned(), source })?;
        let failed = |source| LockError::Lock { path: path.to_owned(), source };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let lock = Self { file, path: path.to_owned() };
        // Removed or replaced between opening and locking: to the caller that is "not yet".
        Ok(is_at_path(&lock.file, path).map_err(failed)?.then_some(lock))
    }

    /// Puts the lock file in the place of the one at `path`, whose lock keeps nobody out from then on.
    pub fn take_place_of(self, path: &Path) -> Result<Self, LockError> {
        fs::rename(&self.path, path).map_err(|source| LockError::Open { path: path.to_owned(), source })?;
        let mut lock = self;
        path.clone_into(&mut lock.path);
        Ok(lock)
    }

    /// Returns the path of the lock file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Said aloud rather than left to the close: a child process forked at this moment may hold a
        // copy of the handle for a while. Should it fail, the close is still to come.
        self.file.unlock().unwrap_or_default();
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = private_file();
    options.read(true).write(true).create(true).truncate(false);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_private_dir_all(parent_of(path))?;
            options.open(path)
        }
        result => result,
    }
}
