//! What of a repository that a command has made may be used outside the sandbox: names, and a configuration made anew.
//!
//! Git runs what its hooks are and what its configuration names, so that nothing is kept because it looks harmless: what is
//! kept is on a list, and of a configuration only such settings are written, in our own words. It is pure; what is done with
//! it is in `linux/staging.rs`.

mod config;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

pub(crate) use config::{HarmlessConfig, MINIMAL_CONFIG};

/// What becomes of an entry at the top of a repository that a command has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryFate {
    /// It is data, and one file.
    File,
    /// It is a directory of data, all the way down.
    Tree,
    /// It is a directory of hooks: those stay that git never runs.
    Hooks,
    /// It is the configuration, which is made anew.
    Config,
    /// It says which commit is looked at, and makes a repository of all this: it comes last.
    Head,
    /// It stays where it is not used: git might run it, or be led elsewhere by it.
    SetAside,
}

impl EntryFate {
    /// Returns the fate of a name. Steps of a rebase (`exec`), other working directories and repositories of submodules are
    /// not data, and what is not known is not either.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "HEAD" => Self::Head,
            "config" => Self::Config,
            "hooks" => Self::Hooks,
            "objects" | "refs" | "logs" | "info" | "branches" | "reftable" => Self::Tree,
            "index" | "packed-refs" | "shallow" | "description" => Self::File,
            _ if name.starts_with("sharedindex.") => Self::File,
            // `COMMIT_EDITMSG`, `ORIG_HEAD` and the like.
            _ if name.bytes().all(|it| it.is_ascii_uppercase() || it == b'_') => Self::File,
            _ => Self::SetAside,
        }
    }

    /// Tells whether a file inside a tree of data leads git elsewhere: to objects of another repository, to a remote.
    pub(crate) fn leads_elsewhere(path: &str) -> bool {
        matches!(path, "objects/info/alternates" | "objects/info/http-alternates")
            || path.starts_with("branches/")
            || path.starts_with("remotes/")
    }

    /// Tells whether a name at the top is one of git's own; any other is somebody's file where a repository has no `.git`.
    pub(crate) fn is_of_git(name: &str) -> bool {
        let is_message =
            matches!(name, "gc.pid" | "gc.log" | "addp-hunk-edit.diff" | "ADD_EDIT.patch" | "worktrees");
        is_message || Self::of(name) != Self::SetAside
    }

    /// Tells whether a name in the directory of hooks is one that git never runs.
    pub(crate) fn is_sample(name: &str) -> bool {
        name.ends_with(".sample")
    }
}

/// Tells whether a symlink in a directory of git is of git's making: a name of a branch, where settings want it to be one
/// (`core.preferSymlinkRefs`). It leads to other names of branches and nowhere else, and git replaces it, not what it leads to.
pub(crate) fn is_own_link(path: &Path, target: &[u8]) -> bool {
    let mut parts = path.components();
    // A linked worktree has names of its own.
    let own = if path.starts_with("worktrees") {
        parts.by_ref().nth(1).map(|_| parts.as_path())
    } else {
        Some(path)
    };
    let is_name = own.is_some_and(|own| own == Path::new("HEAD") || own.starts_with("refs"));
    let target = Path::new(OsStr::from_bytes(target));
    is_name && target.starts_with("refs") && target.components().all(|it| matches!(it, Component::Normal(_)))
}

/// Tells whether a file of what a linked worktree has of its own is as git itself writes it: it leads to the directory of git
/// around it, and has no settings but those of a working copy with part of the files.
pub(crate) fn is_own_text(path: &Path, text: &[u8]) -> bool {
    const SETTINGS: [&[u8]; 8] = [
        b"[core]",
        b"[index]",
        b"\tsparseCheckout = true",
        b"\tsparseCheckout = false",
        b"\tsparseCheckoutCone = true",
        b"\tsparseCheckoutCone = false",
        b"\tsparse = true",
        b"\tsparse = false",
    ];
    let mut lines = text.strip_suffix(b"\n").unwrap_or(text).split(|it| *it == b'\n');
    match path.file_name().and_then(OsStr::to_str) {
        Some("commondir") => lines.eq([&b"../.."[..]]),
        Some("config.worktree") => lines.all(|line| line.is_empty() || SETTINGS.contains(&line)),
        _ => false,
    }
}

