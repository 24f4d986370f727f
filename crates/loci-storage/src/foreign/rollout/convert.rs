//! A rollout as a conversation of our own form: entries in a chain, every call with its result.
//!
//! 1. Blocks that follow one another without anybody else speaking are one message.
//! 2. A call has exactly one result; one without gets a result that says so, and a result without a call is left out.
//! 3. What was taken back is not told. What Codex summarised lies before a boundary, with the summary behind it.
//! 4. No message claims a model of ours: it was another that spoke, and who resumes chooses anew.
//!
//! Reasoning is left out: no model can be sent another's thoughts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use loci_core::entry::draft::{Draft, Stamp};
use loci_core::entry::{BadEntry, Entry};
use loci_core::ids::{EntryId, PromptId};
use loci_core::usage::Usage;
use serde_json::{Value, json};

use super::item::{Call, CallOutput, RolloutItem};
use super::load::Read;

/// The model of messages that none of ours wrote.
const NO_MODEL: &str = "<synthetic>";
const NO_RESULT: &str = "No result was recorded in Codex; the command may have run.";
const INTERRUPTED: &str = "[Request interrupted by user]";
const BEGINNING: &str = "This conversation was begun in Codex.";
/// The time of an entry whose line has none.
const NO_TIME: &str = "1970-01-01T00:00:00.000Z";

/// A conversation.
#[derive(Debug, Default)]
pub(crate) struct ConvertedSession {
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) leaf: Option<EntryId>,
    pub(crate) last_prompt: Option<String>,
    /// Results without a call.
    pub(crate) n_left_out: usize,
}

/// Makes a conversation; `id` gives an id that no entry has.
pub(crate) fn convert(
    read: &Read,
    stamp: &Stamp,
    id: &mut dyn FnMut() -> EntryId,
) -> Result<ConvertedSession, BadEntry> {
    let mut converter = Converter {
        thread: read.head.thread.clone().unwrap_or_default(),
        stamp,
        id,
        converted: ConvertedSession::default(),
        time: NO_TIME.to_owned(),
        model: None,
        prompt: PromptId::new(stamp.session_id.as_str()),
        message: None,
        prompts: Vec::new(),
        calls: HashMap::new(),
        call_ids: HashSet::new(),
    };
    for line in &read.lines {
        if let Some(time) = &line.time {
            converter.time.clone_from(time);
        }
        converter.convert_item(&line.item)?;
    }
    converter.close_calls()?;
    Ok(converter.converted)
}

struct Converter<'a> {
    thread: String,
    stamp: &'a Stamp,
    id: &'a mut dyn FnMut() -> EntryId,
    converted: ConvertedSession,
    time: String,
    model: Option<String>,
    prompt: PromptId,
    /// The id of the message that is being said.
    message: Option<String>,
    /// How many entries there were before each prompt, and where the conversation stood.
    prompts: Vec<(usize, Option<EntryId>)>,
    /// Calls without a result: theirs by Codex's id, ours, and the entry.
    calls: HashMap<String, (String, EntryId, String)>,
    call_ids: HashSet<String>,
}

