//! Every environment variable that code names stands in the table of variables, and the reference pages are those of the tables.

use std::collections::BTreeSet;

use super::tree::Tree;
use crate::reference::{PAGES, variable_rows};

/// The table, which names all of them.
const TABLE: &str = "crates/loci-settings/src/variables/table.rs";

/// Crates whose code names variables by the constants of the table.
const BY_CONSTANT: [&str; 0] = [];

/// Words that only look like variables, and those of the build.
const NO_VARIABLES: [&str; 11] = [
    "CARGO_PKG_VERSION",
    "CHANGES_REQUESTED",
    "FETCH_HEAD",
    "FILES_OR_JSON",
    "FILE_OR_JSON",
    "LOCI_COMMIT",
    "LOCI_PROFILE",
    "LOCI_TARGET",
    "REVIEW_REQUIRED",
    "SUPPORTED_CAPABILITIES",
    "URL_OR_COMMAND",
];

/// Finds variables that the table does not have, and pages that are not those of the tables.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    if tree.file(TABLE).is_none() {
        return Vec::new();
    }
    let known: BTreeSet<&str> = variable_rows(tree).map(|row| row.name).collect();
    let mut problems = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| names_variables(&file.path)) {
        let code = rust.product_code();
        for (number, (line, product)) in (1..).zip(file.text.lines().zip(code.lines())) {
            let names = literals(line).filter(|name| looks_like_one(name) && !product.trim().is_empty());
            for name in names.filter(|name| !NO_VARIABLES.contains(name)) {
                let is_by_constant =
                    BY_CONSTANT.iter().any(|own| file.path.starts_with(&format!("crates/{own}/")));
                if !known.contains(name) {
                    problems
                        .push(format!("{}:{number}: `{name}` has no row; give it one in {TABLE}", file.path));
                } else if is_by_constant {
                    problems.push(format!(
                        "{}:{number}: `{name}` is named by its letters; name it by its constant, `variables::{name}`",
                        file.path
                    ));
                }
            }
        }
    }
    for (path, page) in PAGES {
        if tree.file(path).is_none_or(|file| file.text != page(tree)) {
            problems.push(format!("{path}:1: not what the tables say; run `cargo xtask reference`"));
        }
    }
    problems
}

/// Product code that may read the environment: what only knows names of variables in commands does not.
fn names_variables(path: &str) -> bool {
    let is_product = path.starts_with("crates/") && path.contains("/src/");
    let is_elsewhere = ["crates/loci-shell/", "crates/loci-testkit/", "crates/loci-settings/src/variables"];
    is_product && !is_elsewhere.iter().any(|part| path.starts_with(part))
}

fn literals(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

fn looks_like_one(text: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.contains('_') && text.split('_').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn variables_without_a_row_and_stale_pages_are_found() {
        let table = "variables! {\n    // All\n    A_KEY: Secret, \"x\";\n}\n";
        let code = "fn f() { get(\"A_KEY\"); get(\"B_KEY\"); get(\"CARGO_PKG_VERSION\"); }\n\
                    #[cfg(test)]\nmod tests { const K: &str = \"C_KEY\"; }";
        expect_problems(
            check,
            &[
                (TABLE, table),
                ("crates/a/src/a.rs", code),
                ("crates/loci-shell/src/a.rs", "const X: &str = \"D_KEY\";"),
            ],
            &[
                &format!("crates/a/src/a.rs:1: `B_KEY` has no row; give it one in {TABLE}"),
                "docs/variables.md:1: not what the tables say; run `cargo xtask reference`",
                "docs/settings-reference.md:1: not what the tables say; run `cargo xtask reference`",
            ],
        );
    }
}
