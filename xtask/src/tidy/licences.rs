//! Every package we build on has a licence that `deny.toml` allows, and none of those it bans.
//!
//! `cargo deny` reads the same file and knows more; this needs nothing installed, so it runs with the tests.

use super::tree::Tree;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

const POLICY: &str = "deny.toml";

/// A package that can come into a build, on some platform, with some features.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    name: String,
    licence: String,
}

/// Asks cargo for all packages, those of other platforms too if they can be had.
pub(crate) fn packages(root: &Path) -> anyhow::Result<BTreeSet<Package>> {
    let mut output = cargo_tree(root, &["--target", "all"])?;
    if !output.status.success() {
        // Without a network only what this machine builds has been downloaded.
        output = cargo_tree(root, &["--offline"])?;
    }
    if !output.status.success() {
        bail!("Failed to list packages: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(parse).collect())
}

/// Finds packages that the policy does not allow.
pub(crate) fn check(tree: &Tree, packages: &BTreeSet<Package>) -> Vec<String> {
    let Some(policy) = tree.file(POLICY) else {
        return vec![format!("{POLICY}:1: missing; say which licences are allowed")];
    };
    let allowed = quoted_after(&policy.text, "allow = [");
    let banned = quoted_after(&policy.text, "deny = [");
    packages.iter().filter_map(|package| package_problem(package, &allowed, &banned)).collect()
}

fn package_problem(Package { name, licence }: &Package, allowed: &[&str], banned: &[&str]) -> Option<String> {
    if banned.contains(&name.as_str()) {
        return Some(format!(
            "Cargo.lock:1: `{name}` is banned by {POLICY}; find out who brings it with cargo tree -i"
        ));
    }
    (!is_satisfied(licence, allowed)).then(|| {
        format!(
            "Cargo.lock:1: the licence of `{name}` is not allowed by {POLICY}: {licence}; use another package"
        )
    })
}

/// Returns the quoted words of a list, up to its closing bracket; comments in it are skipped.
fn quoted_after<'a>(text: &'a str, opening: &str) -> Vec<&'a str> {
    let list = text.split_once(opening).map_or("", |(_, rest)| rest.split("\n]").next().unwrap_or(rest));
    list.lines()
        .map(|line| line.split('#').next().unwrap_or(line))
        .filter_map(|line| line.split('"').nth(1))
        .collect()
}

/// Tells whether a licence expression can be met with the allowed ones.
///
/// `AND` binds tighter than `OR`; a slash is an old way to write `OR`.
fn is_satisfied(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words, allowed) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut met = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed);
    }
    met
}

fn all(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut met = parse_term(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= parse_term(words, allowed);
    }
    met
}

fn parse_term(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    match words.next() {
        Some("(") => {
            let met = any(words, allowed);
            words.next_if_eq(&")").is_some() && met
        }
        Some(licence) if words.next_if_eq(&"WITH").is_some() => {
            let exception = words.next().unwrap_or_default();
            allowed.contains(&format!("{licence} WITH {exception}").as_str())
        }
        Some(licence) => allowed.contains(&licence),
        None => false,
    }
}

fn cargo_tree(root: &Path, more: &[&str]) -> anyhow::Result<Output> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    Command::new(cargo)
        .args(["tree", "--workspace", "--all-features", "--locked", "--prefix=none", "--format={p}|{l}|"])
        .args(more)
        .current_dir(root)
        .output()
        .context("Failed to run cargo tree")
}

/// Reads a line such as `serde v1.0.229|MIT OR Apache-2.0| (*)`.
fn parse(line: &str) -> Option<Package> {
    let mut fields = line.split('|');
    let name = fields.next()?.split_whitespace().next()?.to_owned();
    let licence = fields.next().filter(|licence| !licence.is_empty()).unwrap_or("none named").to_owned();
    Some(Package { name, licence })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[&str] = &["MIT", "Apache-2.0", "ISC", "Apache-2.0 WITH LLVM-exception"];

    #[test]
    fn expressions_are_met() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT/GPL-3.0", true),
            ("GPL-3.0 / LGPL-2.1", false),
            ("MIT AND GPL-3.0", false),
            ("ISC AND (Apache-2.0 OR GPL-3.0)", true),
            ("GPL-3.0 OR MIT AND MPL-2.0", false),
            ("GPL-3.0 AND MPL-2.0 OR MIT", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("(MIT", false),
            ("MIT)", false),
            ("none named", false),
            ("", false),
        ] {
            assert_eq!(is_satisfied(expression, ALLOWED), expected, "{expression}");
        }
    }

    #[test]
    fn packages_are_held_against_the_policy() {
        let policy = "[licenses]\nallow = [\n  \"MIT\", # fine\n  # \"GPL-3.0\",\n]\n\n\
                      [bans]\ndeny = [\n  { crate = \"ring\", reason = \"x\" },\n]\n";
        let lines = [
            "a v1.0.0|MIT|",
            "a v1.0.0|MIT| (*)",
            "",
            "b v0.1.0 (proc-macro)|GPL-3.0|",
            "c v1.0.0||",
            "ring v1|MIT|",
        ];
        let packages = lines.into_iter().filter_map(parse).collect();
        assert_eq!(
            check(&Tree::new([(POLICY, policy)]), &packages),
            [
                "Cargo.lock:1: the licence of `b` is not allowed by deny.toml: GPL-3.0; use another package",
                "Cargo.lock:1: the licence of `c` is not allowed by deny.toml: none named; use another package",
                "Cargo.lock:1: `ring` is banned by deny.toml; find out who brings it with cargo tree -i",
            ]
        );
    }

    #[test]
    fn a_policy_is_needed() {
        let problems = check(&Tree::new::<&str, &str>([]), &BTreeSet::new());
        assert_eq!(problems, ["deny.toml:1: missing; say which licences are allowed"]);
    }
}
