//! What a working copy gets besides what git checks out: ignored files that it needs, and directories it shares.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use super::git::WorktreeGit;
use super::{Worktree, WorktreeError};

/// The file that says which ignored files are copied.
const INCLUDE: &str = ".worktreeinclude";

/// Copies the files that `.worktreeinclude` names and git ignores.
pub(super) fn copy_included(git: &WorktreeGit, made: &Worktree) -> Result<(), WorktreeError> {
    let list = made.main.join(INCLUDE);
    if !list.is_file() || list.is_symlink() {
        return Ok(());
    }
    let exclude_from = format!("--exclude-from={}", list.display());
    let args = ["ls-files", "--others", "--ignored", "-z", &exclude_from];
    let named = git.run(&args).map_err(WorktreeError::Git)?;
    let named = without_worktrees(&named);
    if named.is_empty() {
        return Ok(());
    }
    // It ends with 1 when it knows none of them, and has said nothing then.
    let ignored = git.run_on(&["check-ignore", "--stdin", "-z"], named.as_bytes()).unwrap_or_default();
    for file in ignored.split('\0').filter(|file| !file.is_empty()) {
        copy(made, Path::new(file))?;
    }
    Ok(())
}

/// Other working copies lie below the main checkout, too.
fn without_worktrees(named: &str) -> String {
    let files = named.split('\0').filter(|file| !file.is_empty() && !file.starts_with(".claude/worktrees/"));
    files.flat_map(|file| [file, "\0"]).collect()
}

fn copy(made: &Worktree, file: &Path) -> Result<(), WorktreeError> {
    let Some(file) = plain(file) else { return Ok(()) };
    let (from, to) = (made.main.join(&file), made.path.join(&file));
    let is_regular = fs::symlink_metadata(&from).is_ok_and(|it| it.is_file());
    // A link could lead anywhere; what is there already is the copy's own.
    if !is_regular || fs::symlink_metadata(&to).is_ok() || leads_through_link(&made.path, &file) {
        return Ok(());
    }
    let failed = |source| WorktreeError::Disk { path: to.clone(), source };
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    loci_stdx::copy_regular(&from, &to).map(drop).map_err(failed)
}

/// Links directories of the main checkout into a working copy.
pub(super) fn link_directories(made: &Worktree, dirs: &[String]) -> Result<(), WorktreeError> {
    for dir in dirs.iter().filter_map(|dir| plain(Path::new(dir))) {
        let (from, to) = (made.main.join(&dir), made.path.join(&dir));
        if !from.is_dir() || fs::symlink_metadata(&to).is_ok() || leads_through_link(&made.path, &dir) {
            continue;
        }
        let failed = |source| WorktreeError::Disk { path: to.clone(), source };
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        symlink(&from, &to).map_err(failed)?;
    }
    Ok(())
}

/// Tells whether a path of a working copy is a link to the same path of the main checkout.
pub(super) fn is_shared_directory(made: &Worktree, file: &Path) -> bool {
    fs::read_link(made.path.join(file)).is_ok_and(|target| target == made.main.join(file))
}

/// Returns a relative path without steps that lead elsewhere.
fn plain(path: &Path) -> Option<PathBuf> {
    let parts: Option<PathBuf> = path
        .components()
        .filter(|part| !matches!(part, Component::CurDir))
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    parts.filter(|path| !path.as_os_str().is_empty())
}

/// Tells whether a directory on the way to a file is a link.
fn leads_through_link(root: &Path, file: &Path) -> bool {
    file.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()).any(|dir| root.join(dir).is_symlink())
}
