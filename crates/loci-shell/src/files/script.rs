//! Scripts of `sed` and `awk`, as far as they name files.
//!
//! They are not parsed. Whatever could be the name of a file that is read or written is reported as one.

use super::Access;
use super::flags::part;
use crate::special::is_plain_sed_script;
use crate::value::Value;

/// Notes what the commands `w`, `W`, `r` and `R` of a `sed` script may name.
pub(super) fn sed(script: &Value, found: &mut Vec<Access>) {
    if script.text.split(';').all(is_plain_sed_script) {
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

/// Notes what `print > file`, `print | command` and `getline < file` may name.
pub(super) fn awk(script: &Value, found: &mut Vec<Access>) {
    for statement in script.text.split([';', '}', '\n']) {
        if let Some((_, printed)) = statement.split_once("print") {
            let behind =
                outside_strings(printed, '>').map(|at| printed[at + 1..].trim_start_matches('>').trim());
            found.extend(behind.map(|target| Access::Write(named(script, target))));
        }
        if let Some((_, read)) = statement.split_once("getline") {
            let behind = outside_strings(read, '<').map(|at| read[at + 1..].trim());
            found.extend(behind.map(|target| Access::Read(named(script, target))));
        }
    }
}

/// Returns the file a string names; only the run will tell what an expression does.
fn named(script: &Value, target: &str) -> Value {
    let inner = target.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    match inner {
        Some((name, rest)) if rest.trim_start().is_empty() || rest.trim_start().starts_with(')') => {
            part(script, name)
        }
        _ => Value { shown: script.shown.clone(), ..Value::hole() },
    }
}

/// Finds a character that is not inside a string or brackets.
fn outside_strings(text: &str, wanted: char) -> Option<usize> {
    let (mut in_string, mut depth, mut is_escaped) = (false, 0usize, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if c == wanted && depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}
