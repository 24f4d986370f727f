//! Holding a working copy while an agent works in it: git's own lock (`git worktree lock`), so that neither `git worktree
//! remove` and `prune` nor a sweep, whoever runs them, takes it away meanwhile.
//!
//! The reason of the lock names the process: one that is gone holds nothing any more. Locks of others are left alone.

use std::path::{Path, PathBuf};

use loci_stdx::{Env, is_alive, start_ticks};

use super::Worktree;
use super::git::WorktreeGit;

/// What the reason of our locks begins with.
const OWN: &str = "loci: an agent works here";

/// A working copy as git lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedWorktree {
    pub(super) path: PathBuf,
    /// Why it is locked, where it is.
    pub(super) lock: Option<String>,
}

/// Locks a working copy for this process; false when somebody else has.
pub fn hold_worktree(env: &Env, worktree: &Worktree) -> bool {
    let git = WorktreeGit::new(env, &worktree.main);
    let place = worktree.path.display().to_string();
    let locked = git.run(&["worktree", "lock", "--reason", &own_reason(), &place]);
    if let Err(why) = &locked {
        tracing::debug!(target: "loci::worktrees", place, why, "a worktree is not locked");
    }
    locked.is_ok()
}

/// Gives up the lock of this process, or of one that is gone; others stay.
pub fn release_worktree(env: &Env, worktree: &Worktree) {
    let git = WorktreeGit::new(env, &worktree.main);
    let listed = list_worktrees(&git).into_iter().find(|it| it.path == worktree.path);
    if let Some(lock) = listed.and_then(|it| it.lock).filter(|lock| *lock == own_reason() || is_stale(lock)) {
        unlock(&git, &worktree.path, &lock);
    }
}

/// Gives up locks of ours below a directory whose processes are gone.
pub(super) fn release_stale(git: &WorktreeGit, dir: &Path) {
    for listed in list_worktrees(git).into_iter().filter(|it| it.path.starts_with(dir)) {
        if let Some(lock) = listed.lock.filter(|lock| is_stale(lock)) {
            unlock(git, &listed.path, &lock);
        }
    }
}

/// Returns the working copies that git knows, and their locks.
pub(super) fn list_worktrees(git: &WorktreeGit) -> Vec<ListedWorktree> {
    parse_list(&git.run(&["worktree", "list", "--porcelain"]).unwrap_or_default())
}

fn unlock(git: &WorktreeGit, path: &Path, lock: &str) {
    let place = path.display().to_string();
    if let Err(why) = git.run(&["worktree", "unlock", &place]) {
        tracing::debug!(target: "loci::worktrees", place, lock, why, "a worktree stays locked");
    }
}

fn own_reason() -> String {
    let pid = std::process::id();
    reason(pid, start_ticks(pid))
}

fn reason(pid: u32, start: Option<u64>) -> String {
    let start = start.map(|ticks| format!(", started {ticks}")).unwrap_or_default();
    format!("{OWN} (process {pid}{start})")
}

/// Tells whether a lock is one of ours whose process is gone; a number that another process has got since is not ours.
fn is_stale(lock: &str) -> bool {
    let Some((pid, start)) = parse_reason(lock) else { return false };
    !is_alive(pid) || start.is_some_and(|start| start_ticks(pid).is_some_and(|now| now != start))
}

fn parse_reason(lock: &str) -> Option<(u32, Option<u64>)> {
    let inner = lock.strip_prefix(OWN)?.trim().strip_prefix("(process ")?.strip_suffix(')')?;
    match inner.split_once(", started ") {
        Some((pid, start)) => Some((pid.parse().ok()?, Some(start.parse().ok()?))),
        None => Some((inner.parse().ok()?, None)),
    }
}

/// Reads what `git worktree list --porcelain` prints: an attribute a line, the path first.
fn parse_list(text: &str) -> Vec<ListedWorktree> {
    let mut found: Vec<ListedWorktree> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("worktree ") {
            found.push(ListedWorktree { path: PathBuf::from(path), lock: None });
        } else if let (Some(last), Some(lock)) = (found.last_mut(), line.strip_prefix("locked")) {
            last.lock = Some(lock.trim_start().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_processes_that_are_gone_are_stale_and_others_are_not() {
        let own = std::process::id();
        let start = start_ticks(own);
        let foreign = |text: &str| text.to_owned();
        for (lock, expected) in [
            (own_reason(), false),
            (reason(own, None), false),
            (reason(own, start.map(|ticks| ticks + 1)), start.is_some()),
            (reason(u32::MAX - 1, Some(7)), true),
            (foreign("on a portable disk"), false),
            (foreign(""), false),
            (foreign("loci: an agent works here"), false),
            (foreign("loci: an agent works here (process x)"), false),
        ] {
            assert_eq!(is_stale(&lock), expected, "{lock}");
        }
    }

    #[test]
    fn list_of_git_is_read() {
        let text = "worktree /p\nHEAD 1\nbranch refs/heads/main\n\nworktree /p/.claude/worktrees/a b\nHEAD 1\n\
                    detached\nlocked why so\n\nworktree /q\nHEAD 1\nlocked\n\n";
        let told: Vec<(String, Option<String>)> =
            parse_list(text).into_iter().map(|it| (it.path.display().to_string(), it.lock)).collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            told,
            [
                ("/p".to_owned(), None),
                ("/p/.claude/worktrees/a b".to_owned(), some("why so")),
                ("/q".to_owned(), some(""))
            ]
        );
    }
}