impl Converter<'_> {
    fn convert_item(&mut self, item: &RolloutItem) -> Result<(), BadEntry> {
        match item {
            RolloutItem::Prompt(blocks) => self.add_prompt(blocks),
            RolloutItem::Interrupted => {
                self.close_calls()?;
                let content = json!([{"type": "text", "text": INTERRUPTED}]);
                self.push(&Draft::marker(self.prompt.clone(), content)).map(drop)
            }
            RolloutItem::Answer(text) if text.is_empty() => Ok(()),
            RolloutItem::Answer(text) => self.push_block(json!({"type": "text", "text": text})).map(drop),
            RolloutItem::Call(call) => self.add_call(call),
            RolloutItem::CallOutput(output) => self.add_output(output),
            RolloutItem::Compacted { summary, prompts } => self.add_summary(summary, prompts),
            RolloutItem::RolledBack(n_turns) => {
                self.roll_back(*n_turns);
                Ok(())
            }
            RolloutItem::Model(model) => {
                self.model = Some(model.clone());
                Ok(())
            }
            RolloutItem::Thinking(_) | RolloutItem::Meta(_) | RolloutItem::Nothing => Ok(()),
        }
    }

    fn add_prompt(&mut self, blocks: &[Value]) -> Result<(), BadEntry> {
        self.close_calls()?;
        self.prompts.push((self.converted.entries.len(), self.converted.leaf.clone()));
        self.prompt = PromptId::new((self.id)().as_str());
        let content = match blocks {
            [block] if block["type"] == "text" => block["text"].clone(),
            blocks => Value::from(blocks.to_vec()),
        };
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        self.converted.last_prompt = Some(texts.join(" "));
        self.push(&Draft::marker(self.prompt.clone(), content)).map(drop)
    }

    /// Adds a block to the message of the model.
    fn push_block(&mut self, block: Value) -> Result<EntryId, BadEntry> {
        if self.converted.entries.is_empty() {
            // A conversation begins with the user.
            self.push(&Draft::meta(Some(self.prompt.clone()), json!(BEGINNING)))?;
        }
        let message = match &self.message {
            Some(message) => message.clone(),
            // The results of a message's calls come before the next message.
            None => {
                self.close_calls()?;
                (self.id)().as_str().to_owned()
            }
        };
        let is_call = block["type"] == "tool_use";
        let whole = json!({
            "id": message,
            "type": "message",
            "role": "assistant",
            "model": NO_MODEL,
            "content": [block],
            "stop_reason": if is_call { "tool_use" } else { "end_turn" },
            "stop_sequence": null,
            "usage": Usage::default().to_full_value(),
        });
        let entry = self.push(&Draft::assistant(whole, None))?;
        self.message = Some(message);
        Ok(entry)
    }

    fn add_call(&mut self, call: &Call) -> Result<(), BadEntry> {
        let id = self.call_id(&call.id);
        let block = json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input});
        let entry = self.push_block(block)?;
        self.calls.insert(call.id.clone(), (id, entry, call.name.clone()));
        Ok(())
    }

    /// Returns an id that the Messages API takes and no other call has.
    fn call_id(&mut self, id: &str) -> String {
        let plain = |char: char| if char.is_ascii_alphanumeric() || "_-".contains(char) { char } else { '_' };
        let plain: String = id.chars().map(plain).take(60).collect();
        let plain = if plain.is_empty() { "call".to_owned() } else { plain };
        let mut unique = plain.clone();
        let mut n = 1;
        while !self.call_ids.insert(unique.clone()) {
            n += 1;
            unique = format!("{plain}_{n}");
        }
        unique
    }

    fn add_output(&mut self, output: &CallOutput) -> Result<(), BadEntry> {
        let Some(call) = self.calls.remove(&output.call) else {
            self.converted.n_left_out += 1;
            return Ok(());
        };
        self.add_result(call, &output.content, output.is_error)
    }

    fn add_result(
        &mut self,
        (id, entry, tool): (String, EntryId, String),
        content: &Value,
        is_error: bool,
    ) -> Result<(), BadEntry> {
        let mut block = json!({"tool_use_id": id, "type": "tool_result", "content": content});
        if is_error {
            block["is_error"] = Value::Bool(true);
        }
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        let structured = match (is_error, tool.as_str()) {
            (true, _) => Value::from(format!("Error: {text}")),
            (false, "Bash") => json!({
                "stdout": text, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
            }),
            (false, _) => Value::from(text),
        };
        self.push(&Draft::tool_result(self.prompt.clone(), block, structured, entry)).map(drop)
    }

    /// Gives calls that were never answered a result, in the order they were made.
    fn close_calls(&mut self) -> Result<(), BadEntry> {
        if self.calls.is_empty() {
            return Ok(());
        }
        let mut open: Vec<(String, EntryId, String)> = self.calls.drain().map(|(_, call)| call).collect();
        let places: HashMap<EntryId, usize> = self
            .converted
            .entries
            .iter()
            .enumerate()
            .filter_map(|(at, it)| Some((it.head().uuid.clone()?, at)))
            .collect();
        open.sort_by_key(|(_, entry, _)| places.get(entry).copied());
        for call in open {
            self.add_result(call, &json!(NO_RESULT), true)?;
        }
        Ok(())
    }

    fn add_summary(&mut self, summary: &str, prompts: &[String]) -> Result<(), BadEntry> {
        self.close_calls()?;
        let after = self.converted.leaf.take();
        self.push(&Draft::boundary(after.as_ref(), json!({"trigger": "auto"})))?;
        let mut text = format!("The conversation was compacted in Codex. The summary:\n\n{summary}");
        if !prompts.is_empty() {
            text.push_str("\n\nWhat the user said, word for word:");
            prompts.iter().for_each(|prompt| text.push_str(&format!("\n\n{prompt}")));
        }
        self.push(&Draft::summary(self.prompt.clone(), &text)).map(drop)
    }

    fn roll_back(&mut self, n_turns: usize) {
        let first = self.prompts.len().saturating_sub(n_turns);
        if let Some((n_entries, leaf)) = self.prompts.drain(first..).next() {
            self.converted.entries.truncate(n_entries);
            self.converted.leaf = leaf;
            self.calls.clear();
            self.message = None;
        }
    }

    /// Adds an entry behind the last one, or where it belongs.
    fn push(&mut self, draft: &Draft) -> Result<EntryId, BadEntry> {
        self.message = None;
        let uuid = (self.id)();
        let parent = draft.fixed_parent().or(self.converted.leaf.as_ref());
        let entry = draft.seal(self.stamp, &uuid, parent, &self.time)?;
        let origin = json!({"agent": "codex", "session": self.thread, "model": self.model});
        let entry = entry.with_field("importedFrom", &origin)?;
        self.converted.entries.push(Arc::new(entry));
        self.converted.leaf = Some(uuid.clone());
        Ok(uuid)
    }
}
