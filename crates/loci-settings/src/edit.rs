//! Changing one key of a settings text, leaving every other byte as it was.
//!
//! A value is replaced in its place; a new key goes behind its last neighbour, with the neighbour's indentation
//! and the text's own line ends; a removed key takes its line with it. Comments, order, spacing and keys that
//! nobody knows stay. A text that is not valid is not edited at all: what its author meant cannot be known.
//!
//! It is written by hand, although `jsonc-parser` has an editor: where values lie is told by the reader of settings
//! (`jsonc`), which is there in any case, so that what is edited is what was read.

#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

use super::jsonc::{self, Member, Node, Tree};

/// Why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// It is not valid JSON.
    #[error("Not valid JSON on line {line}: {message}")]
    Broken {
        /// The line of the first mistake, counted from one.
        line: usize,
        /// The mistake.
        message: String,
    },
    /// Something on the way to the key is not an object, or the key is not a list.
    #[error("Expected {expected} under `{key}`")]
    Shape {
        /// The key.
        key: String,
        /// What it should hold.
        expected: &'static str,
    },
}

/// Returns the text with the value at `path` set.
pub fn set(text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
    let (text, root) = open(text)?;
    let mut node = &root;
    for (depth, name) in path.iter().enumerate() {
        let Tree::Object(members) = &node.tree else {
            return Err(shape(&path[..depth], "an object"));
        };
        let Some(member) = node.member(name) else {
            let nested = path[depth + 1..].iter().rev().fold(value.clone(), |inner, name| {
                Value::Object(serde_json::Map::from_iter([((*name).to_owned(), inner)]))
            });
            let children: Vec<Range<usize>> = members.iter().map(span).collect();
            let key = Value::from(*name).to_string();
            return Ok(insert(&text, &root, node, &children, |style| {
                format!("{key}: {}", style.print(&nested))
            }));
        };
        node = &member.value;
    }
    let style = Style::new(&text, &root, line_indent(&text, node.start), is_on_one_line(&text, node));
    Ok(splice(&text, node.start..node.end, &style.print(value)))
}

/// Returns the text without the key at `path`, all of its repetitions included.
pub fn unset(text: &str, path: &[&str]) -> Result<String, EditError> {
    let mut text = text.to_owned();
    loop {
        let (opened, root) = open(&text)?;
        match find_last(&root, path) {
            Some((members, idx)) => {
                let spans: Vec<Range<usize>> = members.iter().map(span).collect();
                text = remove(&opened, &spans, idx);
            }
            None => return Ok(text),
        }
    }
}

/// Returns the text with `value` added to the list at `path`, unless it is in it already.
pub fn append(text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
    let (opened, root) = open(text)?;
    let mut node = Some(&root);
    for name in path {
        node = node.and_then(|node| node.member(name)).map(|member| &member.value);
    }
    let Some(node) = node else {
        return set(text, path, &Value::Array(vec![value.clone()]));
    };
    let Tree::Array(items) = &node.tree else {
        return Err(shape(path, "a list"));
    };
    if items.iter().any(|item| item.to_value().as_ref() == Some(value)) {
        return Ok(text.to_owned());
    }
    let children: Vec<Range<usize>> = items.iter().map(|item| item.start..item.end).collect();
    Ok(insert(&opened, &root, node, &children, |style| style.print(value)))
}

/// Returns the text without `value` in the list at `path`, all of its repetitions included.
pub fn take_out(text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
    let mut text = text.to_owned();
    loop {
        let (opened, root) = open(&text)?;
        let mut node = Some(&root);
        for name in path {
            node = node.and_then(|node| node.member(name)).map(|member| &member.value);
        }
        let items = match node.map(|node| &node.tree) {
            None => return Ok(text),
            Some(Tree::Array(items)) => items,
            Some(_) => return Err(shape(path, "a list")),
        };
        let Some(idx) = items.iter().position(|item| item.to_value().as_ref() == Some(value)) else {
            return Ok(text);
        };
        let spans: Vec<Range<usize>> = items.iter().map(|item| item.start..item.end).collect();
        text = remove(&opened, &spans, idx);
    }
}

/// Reads a text to be edited; one without any value gets an empty object.
fn open(text: &str) -> Result<(String, Node), EditError> {
    let document = jsonc::parse(text);
    if let Some(error) = document.errors.first() {
        let line = text[..error.at].matches('\n').count() + 1;
        return Err(EditError::Broken { line, message: error.message.clone() });
    }
    match document.root {
        Some(root) => Ok((text.to_owned(), root)),
        None => {
            let kept = text.trim_end();
            let text = if kept.is_empty() { "{}\n".to_owned() } else { format!("{kept}\n{{}}\n") };
            open(&text)
        }
    }
}

fn shape(path: &[&str], expected: &'static str) -> EditError {
    EditError::Shape { key: path.join("."), expected }
}

fn span(member: &Member) -> Range<usize> {
    member.start..member.value.end
}

