//! Worktrees: working copies of a repository that a session or an agent has to itself.
//!
//! ```text
//! <main checkout>/.claude/worktrees/<name>     the working copy, on the branch worktree-<name>
//! <main checkout>/.worktreeinclude             patterns of ignored files that are copied along
//! refs/loci/kept/<name>-<ms>                   what was in a copy that was removed with work in it
//! ```
//!
//! What must stay true:
//!
//! 1. Nothing is made or removed through a symlink.
//! 2. A worktree that is removed had nothing in it that is nowhere else: no changed or untracked file, no commit that no
//!    other branch or remote has. Where somebody wants it gone all the same, a commit keeps what was there.
//! 3. While an agent works in a copy, it is locked (`git worktree lock`); a process that is gone holds no lock.
//! 4. A copy that a session is in is not removed by another (`in_use`).
//! 5. Neither hooks nor filters of the repository's own configuration are run.

pub(crate) mod git;
mod hold;
mod in_use;
mod include;
mod remove;
mod survey;

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use loci_stdx::{Env, FileLock};

use crate::project::main_checkout;
pub use git::WaitNotice;
use git::WorktreeGit;

pub use hold::{hold_worktree, release_worktree};
pub use in_use::{WorktreeUse, use_worktree};
pub use survey::{
    AGENT_WORKTREE_PREFIX, SurveyedWorktree, WorktreeState, survey_worktrees, sweep_agent_worktrees,
};

pub use remove::{RemovedWorktree, WorktreeChanges, WorktreeRemovalError, remove_worktree, worktree_changes};

/// Where the working copies of a repository lie.
pub(crate) const DIR: &str = ".claude/worktrees";
/// The longest name.
const LONGEST_NAME: usize = 64;
/// How long another process may be about to make one.
const PATIENCE: Duration = Duration::from_secs(60);

/// A working copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its name.
    pub name: String,
    /// Where it is; symlinks resolved.
    pub path: PathBuf,
    /// The checkout that it belongs to.
    pub main: PathBuf,
    /// Its branch, where git made it.
    pub branch: Option<String>,
    /// The commit that it began with, where it was made just now: of one that was there, only other branches and remotes
    /// say which commits are not its own.
    pub base: Option<String>,
    /// Whether it was there already.
    pub is_reused: bool,
    /// Whether a hook made it in git's place; what is in it is the hook's to know.
    pub is_hooks: bool,
}

impl Worktree {
    /// Tells whether loci, or a hook in its place, made it. What people made is theirs to remove.
    pub fn is_ours(&self) -> bool {
        self.is_hooks || self.path.parent() == Some(self.main.join(DIR).as_path())
    }
}

/// A working copy that a session is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeSession {
    /// The copy.
    pub worktree: Worktree,
    /// Where the session was before it entered its first one.
    pub original: PathBuf,
}

/// How working copies are made (`worktree.*` of the settings).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeOptions {
    /// What they begin with.
    pub base: WorktreeBase,
    /// Directories of the main checkout that they link to instead of having their own, relative.
    pub symlink_directories: Vec<String>,
    /// The only directories that are checked out, relative; all, where there are none.
    pub sparse_paths: Vec<String>,
}

/// What a working copy begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WorktreeBase {
    /// The default branch of the remote `origin`; without one, what is checked out.
    #[default]
    Fresh,
    /// What is checked out.
    Head,
    /// The head of a pull or merge request of `origin`.
    PullRequest(u64),
}

/// Why there is no working copy.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The name would lead elsewhere, or cannot be part of a branch's.
    #[error("Not a name for a worktree: `{0}` (use letters, digits, `.`, `_` and `-`, at most 64)")]
    Name(String),
    /// There is no repository.
    #[error("A worktree needs a git repository, and `{}` is in none", .0.display())]
    NoRepository(PathBuf),
    /// A symlink is in the way.
    #[error("`{}` is a symlink, and worktrees are not made through one", .0.display())]
    Symlink(PathBuf),
    /// Something else is in its place.
    #[error("`{}` is there already and is no worktree of this repository", .0.display())]
    Taken(PathBuf),
    /// Git would not.
    #[error("Git could not make the worktree: {0}")]
    Git(String),
    /// The disk would not.
    #[error("Failed to make the worktree: `{}`", path.display())]
    Disk {
        /// What was to be made.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Reads what `--worktree` was given: a name, or `#<number>` and the address of a pull request. Returns the name and what
/// the copy begins with, where that says so.
pub fn parse_worktree_name(text: &str) -> Result<(String, Option<WorktreeBase>), WorktreeError> {
    let address = || {
        let is_request = |part: &str| matches!(part, "pull" | "merge_requests");
        let mut parts = text.split('/').skip_while(|part| !is_request(part)).skip(1);
        parts.next().filter(|_| text.starts_with("http"))
    };
    let number = text.strip_prefix('#').or_else(address);
    if let Some(number) = number.and_then(|digits| digits.parse::<u64>().ok()) {
        return Ok((format!("pr-{number}"), Some(WorktreeBase::PullRequest(number))));
    }
    check_name(text)?;
    Ok((text.to_owned(), None))
}

fn check_name(name: &str) -> Result<(), WorktreeError> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
    let is_bad = name.is_empty()
        || name.len() > LONGEST_NAME
        || !name.chars().all(is_plain)
        || name.starts_with(['.', '-'])
        || name.ends_with('.')
        || name.ends_with(".lock")
        || name.contains("..");
    if is_bad { Err(WorktreeError::Name(name.to_owned())) } else { Ok(()) }
}

