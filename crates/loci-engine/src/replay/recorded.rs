//! What a recording holds, read for playing: the kinds of its entries, its answers and their results.

use std::collections::HashSet;
use std::sync::Arc;

use loci_core::entry::{Entry, EntryKind};
use loci_core::ids::{EntryId, RequestId, ToolUseId};
use loci_core::message::{Block, BlockKind, Content};
use loci_core::stream::{Ended, Failure, FailureKind, Started};
use loci_core::tool::{ToolAttachment, ToolContent, ToolOutcome};
use loci_core::usage::Usage;
use loci_llm::{Played, PlayedResponse};
use serde::Deserialize;
use serde_json::Value;

use crate::command::Prompt;

/// The model that answers name which no model gave.
const SYNTHETIC: &str = "<synthetic>";

/// What an entry is to a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A block of a response.
    Answer,
    /// A request that failed.
    Failure,
    /// Nothing but results of calls.
    Results,
    /// Something a person, or somebody in their place, said.
    Words,
    /// The same, said by the program on its own account.
    Nudge,
    /// An attachment.
    Note,
    /// Something that is sent, and that no input of a session brings about.
    Foreign,
    /// Something that is not sent.
    Unsent,
}

impl Part {
    pub(super) fn of(entry: &Entry) -> Self {
        let head = entry.head();
        match head.kind {
            EntryKind::Assistant if head.is_api_error => Self::Failure,
            EntryKind::Assistant if is_synthetic(entry) => Self::Foreign,
            EntryKind::Assistant => Self::Answer,
            EntryKind::User if head.is_compact_summary => Self::Foreign,
            EntryKind::User => Self::of_blocks(&entry.blocks(), head.is_meta),
            EntryKind::Attachment => Self::Note,
            EntryKind::System if head.subtype.as_deref() == Some("local_command") => Self::Foreign,
            EntryKind::System if entry.is_compact_boundary() => Self::Foreign,
            EntryKind::System | EntryKind::Progress | EntryKind::Metadata => Self::Unsent,
        }
    }

    fn of_blocks(blocks: &[Block], is_meta: bool) -> Self {
        let n_results = blocks.iter().filter(|block| block.kind() == BlockKind::ToolResult).count();
        match n_results {
            0 if is_meta => Self::Nudge,
            0 => Self::Words,
            _ if n_results == blocks.len() => Self::Results,
            _ => Self::Foreign,
        }
    }

    /// Returns true for what a request led to.
    pub(super) fn ends_a_request(self) -> bool {
        matches!(self, Self::Answer | Self::Failure)
    }
}

#[derive(Deserialize)]
struct StoredMessage {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_sequence: Option<String>,
    #[serde(default)]
    context_management: Option<Value>,
}

fn is_synthetic(entry: &Entry) -> bool {
    let message = entry.fields().read::<StoredMessage>("message");
    message.is_some_and(|message| message.model.as_deref() == Some(SYNTHETIC))
}

/// Returns an entry of results as we would write it, where the only difference is the order of a result's keys; other
/// programs have another.
pub(super) fn in_our_order(entry: &Entry) -> Option<Entry> {
    let blocks = entry.blocks();
    let ours: Vec<Block> = blocks.iter().map(ordered).collect::<Option<_>>()?;
    if ours == blocks {
        return None;
    }
    let fields = entry.fields();
    let mut message: Value = fields.read("message")?;
    message["content"] = ours.iter().map(Block::to_value).collect();
    entry.with_field("message", &message).ok()
}

/// Returns a result with its keys in our order; `None` when that is not all there is to it.
fn ordered(block: &Block) -> Option<Block> {
    let result = block.tool_result()?;
    let ours = Block::new_tool_result(&result.tool_use_id, &result.content, result.is_error);
    (ours.to_value() == block.to_value()).then_some(ours)
}

/// A recorded result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RecordedResult {
    pub(super) call: ToolUseId,
    pub(super) outcome: ToolOutcome,
}

/// What a request led to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) entry: Option<EntryId>,
    /// What is played.
    pub(super) played: Played,
    /// The results of its calls, in the order they were recorded.
    pub(super) results: Vec<RecordedResult>,
    /// Whether a call of it has no result.
    pub(super) is_open: bool,
    /// Whether the engine asks on by itself, with words of its own.
    pub(super) leads_to_nudge: bool,
    /// How many entries it and its results take.
    pub(super) n_entries: usize,
}

impl Answer {
    /// Reads the answer that a path goes on with; `parts` are the kinds of its entries.
    pub(super) fn read(path: &[Arc<Entry>], parts: &[Part]) -> Option<Self> {
        let first = path.first()?;
        let entry = first.head().uuid.clone();
        if parts.first() == Some(&Part::Failure) {
            let failure = Failure::new(FailureKind::InvalidRequest, text_of(first));
            let played = Played::Failed(failure);
            return Some(Self {
                entry,
                played,
                results: Vec::new(),
                is_open: false,
                leads_to_nudge: false,
                n_entries: 1,
            });
        }
        let id = &first.head().message_id;
        let n_blocks = path
            .iter()
            .zip(parts)
            .take_while(|(it, part)| **part == Part::Answer && it.head().message_id == *id)
            .count();
        // Without an id nothing says that the next block belongs to the same response.
        let n_blocks = if id.is_some() { n_blocks } else { n_blocks.min(1) };
        let (response, rest) = path.split_at(n_blocks);
        let blocks: Vec<Block> = response.iter().flat_map(|it| it.blocks()).collect();
        let calls: HashSet<ToolUseId> =
            blocks.iter().filter_map(Block::tool_use).map(|call| call.id).collect();
        let (results, n_answers) = results(rest, &parts[n_blocks..], &calls);
        let (started, ended) = ends(response, !calls.is_empty())?;
        let is_silent = blocks.iter().all(|block| block.kind().is_thinking() || block.is_blank());
        let leads_to_nudge =
            calls.is_empty() && (is_silent || ended.stop_reason.as_deref() == Some("max_tokens"));
        Some(Self {
            entry,
            is_open: results.len() < calls.len(),
            played: Played::Response(Box::new(PlayedResponse { started, blocks, ended })),
            results,
            leads_to_nudge,
            n_entries: n_blocks + n_answers,
        })
    }
}