/// Tells whether this is what `HEAD` says: a branch, or a commit.
pub(crate) fn is_head(text: &str) -> bool {
    let line = text.trim_end_matches('\n');
    let is_ref = |name: &str| !name.is_empty() && !name.chars().any(|c| c.is_whitespace() || c.is_control());
    let is_commit = |it: &str| matches!(it.len(), 40 | 64) && it.bytes().all(|b| b.is_ascii_hexdigit());
    line.strip_prefix("ref: refs/").is_some_and(is_ref) || is_commit(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_runs_or_is_led_by_is_set_aside_and_so_is_what_is_not_known() {
        for (names, fate) in [
            (&["HEAD"][..], EntryFate::Head),
            (&["config"], EntryFate::Config),
            (&["hooks"], EntryFate::Hooks),
            (&["objects", "refs", "logs", "info", "branches", "reftable"], EntryFate::Tree),
            (
                &[
                    "index",
                    "packed-refs",
                    "shallow",
                    "description",
                    "sharedindex.0a",
                    "COMMIT_EDITMSG",
                    "FETCH_HEAD",
                ],
                EntryFate::File,
            ),
            (
                &[
                    "config.worktree",
                    "commondir",
                    "gitdir",
                    "modules",
                    "worktrees",
                    "remotes",
                    "rebase-merge",
                    "rebase-apply",
                    "sequencer",
                    "index.lock",
                    "x",
                    "head",
                ],
                EntryFate::SetAside,
            ),
        ] {
            for name in names {
                assert_eq!(EntryFate::of(name), fate, "{name}");
            }
        }
        for (path, expected) in [
            ("objects/info/alternates", true),
            ("objects/info/packs", false),
            ("branches/origin", true),
            ("remotes/origin", true),
            ("info/exclude", false),
        ] {
            assert_eq!(EntryFate::leads_elsewhere(path), expected, "{path}");
        }
    }

    #[test]
    fn what_git_itself_leaves_leads_nowhere_else() {
        for (path, target, expected) in [
            ("HEAD", "refs/heads/main", true),
            ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", true),
            ("HEAD", "refs/../../../x", false),
            ("HEAD", "/x/refs/heads/main", false),
            ("HEAD", "x", false),
            ("worktrees/w/HEAD", "refs/heads/main", true),
            ("worktrees/w/HEAD", "/x/refs/heads/main", false),
            ("worktrees/HEAD", "refs/heads/main", false),
            ("worktrees/w/logs/HEAD", "refs/heads/main", false),
            ("logs/HEAD", "refs/heads/main", false),
            ("index", "refs/heads/main", false),
        ] {
            assert_eq!(is_own_link(Path::new(path), target.as_bytes()), expected, "{path} {target}");
        }
        for (name, text, expected) in [
            ("commondir", "../..\n", true),
            ("commondir", "../..", true),
            ("commondir", "../../../evil\n", false),
            ("commondir", "../..\n/../evil\n", false),
            ("commondir", "", false),
            ("config.worktree", "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n", true),
            ("config.worktree", "", true),
            ("config.worktree", "[core]\n\tfsmonitor = x\n", false),
            ("config.worktree", "[core]\n\tsparseCheckout = true\\\n", false),
            ("alternates", "../..\n", false),
        ] {
            assert_eq!(
                is_own_text(&Path::new("worktrees/w").join(name), text.as_bytes()),
                expected,
                "{name} {text}"
            );
        }
    }

    #[test]
    fn head_names_a_branch_or_a_commit() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for (text, expected) in [
            ("ref: refs/heads/main\n", true),
            (commit, true),
            ("ref: ../elsewhere", false),
            ("ref: refs/", false),
            ("ref: refs/heads/a b", false),
            ("ref: refs/heads/a\nx", false),
            ("", false),
            (&commit[1..], false),
        ] {
            assert_eq!(is_head(text), expected, "{text}");
        }
    }
}
