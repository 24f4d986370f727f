//! What must be appended before the next prompt, so that the chain is one the model can be sent.
//!
//! - A call at the end of the path that has no result gets one that says so. (The format's reference sends
//!   neither, and the model never learns that a command may have run.) Calls further up that were left
//!   open are past mending by appending; the path is without them.
//! - A path that ends with a prompt gets the filler answer; one that ends with a tool result or an attachment
//!   gets a request to go on first. A path that ends with an answer, or with a stored API failure, needs
//!   nothing, and attachments behind that (a record of the system prompt, what a hook said) change nothing.
//!
//! Appending the repairs and building again gives a conversation without repairs.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use crate::entry::draft::Draft;
use crate::entry::{AttachmentKind, Entry, EntryKind};
use crate::ids::{EntryId, PromptId, ToolUseId};
use crate::message::Block;

use super::shape::Shape;

/// The answer that stands in for the one that never came.
pub(super) const FILLER: &str = "No response requested.";
/// The request that precedes it when the path ends with a result, unless somebody words it otherwise.
pub const RESUME_PROMPT: &str = "Continue from where you left off.";
/// The result of a call whose own was not recorded.
const NOT_RECORDED: &str = "The session ended before the result of this call was recorded. \
    The call may or may not have run, in whole or in part; check before relying on it or repeating it.";

/// What an entry of a repair hangs from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Under {
    /// An entry of the file.
    Entry(EntryId),
    /// The entry of the repair before.
    Previous,
}

/// One entry to append before the next prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// An error result for a call that has none.
    CloseCall {
        /// The call.
        call: ToolUseId,
        /// The assistant entry that holds it, which becomes the parent.
        source: EntryId,
        /// The prompt whose turn it was.
        prompt: Option<PromptId>,
    },
    /// A hidden request to go on.
    Continue {
        /// What it hangs from.
        under: Under,
    },
    /// A synthetic answer that closes the turn.
    Filler {
        /// What it hangs from.
        under: Under,
    },
}

impl Repair {
    /// Returns the entry in the making; `message_id` is a fresh UUID for a synthetic answer, `resume_prompt` a request to go on.
    pub fn draft(&self, message_id: &str, resume_prompt: &str) -> Draft {
        match self {
            Self::CloseCall { call, source, prompt } => {
                let prompt = prompt.clone().unwrap_or_else(|| PromptId::new(source.as_str()));
                let block = Block::new_tool_result(call, &Value::from(NOT_RECORDED), Some(true)).to_value();
                let structured = Value::from(format!("Error: {NOT_RECORDED}"));
                Draft::tool_result(prompt, block, structured, source.clone())
            }
            Self::Continue { .. } => Draft::meta(None, json!([{"type": "text", "text": resume_prompt}])),
            Self::Filler { .. } => Draft::synthetic(message_id, FILLER),
        }
    }

    /// Returns the parent, given the entry of the repair before.
    pub fn parent<'a>(&'a self, previous: Option<&'a EntryId>) -> Option<&'a EntryId> {
        match self {
            Self::CloseCall { source, .. } => Some(source),
            Self::Continue { under } | Self::Filler { under } => match under {
                Under::Entry(id) => Some(id),
                Under::Previous => previous,
            },
        }
    }
}

/// Returns the repairs that a path needs, in the order to append them.
pub(super) fn repairs(path: &[Arc<Entry>]) -> Vec<Repair> {
    let mut repairs = open_calls(path);
    if !repairs.is_empty() {
        repairs
            .extend([Repair::Continue { under: Under::Previous }, Repair::Filler { under: Under::Previous }]);
        return repairs;
    }
    let Some((entry, ending)) = ending(path) else { return repairs };
    let Some(id) = entry.head().uuid.clone() else { return repairs };
    match ending {
        Ending::Answer => {}
        Ending::Prompt => repairs.push(Repair::Filler { under: Under::Entry(id) }),
        Ending::Result => repairs.extend([
            Repair::Continue { under: Under::Entry(id) },
            Repair::Filler { under: Under::Previous },
        ]),
    }
    repairs
}

