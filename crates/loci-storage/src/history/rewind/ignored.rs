//! What a rewind does not touch because git ignores it, as far as it has changed since.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loci_stdx::Env;

use crate::project::git::ignored_paths;

/// How many paths are looked at below ignored directories before one counts as changed.
const MOST_LOOKED_AT: usize = 20_000;

/// Returns what git ignores below a directory and what was changed since a moment: files, and directories that hold
/// such files, each named once. Nothing, outside a repository.
pub(super) fn ignored_changes(dir: &Path, since_ms: i64, env: &Env) -> Vec<PathBuf> {
    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(since_ms).unwrap_or_default());
    let mut n_left = MOST_LOOKED_AT;
    let ignored = ignored_paths(dir, env).into_iter().map(|path| dir.join(path));
    ignored.filter(|path| has_changed(path, since, &mut n_left)).collect()
}

/// Tells whether a file, or anything below a directory, was changed since; what is too much to look at counts as changed.
fn has_changed(path: &Path, since: SystemTime, n_left: &mut usize) -> bool {
    let Some(left) = n_left.checked_sub(1) else { return true };
    *n_left = left;
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    if metadata.modified().is_ok_and(|modified| modified >= since) {
        return true;
    }
    let below = || fs::read_dir(path).into_iter().flatten().flatten();
    metadata.is_dir() && below().any(|entry| has_changed(&entry.path(), since, n_left))
}
