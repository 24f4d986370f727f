//! Names that stay shut inside writable roots, present or missing (SB-1): what is in them runs, or decides what runs,
//! outside the sandbox later.

use std::path::{Path, PathBuf};

use crate::plan::PlaceholderKind;

/// At the top of a root. `.claude` is shut as a whole: settings, skills, agents, commands, hooks and workflows in it all
/// steer what runs; working copies below it are opened again.
const NAMES: &[&str] = &[
    ".claude",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".envrc",
    ".gitconfig",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    // A directory with these three is a repository without a `.git`, with hooks and a configuration of its own.
    "HEAD",
    "objects",
    "refs",
];

/// Names of a bare repository: one that is a directory already is the project's own, and shutting `HEAD` is enough.
const BARE: &[&str] = &["objects", "refs"];

/// Inside a directory of git: what it runs, and what tells it what to run, for submodules too.
const GIT: &[&str] = &["hooks", "config", "config.worktree", "modules"];

/// Inside a directory of git: what would lead it to another configuration, and stops it when it is there and empty. No
/// placeholder can take its place, so it is removed when a command has made it.
const GIT_ABSENT: &[&str] = &["commondir"];

/// Returns what stays shut in a directory of the session.
pub fn protected_paths(root: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = NAMES.iter().map(|name| root.join(name)).collect();
    paths.extend(git_paths(&root.join(".git")));
    paths
}

/// What is read from every parent: servers, and settings, skills, agents and commands.
const NAMES_ABOVE: &[&str] = &[".mcp.json", ".claude"];

/// Returns what stays shut above a directory of the session.
pub(super) fn paths_above(dir: &Path) -> Vec<PathBuf> {
    let above = dir.ancestors().skip(1);
    above.flat_map(|above| NAMES_ABOVE.iter().map(|name| above.join(name))).collect()
}

/// Returns what stays shut in a directory of git.
pub(crate) fn git_paths(git: &Path) -> Vec<PathBuf> {
    GIT.iter().map(|name| git.join(name)).collect()
}

/// Returns what must not appear in a directory of git.
pub(crate) fn absent_git_paths(git: &Path) -> Vec<PathBuf> {
    GIT_ABSENT.iter().map(|name| git.join(name)).collect()
}

/// Returns where settings, sessions and our own state are.
pub(super) fn own_state(config_home: &Path, home: &Path) -> Vec<PathBuf> {
    let beside = |name: &str| home.join(name);
    vec![
        config_home.to_owned(),
        beside(".claude"),
        beside(".claude.json"),
        beside(".config/loci"),
        beside(".local/share/loci"),
        beside(".local/state/loci"),
    ]
}

/// Tells whether a path is one of those that decide what runs outside; for words to people.
pub fn steers_tools(path: &Path, root: &Path) -> bool {
    protected_paths(root).iter().any(|it| path.starts_with(it))
}

/// Tells whether a path is named as a directory of a repository without a `.git`.
pub(crate) fn is_bare_name(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| BARE.contains(&name))
}

/// Returns what stands in the place of a missing path while a command runs.
///
/// Readers of settings look for files in `.claude` and git looks into `.git`: what is no directory there is an error to
/// them, and an empty one is not. A directory in the place of `config.worktree` would stop git.
pub(crate) fn placeholder_kind(path: &Path) -> PlaceholderKind {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(".claude" | ".git") => PlaceholderKind::Dir,
        Some("config.worktree") => PlaceholderKind::File,
        _ => PlaceholderKind::Socket,
    }
}
