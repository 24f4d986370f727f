//! `docs/ARCHITECTURE.md` stays short enough to be read, and names every crate.

use super::rust_source::words;
use super::tree::Tree;

const PAGE: &str = "docs/ARCHITECTURE.md";
const MOST_LINES: usize = 200;

/// Finds what the page lacks, or has too much of.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let Some(page) = tree.file(PAGE) else {
        return vec![format!("{PAGE}:1: missing; write the bird's-eye view of the crates")];
    };
    let n_lines = page.lines().count();
    let too_long = (n_lines > MOST_LINES).then(|| {
        format!("{PAGE}:{MOST_LINES}: {n_lines} lines; move what is about one crate to that crate's docs")
    });
    let unnamed = tree
        .crate_names()
        .chain(["xtask"])
        .filter(|name| !names(&page.text, name))
        .map(|name| format!("{PAGE}:1: `{name}` is not named; give it its sentence"));
    too_long.into_iter().chain(unnamed).collect()
}

/// `loci-core` does not name `loci`.
fn names(text: &str, name: &str) -> bool {
    words(text, name).any(|at| !text[at + name.len()..].starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn every_crate_is_named() {
        let crates = [("crates/loci/Cargo.toml", ""), ("crates/loci-core/Cargo.toml", "")];
        let check_page = |page: &str, expected: &[&str]| {
            expect_problems(check, &[crates[0], crates[1], (PAGE, page)], expected);
        };
        check_page("`loci`, `loci-core` and `xtask`", &[]);
        check_page(
            "`loci-core` and `xtask`",
            &["docs/ARCHITECTURE.md:1: `loci` is not named; give it its sentence"],
        );
    }

    #[test]
    fn the_page_is_there_and_short() {
        expect_problems(
            check,
            &[],
            &["docs/ARCHITECTURE.md:1: missing; write the bird's-eye view of the crates"],
        );
        expect_problems(check, &[(PAGE, &"xtask\n".repeat(200))], &[]);
        expect_problems(
            check,
            &[(PAGE, &"xtask\n".repeat(201))],
            &["docs/ARCHITECTURE.md:200: 201 lines; move what is about one crate to that crate's docs"],
        );
    }
}
