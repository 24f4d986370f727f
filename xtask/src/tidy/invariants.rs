//! Design notes and the tests that hold their invariants name each other.
//!
//! In `docs/design/*.md` an invariant is a numbered item with the words "Held by" and the names of tests in
//! backticks behind them. Each name must be a test whose comment names the note and the number.

use super::tree::{File, Tree};

const NOTES: &str = "docs/design/";
const HELD_BY: &str = "Held by";

/// Finds invariants without a test, and tests that do not say what they hold.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let notes = tree.files().iter().filter(|file| file.path.starts_with(NOTES));
    notes
        .flat_map(|note| invariants(note).into_iter().flat_map(move |it| problems(tree, note, &it)))
        .collect()
}

/// A numbered sentence and the tests it names.
struct Invariant {
    number: u32,
    line: usize,
    tests: Vec<String>,
}

fn invariants(note: &File) -> Vec<Invariant> {
    let mut found: Vec<(u32, usize, String)> = Vec::new();
    for (n, line) in note.text.lines().enumerate() {
        let number = line.split_once(". **").and_then(|(number, _)| number.parse().ok());
        match (number, found.last_mut()) {
            (Some(number), _) => found.push((number, n + 1, line.to_owned())),
            (None, Some((.., text))) if line.starts_with("   ") => {
                text.push_str(&format!(" {}", line.trim()));
            }
            (None, _) => {}
        }
    }
    let named = |text: &str| -> Vec<String> {
        let tests = text.split_once(HELD_BY).map_or("", |(_, tests)| tests);
        tests.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    found.into_iter().map(|(number, line, text)| Invariant { number, line, tests: named(&text) }).collect()
}

fn problems(tree: &Tree, note: &File, invariant: &Invariant) -> Vec<String> {
    let place = format!("{}:{}: invariant {}", note.path, invariant.line, invariant.number);
    if invariant.tests.is_empty() {
        return vec![format!("{place} is held by no test; write one and name it")];
    }
    let problem = |test: &String| match comment_of(tree, test) {
        None => Some(format!("{place} names `{test}`, which is no test")),
        Some(comment) if !cites(&comment, &note.path, invariant.number) => {
            Some(format!("{place} names `{test}`, whose comment does not name it"))
        }
        Some(_) => None,
    };
    invariant.tests.iter().filter_map(problem).collect()
}

/// Returns the comment above a test function.
fn comment_of(tree: &Tree, test: &str) -> Option<String> {
    let start = format!("fn {test}(");
    let mut sources = tree.files().iter().filter(|file| file.path.ends_with(".rs"));
    sources.find_map(|file| {
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| line.trim_start_matches("async ").starts_with(&start))?;
        let above =
            lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("///"));
        let comment: Vec<&str> = above.filter(|line| line.starts_with("///")).copied().collect();
        Some(comment.into_iter().rev().collect::<Vec<_>>().join(" "))
    })
}

/// `Invariants 1, 2 and 8 of \`docs/design/x.md\`` cites each of the three.
fn cites(comment: &str, note: &str, number: u32) -> bool {
    let Some((before, _)) = comment.split_once(&format!("of `{note}`")) else { return false };
    let Some((_, numbers)) = before.rsplit_once("nvariant") else { return false };
    numbers.split(|c: char| !c.is_ascii_digit()).any(|word| word == number.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    const NOTE: &str = "docs/design/x.md";

    fn check_one(note: &str, source: &str, expected: &[&str]) {
        expect_problems(check, &[(NOTE, note), ("crates/a/tests/it/b.rs", source)], expected);
    }

    #[test]
    fn both_sides_name_each_other() {
        let source = "/// Invariants 1 and 12 of `docs/design/x.md`.\n#[test]\nfn it_holds() {}\n";
        check_one("1. **So.** Held by\n   `it_holds`.\n12. **And so.** Held by `it_holds`.", source, &[]);
        check_one(
            "2. **So.** Held by `it_holds`.",
            source,
            &["docs/design/x.md:1: invariant 2 names `it_holds`, whose comment does not name it"],
        );
    }

    #[test]
    fn an_invariant_needs_a_test_that_exists() {
        check_one(
            "1. **So.**\n\n2. **So.** Held by `gone`.",
            "fn gone_too() {}",
            &[
                "docs/design/x.md:1: invariant 1 is held by no test; write one and name it",
                "docs/design/x.md:3: invariant 2 names `gone`, which is no test",
            ],
        );
    }
}
