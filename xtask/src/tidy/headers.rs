//! Every Rust file opens by saying what it is for.

use super::tree::{File, Tree};

/// Finds files that do not start with `//!`.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    tree.rust()
        .filter(|(file, _)| !file.text.starts_with("//!") && !is_plain_tests(file))
        .map(|(file, _)| format!("{}:1: starts without `//!`; say in a line what the file is for", file.path))
        .collect()
}

/// `foo/tests.rs` may go straight to its imports: what it is for is in its name.
fn is_plain_tests(file: &File) -> bool {
    file.name() == "tests.rs" && file.text.starts_with("use ")
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    fn check_file(path: &str, text: &str, is_fine: bool) {
        let problem = format!("{path}:1: starts without `//!`; say in a line what the file is for");
        let expected = [problem.as_str()];
        expect_problems(check, &[(path, text)], if is_fine { &[] } else { &expected });
    }

    #[test]
    fn files_say_what_they_are_for() {
        check_file("crates/a/src/b.rs", "//! What b is.\nuse c;", true);
        check_file("crates/a/src/b.rs", "use c;", false);
        check_file("crates/a/src/b.rs", "\n//! Too late.", false);
        check_file("crates/a/src/b/tests.rs", "use super::*;", true);
        check_file("crates/a/src/b/tests.rs", "fn f() {}", false);
        check_file("crates/a/src/b.md", "prose", true);
    }
}
