//! A public type name means one thing in a crate: two types of one name cannot be told apart by searching, nor by
//! reading the places that use them.
//!
//! Modules make no difference: `a::Error` and `b::Error` are refused too, since their users write `Error`.

use std::collections::BTreeMap;

use super::rust_source::{line_at, words};
use super::tree::Tree;

const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Finds names of public types that a library crate defines more than once.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut places: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for (file, rust) in tree.rust() {
        let Some(library) = library_of(tree, &file.path) else { continue };
        let code = rust.product_code();
        for (at, name) in public_types(&code) {
            let place = format!("{}:{}", file.path, line_at(&code, at));
            places.entry((library, name.to_owned())).or_default().push(place);
        }
    }
    let doubled = places.into_iter().filter(|(_, places)| places.len() > 1);
    doubled.map(|((library, name), places)| problem(library, &name, &places)).collect()
}

fn problem(library: &str, name: &str, places: &[String]) -> String {
    let (first, others) = (&places[0], places[1..].join(", "));
    format!(
        "{first}: `{name}` is a public type of {library} more than once, also in {others}; give each its own name"
    )
}

/// Returns the crate of a file that belongs to a library, and not to its tests or examples.
fn library_of<'a>(tree: &Tree, path: &'a str) -> Option<&'a str> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once('/')?;
    let is_library = inside.starts_with("src/") && tree.file(&format!("crates/{name}/src/lib.rs")).is_some();
    is_library.then_some(name)
}

/// Returns the types that are `pub` without a limit, with their places in the code.
fn public_types(code: &str) -> impl Iterator<Item = (usize, &str)> {
    words(code, "pub").filter_map(|at| {
        let rest = &code[at + "pub".len()..];
        let mut tokens = rest.starts_with(char::is_whitespace).then(|| rest.split_whitespace())?;
        let kind = tokens.find(|word| *word != "unsafe")?;
        let name = tokens.next()?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        KINDS.contains(&kind).then_some((at, &name[..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    const LIB: (&str, &str) = ("crates/a/src/lib.rs", "mod b;\nmod c;");

    fn check_pair(b: &str, c: &str, expected: &[&str]) {
        expect_problems(check, &[LIB, ("crates/a/src/b.rs", b), ("crates/a/src/c.rs", c)], expected);
    }

    #[test]
    fn public_type_defined_twice_in_a_crate_is_refused() {
        let problem = "crates/a/src/b.rs:2: `Error` is a public type of a more than once, also in \
                       crates/a/src/c.rs:1; give each its own name";
        check_pair("\npub enum Error {}", "pub struct Error(u8);", &[problem]);
        check_pair("\npub type Error<T> = Box<T>;", "pub trait Error: Send {}", &[problem]);
        check_pair("\npub unsafe trait Error {}", "#[derive(Debug)] pub union Error { a: u8 }", &[problem]);
    }

    #[test]
    fn private_types_and_test_types_may_share_a_name() {
        check_pair("pub struct Line;", "pub(crate) struct Line;", &[]);
        check_pair("pub struct Line;", "struct Line;\npub fn line() -> Line {}", &[]);
        check_pair("pub struct Line;", "#[cfg(test)]\nmod tests {\n    pub struct Line;\n}", &[]);
        check_pair("pub struct Line;", "// pub struct Line;\nconst A: &str = \"pub struct Line;\";", &[]);
        check_pair("pub struct Line;", "pub use b::Line;\npub struct LineEnd;", &[]);
    }

    #[test]
    fn crates_tests_and_binaries_are_apart() {
        let line = "pub struct Line;";
        let elsewhere = [("crates/b/src/lib.rs", line), ("crates/a/tests/it/main.rs", line)];
        expect_problems(check, &[LIB, ("crates/a/src/b.rs", line), elsewhere[0], elsewhere[1]], &[]);
        let binary = [("crates/d/src/main.rs", line), ("crates/d/src/e.rs", line)];
        expect_problems(check, &binary, &[]);
    }
}
