//! The repository around a directory, read without running anything of its own.
//!
//! [`head_branch`] reads `.git/HEAD` and spawns nothing. [`git_snapshot`] reads branches, commits, the user's name and the
//! state of a plain working tree from files (`refs`, `log` with `objects`, `config`, `status` with `index_file`) and asks `git`
//! for the rest, with everything switched off that a repository's configuration could use to run a command: fsmonitor, hooks, signature checks,
//! pagers, filters; with no locks taken; without the variables that point git somewhere else; and each
//! question with a deadline.

mod command;
mod config;
mod index_file;
mod log;
mod objects;
mod refs;
mod status;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use loci_stdx::{Env, read_regular_to_string};

use super::repository::{common_dir, git_dir_of};
use command::{Git, PendingAnswer, find_git};
use config::{GitConfig, UserName};
use log::last_commits;
use objects::{ObjectId, ObjectStore};
use refs::Refs;
use status::WorkingTree;

/// How many commits a snapshot lists.
const N_COMMITS: usize = 5;

/// A repository at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitSnapshot {
    /// The current branch; `HEAD` when detached.
    pub branch: String,
    /// The branch that work is merged into, when it can be told.
    pub main_branch: Option<String>,
    /// `git status --short`; whoever shows it bounds it.
    pub status: String,
    /// The last five commits, one a line.
    pub log: String,
    /// `user.name`.
    pub user: Option<String>,
}

/// Returns the branch that `dir` is on: `None` outside a repository, `HEAD` when detached.
pub fn head_branch(dir: &Path) -> Option<String> {
    let head = read_regular_to_string(git_dir(dir)?.join("HEAD")).ok()?;
    let branch = match head.trim_end().strip_prefix("ref:").map(str::trim) {
        Some(reference) => reference.strip_prefix("refs/heads/").unwrap_or(reference),
        None => "HEAD",
    };
    // What repositories with another kind of reference store write for readers like us.
    Some(if branch == ".invalid" { "HEAD" } else { branch }.to_owned())
}

/// Returns what the working tree has changed since the last commit, as a unified diff, and the files that git does not know;
/// none outside a repository. Nothing of the repository's own configuration is run; a very long diff is cut.
pub fn working_changes(dir: &Path, env: &Env) -> Option<(String, Vec<String>)> {
    let git = Git::new(dir, &git_dir(dir)?, env)?;
    let plain = ["--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"];
    let against_head: Vec<&str> = ["diff"].into_iter().chain(plain).chain(["HEAD", "--"]).collect();
    let staged: Vec<&str> = ["diff", "--cached"].into_iter().chain(plain).collect();
    // Before the first commit there is no HEAD to compare with.
    let diff = git.read(&against_head).or_else(|| git.read(&staged))?;
    let unknown = git.read(&["ls-files", "--others", "--exclude-standard", "-z"]).unwrap_or_default();
    let unknown = unknown.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Some((diff, unknown))
}

/// Returns the git directory of the repository around `dir`; a worktree has its own.
pub(crate) fn git_dir(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find_map(git_dir_of)
}

/// Tells how the repository around `dir` stands; `None` outside one, without git, and where a file of its configuration is a
/// pipe or a device.
///
/// Git is asked where a file is not plain. Its look at the working tree takes longest, so it begins before the rest is read.
pub fn git_snapshot(dir: &Path, env: &Env) -> Option<GitSnapshot> {
    let branch = head_branch(dir)?;
    let git_dir = git_dir(dir)?;
    find_git(&env.vars)?;
    let common = common_dir(&git_dir);
    let config = GitConfig::read(&common, env).ok()?;
    let refs = Refs::open(&common);
    let head = refs.as_ref().and_then(|refs| head_commit(&git_dir, refs));
    let store = ObjectStore::open(&common);
    let status = match (&store, head) {
        (Some(store), Some(Head::Commit(commit))) => {
            plain_status(dir, &git_dir, &config, store.tree_of(commit), env)
        }
        _ => None,
    };
    let git = OnceCell::new();
    let git = || git.get_or_init(|| Git::new(dir, &git_dir, env)).as_ref();
    let status = match status {
        Some(status) => StatusAnswer::Told(status),
        None => StatusAnswer::Pending(git()?.ask(&["status", "--short", "--ignore-submodules=dirty"])?),
    };
    let user = match config.user_name() {
        UserName::Named(name) => Some(name),
        UserName::Unnamed => None,
        UserName::Unclear => git().and_then(|git| git.read(&["config", "--get", "user.name"])),
    };
    let main_branch = match &refs {
        Some(refs) => refs.main_branch(),
        None => git().and_then(ask_main_branch),
    };
    let log = match (head, &store) {
        // Yet to be born.
        (Some(Head::Unborn), _) => Some(String::new()),
        (Some(Head::Commit(commit)), Some(store)) => last_commits(store, &common, commit, N_COMMITS),
        _ => None,
    };
    let log = log.or_else(|| git().and_then(ask_log));
    Some(GitSnapshot {
        branch,
        main_branch,
        // Without a status there is no repository that git would talk about.
        status: status.read()?.trim_end().to_owned(),
        log: log.unwrap_or_default().trim_end().to_owned(),
        user: user.map(|user| user.trim().to_owned()).filter(|user| !user.is_empty()),
    })
}

