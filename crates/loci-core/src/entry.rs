//! Transcript entries: one JSON object a line, kept as the line it is.
//!
//! An [`Entry`] is its own text plus a [`Head`] of the few fields that the tree of a session is built from.
//! The text is never re-serialised, so whatever another program wrote, known to us or not, survives.
//! Entries of our own begin as a draft ([`draft`]) and become a line once, when they are appended.

mod attachment;
pub mod draft;
mod weight;
mod wire;

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ids::{EntryId, MessageId};
use crate::message::{Block, Content};
use crate::raw::RawObject;
use wire::WireHead;

pub use attachment::{Attachment, AttachmentKind, BlockingError, NestedMemoryContent, OtherAttachment};
pub use weight::{CalledTool, ResultWeight, Weight};

/// The kinds of entry we tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A prompt or a tool result.
    User,
    /// One block of a response.
    Assistant,
    /// Context that belongs to the entry before it.
    Attachment,
    /// Notes of the program: boundaries, durations, local commands.
    System,
    /// A legacy link of the chain that carries no message.
    Progress,
    /// Everything without a place in the tree: titles, pointers, snapshots, and kinds we do not know.
    Metadata,
}

impl EntryKind {
    fn from_name(name: &str) -> Self {
        match name {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "attachment" => Self::Attachment,
            "system" => Self::System,
            "progress" => Self::Progress,
            _ => Self::Metadata,
        }
    }

    /// Returns true for the four kinds that a conversation is made of.
    pub fn is_chain(self) -> bool {
        matches!(self, Self::User | Self::Assistant | Self::Attachment | Self::System)
    }
}

/// The fields of an entry that its place in the session depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// What the entry is.
    pub kind: EntryKind,
    /// The `type` as written.
    pub type_name: Box<str>,
    /// `subtype` of system entries.
    pub subtype: Option<Box<str>>,
    /// The node's own id.
    pub uuid: Option<EntryId>,
    /// The node above it.
    pub parent: Option<EntryId>,
    /// The node it follows in meaning, across a compaction.
    pub logical_parent: Option<EntryId>,
    /// When it was written.
    pub timestamp: Option<Box<str>>,
    /// Whether it belongs to a subagent.
    pub is_sidechain: bool,
    /// Hidden from people, sent to the model.
    pub is_meta: bool,
    /// The summary of a compaction.
    pub is_compact_summary: bool,
    /// A stored API failure; never sent.
    pub is_api_error: bool,
    /// The response an assistant entry was split from.
    pub message_id: Option<MessageId>,
}

/// One line of a transcript.
#[derive(Debug, Clone)]
pub struct Entry {
    line: Arc<str>,
    head: Head,
    weight: OnceLock<Box<Weight>>,
}

/// Entries are the same when their lines are, measured or not.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.line == other.line
    }
}

impl Eq for Entry {}

/// The message of an entry, split without reading it.
#[derive(Debug, Default, Deserialize)]
pub struct MessageParts<'a> {
    /// What is said.
    #[serde(borrow, default)]
    pub content: Option<&'a RawValue>,
    /// What the server counted.
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
    /// Beside the message: what a tool has to say about its result.
    #[serde(skip)]
    pub tool_use_result: Option<&'a RawValue>,
}

/// Why a line is not an entry.
#[derive(Debug, thiserror::Error)]
pub enum BadEntry {
    /// It is not JSON, or not an object.
    #[error("not a JSON object: {0}")]
    NotAnObject(#[from] serde_json::Error),
    /// It has no `type`.
    #[error("no `type` field")]
    NoType,
}

/// As the line that it is: JSON in JSON, byte for byte.
impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.line()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}

impl Entry {
    /// Returns the same line as part of a conversation of its own: an agent's file is one, though each of its entries
    /// says that it stands beside another.
    pub fn as_main_line(&self) -> Self {
        let head = Head { is_sidechain: false, ..self.head.clone() };
        Self { line: Arc::clone(&self.line), head, weight: OnceLock::new() }
    }

