//! Looking over the working copies of a repository: what has been left behind, and putting away what agents left.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use loci_stdx::Env;

use super::git::WorktreeGit;
use super::hold::{list_worktrees, release_stale};
use super::{DIR, WorktreeChanges, check_no_symlink, open_worktree, remove_worktree, worktree_changes};
use crate::project::main_checkout;

/// What the names of working copies begin with that agents have to themselves.
pub const AGENT_WORKTREE_PREFIX: &str = "agent-";

/// A working copy below `.claude/worktrees`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyedWorktree {
    /// Its name.
    pub name: String,
    /// Where it is, or was.
    pub path: PathBuf,
    /// How it stands.
    pub state: WorktreeState,
}

/// How a working copy stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeState {
    /// It is one, and has so much that is nowhere else.
    Whole(WorktreeChanges),
    /// A directory that git does not know.
    Orphaned,
    /// Git knows it, and the directory is gone.
    Missing,
    /// Git could not say.
    Unreadable(String),
}

impl SurveyedWorktree {
    /// Tells whether an agent had it to itself.
    pub fn is_agents(&self) -> bool {
        self.name.starts_with(AGENT_WORKTREE_PREFIX)
    }
}

/// Returns the working copies below the main checkout of whoever works at `cwd`, by name.
pub fn survey_worktrees(env: &Env, cwd: &Path) -> Vec<SurveyedWorktree> {
    let Some(main) = main_checkout(cwd) else { return Vec::new() };
    let dir = main.join(DIR);
    if check_no_symlink(&main, &dir).is_err() {
        return Vec::new();
    }
    let mut found: Vec<SurveyedWorktree> = directories(&dir)
        .into_iter()
        .map(|path| SurveyedWorktree { name: name_of(&path), state: state_of(env, &main, &path), path })
        .collect();
    // Without a directory of copies nobody is asked.
    if dir.is_dir() {
        let known = list_worktrees(&WorktreeGit::new(env, &main)).into_iter().map(|it| it.path);
        let gone = known.filter(|path| path.starts_with(&dir) && !path.exists());
        found.extend(gone.map(|path| SurveyedWorktree {
            name: name_of(&path),
            path,
            state: WorktreeState::Missing,
        }));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Removes copies of agents that nobody has touched for so long and that have nothing of their own; returns them. Locks of
/// processes that are gone go first, and so does what git still knows of copies that are not there any more.
pub fn sweep_agent_worktrees(env: &Env, cwd: &Path, age: Duration) -> Vec<PathBuf> {
    let Some(main) = main_checkout(cwd) else { return Vec::new() };
    let dir = main.join(DIR);
    if check_no_symlink(&main, &dir).is_err() {
        return Vec::new();
    }
    // Without a directory of copies nobody is asked.
    if dir.is_dir() {
        let git = WorktreeGit::new(env, &main);
        release_stale(&git, &dir);
        forget_missing(&git, &dir);
    }
    let now = Duration::from_millis(u64::try_from(env.clock.now().as_millisecond()).unwrap_or(0));
    let is_old = |path: &PathBuf| {
        let touched = path.symlink_metadata().and_then(|it| it.modified()).ok();
        let touched = touched.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        touched.is_some_and(|at| now.saturating_sub(at) >= age)
    };
    let old = directories(&dir).into_iter().filter(|path| name_of(path).starts_with(AGENT_WORKTREE_PREFIX));
    let old = old.filter(is_old).filter_map(|path| open_worktree(env, &main, &path));
    // Removing looks again: one that has work in it, or that git would not say of, stays.
    old.filter(|copy| remove_worktree(env, copy, false).is_ok()).map(|copy| copy.path).collect()
}

/// Has git forget copies of agents whose directories are gone, unless somebody locked them. Their branches stay.
fn forget_missing(git: &WorktreeGit, dir: &Path) {
    let is_agents =
        |path: &Path| path.parent() == Some(dir) && name_of(path).starts_with(AGENT_WORKTREE_PREFIX);
    let listed = list_worktrees(git).into_iter();
    for gone in listed.filter(|it| is_agents(&it.path) && it.lock.is_none() && !it.path.exists()) {
        let place = gone.path.display().to_string();
        if let Err(why) = git.run(&["worktree", "remove", &place]) {
            tracing::debug!(target: "loci::worktrees", place, why, "git still knows a worktree");
        }
    }
}

fn state_of(env: &Env, main: &Path, path: &Path) -> WorktreeState {
    match open_worktree(env, main, path) {
        None => WorktreeState::Orphaned,
        Some(copy) => match worktree_changes(env, &copy) {
            Ok(changes) => WorktreeState::Whole(changes),
            Err(error) => WorktreeState::Unreadable(error.to_string()),
        },
    }
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())).map(|it| it.path()).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
