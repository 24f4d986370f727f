//! Every dependency is declared once, in the workspace's table, and used.
//!
//! A line in the table that no crate takes, and a line in a crate that its sources never name, are both
//! weight without a reason.

use super::manifest::{Dependency, Kind, dependencies, has, manifests};
use super::rust_source::words;
use super::tree::{File, Tree};

/// Finds dependencies that are not declared, not used, or not inherited.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let Some(workspace) = tree.file("Cargo.toml") else { return Vec::new() };
    let declared: Vec<Dependency<'_>> = dependencies(workspace);
    let mut problems = Vec::new();
    let mut taken: Vec<&str> = Vec::new();
    for (name, manifest) in manifests(tree) {
        let dependencies = dependencies(manifest);
        for dependency in &dependencies {
            problems.extend(declaration_problem(manifest, dependency, &declared));
            problems.extend(use_problem(tree, manifest, dependency));
        }
        taken.extend(dependencies.iter().map(|dependency| dependency.name));
        problems.extend(lint_problem(name, manifest));
    }
    problems.extend(declared.iter().filter(|dependency| !taken.contains(&dependency.name)).map(
        |dependency| {
            format!("Cargo.toml:{}: no crate uses `{}`; remove the line", dependency.line, dependency.name)
        },
    ));
    problems
}

fn declaration_problem(
    manifest: &File,
    dependency: &Dependency<'_>,
    declared: &[Dependency<'_>],
) -> Option<String> {
    let is_declared = declared.iter().any(|row| row.kind == Kind::Workspace && row.name == dependency.name);
    (!is_declared || !dependency.from_workspace).then(|| {
        format!(
            "{}:{}: `{name}` is not taken from the workspace; declare it in the top Cargo.toml and write \
             `{name}.workspace = true`",
            manifest.path,
            dependency.line,
            name = dependency.name
        )
    })
}

/// A crate that is used is named somewhere in the sources, if only in a path.
fn use_problem(tree: &Tree, manifest: &File, dependency: &Dependency<'_>) -> Option<String> {
    let folder = manifest.path.strip_suffix("Cargo.toml")?;
    let name = dependency.name.replace('-', "_");
    let is_used = tree
        .rust()
        .filter(|(file, _)| file.path.starts_with(folder))
        .any(|(_, rust)| words(rust.code(), &name).next().is_some());
    (!is_used).then(|| {
        format!(
            "{}:{}: no source of the crate names `{name}`; remove the line",
            manifest.path, dependency.line
        )
    })
}

fn lint_problem(name: &str, manifest: &File) -> Option<String> {
    (!has(manifest, "lints", "workspace", "true")).then(|| {
        format!(
            "{}:1: `{name}` does not take the workspace's lints; add `[lints] workspace = true`",
            manifest.path
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    fn check_crate(table: &str, manifest: &str, source: &str, expected: &[&str]) {
        let workspace = format!("[workspace.dependencies]\n{table}");
        let manifest = format!("[lints]\nworkspace = true\n[dependencies]\n{manifest}");
        let files = [
            ("Cargo.toml", &*workspace),
            ("crates/a/Cargo.toml", &*manifest),
            ("crates/a/src/lib.rs", source),
        ];
        expect_problems(check, &files, expected);
    }

    #[test]
    fn declared_and_used_is_fine() {
        check_crate("a-b = \"1\"", "a-b.workspace = true", "use a_b::C;", &[]);
        check_crate("a-b = \"1\"", "a-b = { workspace = true, optional = true }", "a_b::f()", &[]);
    }

    #[test]
    fn unused_dependency_is_found() {
        check_crate("a-b = \"1\"", "", "", &["Cargo.toml:2: no crate uses `a-b`; remove the line"]);
        check_crate(
            "a-b = \"1\"",
            "a-b.workspace = true",
            "// a_b\nconst S: &str = \"a_b\";",
            &["crates/a/Cargo.toml:4: no source of the crate names `a_b`; remove the line"],
        );
    }

    #[test]
    fn versions_live_in_one_table() {
        for (table, manifest) in [("", "a = \"1\""), ("a = \"1\"", "a = \"1\""), ("", "a.workspace = true")] {
            check_crate(
                table,
                manifest,
                "use a::b;",
                &[
                    "crates/a/Cargo.toml:4: `a` is not taken from the workspace; declare it in the top Cargo.toml \
                   and write `a.workspace = true`",
                ],
            );
        }
    }

    #[test]
    fn lints_are_inherited() {
        expect_problems(
            check,
            &[("Cargo.toml", ""), ("crates/a/Cargo.toml", "")],
            &[
                "crates/a/Cargo.toml:1: `a` does not take the workspace's lints; add `[lints] workspace = true`",
            ],
        );
    }
}
