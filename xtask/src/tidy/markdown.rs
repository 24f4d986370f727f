//! Prose has no trailing blanks: they are invisible, and two of them mean a line break.

use super::tree::Tree;

/// Finds lines of Markdown that end in white space.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    tree.files()
        .iter()
        .filter(|file| file.path.ends_with(".md"))
        .flat_map(|file| {
            file.lines()
                .filter(|(_, line)| line.trim_end() != *line)
                .map(|(number, _)| format!("{}:{number}: trailing white space; remove it", file.path))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn lines_end_where_they_end() {
        expect_problems(check, &[("a.md", "one\n\ntwo\n"), ("b.txt", "one \n")], &[]);
        expect_problems(
            check,
            &[("a.md", "one \ntwo\r\n\t\n")],
            &[
                "a.md:1: trailing white space; remove it",
                "a.md:2: trailing white space; remove it",
                "a.md:3: trailing white space; remove it",
            ],
        );
    }
}