/// Returns head and end of a response whose blocks are these entries.
fn ends(response: &[Arc<Entry>], has_calls: bool) -> Option<(Started, Ended)> {
    let last = response.last()?;
    let message: StoredMessage = last.fields().read("message")?;
    let usage = message.usage.unwrap_or_default();
    let started = Started {
        message_id: last.head().message_id.clone().unwrap_or_else(|| "".into()),
        model: message.model.unwrap_or_default(),
        usage: usage.clone(),
        request_id: last.fields().read::<RequestId>("requestId"),
        rate_limits: None,
    };
    let usual = if has_calls { "tool_use" } else { "end_turn" };
    let stop_reason = message.stop_reason.unwrap_or_else(|| usual.to_owned());
    let stop_sequence = message.stop_sequence;
    let context_management = message.context_management.map(Box::new);
    Some((started, Ended { stop_reason: Some(stop_reason), stop_sequence, usage, context_management }))
}

/// Reads the results of calls, with the attachments behind each; returns how many entries they take.
fn results(path: &[Arc<Entry>], parts: &[Part], calls: &HashSet<ToolUseId>) -> (Vec<RecordedResult>, usize) {
    let mut results: Vec<RecordedResult> = Vec::new();
    if calls.is_empty() {
        return (results, 0);
    }
    for (at, (entry, part)) in path.iter().zip(parts).enumerate() {
        match part {
            Part::Results => results.extend(results_in(entry)),
            // A response that broke off says so before its calls are answered.
            Part::Failure if results.is_empty() => {}
            Part::Unsent => {}
            Part::Note => match results.last_mut() {
                Some(last) => {
                    last.outcome
                        .attachments
                        .extend(entry.recorded_attachment().map(|attachment| ToolAttachment { attachment }));
                }
                None => return (results, at),
            },
            Part::Answer | Part::Failure | Part::Words | Part::Nudge | Part::Foreign => return (results, at),
        }
    }
    (results, path.len())
}

fn results_in(entry: &Entry) -> Vec<RecordedResult> {
    let structured = entry.fields().read("toolUseResult").unwrap_or(Value::Null);
    let blocks = entry.blocks();
    let results = blocks.iter().filter_map(Block::tool_result).map(|result| RecordedResult {
        call: result.tool_use_id,
        outcome: ToolOutcome {
            content: tool_content(result.content),
            is_error: result.is_error,
            structured: structured.clone(),
            attachments: Vec::new(),
        },
    });
    results.collect()
}

fn tool_content(content: Value) -> ToolContent {
    match content {
        Value::String(text) => ToolContent::Text(text),
        Value::Array(blocks) => {
            ToolContent::Blocks(blocks.iter().filter_map(|block| Block::from_value(block).ok()).collect())
        }
        _ => ToolContent::Text(String::new()),
    }
}

fn text_of(entry: &Entry) -> String {
    let text = entry.content().map(|content| content.text()).unwrap_or_default();
    // The engine says it again when it records the failure.
    text.strip_prefix("API Error: ").unwrap_or(&text).to_owned()
}

/// How a turn begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Opening {
    /// With a prompt that gives the recorded message.
    Prompt(Prompt),
    /// With nothing new.
    GoOn,
    /// With something that only the past can hold.
    TakeOver,
}

impl Opening {
    /// Reads what precedes a request.
    pub(super) fn read(path: &[Arc<Entry>], parts: &[Part]) -> Self {
        if parts.iter().all(|part| *part == Part::Unsent) {
            return Self::GoOn;
        }
        let is_plain = |part: &Part| matches!(part, Part::Words | Part::Nudge | Part::Note | Part::Unsent);
        if !parts.iter().all(is_plain) {
            return Self::TakeOver;
        }
        let contents = path.iter().filter(|entry| entry.head().kind == EntryKind::User);
        let mut contents: Vec<Content> = contents.filter_map(|entry| entry.content()).collect();
        let content = match contents.len() {
            1 => contents.remove(0),
            _ => Content::Blocks(contents.into_iter().flat_map(Content::into_blocks).collect()),
        };
        // What a session takes for an order is no prompt to it.
        if content.is_blank() || content.text().trim().starts_with("/compact") {
            return Self::TakeOver;
        }
        let attachments = path.iter().filter_map(|entry| entry.recorded_attachment()).collect();
        Self::Prompt(Prompt { attachments, ..Prompt::new(content, None) })
    }
}

#[cfg(test)]
mod tests;
