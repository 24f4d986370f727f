//! `git`: files that its subcommands are told of. Revisions and paths look alike, so a word that is known counts as a
//! path too; one that only the run will tell is a revision as a rule.

use super::Access;
use super::flags::{flag_values, operands, part};
use crate::value::Value;

const READERS: &[&str] = &[
    "add",
    "annotate",
    "apply",
    "archive",
    "blame",
    "cat-file",
    "diff",
    "grep",
    "hash-object",
    "log",
    "ls-files",
    "show",
];

const WRITERS: &[&str] = &["checkout", "clean", "mv", "restore", "rm"];

/// Readers that take no revision, so that what only the run will tell is a path.
const OF_FILES: &[&str] = &["add", "apply", "hash-object"];

/// Notes what a `git` reads and writes by name; one with global options is looked at again without them.
pub(super) fn git(values: &[Value], found: &mut Vec<Access>) {
    let is_global = |value: &Value| value.text.starts_with('-');
    let Some((subcommand, arguments)) = values.get(1..).and_then(<[Value]>::split_first) else { return };
    let name = subcommand.text.as_str();
    if is_global(subcommand) {
        return;
    }
    let is_told =
        |value: &Value| value.known().is_some() || value.pattern.is_some() || OF_FILES.contains(&name);
    let named: Vec<Value> = operands(arguments).into_iter().filter(is_told).collect();
    if READERS.contains(&name) {
        let behind_colon = named.iter().filter_map(|value| Some(part(value, value.text.split_once(':')?.1)));
        found.extend(behind_colon.filter(|value| !value.text.is_empty()).map(Access::Read));
        found.extend(named.iter().cloned().map(Access::Read));
    }
    if WRITERS.contains(&name) {
        found.extend(named.into_iter().map(Access::Write));
    }
    if name == "config" {
        let files = flag_values(arguments, &["-f", "--file"]);
        found.extend(files.into_iter().flat_map(|file| [Access::Read(file.clone()), Access::Write(file)]));
    }
    let flags: &[&str] = match name {
        "archive" | "format-patch" => &["--output", "-o"],
        _ => &["--output"],
    };
    found.extend(flag_values(arguments, flags).into_iter().map(Access::Write));
}
