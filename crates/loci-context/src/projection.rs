//! From transcript entries to the messages that are sent.
//!
//! A projection takes the entries of a path one by one and keeps the messages they make. Loading a session
//! pushes its whole path, a running one pushes each entry as it is appended; both give the same messages.
//!
//! What must stay true:
//! 1. Entries split from one response become one assistant message again, blocks in order and byte for byte.
//! 2. Consecutive user entries become one user message: tool results first, then reminders, then text. What was said while
//!    the model worked is text: it stands among prompts in the order in which they were sent.
//! 3. Stored API failures, blank text and responses of nothing but reasoning are not sent; what was said before them is.
//! 4. A message that has been followed by one of the other role never changes again, unless a result in it is replaced.

mod plan_reminder;
mod reminder;

use std::sync::Arc;

use loci_core::entry::{Entry, EntryKind};
use loci_core::ids::MessageId;
use loci_core::message::{Block, BlockKind, Message, Role};
use loci_core::raw::RawObject;
use serde_json::{Map, Value};

use crate::replaced::Replaced;
use crate::weight::weigh_attachment;
use reminder::is_said_to_the_model;
pub(crate) use reminder::{entry_blocks as attachment_blocks, entry_text as attachment_text};

/// The messages of a conversation, grown entry by entry.
#[derive(Debug, Clone, Default)]
pub struct Projection {
    done: Vec<Message>,
    open: Option<Open>,
    replaced: Arc<Replaced>,
}

/// The last message, which may still grow.
#[derive(Debug, Clone)]
enum Open {
    User(UserParts),
    Assistant { id: Option<MessageId>, blocks: Vec<Block> },
}

#[derive(Debug, Clone, Default)]
struct UserParts {
    results: Vec<Block>,
    reminders: Vec<Block>,
    texts: Vec<Block>,
}

impl Projection {
    /// Projects a whole path in which nothing is replaced.
    pub fn from_path<'a>(path: impl IntoIterator<Item = &'a Entry>) -> Self {
        Self::with_replaced(path, &Replaced::default())
    }

    /// Projects a whole path; replaced results are sent as what replaces them.
    pub fn with_replaced<'a>(path: impl IntoIterator<Item = &'a Entry>, replaced: &Replaced) -> Self {
        let mut projection = Self { replaced: Arc::new(replaced.clone()), ..Self::default() };
        for entry in path {
            projection.push(entry);
        }
        projection
    }

    /// Takes the next entry of the path.
    pub fn push(&mut self, entry: &Entry) {
        let head = entry.head();
        match head.kind {
            EntryKind::User => self.push_user(entry.blocks()),
            EntryKind::Assistant if !head.is_api_error => {
                self.push_assistant(head.message_id.clone(), entry.blocks());
            }
            EntryKind::Attachment => {
                let blocks = attachment_blocks(entry);
                weigh_attachment(entry, &blocks);
                if !blocks.is_empty() {
                    let is_said = is_said_to_the_model(entry);
                    let parts = self.user_parts();
                    if is_said { &mut parts.texts } else { &mut parts.reminders }.extend(blocks);
                }
            }
            EntryKind::System if head.subtype.as_deref() == Some("local_command") => {
                if let Some(text) = entry.fields().read::<String>("content") {
                    self.push_user(vec![Block::new_text(&text)]);
                }
            }
            EntryKind::Assistant | EntryKind::System | EntryKind::Progress | EntryKind::Metadata => {}
        }
    }

    /// Returns the messages as they stand. `context` opens the first user message.
    pub fn messages(&self, context: Option<&Block>) -> Vec<Message> {
        let mut messages = self.done.clone();
        messages.extend(self.open.as_ref().and_then(Open::to_message));
        if let (Some(first), Some(context)) = (messages.first_mut(), context)
            && first.role == Role::User
        {
            let content: Vec<Block> = std::iter::once(context).chain(first.content.iter()).cloned().collect();
            *first = Message::new(Role::User, content);
        }
        messages
    }

    fn push_user(&mut self, blocks: Vec<Block>) {
        let replaced = Arc::clone(&self.replaced);
        let parts = self.user_parts();
        for block in blocks {
            match block.kind() {
                BlockKind::ToolResult => parts.results.push(replaced.apply(block)),
                BlockKind::Text if block.is_blank() => {}
                _ => parts.texts.push(block),
            }
        }
    }

    fn push_assistant(&mut self, id: Option<MessageId>, blocks: Vec<Block>) {
        let blocks: Vec<Block> = blocks.into_iter().map(with_object_input).collect();
        match &mut self.open {
            Some(Open::Assistant { id: open, blocks: held }) if *open == id => held.extend(blocks),
            _ => {
                self.close();
                self.open = Some(Open::Assistant { id, blocks });
            }
        }
    }

    /// Returns the user message at the end, beginning one if the assistant spoke last.
    fn user_parts(&mut self) -> &mut UserParts {
        if !matches!(self.open, Some(Open::User(_))) {
            self.close();
            let reopened = self.done.pop_if(|last| last.role == Role::User);
            let parts = reopened.map(|last| UserParts::from_blocks(&last.content));
            self.open = Some(Open::User(parts.unwrap_or_default()));
        }
        match &mut self.open {
            Some(Open::User(parts)) => parts,
            Some(Open::Assistant { .. }) | None => unreachable!("a user message was just opened"),
        }
    }

    /// Moves the open message to the finished ones, unless it turned out to be empty.
    fn close(&mut self) {
        let open = self.open.take();
        self.done.extend(open.and_then(|open| open.to_message()));
    }
}

impl Open {
    fn to_message(&self) -> Option<Message> {
        match self {
            Self::User(parts) => {
                let blocks: Vec<Block> =
                    parts.results.iter().chain(&parts.reminders).chain(&parts.texts).cloned().collect();
                (!blocks.is_empty()).then(|| Message::new(Role::User, blocks))
            }
            Self::Assistant { blocks, .. } => {
                let kept: Vec<Block> = blocks.iter().filter(|block| !block.is_blank()).cloned().collect();
                let says_something = kept.iter().any(|block| !block.kind().is_thinking());
                says_something.then(|| Message::new(Role::Assistant, kept))
            }
        }
    }
}

impl UserParts {
    fn from_blocks(blocks: &[Block]) -> Self {
        let (results, texts) = blocks.iter().cloned().partition(|b| b.kind() == BlockKind::ToolResult);
        Self { results, reminders: Vec::new(), texts }
    }
}

/// Some program stored an input that is no object, which no server takes; the call goes without it.
fn with_object_input(block: Block) -> Block {
    if block.kind() != BlockKind::ToolUse || block.json().as_str().contains("\"input\":{") {
        return block;
    }
    let Ok(mut object) = RawObject::parse(block.json().as_str()) else { return block };
    if object.get("input").is_some_and(|input| input.get().starts_with('{')) {
        return block;
    }
    let fixed = object
        .set("input", &Map::<String, Value>::new())
        .and_then(|()| serde_json::from_str(&object.to_json()));
    fixed.unwrap_or(block)
}

#[cfg(test)]
mod tests;
