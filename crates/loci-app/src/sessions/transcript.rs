//! A conversation as people read it: prompts, answers, calls with their results, compactions.
//!
//! Entries are how a session is stored; these parts are how it is told. Each call has its result with it, whatever
//! came in between. What was said for the model's ears only (hidden entries, listings, reminders) is left out.

use std::collections::HashMap;
use std::sync::Arc;

use loci_core::entry::{Attachment, AttachmentKind, Entry, EntryKind};
use loci_core::message::{Block, BlockKind};
use serde_json::Value;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it was.
    pub kind: PartKind,
    /// When it was written, as stored.
    pub time: Option<String>,
    /// The entry it comes from.
    pub uuid: Option<String>,
}

/// What may happen.
#[derive(Debug, Clone, PartialEq)]
pub enum PartKind {
    /// Somebody asked.
    Prompt(String),
    /// The model answered.
    Answer(String),
    /// The model thought.
    Thinking(String),
    /// The model called a tool.
    Call(Call),
    /// A picture was shown.
    Image {
        /// Its type.
        media_type: String,
        /// Its bytes in base64.
        data: String,
    },
    /// The conversation was compacted; what is known about it.
    Compaction(String),
    /// The summary that stands for what was compacted.
    Summary(String),
    /// A command, as it was typed.
    Command(String),
    /// What a command said.
    CommandOutput(String),
    /// A note of the program, such as an interruption.
    Note(String),
    /// The API failed.
    Failure(String),
}

/// A call and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// What it was given.
    pub input: Value,
    /// What it said, if it came to that.
    pub result: Option<CallResult>,
}

/// What a tool said.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// In words.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
    /// The structured result of a tool that changed a file, had a plan approved, or began work in the background.
    pub structured: Option<Value>,
}

/// Tells what happened, in order.
pub fn parts(history: &[Arc<Entry>]) -> Vec<Part> {
    let mut builder = PartBuilder::default();
    for entry in history.iter().filter(|entry| !entry.head().is_meta) {
        builder.take(entry);
    }
    builder.parts
}

/// Returns the structured result of a tool that changed a file, had a plan approved, or began work in the background.
fn structured_result(entry: &Entry) -> Option<Value> {
    let keys = ["\"structuredPatch\"", "\"isAgent\"", "\"async_launched\"", "\"backgroundTaskId\""];
    if !keys.iter().any(|key| entry.line().contains(key)) {
        return None;
    }
    serde_json::from_str(entry.message_parts().tool_use_result?.get()).ok()
}

/// Returns true for a message that the official SDK shows.
pub fn is_visible(entry: &Entry) -> bool {
    let head = entry.head();
    matches!(head.kind, EntryKind::User | EntryKind::Assistant) && !head.is_meta && !head.is_sidechain
}

/// Returns the words of a prompt, or nothing for any other entry.
pub fn prompt_text(entry: &Entry) -> Option<String> {
    let head = entry.head();
    if head.kind != EntryKind::User || head.is_meta || head.is_compact_summary {
        return None;
    }
    let blocks = entry.blocks();
    let is_prompt = blocks.iter().all(|block| block.kind() != BlockKind::ToolResult) && !blocks.is_empty();
    let texts: Vec<String> = blocks.iter().filter_map(Block::text).collect();
    is_prompt.then(|| if texts.is_empty() { "[image]".to_owned() } else { texts.join("\n") })
}

#[derive(Default)]
struct PartBuilder {
    parts: Vec<Part>,
    /// Where the part of each call is.
    calls: HashMap<String, usize>,
}

impl PartBuilder {
    fn take(&mut self, entry: &Entry) {
        match entry.head().kind {
            EntryKind::User => self.take_user(entry),
            EntryKind::Assistant => self.take_assistant(entry),
            EntryKind::Attachment => self.take_attachment(entry),
            EntryKind::System => self.take_system(entry),
            EntryKind::Progress | EntryKind::Metadata => {}
        }
    }

