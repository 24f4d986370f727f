//! Removing a working copy, when nothing would be lost, or what would be is kept elsewhere.

use std::path::{Path, PathBuf};

use loci_stdx::Env;

use super::git::WorktreeGit;
use super::in_use::is_in_use;
use super::include::is_shared_directory;
use super::{Worktree, lock};

/// What a working copy has that is nowhere else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorktreeChanges {
    /// Files that were changed, or that git does not know.
    pub n_files: usize,
    /// Commits that no other branch and no remote has.
    pub n_commits: usize,
}

impl WorktreeChanges {
    /// Tells whether removing the copy would lose nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What became of a working copy that was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedWorktree {
    /// What it had that was nowhere else.
    pub discarded: WorktreeChanges,
    /// The reference that keeps that.
    pub kept_as: Option<String>,
}

/// Why a working copy was not removed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeRemovalError {
    /// There is work in it.
    #[error("The worktree has {} and {} that are nowhere else", files(.0.n_files), commits(.0.n_commits))]
    WouldLose(WorktreeChanges),
    /// Another session is in it.
    #[error("Another session works in the worktree `{}`", .0.display())]
    InUse(PathBuf),
    /// Git could not say what is in it, or would not remove it.
    #[error("Git could not remove the worktree: {0}")]
    Git(String),
}

fn files(n: usize) -> String {
    loci_stdx::counted(n as u64, "uncommitted file", "uncommitted files")
}

fn commits(n: usize) -> String {
    loci_stdx::counted(n as u64, "commit", "commits")
}

/// Returns what a working copy has that is nowhere else.
pub fn worktree_changes(env: &Env, worktree: &Worktree) -> Result<WorktreeChanges, WorktreeRemovalError> {
    let git = WorktreeGit::new(env, &worktree.path);
    let status = git.run(&["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"]);
    let status = status.map_err(WorktreeRemovalError::Git)?;
    let lines = status.split('\0').filter_map(|line| line.get(3..)).filter(|file| !file.is_empty());
    let n_files = lines.filter(|file| !is_shared_directory(worktree, Path::new(file))).count();
    let mut args = vec!["rev-list", "--count", "HEAD", "--not", "--remotes"];
    let own = worktree.branch.as_ref().map(|branch| format!("--exclude={branch}"));
    if let Some(own) = &own {
        args.push(own);
    }
    args.push("--branches");
    args.extend(worktree.base.as_deref());
    let count = git.read(&args).map_err(WorktreeRemovalError::Git)?;
    let n_commits =
        count.parse().map_err(|_| WorktreeRemovalError::Git(format!("not a number: `{count}`")))?;
    Ok(WorktreeChanges { n_files, n_commits })
}

/// Removes a working copy and its branch. With work in it that is only done when that is to be discarded; a commit keeps
/// it all the same.
pub fn remove_worktree(
    env: &Env,
    worktree: &Worktree,
    discards: bool,
) -> Result<RemovedWorktree, WorktreeRemovalError> {
    let main = WorktreeGit::new(env, &worktree.main);
    let _lock = lock(&main).map_err(|error| WorktreeRemovalError::Git(error.to_string()))?;
    let here = WorktreeGit::new(env, &worktree.path);
    if is_in_use(env, worktree) {
        return Err(WorktreeRemovalError::InUse(worktree.path.clone()));
    }
    let changes = match worktree_changes(env, worktree) {
        Ok(changes) => changes,
        // What cannot be told may be anything.
        Err(error) if !discards => return Err(error),
        Err(_) => WorktreeChanges::default(),
    };
    if !changes.is_empty() && !discards {
        return Err(WorktreeRemovalError::WouldLose(changes));
    }
    let tip = here.read(&["rev-parse", "HEAD"]).map_err(WorktreeRemovalError::Git)?;
    let kept_as = match changes.is_empty() {
        true => None,
        false => Some(keep(env, &here, worktree, &tip)?),
    };
    unlink_shared(worktree, &here);
    let place = worktree.path.display().to_string();
    let mut args = vec!["worktree", "remove"];
    if discards {
        args.push("--force");
    }
    args.push(&place);
    main.run(&args).map_err(WorktreeRemovalError::Git)?;
    if let Some(branch) = worktree.branch.as_ref().filter(|branch| branch.starts_with("worktree-")) {
        // Only as it was looked at: a commit that came since keeps its branch.
        let name = format!("refs/heads/{branch}");
        drop(main.run(&["update-ref", "-d", &name, &tip]));
    }
    Ok(RemovedWorktree { discarded: changes, kept_as })
}

/// Keeps all that is in a working copy as a commit behind its last one.
fn keep(
    env: &Env,
    here: &WorktreeGit,
    worktree: &Worktree,
    tip: &str,
) -> Result<String, WorktreeRemovalError> {
    let index = here.common_dir().map_err(WorktreeRemovalError::Git)?;
    let index = index.join(format!("loci-kept-index-{}", env.random.uuid_v4()));
    let commit = (|| {
        here.run_beside(&["read-tree", "HEAD"], &index)?;
        here.run_beside(&["add", "--all", "--", ":/", ":(exclude,top).claude/worktrees"], &index)?;
        let tree = here.run_beside(&["write-tree"], &index)?;
        let message = format!("What was in the worktree {} when it was removed", worktree.name);
        let identity = ["-c", "user.name=loci", "-c", "user.email=loci@localhost"];
        let args = ["commit-tree", tree.trim_end(), "-p", tip, "-m", &message];
        here.read(&[&identity[..], &args[..]].concat())
    })();
    drop(std::fs::remove_file(&index));
    let name = format!("refs/loci/kept/{}-{}", worktree.name, env.clock.now().as_millisecond());
    let kept = commit.and_then(|commit| here.run(&["update-ref", &name, &commit]));
    kept.map(|_| name).map_err(WorktreeRemovalError::Git)
}

/// Takes links to directories of the main checkout out of a working copy, so that nothing of theirs is removed with it.
fn unlink_shared(worktree: &Worktree, here: &WorktreeGit) {
    let status = here.run(&["status", "--porcelain", "-z", "--untracked-files=all", "--ignored"]);
    for file in status.unwrap_or_default().split('\0').filter_map(|line| line.get(3..)) {
        let file = Path::new(file.trim_end_matches('/'));
        if is_shared_directory(worktree, file) {
            drop(std::fs::remove_file(worktree.path.join(file)));
        }
    }
}
