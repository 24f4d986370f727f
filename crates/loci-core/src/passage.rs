//! What was said in an entry, piece by piece, as text that can be searched and quoted.
//!
//! A passage is one block of a message: a prompt, an answer, a thought, a call with what it was given, a result.
//! Listings, reminders and other attachments are not what anybody said and are left out; a prompt that was typed
//! while a tool ran is stored as an attachment and is a prompt all the same.

mod message_reader;

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::entry::{Attachment, Entry, EntryKind};
use crate::lenient::LenientValue;
use crate::message::BlockKind;

use message_reader::{MessageContent, RawBlock};

/// Who or what a passage comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Voice {
    /// The person's words.
    Person,
    /// The model's answer.
    Model,
    /// The model's reasoning.
    Thinking,
    /// What a tool was given.
    Call,
    /// What a tool said.
    Result,
    /// The summary of a compaction.
    Summary,
    /// What the program said in the user's name: reminders, local commands, failures.
    Note,
}

impl Voice {
    /// Every voice.
    pub const ALL: [Self; 7] =
        [Self::Person, Self::Model, Self::Thinking, Self::Call, Self::Result, Self::Summary, Self::Note];

    /// Returns the name that people and tools use for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "user",
            Self::Model => "assistant",
            Self::Thinking => "thinking",
            Self::Call => "call",
            Self::Result => "result",
            Self::Summary => "summary",
            Self::Note => "note",
        }
    }

    /// Finds a voice by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|voice| voice.name() == name)
    }
}

/// One piece of what was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Who said it.
    pub voice: Voice,
    /// The tool that was called, or whose result it is as far as that is known.
    pub tool: Option<String>,
    /// The call's id, of calls and results.
    pub call: Option<String>,
    /// The files a call names.
    pub files: Vec<String>,
    /// The words.
    pub text: String,
}

impl Passage {
    fn from_text(voice: Voice, text: String) -> Self {
        Self { voice, tool: None, call: None, files: Vec::new(), text }
    }
}

/// Returns what was said in an entry.
pub fn passages(entry: &Entry) -> Vec<Passage> {
    match entry.head().kind {
        EntryKind::User | EntryKind::Assistant => {
            let said = MessageContent::from_entry(entry).unwrap_or(MessageContent::Blocks(Vec::new()));
            match said {
                MessageContent::Text(text) => text_passage(voice_of_text(entry), &text).into_iter().collect(),
                MessageContent::Blocks(blocks) => {
                    blocks.iter().filter_map(|block| passage(entry, block)).collect()
                }
            }
        }
        EntryKind::Attachment => queued(entry).into_iter().collect(),
        EntryKind::System if entry.head().subtype.as_deref() == Some("local_command") => {
            let content: Option<String> = entry.fields().read("content");
            content.map(|text| Passage::from_text(Voice::Note, text)).into_iter().collect()
        }
        EntryKind::System | EntryKind::Progress | EntryKind::Metadata => Vec::new(),
    }
}

fn text_passage(voice: Voice, text: &str) -> Option<Passage> {
    (!text.trim().is_empty()).then(|| Passage::from_text(voice, text.to_owned()))
}

fn passage(entry: &Entry, block: &RawBlock<'_>) -> Option<Passage> {
    match BlockKind::from_name(&block.kind) {
        BlockKind::Text => text_passage(voice_of_text(entry), block.text.text()?),
        BlockKind::Thinking => text_passage(Voice::Thinking, block.thinking.text()?),
        BlockKind::ToolUse => {
            let (name, input) = (block.name.text()?, block.input());
            Some(Passage {
                voice: Voice::Call,
                text: call_text(name, &input),
                files: files(&input),
                tool: Some(name.to_owned()),
                call: Some(block.id.text()?.to_owned()),
            })
        }
        BlockKind::ToolResult => {
            let call = block.tool_use_id.text()?.to_owned();
            let said = text_passage(Voice::Result, &block.content.map(read_text).unwrap_or_default())?;
            Some(Passage { call: Some(call), ..said })
        }
        BlockKind::RedactedThinking | BlockKind::Image | BlockKind::Document | BlockKind::Other => None,
    }
}

fn voice_of_text(entry: &Entry) -> Voice {
    let head = entry.head();
    match head.kind {
        EntryKind::User if head.is_compact_summary => Voice::Summary,
        EntryKind::User if head.is_meta => Voice::Note,
        EntryKind::User => Voice::Person,
        _ if head.is_api_error => Voice::Note,
        _ => Voice::Model,
    }
}

fn queued(entry: &Entry) -> Option<Passage> {
    let Some(Attachment::QueuedCommand { prompt, .. }) = entry.attachment() else { return None };
    let text = text_of(&prompt);
    (!text.trim().is_empty()).then(|| Passage::from_text(Voice::Person, text))
}

