//! Taking arguments apart without knowing a program's flags: broadly, so that nothing is missed.

use crate::value::Value;

/// Everything that is not a flag; behind `--` everything is not.
pub(super) fn operands(arguments: &[Value]) -> Vec<Value> {
    let mut found = Vec::new();
    let mut only_operands = false;
    for value in arguments {
        if !only_operands && value.text == "--" {
            only_operands = true;
        } else if only_operands || !value.text.starts_with('-') || value.text == "-" {
            found.push(value.clone());
        }
    }
    found.retain(|value| value.text != "-" && !value.text.is_empty());
    found
}

/// Values of flags: attached, behind `=`, or the next word; short ones in a cluster and long ones cut short, too.
pub(super) fn flag_values(arguments: &[Value], flags: &[&str]) -> Vec<Value> {
    let mut found = Vec::new();
    for (idx, value) in arguments.iter().enumerate() {
        for flag in flags {
            match attached(&value.text, flag) {
                Some("") => found.extend(arguments.get(idx + 1).cloned()),
                Some(text) => found.push(part(value, text)),
                None => {}
            }
        }
    }
    found
}

/// Returns what is attached to a flag in a word.
fn attached<'w>(word: &'w str, flag: &str) -> Option<&'w str> {
    if let Some(rest) = word.strip_prefix(flag) {
        return Some(rest.strip_prefix('=').unwrap_or(rest));
    }
    if flag.starts_with("--") {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        return (name.len() > 3 && flag.starts_with(name)).then_some(value);
    }
    let letter = flag.strip_prefix('-').filter(|letter| letter.len() == 1)?;
    let cluster = word.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'))?;
    cluster.split_once(letter).map(|(_, rest)| rest)
}

/// Values behind the `=` of long flags.
pub(super) fn long_values(arguments: &[Value]) -> Vec<Value> {
    let long = arguments.iter().filter(|value| value.text.starts_with("--") && value.pattern.is_none());
    long.filter_map(|value| value.text.split_once('=').map(|(_, text)| part(value, text)))
        .filter(|value| !value.text.is_empty() && value.known().is_some())
        .collect()
}

/// Returns a part of a word as a word of its own.
pub(super) fn part(value: &Value, text: &str) -> Value {
    Value { text: text.to_owned(), pattern: None, ..value.clone() }
}

/// Returns a part of a word as a glob, for programs that expand what the shell does not.
pub(super) fn as_glob(value: &Value, text: &str) -> Value {
    Value { pattern: Some(text.to_owned()), ..part(value, text) }
}

pub(super) fn behind_equals(value: &Value) -> Value {
    part(value, value.text.split_once('=').map_or("", |(_, text)| text))
}

pub(super) fn is_in_place(flag: &str) -> bool {
    flag.starts_with("--in-place") || (flag.starts_with('-') && !flag.starts_with("--") && flag.contains('i'))
}
