//! `sqlite3`: the database, others that are attached, and files that orders of its shell name.

use super::Access;
use super::flags::{operands, part};
use crate::code::{Document, is_known_sqlite_order};
use crate::value::Value;

/// Flags that take the next word.
const VALUED: &[&str] = &[
    "-init",
    "-cmd",
    "-separator",
    "-nullvalue",
    "-newline",
    "-maxsize",
    "-mmap",
    "-vfs",
    "-lookaside",
    "-pagecache",
    "-heap",
];

/// Notes what a `sqlite3` opens.
pub(super) fn sqlite(arguments: &[Value], document: Document<'_>, found: &mut Vec<Access>) {
    let is_valued =
        |text: &str| VALUED.iter().any(|flag| text == *flag || text.strip_prefix('-') == Some(flag));
    let is_value = |idx: usize| idx > 0 && is_valued(&arguments[idx - 1].text);
    let plain: Vec<Value> =
        (0..arguments.len()).filter(|idx| !is_value(*idx)).map(|idx| arguments[idx].clone()).collect();
    let operands = operands(&plain);
    if let Some(database) = operands.first().filter(|value| value.text != ":memory:") {
        opened(database, &database.text, found);
    }
    for value in arguments {
        orders(value, &value.text, found);
    }
    if let Document::Known(text) = document {
        orders(&Value::literal(text), text, found);
    }
}

/// Notes what orders and statements open: which of them only read is not told apart.
fn orders(value: &Value, text: &str, found: &mut Vec<Access>) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let order = words.next().filter(|order| order.starts_with('.') && !is_known_sqlite_order(order));
        let files = words.filter(|word| order.is_some() && !word.starts_with('-'));
        files.for_each(|word| opened(value, word.trim_matches(['"', '\'']), found));
    }
    let lower = text.to_ascii_lowercase();
    for keyword in ["attach", "vacuum", "readfile(", "writefile("] {
        for (at, _) in lower.match_indices(keyword) {
            let behind = text[at + keyword.len()..].trim_start();
            let quote = behind.find(['\'', '"']);
            let name = quote.and_then(|start| {
                let rest = &behind[start + 1..];
                Some((&rest[..rest.find(&behind[start..=start])?], rest))
            });
            match name {
                // A name that is put together is none that stands here.
                Some((name, rest)) if !rest[name.len() + 1..].trim_start().starts_with("||") => {
                    opened(value, name, found);
                }
                None if keyword == "vacuum" => {}
                Some(_) | None => {
                    found.push(Access::Write(Value { shown: value.shown.clone(), ..Value::hole() }));
                }
            }
        }
    }
}

fn opened(value: &Value, name: &str, found: &mut Vec<Access>) {
    let path =
        name.strip_prefix("file:").map_or(name, |rest| rest.split(['?', '#']).next().unwrap_or_default());
    if path.is_empty() {
        return;
    }
    let file = part(value, path);
    found.extend([Access::Read(file.clone()), Access::Write(file)]);
}
