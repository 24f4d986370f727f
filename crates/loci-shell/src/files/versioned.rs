//! `git`: files that its subcommands are told of. Revisions and paths look alike, so a word that is known counts as a
//! path too; one that only the run will tell is a revision as a rule.

use super::Access;
use super::flags::{as_glob, flag_values, operands, part};
use crate::code::git_sets_code;
use crate::git::{behind_colons, pathspec};
use crate::value::Value;

#[rustfmt::skip]
const READERS: &[&str] = &[
    "add", "am", "annotate", "apply", "archive", "blame", "cat-file", "diff", "grep", "hash-object", "interpret-trailers", "log",
    "ls-files", "mailinfo", "merge-file", "show", "update-index",
];

const WRITERS: &[&str] = &["checkout", "clean", "mv", "restore", "rm"];

/// Readers that take no revision, so that what only the run will tell is a path.
const OF_FILES: &[&str] = &["add", "apply", "hash-object"];

/// Flags of subcommands that name files they read.
#[rustfmt::skip]
const READ_FLAGS: &[(&str, &[&str])] = &[
    ("archive", &["--add-file"]),
    ("blame", &["--contents"]),
    ("commit", &["-F", "--file", "-t", "--template"]),
    ("commit-tree", &["-F"]),
    ("fmt-merge-msg", &["-F", "--file"]),
    ("grep", &["-f"]),
    ("merge", &["-F", "--file"]),
    ("notes", &["-F", "--file"]),
    ("tag", &["-F", "--file"]),
];

/// Flags of subcommands that name what they write. `--output` is one of all.
#[rustfmt::skip]
const WRITTEN_FLAGS: &[(&str, &[&str])] = &[
    ("am", &["--directory"]),
    ("apply", &["--directory"]),
    ("archive", &["-o"]),
    ("bugreport", &["-o", "--output-directory"]),
    ("checkout-index", &["--prefix"]),
    ("clone", &["--separate-git-dir"]),
    ("credential-store", &["--file"]),
    ("diagnose", &["-o", "--output-directory"]),
    ("fast-export", &["--export-marks"]),
    ("fast-import", &["--export-marks", "--export-pack-edges"]),
    ("format-patch", &["-o", "--output-directory"]),
    ("index-pack", &["-o"]),
    ("init", &["--separate-git-dir"]),
    ("mailsplit", &["-o"]),
    ("read-tree", &["--index-output"]),
];

/// Subcommands that write all their operands, some behind a word of their own.
const WRITTEN_OPERANDS: &[&str] = &["bundle", "mailinfo", "merge-file", "pack-objects"];

/// Subcommands that make a directory where they are told to.
const MAKERS: &[&str] = &["clone", "init", "submodule", "worktree"];

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
        for value in &named {
            let behind_colons = behind_colons(&value.text).map(|path| part(value, path));
            found.extend(behind_colons.map(Access::Read));
            let pattern = pathspec(&value.text).filter(|_| value.pattern.is_none());
            found.extend(pattern.map(|text| Access::Read(as_glob(value, text))));
        }
        found.extend(named.iter().cloned().map(Access::Read));
    }
    let edits_operands = name == "interpret-trailers" && arguments.iter().any(|it| it.text == "--in-place");
    if WRITERS.contains(&name) || WRITTEN_OPERANDS.contains(&name) || edits_operands {
        found.extend(named.iter().cloned().map(Access::Write));
    }
    if MAKERS.contains(&name) {
        let first = named.first().map_or("", |value| value.text.as_str());
        let n_before = match (name, first) {
            // What is cloned stands before where it goes.
            ("clone", _) => 1,
            ("submodule", "add") => 2,
            ("worktree", "add" | "move") => 1,
            ("submodule" | "worktree", _) => usize::MAX,
            _ => 0,
        };
        let is_beside = |value: &Value| {
            matches!((name, first), ("clone", _) | ("worktree", "add")) && is_sibling(&value.text)
        };
        let made = named.iter().skip(n_before).filter(|value| !is_beside(value));
        found.extend(made.cloned().map(Access::Write));
    }
    // What git's own configuration names, git runs later.
    if name == "config" && writes_setting(arguments) && git_sets_code(arguments) {
        found.push(Access::Write(Value::literal(".git/config")));
    }
    if name == "config" {
        let files = flag_values(arguments, &["-f", "--file"]);
        found.extend(files.into_iter().flat_map(|file| [Access::Read(file.clone()), Access::Write(file)]));
    }
    // A patch may name files outside of the directory then.
    if name == "apply" && arguments.iter().any(|value| value.text.starts_with("--unsafe")) {
        found.push(Access::Write(Value::hole()));
    }
    let of_name = |table: &[(&str, &'static [&'static str])]| {
        table.iter().find(|(subcommand, _)| *subcommand == name).map_or(&[][..], |(_, flags)| *flags)
    };
    found.extend(flag_values(arguments, of_name(READ_FLAGS)).into_iter().map(Access::Read));
    let written = [&["--output"], of_name(WRITTEN_FLAGS)].concat();
    found.extend(flag_values(arguments, &written).into_iter().map(Access::Write));
}

/// Tells whether a path is right beside the working directory, as copies of a repository usually are: `../feature`.
fn is_sibling(path: &str) -> bool {
    path.strip_prefix("../")
        .is_some_and(|name| !name.is_empty() && !name.starts_with('.') && !name.contains('/'))
}

/// Tells whether `git config` is told to change something.
fn writes_setting(arguments: &[Value]) -> bool {
    const CHANGES: &[&str] =
        &["--add", "--unset", "--unset-all", "--replace-all", "--rename-section", "--remove-section"];
    const READS: &[&str] = &["get", "list"];
    let is_change = |value: &Value| {
        CHANGES.iter().any(|flag| value.text.len() > 3 && flag.starts_with(&value.text))
            || matches!(value.text.as_str(), "-e" | "--edit")
    };
    let is_read =
        |value: &Value| value.text.starts_with("--get") || matches!(value.text.as_str(), "-l" | "--list");
    let operands = operands(arguments);
    let names_read = operands.first().is_some_and(|first| READS.contains(&first.text.as_str()));
    arguments.iter().any(is_change) || (operands.len() > 1 && !names_read && !arguments.iter().any(is_read))
}
