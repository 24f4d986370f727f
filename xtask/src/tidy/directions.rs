//! Crates depend on each other one way only, as the table here says.
//!
//! `docs/ARCHITECTURE.md` tells the same in prose. A crate that is not in the table may not exist: where it
//! stands is decided before its first line is written.

use super::manifest::{Dependency, Kind, dependencies, manifests};
use super::tree::Tree;

/// What a crate of ours may use of our crates.
enum May {
    Use(&'static [&'static str]),
    UseAny,
}

/// From the bottom up.
const TABLE: &[(&str, May)] = &[
    ("loci-stdx", May::Use(&[])),
    ("loci-settings", May::Use(&[])),
    ("loci-core", May::Use(&["loci-settings"])),
    ("loci-protocol", May::Use(&["loci-core"])),
    ("loci-context", May::Use(&["loci-core"])),
    ("loci-shell", May::Use(&["loci-core"])),
    ("loci-storage", May::Use(&["loci-settings", "loci-core", "loci-stdx"])),
    ("loci-http", May::Use(&["loci-core", "loci-stdx"])),
    ("loci-llm", May::Use(&["loci-core", "loci-stdx", "loci-http"])),
    ("loci-sandbox", May::Use(&["loci-core", "loci-stdx"])),
    ("loci-tools", May::Use(&["loci-settings", "loci-core", "loci-stdx", "loci-shell", "loci-sandbox"])),
    ("loci-mcp", May::Use(&["loci-core", "loci-settings", "loci-stdx", "loci-http", "loci-sandbox"])),
    (
        "loci-engine",
        May::Use(&[
            "loci-settings",
            "loci-core",
            "loci-protocol",
            "loci-stdx",
            "loci-context",
            "loci-shell",
            "loci-storage",
            "loci-http",
            "loci-llm",
            "loci-sandbox",
            "loci-tools",
            "loci-mcp",
        ]),
    ),
    (
        "loci-team",
        May::Use(&["loci-core", "loci-stdx", "loci-context", "loci-storage", "loci-http", "loci-team"]),
    ),
    (
        "loci-app",
        May::Use(&[
            "loci-settings",
            "loci-core",
            "loci-protocol",
            "loci-stdx",
            "loci-context",
            "loci-shell",
            "loci-storage",
            "loci-http",
            "loci-llm",
            "loci-sandbox",
            "loci-tools",
            "loci-mcp",
            "loci-engine",
            "loci-team",
        ]),
    ),
    ("loci-tui", May::Use(&["loci-core", "loci-stdx", "loci-storage", "loci-engine", "loci-app"])),
    ("loci-wire", May::Use(&["loci-core", "loci-stdx", "loci-storage", "loci-engine", "loci-app"])),
    ("loci", May::UseAny),
    ("loci-testkit", May::UseAny),
    ("xtask", May::Use(&[])),
];

/// What the tests of any crate may use: the kit, and the projection that says what a transcript sends.
const FOR_TESTS: &[&str] = &["loci-testkit", "loci-context"];

/// Finds dependencies between our crates that the table does not allow.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    manifests(tree)
        .flat_map(|(name, manifest)| {
            let Some((_, may)) = TABLE.iter().find(|(row, _)| *row == name) else {
                return vec![format!(
                    "{}:1: `{name}` has no place among the crates; give it a row in \
                     xtask/src/tidy/directions.rs and docs/ARCHITECTURE.md",
                    manifest.path
                )];
            };
            dependencies(manifest)
                .iter()
                .filter(|dependency| is_ours(dependency.name) && !is_allowed(may, dependency))
                .map(|Dependency { name: used, line, .. }| {
                    format!(
                        "{}:{line}: `{name}` may not use `{used}`; move the code to a layer that may, or pass \
                         what it needs as a value",
                        manifest.path
                    )
                })
                .collect()
        })
        .collect()
}

fn is_ours(name: &str) -> bool {
    name == "loci" || name.starts_with("loci-")
}

fn is_allowed(may: &May, dependency: &Dependency<'_>) -> bool {
    let for_tests = dependency.kind == Kind::Dev && FOR_TESTS.contains(&dependency.name);
    for_tests
        || match may {
            May::Use(allowed) => allowed.contains(&dependency.name),
            May::UseAny => true,
        }
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    fn check_one(name: &str, manifest: &str, expected: &[&str]) {
        expect_problems(check, &[(&format!("crates/{name}/Cargo.toml"), manifest)], expected);
    }

    #[test]
    fn dependency_on_a_lower_layer_is_allowed() {
        check_one("loci-context", "[dependencies]\nloci-core.workspace = true\nserde.workspace = true", &[]);
        check_one("loci", "[dependencies]\nloci-wire.workspace = true", &[]);
        check_one("loci-core", "[dev-dependencies]\nloci-testkit.workspace = true", &[]);
    }

    #[test]
    fn dependency_upwards_or_sideways_is_refused() {
        check_one(
            "loci-core",
            "[dependencies]\nloci-engine.workspace = true",
            &[
                "crates/loci-core/Cargo.toml:2: `loci-core` may not use `loci-engine`; move the code to a layer \
               that may, or pass what it needs as a value",
            ],
        );
        check_one(
            "loci-tools",
            "[target.'cfg(unix)'.dependencies]\nloci-storage = { workspace = true }",
            &["crates/loci-tools/Cargo.toml:2: `loci-tools` may not use `loci-storage`; move the code to a \
               layer that may, or pass what it needs as a value"],
        );
        check_one(
            "loci-engine",
            "[dependencies]\nloci-testkit.workspace = true",
            &[
                "crates/loci-engine/Cargo.toml:2: `loci-engine` may not use `loci-testkit`; move the code to a \
               layer that may, or pass what it needs as a value",
            ],
        );
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        check_one(
            "loci-utils",
            "",
            &[
                "crates/loci-utils/Cargo.toml:1: `loci-utils` has no place among the crates; give it a row in \
               xtask/src/tidy/directions.rs and docs/ARCHITECTURE.md",
            ],
        );
    }
}
