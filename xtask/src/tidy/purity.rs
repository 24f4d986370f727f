//! The pure crates touch nothing: no file, network, process, environment, clock or randomness.
//!
//! Three nets, each with holes the others cover: the crate's `clippy.toml` (knows paths, but only the methods
//! it lists), the words of its sources, and its dependencies.

use super::manifest::{Kind, dependencies};
use super::rust_source::{line_at, lines_with, words};
use super::tree::{File, Tree};

const PURE_CRATES: [&str; 5] = ["loci-settings", "loci-core", "loci-protocol", "loci-context", "loci-shell"];

const FORBIDDEN_WORDS: &[&str] = &[
    "std::fs",
    "std::env",
    "std::process",
    "std::net",
    "SystemTime",
    "Instant",
    "tokio",
    "thread::spawn",
    "thread::scope",
];

/// As they appear in `use std::{..}`.
const FORBIDDEN_MODULES: [&str; 4] = ["fs", "env", "process", "net"];

const FORBIDDEN_DEPENDENCIES: &[&str] =
    &["tokio", "tokio-util", "reqwest", "rustix", "tempfile", "getrandom", "fastrand", "uuid"];

/// Finds what makes a pure crate impure.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    PURE_CRATES.iter().flat_map(|name| check_crate(tree, name)).collect()
}

fn check_crate(tree: &Tree, name: &str) -> Vec<String> {
    let folder = format!("crates/{name}");
    let Some(manifest) = tree.file(&format!("{folder}/Cargo.toml")) else { return Vec::new() };
    let mut problems = Vec::from_iter(lint_problem(tree, &folder));
    problems.extend(dependency_problems(manifest, name));
    let sources = format!("{folder}/src/");
    for (file, rust) in tree.rust().filter(|(file, _)| file.path.starts_with(&sources)) {
        problems.extend(source_problems(file, &rust.product_code()));
    }
    problems
}

fn lint_problem(tree: &Tree, folder: &str) -> Option<String> {
    let path = format!("{folder}/clippy.toml");
    let guarded = tree.file(&path).is_some_and(|file| file.text.contains("disallowed-methods"));
    (!guarded).then(|| {
        format!("{path}:1: a pure crate needs `disallowed-methods`; copy the file of another pure crate")
    })
}

fn dependency_problems(manifest: &File, name: &str) -> Vec<String> {
    dependencies(manifest)
        .iter()
        .filter(|dependency| dependency.kind == Kind::Normal)
        .filter(|dependency| FORBIDDEN_DEPENDENCIES.contains(&dependency.name))
        .map(|dependency| {
            format!(
                "{}:{}: `{name}` is pure and may not use `{}`; take the value as an argument",
                manifest.path, dependency.line, dependency.name
            )
        })
        .collect()
}

fn source_problems(file: &File, code: &str) -> Vec<String> {
    let problem = |line, word: &str| {
        format!("{}:{line}: a pure crate may not use `{word}`; take the value as an argument", file.path)
    };
    let mut problems: Vec<String> = FORBIDDEN_WORDS
        .iter()
        .flat_map(|word| lines_with(code, word).map(|line| problem(line, word)))
        .collect();
    problems.extend(grouped_imports(code).map(|(line, module)| problem(line, &format!("std::{module}"))));
    problems
}

/// Finds the forbidden ones among the modules in `std::{a, b::c}`.
fn grouped_imports(code: &str) -> impl Iterator<Item = (usize, &'static str)> + '_ {
    words(code, "std::{").flat_map(move |at| {
        let group = code[at + "std::{".len()..].split(';').next().unwrap_or_default();
        FORBIDDEN_MODULES
            .into_iter()
            .filter(|module| words(group, module).any(|found| !group[..found].ends_with(':')))
            .map(move |module| (line_at(code, at), module))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    const GUARD: (&str, &str) = ("crates/loci-core/clippy.toml", "disallowed-methods = []");

    fn check_source(source: &str, expected: &[(usize, &str)]) {
        let problems: Vec<String> = expected
            .iter()
            .map(|(line, word)| {
                format!(
                    "crates/loci-core/src/a.rs:{line}: a pure crate may not use `{word}`; take the value as an \
                     argument"
                )
            })
            .collect();
        let files = [("crates/loci-core/Cargo.toml", ""), GUARD, ("crates/loci-core/src/a.rs", source)];
        expect_problems(check, &files, &problems.iter().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn pure_crates_may_not_use_io() {
        check_source("use std::fs;", &[(1, "std::fs")]);
        check_source("fn f() {\n    std::env::var(\"HOME\");\n}", &[(2, "std::env")]);
        check_source("use std::time::{Duration, Instant};", &[(1, "Instant")]);
        check_source("use std::{collections::HashMap, fs};", &[(1, "std::fs")]);
        check_source("use std::{io::{self}, net::IpAddr};", &[(1, "std::net")]);
        check_source("std::thread::spawn(f)", &[(1, "thread::spawn")]);
    }

    #[test]
    fn talk_and_tests_are_free() {
        check_source("//! Reads no std::fs.\nconst HELP: &str = \"std::env\";", &[]);
        check_source("#[cfg(test)]\nmod tests {\n    use std::fs;\n}", &[]);
        check_source("enum Speed { Instantly }\nuse std::{path::Path, fmt};", &[]);
        check_source("use std::{foo::fs};", &[]);
    }

    #[test]
    fn impure_dependencies_are_named() {
        expect_problems(
            check,
            &[
                (
                    "crates/loci-core/Cargo.toml",
                    "[dependencies]\ntokio.workspace = true\n[dev-dependencies]\ntempfile.workspace = true",
                ),
                GUARD,
            ],
            &[
                "crates/loci-core/Cargo.toml:2: `loci-core` is pure and may not use `tokio`; take the value as an \
               argument",
            ],
        );
    }

    #[test]
    fn the_lint_must_be_there() {
        expect_problems(
            check,
            &[("crates/loci-shell/Cargo.toml", "")],
            &[
                "crates/loci-shell/clippy.toml:1: a pure crate needs `disallowed-methods`; copy the file of another \
               pure crate",
            ],
        );
    }
}