    fn push(&mut self, entry: &Entry, kind: PartKind) {
        let head = entry.head();
        self.parts.push(Part {
            kind,
            time: head.timestamp.as_deref().map(str::to_owned),
            uuid: head.uuid.as_ref().map(|uuid| uuid.to_string()),
        });
    }

    fn take_user(&mut self, entry: &Entry) {
        let mut is_command = false;
        for block in entry.blocks() {
            match block.kind() {
                BlockKind::ToolResult => self.take_result(entry, &block),
                BlockKind::Image => self.take_image(entry, &block.to_value()),
                BlockKind::Text => {
                    let kind = user_text(entry, block.text().unwrap_or_default());
                    // Behind a command stands what its skill says, for the model's ears only.
                    if is_command && matches!(kind, PartKind::Prompt(_)) {
                        continue;
                    }
                    is_command |= matches!(kind, PartKind::Command(_));
                    self.push(entry, kind);
                }
                _ => self.push(entry, PartKind::Note(format!("[{}]", kind_name(&block)))),
            }
        }
    }

    fn take_assistant(&mut self, entry: &Entry) {
        for block in entry.blocks() {
            let value = block.to_value();
            match block.kind() {
                BlockKind::Text if entry.head().is_api_error => {
                    self.push(entry, PartKind::Failure(block.text().unwrap_or_default()));
                }
                BlockKind::Text => self.push(entry, PartKind::Answer(block.text().unwrap_or_default())),
                BlockKind::Thinking => self.push(entry, PartKind::Thinking(text_of(&value["thinking"]))),
                BlockKind::RedactedThinking => self.push(entry, PartKind::Thinking("[redacted]".to_owned())),
                BlockKind::ToolUse => {
                    self.calls.insert(text_of(&value["id"]), self.parts.len());
                    let call =
                        Call { name: text_of(&value["name"]), input: value["input"].clone(), result: None };
                    self.push(entry, PartKind::Call(call));
                }
                _ => self.push(entry, PartKind::Note(format!("[{}]", kind_name(&block)))),
            }
        }
    }

    fn take_result(&mut self, entry: &Entry, block: &Block) {
        let Some(result) = block.tool_result() else { return };
        let said = CallResult {
            text: result_text(&result.content),
            is_error: result.is_error == Some(true),
            structured: structured_result(entry),
        };
        match self.calls.get(result.tool_use_id.as_str()).and_then(|idx| self.parts.get_mut(*idx)) {
            Some(Part { kind: PartKind::Call(call), .. }) => call.result = Some(said),
            Some(_) | None => self.push(entry, PartKind::Note(said.text)),
        }
        for image in result.content.as_array().into_iter().flatten().filter(|block| block["type"] == "image")
        {
            self.take_image(entry, image);
        }
    }

    fn take_image(&mut self, entry: &Entry, block: &Value) {
        let source = &block["source"];
        let image =
            PartKind::Image { media_type: text_of(&source["media_type"]), data: text_of(&source["data"]) };
        self.push(entry, image);
    }

    fn take_attachment(&mut self, entry: &Entry) {
        let queued = entry.attachment_of_kind(AttachmentKind::QueuedCommand);
        let Some(Attachment::QueuedCommand { prompt, .. }) = queued else { return };
        let text = result_text(&prompt);
        let kind = if is_news(&text) { note(&text) } else { PartKind::Prompt(text) };
        self.push(entry, kind);
    }

    fn take_system(&mut self, entry: &Entry) {
        if entry.is_compact_boundary() {
            return self.push(entry, PartKind::Compaction(compaction_text(entry)));
        }
        if entry.head().subtype.as_deref() == Some("local_command") {
            let content: Option<String> = entry.fields().read("content");
            self.push(entry, note(&content.unwrap_or_default()));
        }
    }
}

