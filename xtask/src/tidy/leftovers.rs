//! Nothing half-done is left behind: no stubs, no debugging, no skipped tests, no notes without an issue.

use super::rust_source::{RustSource, lines_with, words};
use super::tree::{File, Tree};

const FORBIDDEN_CODE: &[(&str, &str)] = &[
    ("todo!", "write it, or return an error that says what is missing"),
    ("unimplemented!", "write it, or return an error that says what is missing"),
    ("dbg!", "remove it"),
    ("#[ignore", "make the test run everywhere, or remove it"),
];

/// Finds stubs, debugging and notes.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    tree.rust()
        .flat_map(|(file, rust)| {
            let mut problems = code_problems(file, rust);
            problems.extend(note_problems(file, rust));
            problems
        })
        .collect()
}

fn code_problems(file: &File, rust: &RustSource) -> Vec<String> {
    FORBIDDEN_CODE
        .iter()
        .flat_map(|(word, advice)| {
            lines_with(rust.code(), word).map(move |line| format!("{}:{line}: `{word}`; {advice}", file.path))
        })
        .collect()
}

fn note_problems(file: &File, rust: &RustSource) -> Vec<String> {
    let lines = rust.comments().lines().enumerate();
    lines
        .filter(|(_, comment)| words(comment, NOTE).any(|at| !names_issue(&comment[at..])))
        .map(|(idx, _)| {
            format!(
                "{}:{}: a note without an issue; write `{NOTE}(#123): ..` or do it now",
                file.path,
                idx + 1
            )
        })
        .collect()
}

const NOTE: &str = "TODO";

/// Tells whether a note reads `TODO(#12)`, `TODO #12` or the like.
fn names_issue(note: &str) -> bool {
    let after = note[NOTE.len()..].trim_start_matches([' ', '(']);
    after.strip_prefix('#').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    fn check_source(source: &str, expected: &[&str]) {
        expect_problems(check, &[("a/src/b.rs", source)], expected);
    }

    #[test]
    fn stubs_debug_macros_and_ignored_tests_are_found() {
        check_source(
            "fn f() {\n    todo!()\n}",
            &["a/src/b.rs:2: `todo!`; write it, or return an error that says what is missing"],
        );
        check_source("dbg!(x);", &["a/src/b.rs:1: `dbg!`; remove it"]);
        check_source(
            "#[test]\n#[ignore = \"slow\"]\nfn t() {}",
            &["a/src/b.rs:2: `#[ignore`; make the test run everywhere, or remove it"],
        );
        check_source("let s = \"todo!() #[ignore]\"; // todo! is fine here", &[]);
    }

    #[test]
    fn notes_name_an_issue() {
        check_source("// TODO(#12): later\n// TODO #3\n// TODOs are fine in prose", &[]);
        check_source(
            "// TODO later",
            &["a/src/b.rs:1: a note without an issue; write `TODO(#123): ..` or do it now"],
        );
        check_source("let s = \"TODO: buy milk\";", &[]);
    }
}