fn splice(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

/// Returns the last member at `path`, looking into repeated groups too.
fn find_last<'n>(node: &'n Node, path: &[&str]) -> Option<(&'n [Member], usize)> {
    let Tree::Object(members) = &node.tree else { return None };
    let (name, rest) = path.split_first()?;
    let mut named = (0..members.len()).rev().filter(|idx| members[*idx].key == *name);
    if rest.is_empty() {
        return named.next().map(|idx| (members.as_slice(), idx));
    }
    named.find_map(|idx| find_last(&members[idx].value, rest))
}

/// How new text is laid out.
struct Style<'t> {
    newline: &'static str,
    unit: String,
    /// The indentation of the line that the text is put on.
    indent: &'t str,
    is_on_one_line: bool,
}

impl<'t> Style<'t> {
    fn new(text: &str, root: &Node, indent: &'t str, is_on_one_line: bool) -> Self {
        let first = match &root.tree {
            Tree::Object(members) => members.first().map(|member| line_indent(text, member.start)),
            _ => None,
        };
        let unit = first.filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned();
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { newline, unit, indent, is_on_one_line }
    }

    fn print(&self, value: &Value) -> String {
        if self.is_on_one_line {
            return value.to_string();
        }
        let mut out = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        match value.serialize(&mut serializer) {
            // Line breaks inside texts are escaped, so every one here is layout.
            Ok(()) => {
                String::from_utf8_lossy(&out).replace('\n', &format!("{}{}", self.newline, self.indent))
            }
            Err(_) => value.to_string(),
        }
    }
}

/// Returns the spaces that the line of `at` begins with.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Tells whether the line of `node` holds more than its own key: then new text stays on that line too.
fn is_on_one_line(text: &str, node: &Node) -> bool {
    let start = text[..node.start].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..node.start].contains('{')
}

/// Puts a new child behind the last one of an object or list.
fn insert(
    text: &str,
    root: &Node,
    container: &Node,
    children: &[Range<usize>],
    print: impl Fn(&Style<'_>) -> String,
) -> String {
    let (Some(first), Some(last)) = (children.first(), children.last()) else {
        return insert_first(text, root, container, print);
    };
    let after_comma = comma_behind(text, last.end).map(|comma| comma + 1);
    let behind = after_comma.unwrap_or(last.end);
    let comma = if after_comma.is_some() { "" } else { "," };
    if !text[container.start..first.start].contains('\n') {
        let child = print(&Style::new(text, root, "", true));
        return format!("{}{comma}{} {child}{}", &text[..last.end], &text[last.end..behind], &text[behind..]);
    }
    let at = behind_line_comment(text, behind);
    let indent = line_indent(text, last.start);
    let style = Style::new(text, root, indent, false);
    let child = print(&style);
    let (head, gap, tail) = (&text[..last.end], &text[last.end..at], &text[at..]);
    format!("{head}{comma}{gap}{}{indent}{child}{tail}", style.newline)
}

/// Fills an object or list that has nothing in it but, at most, comments.
fn insert_first(text: &str, root: &Node, container: &Node, print: impl Fn(&Style<'_>) -> String) -> String {
    let outer = line_indent(text, container.start);
    let style = Style::new(text, root, outer, false);
    let indent = format!("{outer}{}", style.unit);
    let child = print(&Style { indent: &indent, unit: style.unit.clone(), ..style });
    let newline = style.newline;
    let inner = text[container.start + 1..container.end - 1].trim_end();
    let filled = format!("{inner}{newline}{indent}{child}{newline}{outer}");
    splice(text, container.start + 1..container.end - 1, &filled)
}

/// Returns the place of the comma behind a child.
fn comma_behind(text: &str, end: usize) -> Option<usize> {
    let at = jsonc::skip_trivia_at(text, end);
    text[at..].starts_with(',').then_some(at)
}

/// Returns the end of the comment that follows on the same line and ends it, or `at` when there is none.
fn behind_line_comment(text: &str, at: usize) -> usize {
    let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let line = text[at..line_end].trim_end();
    let is_comment = line.trim_start().starts_with("//")
        || (line.trim_start().starts_with("/*") && line.find("*/") == Some(line.len() - 2));
    if is_comment { at + line.len() } else { at }
}

/// Cuts a child out, with its comma and, when nothing else is on it, its line.
fn remove(text: &str, children: &[Range<usize>], idx: usize) -> String {
    let Range { start, end } = children[idx].clone();
    let comma = comma_behind(text, end);
    let (before, after) = match (comma, idx.checked_sub(1).map(|idx| &children[idx])) {
        (Some(comma), _) => (None, comma + 1),
        (None, Some(previous)) => (comma_behind(text, previous.end), end),
        (None, None) => (None, end),
    };
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[after..].find('\n').map(|newline| after + newline);
    let is_alone = text[line_start..start].trim().is_empty();
    let cut = match line_end {
        Some(line_end) if is_alone && text[after..line_end].trim().is_empty() => line_start..line_end + 1,
        _ if comma.is_some() => start..after + spaces(&text[after..]),
        _ => start - spaces_before(&text[..start])..after,
    };
    let cut_text = splice(text, cut, "");
    match before {
        Some(comma) => splice(&cut_text, comma..comma + 1, ""),
        None => cut_text,
    }
}

fn spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

fn spaces_before(text: &str) -> usize {
    text.len() - text.trim_end_matches([' ', '\t']).len()
}
