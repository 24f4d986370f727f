//! Who is in a working copy: every session that works in one holds a shared lock on a file of git's own directory for it.
//!
//! The lock is the operating system's, so a process that is gone holds nothing. Several sessions may be in one copy; it is
//! removed when no other is.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use loci_stdx::Env;

use super::Worktree;
use super::git::WorktreeGit;

/// The file, in the directory that git keeps for the copy.
const FILE: &str = "loci-in-use";

/// That a session is in a working copy, until dropped.
#[derive(Debug)]
#[must_use = "the copy counts as left when this is dropped"]
pub struct WorktreeUse {
    _file: File,
}

/// Notes that a session is in a working copy; nothing where git keeps no directory for it, or it cannot be written.
pub fn use_worktree(env: &Env, worktree: &Worktree) -> Option<WorktreeUse> {
    let file = open(env, worktree)?;
    match file.try_lock_shared() {
        Ok(()) => Some(WorktreeUse { _file: file }),
        Err(why) => {
            tracing::debug!(target: "loci::worktrees", place = %worktree.path.display(), %why, "a worktree is not noted as in use");
            None
        }
    }
}

/// Tells whether another session is in a working copy.
pub(super) fn is_in_use(env: &Env, worktree: &Worktree) -> bool {
    open(env, worktree).is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn open(env: &Env, worktree: &Worktree) -> Option<File> {
    let path = git_dir(env, worktree)?.join(FILE);
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link);
    options.open(path).ok()
}

/// Returns the directory that git keeps for this copy alone.
fn git_dir(env: &Env, worktree: &Worktree) -> Option<PathBuf> {
    if worktree.is_hooks {
        return None;
    }
    let git = WorktreeGit::new(env, &worktree.path);
    let dir = worktree.path.join(git.read(&["rev-parse", "--git-dir"]).ok()?);
    let is_own = git.common_dir().is_ok_and(|common| dir.canonicalize().is_ok_and(|dir| dir != common));
    is_own.then_some(dir)
}
