//! A file is about one thing, and its length is the first sign that it is not. Tests are not counted.

use super::tree::Tree;

const MOST_LINES: usize = 800;
const MANY_LINES: usize = 600;

/// Finds files that are too long.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    product_lines(tree)
        .filter(|(_, n_lines)| *n_lines > MOST_LINES)
        .map(|(path, n_lines)| {
            let advice = "move the second topic to a file of its own";
            format!("{path}:{MOST_LINES}: {n_lines} lines without tests; {advice}")
        })
        .collect()
}

/// Finds files that are getting long.
pub(crate) fn warnings(tree: &Tree) -> Vec<String> {
    product_lines(tree)
        .filter(|(_, n_lines)| (MANY_LINES + 1..=MOST_LINES).contains(n_lines))
        .map(|(path, n_lines)| {
            let advice = format!("{MOST_LINES} is the end, so look for the second topic");
            format!("{path}:{MANY_LINES}: {n_lines} lines without tests; {advice}")
        })
        .collect()
}

fn product_lines(tree: &Tree) -> impl Iterator<Item = (&str, usize)> {
    tree.rust()
        .filter(|(_, rust)| !rust.is_all_test())
        .map(|(file, rust)| (file.path.as_str(), file.lines().count().saturating_sub(rust.n_test_lines())))
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    fn lines(n: usize) -> String {
        "x\n".repeat(n)
    }

    #[test]
    fn the_limit_is_on_the_last_line_allowed() {
        expect_problems(check, &[("a/src/b.rs", &lines(800))], &[]);
        expect_problems(
            check,
            &[("a/src/b.rs", &lines(801))],
            &["a/src/b.rs:800: 801 lines without tests; move the second topic to a file of its own"],
        );
        expect_problems(warnings, &[("a/src/b.rs", &lines(600))], &[]);
        expect_problems(
            warnings,
            &[("a/src/b.rs", &lines(601))],
            &["a/src/b.rs:600: 601 lines without tests; 800 is the end, so look for the second topic"],
        );
    }

    #[test]
    fn tests_are_not_counted() {
        let inline = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", lines(700), lines(900));
        expect_problems(check, &[("a/src/b.rs", &inline)], &[]);
        expect_problems(check, &[("a/src/b/tests.rs", &lines(900)), ("a/tests/it/c.rs", &lines(900))], &[]);
    }
}
