//! `tar`: what is packed is read, what is unpacked is written.

use super::Access;
use super::flags::{flag_values, operands};
use crate::value::Value;

/// Notes what a `tar` reads and writes.
pub(super) fn tar(arguments: &[Value], found: &mut Vec<Access>) {
    let is_old = arguments.first().is_some_and(|value| !value.text.starts_with('-'));
    let letters = |wanted: char| {
        let in_old = is_old && arguments.first().is_some_and(|value| value.text.contains(wanted));
        in_old
            || arguments.iter().any(|value| {
                value.text.starts_with('-') && !value.text.starts_with("--") && value.text.contains(wanted)
            })
    };
    let long = |names: &[&str]| {
        let names_one =
            |value: &Value| value.text.len() > 3 && names.iter().any(|name| name.starts_with(&value.text));
        arguments.iter().any(names_one)
    };
    let extracts = letters('x') || long(&["--extract", "--get"]);
    let lists = letters('t') || long(&["--list"]);
    let mut files = operands(arguments);
    if is_old && !files.is_empty() {
        files.remove(0);
    }
    let mut archives = flag_values(arguments, &["-f", "--file"]);
    archives.extend(files.first().filter(|_| is_old && letters('f')).cloned());
    files
        .extend(flag_values(arguments, &["-C", "--directory", "-T", "--files-from", "-X", "--exclude-from"]));
    files.extend(archives.iter().filter(|archive| !files.contains(archive)).cloned().collect::<Vec<_>>());
    for file in files {
        found.push(Access::Read(file.clone()));
        if extracts || (!lists && archives.contains(&file)) {
            found.push(Access::Write(file));
        }
    }
    // Names in the archive lead anywhere then.
    let is_anywhere = letters('P') || long(&["--absolute-names"]) || renames(arguments);
    if extracts && is_anywhere {
        found.push(Access::Write(Value::hole()));
    }
    if extracts {
        found.push(Access::Write(Value::literal(".")));
    }
}

fn renames(arguments: &[Value]) -> bool {
    arguments.iter().any(|value| value.text.starts_with("--transf") || value.text.starts_with("--xf"))
}