/// Makes a working copy for whoever works at `cwd`, or opens the one that has the name already.
pub fn create_worktree(
    env: &Env,
    cwd: &Path,
    name: &str,
    options: &WorktreeOptions,
) -> Result<Worktree, WorktreeError> {
    create_worktree_telling(env, cwd, name, options, |_| {})
}

/// Does the same, and tells whoever waits when git takes long.
pub fn create_worktree_telling(
    env: &Env,
    cwd: &Path,
    name: &str,
    options: &WorktreeOptions,
    tell: WaitNotice,
) -> Result<Worktree, WorktreeError> {
    check_name(name)?;
    let main = main_checkout(cwd).ok_or_else(|| WorktreeError::NoRepository(cwd.to_owned()))?;
    let path = main.join(DIR).join(name);
    check_no_symlink(&main, &path)?;
    let git = WorktreeGit::new(env, &main).telling(tell);
    let _lock = lock(&git)?;
    let branch = format!("worktree-{name}");
    if path.exists() {
        return reopen(&git, main, path, name, options);
    }
    let dir = main.join(DIR);
    fs::create_dir_all(&dir).map_err(|source| WorktreeError::Disk { path: dir, source })?;
    let base = base_commit(env, &git, cwd, &options.base)?;
    add(&git, &path, &branch, &base, !options.sparse_paths.is_empty())?;
    let made = Worktree {
        name: name.to_owned(),
        path: path.canonicalize().unwrap_or(path),
        main,
        branch: Some(branch),
        base: Some(base),
        is_reused: false,
        is_hooks: false,
    };
    check_out_sparse(env, &made, &options.sparse_paths, tell)?;
    include::link_directories(&made, &options.symlink_directories)?;
    include::copy_included(&git, &made)?;
    Ok(made)
}

/// Finds the working copy of a repository that a directory is the root of; none when it is the main checkout, no copy of
/// this repository, or not whole.
pub fn open_worktree(env: &Env, cwd: &Path, path: &Path) -> Option<Worktree> {
    let main = main_checkout(cwd)?;
    let path = path.canonicalize().ok()?;
    if path == main || main_checkout(&path)? != main {
        return None;
    }
    let git = WorktreeGit::new(env, &path);
    let top = PathBuf::from(git.read(&["rev-parse", "--show-toplevel"]).ok()?);
    let name = path.file_name()?.to_string_lossy().into_owned();
    (top == path).then(|| Worktree {
        branch: git.read(&["symbolic-ref", "--quiet", "--short", "HEAD"]).ok(),
        base: None,
        name,
        path,
        main,
        is_reused: true,
        is_hooks: false,
    })
}

/// Returns the working copy that a hook says it has made for whoever works at `cwd`. One that steps or symlinks of the
/// repository could have led elsewhere is refused, and so is one that the checkout itself lies in.
pub fn hook_worktree(cwd: &Path, name: &str, path: &Path) -> Result<Worktree, String> {
    if path.is_absolute()
        && path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir))
    {
        return Err(format!("`{}` has steps in it that lead elsewhere", path.display()));
    }
    let path = normal(&cwd.join(path));
    let main = main_checkout(cwd).unwrap_or_else(|| cwd.to_owned());
    let below = path.ancestors().take_while(|dir| dir.starts_with(&main) && **dir != main);
    if let Some(link) = below.filter(|dir| dir.is_symlink()).last() {
        return Err(format!("`{}` is a symlink", link.display()));
    }
    let real = path.canonicalize().map_err(|error| format!("`{}`: {error}", path.display()))?;
    if !real.is_dir() {
        return Err(format!("`{}` is no directory", path.display()));
    }
    if main.starts_with(&real) {
        return Err(format!("`{}` is the checkout itself, or around it", path.display()));
    }
    let (name, branch, base) = (name.to_owned(), None, None);
    Ok(Worktree { name, path: real, main, branch, base, is_reused: false, is_hooks: true })
}

/// Takes steps (`.`, `..`) out of an absolute path.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// Tells whether a path is where a working copy of ours would be, whether or not there is one.
pub fn is_worktree_place(path: &Path) -> bool {
    path.parent().is_some_and(|dir| dir.ends_with(DIR))
}

