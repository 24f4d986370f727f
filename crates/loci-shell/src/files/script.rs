//! Scripts of `sed` and `awk`, as far as they name files.
//!
//! Of a script that is not understood, whatever could be the name of a file that is read or written is reported as one.

use loci_core::tool::HOLE;

use super::Access;
use super::flags::part;
use crate::code::{Named, awk, sed};
use crate::value::Value;

/// Notes what the commands `w`, `W`, `r` and `R` of a `sed` script may name.
pub(super) fn sed(script: &Value, found: &mut Vec<Access>) {
    if let Some(read) = script.known().and_then(sed::read) {
        found.extend(read.writes.iter().map(|name| Access::Write(part(script, name))));
        found.extend(read.reads.iter().map(|name| Access::Read(part(script, name))));
        return;
    }
    for line in script.text.lines() {
        for (at, letter) in line.char_indices().filter(|(_, c)| "wWrR".contains(*c)) {
            let name = line[at + 1..].trim();
            let name = name.split([';', '}']).next().unwrap_or(name).trim();
            if name.is_empty() {
                continue;
            }
            let value = part(script, name);
            found.push(if "wW".contains(letter) { Access::Write(value) } else { Access::Read(value) });
        }
    }
}

/// Notes what `print > file` and `getline < file` may name.
pub(super) fn awk(script: &Value, found: &mut Vec<Access>) {
    let program = awk::read(&script.text);
    found.extend(program.writes.iter().map(|target| Access::Write(named(script, target))));
    found.extend(program.reads.iter().map(|target| Access::Read(named(script, target))));
}

/// Returns the file that code names; only the run will tell what an expression does.
pub(super) fn named(script: &Value, target: &Named) -> Value {
    match target {
        Named::File(name) if !name.contains(HOLE) => part(script, name),
        Named::File(_) | Named::Unknown => Value { shown: script.shown.clone(), ..Value::hole() },
    }
}