/// Returns a call as text: the tool's name, then a line for each thing it was given.
fn call_text(name: &str, input: &Value) -> String {
    let mut text = name.to_owned();
    for (key, value) in input.as_object().into_iter().flatten() {
        text.push_str(&format!("\n{key}: "));
        match value {
            Value::String(words) => text.push_str(words),
            other => text.push_str(&other.to_string()),
        }
    }
    text
}

fn files(input: &Value) -> Vec<String> {
    let keys = ["file_path", "notebook_path", "path"];
    keys.iter()
        .filter_map(|key| input[*key].as_str())
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the text of a result, which is a string or a list of blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// Reads the text of a result as it is written.
fn read_text(content: &RawValue) -> Cow<'_, str> {
    let json = content.get();
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<LenientValue<'_>>(json).ok().and_then(LenientValue::into_text),
        Some(b'[') => serde_json::from_str::<Vec<LenientValue<'_>>>(json).ok().map(|blocks| {
            let texts: Vec<Cow<'_, str>> =
                blocks.into_iter().filter_map(LenientValue::into_field_text).collect();
            Cow::Owned(texts.join("\n"))
        }),
        _ => None,
    }
    .unwrap_or_default()
}

/// Knows which tool each call was for whose result is yet to come, so that results can be told by their tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallNames {
    names: HashMap<String, String>,
}

impl CallNames {
    /// Takes note of a call, or says whose result it is.
    pub fn complete(&mut self, passage: &mut Passage) {
        let Some(call) = &passage.call else { return };
        match &passage.tool {
            Some(tool) => {
                self.names.insert(call.clone(), tool.clone());
            }
            None => passage.tool = self.names.remove(call),
        }
    }

    /// Returns the calls without a result, with their tools.
    pub fn open(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(call, tool)| (call.as_str(), tool.as_str()))
    }
}

impl FromIterator<(String, String)> for CallNames {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(calls: I) -> Self {
        Self { names: calls.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(line: &Value) -> Vec<String> {
        let entry = Entry::parse(line.to_string()).unwrap();
        passages(&entry).iter().map(|it| format!("{}: {}", it.voice.name(), it.text)).collect()
    }

    #[test]
    fn passages_have_the_voice_of_their_entry() {
        let user = |content: Value| json!({"type": "user", "message": {"content": content}});
        let said = |block: Value| json!({"type": "assistant", "message": {"content": [block]}});
        for (line, expected) in [
            (user(json!("go")), vec!["user: go"]),
            (
                user(
                    json!([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]),
                ),
                vec!["user: a", "user: b"],
            ),
            (
                user(
                    json!([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}]),
                ),
                vec!["result: x\ny"],
            ),
            (user(json!("  ")), vec![]),
            (said(json!({"type": "text", "text": "done"})), vec!["assistant: done"]),
            (said(json!({"type": "thinking", "thinking": "hm"})), vec!["thinking: hm"]),
            (
                said(
                    json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls \"x\"", "timeout": 5}}),
                ),
                vec!["call: Bash\ncommand: ls \"x\"\ntimeout: 5"],
            ),
            (
                json!({"type": "user", "isCompactSummary": true, "message": {"content": "s"}}),
                vec!["summary: s"],
            ),
            (json!({"type": "user", "isMeta": true, "message": {"content": "m"}}), vec!["note: m"]),
            (
                json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "also"}}),
                vec!["user: also"],
            ),
            (json!({"type": "attachment", "attachment": {"type": "skill_listing", "content": "x"}}), vec![]),
            (json!({"type": "system", "subtype": "local_command", "content": "/x"}), vec!["note: /x"]),
            (json!({"type": "custom-title", "customTitle": "t"}), vec![]),
            (json!({"type": "user", "message": 7}), vec![]),
        ] {
            assert_eq!(render(&line), expected, "{line}");
        }
    }

    #[test]
    fn results_learn_the_tool_of_their_call() {
        let call = json!({"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/a/b.rs"}}]}});
        let result = |id: &str| json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]}});
        let mut names = CallNames::default();
        let tools: Vec<Option<String>> = [call, result("t1"), result("t2")]
            .iter()
            .map(|line| {
                let mut passage = passages(&Entry::parse(line.to_string()).unwrap()).remove(0);
                names.complete(&mut passage);
                passage.tool
            })
            .collect();
        assert_eq!(tools, [Some("Read".to_owned()), Some("Read".to_owned()), None]);
    }

    #[test]
    fn voice_names_round_trip() {
        for voice in Voice::ALL {
            assert_eq!(Voice::from_name(voice.name()), Some(voice));
        }
        assert_eq!(Voice::from_name("nobody"), None);
    }
}
