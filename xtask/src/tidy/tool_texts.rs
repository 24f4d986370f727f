//! What a tool says to the model lies beside its code as prose.

use super::rust_source::lines_with;
use super::tree::Tree;

const TOOLS: &str = "crates/loci-tools/src/";

/// Finds tools without their `.md`.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    tree.rust()
        .filter(|(file, _)| file.path.starts_with(TOOLS))
        .filter_map(|(file, rust)| {
            let line = lines_with(&rust.product_code(), "Tool for").next()?;
            let text = file.path.replace(".rs", ".md");
            tree.file(&text).is_none().then(|| {
                format!(
                    "{}:{line}: a tool without its text; write what the model is to read in {text}",
                    file.path
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn tools_have_their_text_beside_them() {
        let tool = ("crates/loci-tools/src/web.rs", "struct Web;\nimpl Tool for Web {}");
        expect_problems(check, &[tool, ("crates/loci-tools/src/web.md", "Fetches.")], &[]);
        expect_problems(
            check,
            &[tool],
            &["crates/loci-tools/src/web.rs:2: a tool without its text; write what the model is to read in \
               crates/loci-tools/src/web.md"],
        );
    }

    #[test]
    fn tools_of_tests_need_none() {
        let tests = "#[cfg(test)]\nmod tests {\n    impl Tool for Fake {}\n}";
        expect_problems(check, &[("crates/loci-tools/src/web.rs", tests)], &[]);
        expect_problems(check, &[("crates/loci-engine/src/a.rs", "impl Tool for Fake {}")], &[]);
    }
}
