//! Tags of releases: `<plugin>--v<version>` in the repository that a plugin lies in.

use std::path::Path;

use loci_stdx::Env;

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
