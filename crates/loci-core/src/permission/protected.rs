//! Paths that steer tools and shells: never written on the strength of a rule or an edit mode.

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
pub(super) fn is_protected(path: &Path) -> bool {
    let names: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
            _ => None,
        })
        .collect();
    let in_dir = names.iter().enumerate().any(|(idx, name)| {
        let next = names.get(idx + 1).map(String::as_str);
        match name.as_str() {
            ".claude" => next != Some("worktrees"),
            ".config" => next == Some("git"),
            name => DIRS.contains(&name),
        }
    });
    in_dir || names.last().is_some_and(|name| FILES.contains(&name.as_str()))
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
