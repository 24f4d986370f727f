//! Tags of releases: `<plugin>--v<version>` in the repository that a plugin lies in.

use std::path::{Path, PathBuf};

use loci_stdx::Env;

use super::install::{git_patience, refuse_odd_address};
use crate::worktree::git::WorktreeGit;

/// A tag that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseTag {
    /// Its name.
    pub name: String,
    /// What it says.
    pub message: String,
    /// Whether it is made although files have changed, and in the place of another.
    pub is_forced: bool,
    /// The remote that it is pushed to.
    pub remote: Option<String>,
}

/// Makes a tag; the error says why not. Where only pushing fails, the tag stays.
pub fn tag_release(env: &Env, dir: &Path, tag: &ReleaseTag) -> Result<(), String> {
    let git = WorktreeGit::new(env, dir);
    let changed = git.read(&["status", "--porcelain", "--", "."])?;
    if !changed.is_empty() && !tag.is_forced {
        return Err("files of the plugin are not committed; commit them, or use --force".to_owned());
    }
    let known = git.read(&["tag", "--list", tag.name.as_str()])?;
    if !known.is_empty() && !tag.is_forced {
        return Err(format!("the tag `{}` is there already", tag.name));
    }
    let mut args = vec!["tag", "--annotate", "--message", tag.message.as_str()];
    if tag.is_forced {
        args.push("--force");
    }
    args.extend(["--", tag.name.as_str()]);
    git.run(&args)?;
    if let Some(remote) = &tag.remote {
        let mut args = vec!["push", "--quiet"];
        if tag.is_forced {
            args.push("--force");
        }
        let reference = format!("refs/tags/{}", tag.name);
        args.extend(["--", remote.as_str(), reference.as_str()]);
        git.run(&args).map_err(|why| format!("the tag `{}` was made and not pushed: {why}", tag.name))?;
    }
    Ok(())
}

/// Returns the tags of a repository, which may be a directory, that begin with `prefix`. It is asked from `dir`, so that no
/// other repository has a say in where its address leads.
pub fn repository_tags(env: &Env, dir: &Path, url: &str, prefix: &str) -> Result<Vec<String>, String> {
    refuse_odd_address(url, &[])?;
    let git = WorktreeGit::new(env, dir);
    let pattern = format!("refs/tags/{prefix}*");
    let args = ["-c", "protocol.ext.allow=never", "ls-remote", "--tags", "--refs", "--", url, &pattern];
    let listed = git.run_within(&args, git_patience(env))?;
    let names = listed.lines().filter_map(|line| line.split_once('\t')?.1.strip_prefix("refs/tags/"));
    Ok(names.map(str::to_owned).collect())
}

/// Returns the root of the repository around a directory; none elsewhere.
pub fn repository_root(env: &Env, dir: &Path) -> Option<PathBuf> {
    let said = WorktreeGit::new(env, dir).read(&["rev-parse", "--show-toplevel"]).ok()?;
    Path::new(said.trim()).canonicalize().ok()
}

/// Returns who somebody is for git (`user.name`, `user.email`), where that is written.
pub fn git_identity(env: &Env, key: &str) -> Option<String> {
    let said = WorktreeGit::new(env, &env.cwd).read(&["config", "--get", key]).ok()?;
    Some(said.trim().to_owned()).filter(|said| !said.is_empty())
}

/// Returns the commit that a directory inside a repository is at; none elsewhere.
pub fn git_commit(env: &Env, dir: &Path) -> Option<String> {
    let said = WorktreeGit::new(env, dir).read(&["rev-parse", "--verify", "--quiet", "HEAD"]).ok()?;
    Some(said.trim().to_owned()).filter(|said| !said.is_empty())
}
