//! What went wrong with compaction elsewhere is numbered, and each class has a test that names it.
//!
//! A test names a class in the comment above it: `Regression class 7: what is held`, or the same words in brackets.

use super::tree::Tree;

/// How many classes there are.
const CLASSES: u32 = 17;
/// Where the classes are told of; a tree without it has nothing to hold.
const TOLD_IN: &str = "crates/loci/tests/it/regressions.rs";

/// Finds classes that no test names.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    if !tree.files().iter().any(|file| file.path == TOLD_IN) {
        return Vec::new();
    }
    let sources: Vec<&str> = tree
        .files()
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
        .map(|file| file.text.as_str())
        .collect();
    let is_open = |class: &u32| !sources.iter().any(|source| names(source, *class));
    let problem =
        |class: u32| format!("{TOLD_IN}: regression class {class} has no test; write one that names it");
    (1..=CLASSES).filter(is_open).map(problem).collect()
}

/// Tells whether the comment above a test names a class.
fn names(source: &str, class: u32) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut comment = "";
    lines.iter().any(|line| {
        match *line {
            line if line.starts_with("///") && is_named(line, class) => comment = line,
            line if line.starts_with("///") => {}
            "#[test]" | "#[tokio::test]" if !comment.is_empty() => return true,
            line if line.starts_with("#[") => {}
            _ => comment = "",
        }
        false
    })
}

fn is_named(line: &str, class: u32) -> bool {
    let rest = line.split_once("egression class ").map_or("", |(_, rest)| rest);
    rest.split(|c: char| !c.is_ascii_digit()).next() == Some(class.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn each_class_needs_a_test_that_names_it() {
        let named = |class: u32| {
            format!("/// Regression class {class}: so.\n/// More.\n#[test]\nfn it_{class}() {{}}\n")
        };
        let all: String = (1..=CLASSES).map(named).collect();
        expect_problems(check, &[(TOLD_IN, all.as_str())], &[]);
        let most: String = (1..CLASSES).map(named).collect();
        let missing = [format!("{TOLD_IN}: regression class 17 has no test; write one that names it")];
        expect_problems(check, &[(TOLD_IN, most.as_str())], &[&missing[0]]);
        // What is said elsewhere than above a test holds nothing.
        let told =
            format!("{most}/// Regression class 17: so.\nfn helper() {{}}\n#[test]\nfn other() {{}}\n");
        expect_problems(check, &[(TOLD_IN, told.as_str())], &[&missing[0]]);
    }
}
