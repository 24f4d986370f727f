//! The repository around a directory: its root and its worktrees, read without running git.
//!
//! ```text
//! <main>/.git/                         the common directory
//! <main>/.git/worktrees/<name>/gitdir  holds "<worktree>/.git"
//! <worktree>/.git                      a file: "gitdir: <main>/.git/worktrees/<name>"
//! <main>/.git/worktrees/<name>/commondir
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use loci_stdx::read_regular_to_string;

/// The working trees of one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The root of the working tree that was asked about.
    pub root: PathBuf,
    /// The roots of all its working trees, that one among them. Some may be gone.
    pub worktrees: Vec<PathBuf>,
}

/// Finds the repository that `real_dir` lies in.
pub fn find_repository(real_dir: &Path) -> Option<Repository> {
    let (root, git_dir) = real_dir.ancestors().find_map(|dir| Some((dir, git_dir_of(dir)?)))?;
    let common = common_dir(&git_dir);
    let mut worktrees = vec![root.to_owned()];
    let main = common.file_name().filter(|name| *name == ".git").and_then(|_| common.parent());
    worktrees.extend(main.map(Path::to_path_buf));
    if let Ok(entries) = fs::read_dir(common.join("worktrees")) {
        worktrees.extend(entries.filter_map(Result::ok).filter_map(|entry| worktree_at(&entry.path())));
    }
    for path in &mut worktrees {
        // One that was removed keeps its name.
        *path = fs::canonicalize(&*path).unwrap_or_else(|_| path.clone());
    }
    worktrees.sort();
    worktrees.dedup();
    Some(Repository { root: root.to_owned(), worktrees })
}

/// Returns the main checkout of the repository that `real_dir` lies in, whichever of its working trees that is. A git
/// file that claims a repository which does not know it is not believed.
pub fn main_checkout(real_dir: &Path) -> Option<PathBuf> {
    let (root, git_dir) = real_dir.ancestors().find_map(|dir| Some((dir, git_dir_of(dir)?)))?;
    let root = fs::canonicalize(root).ok()?;
    let common = common_dir(&git_dir);
    if git_dir.is_dir() && fs::canonicalize(&git_dir).ok()? == common {
        return Some(root);
    }
    let is_known = worktree_at(&git_dir).and_then(|path| fs::canonicalize(path).ok()) == Some(root);
    let main = common.file_name().filter(|name| *name == ".git").and_then(|_| common.parent())?;
    is_known.then(|| main.to_owned())
}

/// Returns the root of the working tree that a directory lies in, whichever of its repository's that is.
pub fn checkout_root(real_dir: &Path) -> Option<PathBuf> {
    let root = real_dir.ancestors().find(|dir| git_dir_of(dir).is_some())?;
    Some(fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()))
}

/// Returns the git directory of the working tree whose root is `dir`.
pub(super) fn git_dir_of(dir: &Path) -> Option<PathBuf> {
    let git = dir.join(".git");
    let metadata = fs::metadata(&git).ok()?;
    if metadata.is_dir() {
        return git.join("HEAD").is_file().then_some(git);
    }
    let text = read_regular_to_string(&git).ok()?;
    Some(dir.join(text.trim_end().strip_prefix("gitdir:")?.trim()))
}

pub(super) fn common_dir(git_dir: &Path) -> PathBuf {
    let named = read_regular_to_string(git_dir.join("commondir")).ok();
    let common = named.map_or_else(|| git_dir.to_owned(), |name| git_dir.join(name.trim_end()));
    fs::canonicalize(&common).unwrap_or(common)
}

fn worktree_at(administration: &Path) -> Option<PathBuf> {
    let text = read_regular_to_string(administration.join("gitdir")).ok()?;
    administration.join(text.trim_end()).parent().map(Path::to_path_buf)
}
