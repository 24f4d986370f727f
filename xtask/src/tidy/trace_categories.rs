//! Whoever reads a trace finds every category of it in one table.

use super::tree::Tree;

const TABLE: &str = "crates/loci-app/src/start/trace.rs";
const TARGET: &str = "target: \"loci::";

/// Finds categories of the trace that the table at its head does not have.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let table = tree.file(TABLE).map(|file| file.text.as_str()).unwrap_or_default();
    let mut problems = Vec::new();
    for (file, _) in tree.rust().filter(|(file, _)| file.path.starts_with("crates/")) {
        for (number, line) in file.text.lines().enumerate() {
            let category = line.split_once(TARGET).and_then(|(_, rest)| rest.split('"').next());
            if let Some(category) = category.filter(|it| !table.contains(&format!("| `{it}` |"))) {
                problems.push(format!(
                    "{}:{}: the trace has no category `{category}`; add it to the table of {TABLE}",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn category_that_the_table_lacks_is_found() {
        let table = (TABLE, "//! | `api` | requests |");
        let place = (
            "crates/a/src/b.rs",
            "debug!(target: \"loci::api\", \"x\");\ndebug!(target: \"loci::odd\", \"x\");",
        );
        expect_problems(
            check,
            &[table, place],
            &[
                "crates/a/src/b.rs:2: the trace has no category `odd`; add it to the table of crates/loci-app/src/start/trace.rs",
            ],
        );
    }
}