/// The state of the working tree, or the git that tells it.
enum StatusAnswer {
    Told(String),
    Pending(PendingAnswer),
}

impl StatusAnswer {
    fn read(self) -> Option<String> {
        match self {
            Self::Told(status) => Some(status),
            Self::Pending(answer) => answer.read(),
        }
    }
}

/// Reads the state of the working tree from files. Git tells paths from where it is, so that is the top.
fn plain_status(
    dir: &Path,
    git_dir: &Path,
    config: &GitConfig,
    head_tree: Option<ObjectId>,
    env: &Env,
) -> Option<String> {
    let (config, head_tree) = (config.status()?, head_tree?);
    (git_dir == dir.join(".git")).then_some(())?;
    WorkingTree { top: dir, git_dir, head_tree, config }.status(env)
}

/// Where `HEAD` leads.
#[derive(Clone, Copy)]
enum Head {
    Commit(ObjectId),
    /// To a branch without a commit.
    Unborn,
}

/// Reads where `HEAD` leads; nothing where git had better be asked.
fn head_commit(git_dir: &Path, refs: &Refs<'_>) -> Option<Head> {
    let head = read_regular_to_string(git_dir.join("HEAD")).ok()?;
    let Some(name) = head.trim_end().strip_prefix("ref:").map(str::trim) else {
        return ObjectId::parse(head.trim_end()).map(Head::Commit);
    };
    match refs.target(name) {
        Some(id) => Some(Head::Commit(id)),
        // A name that is there and no commit leads to another one.
        None => refs.is_absent(name).then_some(Head::Unborn),
    }
}

fn ask_log(git: &Git) -> Option<String> {
    let n_commits = N_COMMITS.to_string();
    git.read(&["log", "--oneline", "--no-decorate", "--no-color", "-n", &n_commits])
}

fn ask_main_branch(git: &Git) -> Option<String> {
    let refs = ["refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master"];
    let args: Vec<&str> = ["for-each-ref", "--format=%(refname) %(symref)"].into_iter().chain(refs).collect();
    git.read(&args).as_deref().and_then(main_branch)
}

/// What git says about leaving a file out.
pub(crate) struct Ignoring {
    /// Whether some rule already does.
    pub(crate) is_ignored: bool,
    /// The user's own file of rules for all repositories, as the user's configuration names it.
    pub(crate) excludes_file: Option<String>,
}

/// Asks git whether it ignores a file; `None` outside a repository, or without git.
pub(crate) fn ignoring(file: &Path, env: &Env) -> Option<Ignoring> {
    // The directory of a file that is yet to be written may be yet to be made.
    let dir = file.ancestors().skip(1).find(|dir| dir.is_dir())?;
    let git = Git::new(dir, &git_dir(dir)?, env)?;
    // The repository's own configuration has no say in which file of the user's is written.
    let named = git.read(&["config", "--global", "--get", "core.excludesFile"]);
    Some(Ignoring {
        is_ignored: git.read(&["check-ignore", "--quiet", "--", file.to_str()?]).is_some(),
        excludes_file: named.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()),
    })
}

/// Returns what git ignores below `dir`, relative to it; of directories that are ignored as a whole only themselves.
pub(crate) fn ignored_paths(dir: &Path, env: &Env) -> Vec<PathBuf> {
    let git = git_dir(dir).and_then(|git_dir| Git::new(dir, &git_dir, env));
    let args = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
    let paths = git.and_then(|git| git.read(&args)).unwrap_or_default();
    let path = |text: &str| PathBuf::from(text.trim_end_matches('/'));
    paths.split_terminator('\0').filter(|text| !text.is_empty()).map(path).collect()
}

/// Reads the main branch off references: where the remote's `HEAD` points, else `main`, else `master`.
fn main_branch(refs: &str) -> Option<String> {
    let remote =
        refs.lines().find_map(|line| line.strip_prefix("refs/remotes/origin/HEAD refs/remotes/origin/"));
    let local = |name: &str| refs.lines().any(|line| line.trim_end() == format!("refs/heads/{name}"));
    remote.or_else(|| ["main", "master"].into_iter().find(|name| local(name))).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_branch_is_the_remotes_or_a_usual_one() {
        for (refs, expected) in [
            ("refs/heads/main \nrefs/remotes/origin/HEAD refs/remotes/origin/trunk\n", Some("trunk")),
            ("refs/heads/main \nrefs/heads/master \n", Some("main")),
            ("refs/heads/master \n", Some("master")),
            ("", None),
        ] {
            assert_eq!(main_branch(refs).as_deref(), expected, "{refs}");
        }
    }
}
