//! What a transcript says about its prompts, and about files that its tools left.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::entry::{Entry, EntryKind};
use crate::ids::EntryId;
use crate::message::Block;

/// A prompt: a place to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptPoint {
    /// Its entry.
    pub id: EntryId,
    /// The entry above it.
    pub parent: Option<EntryId>,
    /// What was asked.
    pub text: String,
    /// When.
    pub timestamp: String,
}

/// Returns the prompts of a transcript in the order they were made, dead branches included.
pub fn prompts_of(entries: &[Arc<Entry>]) -> Vec<PromptPoint> {
    entries.iter().filter_map(|entry| prompt(entry)).collect()
}

fn prompt(entry: &Entry) -> Option<PromptPoint> {
    let (head, fields) = (entry.head(), entry.fields());
    let is_marked = |key: &str| fields.read::<bool>(key) == Some(true);
    let is_result = fields.read::<Value>("toolUseResult").is_some();
    if head.kind != EntryKind::User
        || is_result
        || is_marked("isMeta")
        || is_marked("isCompactSummary")
        || is_marked("isSidechain")
    {
        return None;
    }
    let said = entry.content()?.text();
    let is_command = said.starts_with(COMMAND);
    let mut text = typed_text(said)?;
    if is_command {
        text = with_chain(text, entry);
    }
    let timestamp = head.timestamp.as_deref().unwrap_or_default().to_owned();
    Some(PromptPoint { id: head.uuid.clone()?, parent: head.parent.clone(), text, timestamp })
}

/// What stands in a person's name and was said by nobody: what came of commands, and news of tasks.
const UNASKED: &[&str] = &[
    "[Request interrupted",
    "<bash-stdout>",
    "<bash-stderr>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<task-notification>",
    "<agent-message>",
];

/// Returns what a person typed to have this said; none where nobody did.
fn typed_text(text: String) -> Option<String> {
    if text.is_empty() || UNASKED.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    if let Some(rest) = text.strip_prefix("<bash-input>") {
        return Some(format!("!{}", rest.strip_suffix("</bash-input>").unwrap_or(rest)));
    }
    if text.starts_with(COMMAND) {
        let (name, arguments) = command_of(&text)?;
        return Some(format!("{name} {arguments}").trim_end().to_owned());
    }
    Some(text)
}

/// Adds the other skills of a chain to the first: each stands in a text of its own, before what it says, and all had the same
/// arguments.
fn with_chain(first: String, entry: &Entry) -> String {
    let blocks = entry.blocks();
    let others = blocks.iter().skip(1).filter_map(Block::text).filter(|text| text.starts_with(COMMAND));
    let others: Vec<String> = others.filter_map(|text| Some(command_of(&text)?.0.to_owned())).collect();
    if others.is_empty() {
        return first;
    }
    let (name, arguments) = first.split_once(' ').unwrap_or((&first, ""));
    format!("{name} {} {arguments}", others.join(" ")).trim_end().to_owned()
}

/// What the record of a command begins with.
const COMMAND: &str = "<command-";

/// Returns the name of a command, slash and all, and what followed it.
fn command_of(text: &str) -> Option<(&str, &str)> {
    let name = between(text, "<command-name>", "</command-name>")?;
    Some((name, between(text, "<command-args>", "</command-args>").unwrap_or_default()))
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inner, _)| inner)
}

/// Returns what tools left in each file, as far as their results say: the last word on each counts.
pub fn written_texts(entries: &[Arc<Entry>]) -> HashMap<PathBuf, String> {
    let users = entries.iter().filter(|entry| entry.head().kind == EntryKind::User);
    users.filter_map(|entry| written(&entry.fields().read("toolUseResult")?)).collect()
}

fn written(result: &Value) -> Option<(PathBuf, String)> {
    let text = |key: &str| result.get(key).and_then(Value::as_str);
    let path = PathBuf::from(text("filePath")?);
    if let Some(content) = text("content") {
        return Some((path, content.to_owned()));
    }
    let (original, old, new) = (text("originalFile")?, text("oldString")?, text("newString")?);
    let is_all = result.get("replaceAll").and_then(Value::as_bool).unwrap_or(false);
    let content = if is_all { original.replace(old, new) } else { original.replacen(old, new, 1) };
    Some((path, content))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entries(lines: &[Value]) -> Vec<Arc<Entry>> {
        lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
    }

    #[test]
    fn prompts_are_what_people_asked() {
        let user = |id: &str, content: Value| json!({"type": "user", "uuid": id, "message": {"role": "user", "content": content}});
        let with = |mut line: Value, key: &str| {
            line[key] = json!(true);
            line
        };
        let found = prompts_of(&entries(&[
            user("u1", json!("Do it")),
            json!({"type": "assistant", "uuid": "a1", "message": {"content": "ok"}}),
            json!({"type": "user", "uuid": "r1", "toolUseResult": {}, "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}}),
            with(user("m1", json!("meta")), "isMeta"),
            with(user("s1", json!("summary")), "isCompactSummary"),
            user("i1", json!([{"type": "text", "text": "[Request interrupted by user]"}])),
            user("b1", json!("<bash-input>ls -l</bash-input>")),
            user("b2", json!("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>")),
            user(
                "c1",
                json!(
                    "<command-name>/fix</command-name>\n<command-message>fix</command-message>\n<command-args>the port</command-args>"
                ),
            ),
            user(
                "c3",
                json!([
                    {"type": "text", "text": "<command-message>a</command-message>\n<command-name>/a</command-name>\n<command-args>the port</command-args>"},
                    {"type": "text", "text": "Do what a says."},
                    {"type": "text", "text": "<command-message>b</command-message>\n<command-name>/b</command-name>\n<command-args>the port</command-args>"},
                    {"type": "text", "text": "Do what b says."}]),
            ),
            user("c2", json!("<local-command-stdout>ok</local-command-stdout>")),
            user("n1", json!("<task-notification>\n<task-id>x</task-id></task-notification>")),
            user("u2", json!([{"type": "text", "text": "Again"}])),
        ]));
        let told: Vec<(&str, &str)> = found.iter().map(|it| (it.id.as_str(), it.text.as_str())).collect();
        assert_eq!(
            told,
            [
                ("u1", "Do it"),
                ("b1", "!ls -l"),
                ("c1", "/fix the port"),
                ("c3", "/a /b the port"),
                ("u2", "Again")
            ]
        );
    }

    #[test]
    fn last_written_text_of_a_file_counts() {
        let result = |result: Value| json!({"type": "user", "uuid": "r", "toolUseResult": result});
        let texts = written_texts(&entries(&[
            result(json!({"filePath": "/p/a", "content": "one"})),
            result(
                json!({"filePath": "/p/a", "originalFile": "one one", "oldString": "one", "newString": "two"}),
            ),
            result(
                json!({"filePath": "/p/b", "originalFile": "x x", "oldString": "x", "newString": "y", "replaceAll": true}),
            ),
            result(json!({"stdout": "no file"})),
        ]));
        assert_eq!(texts[&PathBuf::from("/p/a")], "two one");
        assert_eq!(texts[&PathBuf::from("/p/b")], "y y");
        assert_eq!(texts.len(), 2);
    }
}
