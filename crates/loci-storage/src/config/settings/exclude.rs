//! Keeping the user's own settings of a project out of its repository.
//!
//! When `.claude/settings.local.json` is first written in a repository that does not ignore it, a rule goes to
//! the user's excludes of all repositories: the file that `core.excludesFile` of the user's configuration names,
//! else `git/ignore` in `$XDG_CONFIG_HOME` or `~/.config`. Lines that are there stay as they are.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_stdx::{Env, FileLock, WriteOptions, read_regular_to_string, write_atomic};

use super::SettingsEditError;
use crate::layout::ConfigHome;
use crate::project::git::ignoring;

/// The rule.
const RULE: &str = "**/.claude/settings.local.json";
/// How long to wait for other processes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// Has git ignore a local settings file that does not exist yet; returns the file that the rule was added to.
pub fn exclude_local_settings(
    env: &Env,
    home: &ConfigHome,
    local: &Path,
) -> Result<Option<PathBuf>, SettingsEditError> {
    if local.exists() {
        return Ok(None);
    }
    let Some(ignoring) = ignoring(local, env).filter(|ignoring| !ignoring.is_ignored) else {
        return Ok(None);
    };
    let path = excludes_file(env, ignoring.excludes_file.as_deref());
    let _lock = FileLock::acquire(&home.loci_dir().join("settings.lock"), LOCK_TIMEOUT)?;
    let before = match read_regular_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(SettingsEditError::Read { path, source }),
    };
    if before.lines().any(|line| line.trim() == RULE) {
        return Ok(None);
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let after = format!("{before}{gap}{RULE}\n");
    write_atomic(&path, after.as_bytes(), &WriteOptions::project().creating_parents())?;
    Ok(Some(path))
}

/// Returns the user's file of excludes; a relative name says nothing without a directory, so it is passed over.
fn excludes_file(env: &Env, named: Option<&str>) -> PathBuf {
    let named = named.map(|name| loci_core::path::expand_home(&env.home, name));
    let config = || match env.vars.non_empty("XDG_CONFIG_HOME").map(Path::new) {
        Some(dir) if dir.is_absolute() => dir.to_owned(),
        _ => env.home.join(".config"),
    };
    named.filter(|path| path.is_absolute()).unwrap_or_else(|| config().join("git/ignore"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_exclude_file_is_found_where_git_looks() {
        for (named, xdg, expected) in [
            (None, "", "/home/dev/.config/git/ignore"),
            (None, "/x", "/x/git/ignore"),
            (None, "x", "/home/dev/.config/git/ignore"),
            (Some("/etc/excludes"), "/x", "/etc/excludes"),
            (Some("~/mine"), "", "/home/dev/mine"),
            (Some("mine"), "/x", "/x/git/ignore"),
        ] {
            let mut env = Env::for_test("/home/dev", "/p");
            env.vars = env.vars.with("XDG_CONFIG_HOME", xdg);
            assert_eq!(excludes_file(&env, named), Path::new(expected), "{named:?} {xdg}");
        }
    }
}