/// Tells whether a path lies where the working copies of a repository do.
pub fn is_in_worktrees_dir(main: &Path, path: &Path) -> bool {
    path.strip_prefix(main.join(DIR)).is_ok_and(|rest| {
        let mut parts = rest.components();
        matches!(parts.next(), Some(Component::Normal(_)))
            && parts.all(|it| matches!(it, Component::Normal(_)))
    })
}

/// Opens a copy that is there. One that has nothing of its own is brought up to date.
fn reopen(
    git: &WorktreeGit,
    main: PathBuf,
    path: PathBuf,
    name: &str,
    options: &WorktreeOptions,
) -> Result<Worktree, WorktreeError> {
    let found = open_worktree(&git.env, &main, &path).ok_or_else(|| WorktreeError::Taken(path.clone()))?;
    let own = format!("worktree-{name}");
    if options.base == WorktreeBase::Fresh && found.branch.as_deref() == Some(&own) {
        let here = WorktreeGit::new(&git.env, &found.path);
        let is_clean = here.read(&["status", "--porcelain"]).is_ok_and(|text| text.is_empty());
        if let (true, Some(base)) = (is_clean, default_branch(git)) {
            // Only ever forward: a copy with commits of its own stays where it is.
            drop(here.run(&["merge", "--ff-only", "--quiet", &base]));
        }
    }
    Ok(Worktree { name: name.to_owned(), ..found })
}

fn add(
    git: &WorktreeGit,
    path: &Path,
    branch: &str,
    base: &str,
    is_sparse: bool,
) -> Result<(), WorktreeError> {
    let place = path.display().to_string();
    let mut args = vec!["worktree", "add", "--quiet"];
    if is_sparse {
        args.push("--no-checkout");
    }
    let full = format!("refs/heads/{branch}");
    match git.run(&["rev-parse", "--verify", "--quiet", &full]).is_ok() {
        // A branch that was left behind may have work on it: it is gone on with.
        true => args.extend([place.as_str(), branch]),
        false => args.extend(["--no-track", "-b", branch, place.as_str(), base]),
    }
    git.run(&args).map(drop).map_err(WorktreeError::Git)
}

fn check_out_sparse(
    env: &Env,
    made: &Worktree,
    paths: &[String],
    tell: WaitNotice,
) -> Result<(), WorktreeError> {
    if paths.is_empty() {
        return Ok(());
    }
    let git = WorktreeGit::new(env, &made.path).telling(tell);
    let mut args = vec!["sparse-checkout", "set", "--cone", "--"];
    args.extend(paths.iter().map(String::as_str));
    let set = git.run(&args).and_then(|_| git.run(&["checkout", "--quiet"]));
    set.map(drop).map_err(WorktreeError::Git)
}

/// Returns the commit that a new copy begins with.
fn base_commit(
    env: &Env,
    git: &WorktreeGit,
    cwd: &Path,
    base: &WorktreeBase,
) -> Result<String, WorktreeError> {
    let here = || {
        let git = WorktreeGit::new(env, cwd);
        let why = |_| WorktreeError::Git("the repository has no commit yet".to_owned());
        git.read(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).map_err(why)
    };
    match base {
        WorktreeBase::Head => here(),
        WorktreeBase::Fresh => match default_branch(git) {
            Some(commit) => Ok(commit),
            None => here(),
        },
        WorktreeBase::PullRequest(number) => {
            let heads = [format!("pull/{number}/head"), format!("merge-requests/{number}/head")];
            let fetched = heads.iter().find_map(|head| git.fetch(&[head]).ok());
            fetched.and_then(|()| git.read(&["rev-parse", "FETCH_HEAD"]).ok()).ok_or_else(|| {
                WorktreeError::Git(format!("the pull request #{number} could not be fetched from `origin`"))
            })
        }
    }
}

/// Returns the commit of the remote's default branch, fetched anew where that was long ago.
fn default_branch(git: &WorktreeGit) -> Option<String> {
    let name = git.read(&["symbolic-ref", "--quiet", "refs/remotes/origin/HEAD"]).ok()?;
    if let Some(branch) = name.strip_prefix("refs/remotes/origin/").filter(|_| git.is_fetch_old()) {
        // What is there already does, when the remote cannot be reached.
        drop(git.fetch(&[branch]));
    }
    git.read(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).ok()
}

fn check_no_symlink(main: &Path, path: &Path) -> Result<(), WorktreeError> {
    let below = path.ancestors().take_while(|dir| *dir != main);
    match below.filter(|dir| dir.is_symlink()).last() {
        Some(link) => Err(WorktreeError::Symlink(link.to_owned())),
        None => Ok(()),
    }
}

fn lock(git: &WorktreeGit) -> Result<FileLock, WorktreeError> {
    let common = git.common_dir().map_err(WorktreeError::Git)?;
    let path = common.join("loci-worktrees.lock");
    FileLock::acquire(&path, PATIENCE).map_err(|error| WorktreeError::Git(error.to_string()))
}
