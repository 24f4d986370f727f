//! `foo.rs` beside `foo/`, never `foo/mod.rs`: a tab or a search result called `mod.rs` says nothing.

use super::tree::Tree;

/// Finds files called `mod.rs`.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    tree.rust()
        .filter_map(|(file, _)| file.path.strip_suffix("/mod.rs"))
        .map(|folder| format!("{folder}/mod.rs:1: rename it to {folder}.rs"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn modules_are_named_by_their_file() {
        expect_problems(check, &[("a/src/b.rs", ""), ("a/src/b/c.rs", ""), ("a/src/my_mod.rs", "")], &[]);
        expect_problems(check, &[("a/src/b/mod.rs", "")], &["a/src/b/mod.rs:1: rename it to a/src/b.rs"]);
    }
}
