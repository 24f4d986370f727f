//! The content of an entry's message, read in one pass and just far enough to tell what was said.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::entry::Entry;
use crate::lenient::LenientValue;

/// What a message says.
pub(super) enum MessageContent<'a> {
    /// Words alone.
    Text(Cow<'a, str>),
    /// Blocks.
    Blocks(Vec<RawBlock<'a>>),
}

/// A block with the fields that any kind of it may have.
#[derive(Deserialize)]
pub(super) struct RawBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) text: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) id: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) name: LenientValue<'a>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
}

impl<'a> MessageContent<'a> {
    /// Reads what an entry's message says; `None` when it has none.
    pub(super) fn from_entry(entry: &'a Entry) -> Option<Self> {
        #[derive(Deserialize)]
        struct Stored<'a> {
            #[serde(borrow)]
            message: StoredMessage<'a>,
        }
        #[derive(Deserialize)]
        struct StoredMessage<'a> {
            #[serde(borrow)]
            content: MessageContent<'a>,
        }
        serde_json::from_str::<Stored<'a>>(entry.line()).ok().map(|stored| stored.message.content)
    }
}

impl RawBlock<'_> {
    /// Reads what a tool is given.
    pub(super) fn input(&self) -> Value {
        self.input.and_then(|input| serde_json::from_str(input.get()).ok()).unwrap_or_default()
    }
}

/// Read by hand: raw JSON cannot pass through the buffer that derived untagged enums use.
impl<'de: 'a, 'a> Deserialize<'de> for MessageContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MessageContentVisitor)
    }
}

struct MessageContentVisitor;

impl<'de> Visitor<'de> for MessageContentVisitor {
    type Value = MessageContent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of content blocks")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(MessageContent::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(MessageContent::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = seq.next_element()? {
            blocks.push(block);
        }
        Ok(MessageContent::Blocks(blocks))
    }
}