/// Returns true for words in the user's name that the program wrote.
pub fn is_note(text: &str) -> bool {
    const STARTS: [&str; 5] =
        ["[Request interrupted by user", "<local-command-", "<command-name>", "<command-message>", "<bash-"];
    STARTS.iter().any(|start| text.starts_with(start)) || is_news(text)
}

/// Returns true for what the program tells the model of work beside the conversation.
fn is_news(text: &str) -> bool {
    ["<task-notification>", "<agent-message>"].iter().any(|start| text.starts_with(start))
}

/// Says what such news are about, a line each: what was returned is for the model, and may be long.
fn news_text(text: &str) -> String {
    let element = |part: &str| match part.split_once("<agent-message>") {
        Some((_, message)) => {
            within(message, "from").map(|from| format!("A message came from {}", from.trim()))
        }
        None => within(part, "summary").map(|summary| summary.trim().to_owned()),
    };
    let parts = text.split("</task-notification>").flat_map(|part| part.split("</agent-message>"));
    let lines: Vec<String> = parts.filter_map(element).collect();
    let told = if lines.is_empty() { without_tags(text) } else { lines.join("\n") };
    told.replace("&lt;", "<").replace("&amp;", "&")
}

fn user_text(entry: &Entry, text: String) -> PartKind {
    match (entry.head().is_compact_summary, is_note(&text)) {
        (true, _) => PartKind::Summary(text),
        (false, true) => note(&text),
        (false, false) => PartKind::Prompt(text),
    }
}

/// Tells what the words of the program stand for: a command, what it said, or something else.
fn note(text: &str) -> PartKind {
    if is_news(text) {
        return PartKind::Note(news_text(text));
    }
    let outputs = ["local-command-stdout", "local-command-stderr"].map(|tag| within(text, tag));
    if outputs.iter().any(Option::is_some) {
        let said: Vec<&str> = outputs.into_iter().flatten().map(str::trim).collect();
        return PartKind::CommandOutput(said.join("\n").trim().to_owned());
    }
    match within(text, "command-name").map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => {
            let slash = if name.starts_with('/') { "" } else { "/" };
            let arguments = within(text, "command-args").unwrap_or_default();
            PartKind::Command(format!("{slash}{name} {}", arguments.trim()).trim_end().to_owned())
        }
        None => PartKind::Note(without_tags(text)),
    }
}

/// Returns what stands between the marks of a name.
fn within<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(inner, _)| inner)
}

/// Says how a compaction came about, and how much it saved where that is known.
pub fn compaction_text(entry: &Entry) -> String {
    let about: Value = entry.fields().read("compactMetadata").unwrap_or_default();
    let trigger = about["trigger"].as_str().map(|trigger| format!(" ({trigger})")).unwrap_or_default();
    match (about["preTokens"].as_u64(), about["postTokens"].as_u64()) {
        (Some(before), Some(after)) => format!("compacted{trigger}: {before} tokens became {after}"),
        (Some(before), None) => format!("compacted{trigger} at {before} tokens"),
        (None, _) => format!("compacted{trigger}"),
    }
}

/// Returns the text of a result, which is a string or a list of blocks.
fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let text = |block: &Value| match block["type"].as_str() {
                Some("text") => text_of(&block["text"]),
                Some(other) => format!("[{other}]"),
                None => String::new(),
            };
            blocks.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn kind_name(block: &Block) -> String {
    block.to_value()["type"].as_str().unwrap_or("unknown").to_owned()
}

