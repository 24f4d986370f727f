//! Paths that steer tools and shells: never written on the strength of a rule or an edit mode.

use std::ffi::OsStr;
use std::path::{Component, Path};

const DIRS: &[&str] =
    &[".git", ".claude", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn"];

const FILES: &[&str] = &[
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_aliases",
    ".bash_logout",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".bunfig.toml",
    ".bazelrc",
    ".bazelversion",
    ".bazeliskrc",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "gradle-wrapper.properties",
    "maven-wrapper.properties",
    ".devcontainer.json",
    ".ripgreprc",
    "pyrightconfig.json",
    ".mcp.json",
    ".claude.json",
];

/// Returns true when writing `path` needs a person's word, at any depth and in any letter case.
pub fn is_protected(path: &Path) -> bool {
    let names = names(path);
    let in_dir = names.iter().enumerate().any(|(idx, name)| {
        let next = names.get(idx + 1).map(String::as_str);
        match name.as_str() {
            // The worktrees themselves may change; their directory is not to be swapped for another.
            ".claude" => next != Some("worktrees") || names.len() == idx + 2,
            ".config" => next == Some("git"),
            name => DIRS.contains(&name),
        }
    });
    in_dir || names.last().is_some_and(|name| FILES.contains(&name.as_str()))
}

/// Returns true when removing or moving `path` takes something protected with it: `.config` holds `git`.
pub(super) fn is_protected_target(path: &Path) -> bool {
    is_protected(path) || names(path).last().is_some_and(|name| name == ".config")
}

fn names(path: &Path) -> Vec<String> {
    let normal = |part| match part {
        Component::Normal(name) => Some(OsStr::to_string_lossy(name).to_lowercase()),
        _ => None,
    };
    path.components().filter_map(normal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_at_any_depth_and_case() {
        for (path, expected) in [
            ("/p/.git/config", true),
            ("/p/.git", true),
            ("/p/.GIT/hooks/x", true),
            ("/p/sub/.vscode/settings.json", true),
            ("/p/.claude/settings.json", true),
            ("/p/.claude/worktrees/w1/a.rs", false),
            ("/p/.config/git/ignore", true),
            ("/p/.claude/worktrees", true),
            ("/p/.config/other", false),
            ("/p/.Bashrc", true),
            ("/p/.mcp.json", true),
            ("/p/src/git/config", false),
            ("/p/.github/workflows/ci.yml", false),
            ("/p/a.rs", false),
        ] {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }
}