    /// Reads a line; only the head is looked at.
    pub fn parse(line: impl Into<Arc<str>>) -> Result<Self, BadEntry> {
        let line = line.into();
        let wire: WireHead<'_> = serde_json::from_str(&line)?;
        let type_name = wire.type_name.as_deref().ok_or(BadEntry::NoType)?;
        let head = Head {
            kind: EntryKind::from_name(type_name),
            type_name: type_name.into(),
            subtype: wire.subtype.text().map(Into::into),
            uuid: wire.uuid.text().map(EntryId::from),
            parent: wire.parent_uuid.text().map(EntryId::from),
            logical_parent: wire.logical_parent_uuid.text().map(EntryId::from),
            timestamp: wire.timestamp.text().map(Into::into),
            is_sidechain: wire.is_sidechain.is_set(),
            is_meta: wire.is_meta.is_set(),
            is_compact_summary: wire.is_compact_summary.is_set(),
            is_api_error: wire.is_api_error_message.is_set(),
            message_id: wire.message.id().map(MessageId::from),
        };
        Ok(Self { line, head, weight: OnceLock::new() })
    }

    /// Returns the line, without its newline, as it was written.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Returns the line to be kept elsewhere, too; nothing is copied.
    pub fn shared_line(&self) -> Arc<str> {
        Arc::clone(&self.line)
    }

    /// Returns the fields the tree is built from.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Splits the line into its top-level fields.
    pub fn fields(&self) -> RawObject<'_> {
        RawObject::parse(&self.line).unwrap_or_default()
    }

    /// Returns what the entry weighs; `measure` is asked the first time only.
    pub fn weight(&self, measure: impl FnOnce(&Self) -> Weight) -> &Weight {
        self.weight.get_or_init(|| Box::new(measure(self)))
    }

    /// Splits the message of a user or assistant entry; an entry without one has no parts.
    pub fn message_parts(&self) -> MessageParts<'_> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Stored<'a> {
            #[serde(borrow, default)]
            message: Option<MessageParts<'a>>,
            #[serde(borrow, default)]
            tool_use_result: Option<&'a RawValue>,
        }
        let Ok(stored) = serde_json::from_str::<Stored<'_>>(&self.line) else {
            return MessageParts::default();
        };
        MessageParts { tool_use_result: stored.tool_use_result, ..stored.message.unwrap_or_default() }
    }

    /// Returns the content of a user or assistant entry's message.
    pub fn content(&self) -> Option<Content> {
        #[derive(Deserialize)]
        struct Stored {
            message: StoredMessage,
        }
        #[derive(Deserialize)]
        struct StoredMessage {
            content: Content,
        }
        serde_json::from_str::<Stored>(&self.line).ok().map(|stored| stored.message.content)
    }

    /// Returns the content as blocks; an entry without a message has none.
    pub fn blocks(&self) -> Vec<Block> {
        self.content().map(Content::into_blocks).unwrap_or_default()
    }

    /// Returns the attachment of an attachment entry.
    pub fn attachment(&self) -> Option<Attachment> {
        self.read_attachment(Attachment::parse)
    }

    /// Returns the attachment of an attachment entry as it was recorded, to be written again.
    pub fn recorded_attachment(&self) -> Option<Attachment> {
        self.read_attachment(Attachment::recorded)
    }

    fn read_attachment(&self, read: impl FnOnce(&str) -> Attachment) -> Option<Attachment> {
        // Most entries are none, and reading all fields of each is what a long session would wait for.
        if self.head.kind != EntryKind::Attachment {
            return None;
        }
        Some(read(self.fields().get("attachment")?.get()))
    }

    /// Returns the attachment of an attachment entry if it is of this kind. Others are passed over without being read.
    pub fn attachment_of_kind(&self, kind: AttachmentKind) -> Option<Attachment> {
        let could_be = self.head.kind == EntryKind::Attachment && self.line().contains(kind.name());
        could_be.then(|| self.attachment()).flatten().filter(|it| it.kind() == Some(kind))
    }

    /// Returns true when the entry ends what came before: a compaction boundary.
    pub fn is_compact_boundary(&self) -> bool {
        self.head.kind == EntryKind::System && self.head.subtype.as_deref() == Some("compact_boundary")
    }

    /// Returns the same entry with one top-level field replaced; every other byte stays.
    pub fn with_field(&self, key: &str, value: &Value) -> Result<Self, BadEntry> {
        let mut fields = RawObject::parse(&self.line)?;
        fields.set(key, value)?;
        Self::parse(fields.to_json())
    }
}

#[cfg(test)]
mod tests;