/// Takes away the marks around what a local command was given and said.
fn without_tags(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let Some(length) = rest[start..].find('>') else { break };
        let tag = rest[start + 1..start + length].trim_start_matches('/');
        let is_mark = !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        out.push_str(&rest[..start]);
        if is_mark {
            out.push(' ');
        } else {
            out.push_str(&rest[start..=start + length]);
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds(lines: &[Value]) -> Vec<PartKind> {
        let entries: Vec<Arc<Entry>> =
            lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect();
        parts(&entries).into_iter().map(|part| part.kind).collect()
    }

    fn user(content: Value) -> Value {
        json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": content}})
    }

    #[test]
    fn calls_have_their_results_with_them() {
        let calls = json!({"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a"}},
            {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "x"}}]}});
        let result = |id: &str, text: Value, is_error: bool| {
            user(json!([{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]))
        };
        let what = kinds(&[
            user(json!("go")),
            calls,
            result(
                "t2",
                json!([{"type": "text", "text": "no"}, {"type": "image", "source": {"media_type": "image/png", "data": "AA"}}]),
                true,
            ),
            result("t1", json!("yes"), false),
        ]);
        let [PartKind::Prompt(_), PartKind::Call(first), PartKind::Call(second), PartKind::Image { .. }] =
            what.as_slice()
        else {
            panic!("{what:?}")
        };
        assert_eq!(first.result, Some(CallResult { text: "yes".into(), is_error: false, structured: None }));
        assert_eq!(
            second.result,
            Some(CallResult { text: "no\n[image]".into(), is_error: true, structured: None })
        );
    }

    #[test]
    fn program_messages_are_notes() {
        let hidden = json!({"type": "user", "isMeta": true, "message": {"content": "secret"}});
        let summary = json!({"type": "user", "isCompactSummary": true, "message": {"content": "sum"}});
        let queued =
            json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and this"}});
        for (line, expected) in [
            (hidden, vec![]),
            (summary, vec![PartKind::Summary("sum".into())]),
            (queued, vec![PartKind::Prompt("and this".into())]),
            (
                user(json!("[Request interrupted by user]")),
                vec![PartKind::Note("[Request interrupted by user]".into())],
            ),
            (
                user(json!("<command-name>/x</command-name> <command-args>y</command-args>")),
                vec![PartKind::Command("/x y".into())],
            ),
            (
                user(json!([
                    {"type": "text", "text": "<command-message>x</command-message>\n<command-name>/x</command-name>"},
                    {"type": "text", "text": "What the skill says."}])),
                vec![PartKind::Command("/x".into())],
            ),
            (
                user(json!(
                    "<agent-message>\n<from>scout</from>\n<message>\nhalf way\n</message>\n</agent-message>\n\
                     <task-notification>\n<status>completed</status>\n<summary>Agent \"a &lt; b &amp; c\" finished</summary>\n\
                     <result>a long answer</result>\n</task-notification>\n<task-notification>\n<task-id>b1</task-id>\n\
                     <summary>Background command \"make\" failed with exit code 2</summary>\n</task-notification>"
                )),
                vec![PartKind::Note(
                    "A message came from scout\nAgent \"a < b & c\" finished\nBackground command \"make\" failed with \
                     exit code 2"
                        .into(),
                )],
            ),
            (
                json!({"type": "attachment", "attachment": {"type": "queued_command", "commandMode": "task-notification",
                    "prompt": "<task-notification>\n<summary>Monitor \"log\": 2 events</summary>\n</task-notification>"}}),
                vec![PartKind::Note("Monitor \"log\": 2 events".into())],
            ),
            (user(json!("is 1 < 2 > 0 ?")), vec![PartKind::Prompt("is 1 < 2 > 0 ?".into())]),
            (json!({"type": "system", "subtype": "turn_duration"}), vec![]),
            (
                json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 9, "postTokens": 1}}),
                vec![PartKind::Compaction("compacted (auto): 9 tokens became 1".into())],
            ),
            (
                json!({"type": "assistant", "isApiErrorMessage": true, "message": {"content": [{"type": "text", "text": "oh"}]}}),
                vec![PartKind::Failure("oh".into())],
            ),
            (json!({"type": "attachment", "attachment": {"type": "skill_listing"}}), vec![]),
            (json!({"type": "user", "message": 7}), vec![]),
        ] {
            assert_eq!(kinds(std::slice::from_ref(&line)), expected, "{line}");
        }
    }
}