/// Finds the calls of the last response that nothing answers, when nothing but answers follows it.
fn open_calls(path: &[Arc<Entry>]) -> Vec<Repair> {
    let mut answered: FxHashSet<ToolUseId> = FxHashSet::default();
    let mut open = Vec::new();
    let mut response = None;
    for entry in path.iter().rev() {
        let head = entry.head();
        match head.kind {
            EntryKind::Assistant if head.is_api_error => {}
            EntryKind::Assistant => {
                if *response.get_or_insert(&head.message_id) != &head.message_id {
                    break;
                }
                let calls = Shape::from_entry(entry).calls.into_iter().rev();
                open.extend(calls.filter(|call| !answered.contains(call)).map(|call| (call, entry)));
            }
            EntryKind::User if response.is_none() => {
                let shape = Shape::from_entry(entry);
                if !shape.is_only_results() {
                    break;
                }
                answered.extend(shape.results);
            }
            EntryKind::User => break,
            EntryKind::Attachment if response.is_some() => break,
            EntryKind::Attachment | EntryKind::System | EntryKind::Progress | EntryKind::Metadata => {}
        }
    }
    let prompt = prompt_of(path);
    let close = |(call, entry): (ToolUseId, &Arc<Entry>)| {
        let source = entry.head().uuid.clone()?;
        Some(Repair::CloseCall { call, source, prompt: prompt.clone() })
    };
    open.into_iter().rev().filter_map(close).collect()
}

fn prompt_of(path: &[Arc<Entry>]) -> Option<PromptId> {
    let users = path.iter().rev().filter(|entry| entry.head().kind == EntryKind::User);
    users.filter_map(|entry| entry.fields().read::<String>("promptId")).map(PromptId::new).next()
}

enum Ending {
    Answer,
    Prompt,
    Result,
}

/// Finds the last entry that is sent, and says what the path ends with.
///
/// A response of nothing but reasoning is not sent, so what comes before it counts.
fn ending(path: &[Arc<Entry>]) -> Option<(&Arc<Entry>, Ending)> {
    let mut blank = None;
    let mut attachment = None;
    for entry in path.iter().rev() {
        let head = entry.head();
        match head.kind {
            EntryKind::Assistant if blank == Some(&head.message_id) => {}
            EntryKind::Assistant if is_blank(path, entry) => blank = Some(&head.message_id),
            EntryKind::Assistant => return Some((entry, Ending::Answer)),
            EntryKind::User => {
                let is_prompt = attachment.is_none() && Shape::from_entry(entry).results.is_empty();
                let ending = if is_prompt { Ending::Prompt } else { Ending::Result };
                return Some((attachment.unwrap_or(entry), ending));
            }
            // The call before it was the answer.
            EntryKind::Attachment if is_structured_output(entry) => return Some((entry, Ending::Answer)),
            EntryKind::Attachment => _ = attachment.get_or_insert(entry),
            EntryKind::System | EntryKind::Progress | EntryKind::Metadata => {}
        }
    }
    attachment.map(|entry| (entry, Ending::Result))
}

/// Returns true when an attachment marks an answer of a given shape, which ends a turn like any other.
fn is_structured_output(entry: &Entry) -> bool {
    entry.attachment_of_kind(AttachmentKind::StructuredOutput).is_some()
}

/// Returns true when no entry of the response that `last` ends says anything or calls a tool.
fn is_blank(path: &[Arc<Entry>], last: &Arc<Entry>) -> bool {
    let head = last.head();
    let is_block = |entry: &&Arc<Entry>| {
        let other = entry.head();
        other.kind == EntryKind::Assistant && other.message_id == head.message_id
    };
    !head.is_api_error
        && path.iter().rev().skip_while(|entry| !Arc::ptr_eq(entry, last)).take_while(is_block).all(|entry| {
            let shape = Shape::from_entry(entry);
            shape.calls.is_empty() && !shape.has_words
        })
}
