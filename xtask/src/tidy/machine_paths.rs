//! Nothing in the repository says on which machine it was written or from which mirror it was built.

use super::tree::{File, Tree};

/// Written in halves, so that this file does not hold what it looks for.
const PATTERNS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/tmp", "/ref"),
    concat!("arti", "factory"),
    concat!("index.", "crates.io"),
    concat!("registry.", "npmjs"),
    concat!("registry.", "yarnpkg"),
    concat!("/root/", ".cargo"),
];

/// Finds paths of a machine and hosts of a registry.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    tree.files().iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<String> {
    let is_lock = file.name() == "Cargo.lock";
    file.lines()
        .filter(|(_, line)| !(is_lock && line.starts_with("source = ")))
        .filter_map(|(number, line)| Some((number, PATTERNS.iter().find(|pattern| holds(line, pattern))?)))
        .map(|(number, pattern)| {
            format!(
                "{}:{number}: `{pattern}` belongs to one machine; use a made-up path or a variable",
                file.path
            )
        })
        .collect()
}

/// A path counts from its root only: the second part of `a/b/` is not `/b/`.
fn holds(line: &str, pattern: &str) -> bool {
    line.match_indices(pattern).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !pattern.starts_with('/') || !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn machines_are_not_named() {
        let home = PATTERNS[0];
        let problem =
            format!("docs/a.md:2: `{home}` belongs to one machine; use a made-up path or a variable");
        expect_problems(check, &[("docs/a.md", &format!("see\n`{home}x`"))], &[&problem]);
        expect_problems(check, &[("docs/a.md", &format!("frame{home}x, ~{home}"))], &[]);
    }

    #[test]
    fn lock_files_name_their_sources() {
        let source = format!("source = \"registry+https://{}/\"\n", PATTERNS[3]);
        expect_problems(check, &[("Cargo.lock", &source)], &[]);
        let problem = format!(
            "Cargo.toml:1: `{}` belongs to one machine; use a made-up path or a variable",
            PATTERNS[3]
        );
        expect_problems(check, &[("Cargo.toml", &source)], &[&problem]);
    }
}
