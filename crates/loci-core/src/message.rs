//! Messages as the model sees them: a role and content blocks.
//!
//! A [`Block`] is its own JSON text plus a tag. The text is what was received or stored and what is sent
//! again, so a thinking signature, a citation or a kind of block we have never seen comes back to the model
//! byte for byte. Typed readings ([`Block::text`], [`Block::tool_use`], …) are made on demand.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ids::ToolUseId;
use crate::raw::RawJson;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person, and results of tools.
    User,
    /// The model.
    Assistant,
    /// Instructions in mid-conversation, for models that take them.
    System,
}

impl Role {
    /// Returns the role's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// What kind of block a [`Block`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Plain text.
    Text,
    /// The model's reasoning, with its signature.
    Thinking,
    /// Reasoning in a sealed form.
    RedactedThinking,
    /// A call of one of our tools.
    ToolUse,
    /// The answer to a tool call.
    ToolResult,
    /// A picture.
    Image,
    /// A document such as a PDF.
    Document,
    /// Anything else: server tools and kinds of the future, passed through untouched.
    Other,
}

impl BlockKind {
    /// Finds a kind by its name on the wire.
    pub fn from_name(name: &str) -> Self {
        match name {
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            "redacted_thinking" => Self::RedactedThinking,
            "tool_use" => Self::ToolUse,
            "tool_result" => Self::ToolResult,
            "image" => Self::Image,
            "document" => Self::Document,
            _ => Self::Other,
        }
    }

    /// Returns true for the two kinds of reasoning block.
    pub fn is_thinking(self) -> bool {
        matches!(self, Self::Thinking | Self::RedactedThinking)
    }
}

/// One content block: its JSON text, shared, and its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    kind: BlockKind,
    json: RawJson,
}

/// A call the model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The model's id for the call.
    pub id: ToolUseId,
    /// The tool's name as the model spelled it.
    pub name: String,
    /// The arguments, not yet validated.
    #[serde(default)]
    pub input: Value,
}

/// What a tool answered, as it goes back to the model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolResult {
    /// The call it answers.
    pub tool_use_id: ToolUseId,
    /// Text or blocks.
    #[serde(default)]
    pub content: Value,
    /// Whether the call failed; absent means it did not.
    #[serde(default)]
    pub is_error: Option<bool>,
}

impl Block {
    /// Reads a block's kind from its JSON; the text itself is kept as it is.
    pub fn from_json(json: RawJson) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Tag<'a> {
            #[serde(borrow, rename = "type")]
            kind: std::borrow::Cow<'a, str>,
        }
        let tag: Tag<'_> = serde_json::from_str(json.as_str())?;
        Ok(Self { kind: BlockKind::from_name(&tag.kind), json })
    }

    /// Makes a block from a JSON value (key order is kept).
    pub fn from_value(value: &Value) -> Result<Self, serde_json::Error> {
        Self::from_json(RawJson::from_value(value)?)
    }

    fn from_kind(kind: BlockKind, value: &Value) -> Self {
        Self { kind, json: RawJson::from_text_of(value) }
    }

    /// Makes a text block.
    pub fn new_text(text: &str) -> Self {
        Self::from_kind(BlockKind::Text, &json!({"type": "text", "text": text}))
    }

    /// Makes a tool call block.
    pub fn new_tool_use(id: &ToolUseId, name: &str, input: &Value) -> Self {
        Self::from_kind(
            BlockKind::ToolUse,
            &json!({"type": "tool_use", "id": id.as_str(), "name": name, "input": input}),
        )
    }

    /// Makes a tool result; `is_error` is written only when given, as the format has it.
    pub fn new_tool_result(id: &ToolUseId, content: &Value, is_error: Option<bool>) -> Self {
        let mut value = json!({"tool_use_id": id.as_str(), "type": "tool_result", "content": content});
        if let Some(is_error) = is_error {
            value["is_error"] = Value::Bool(is_error);
        }
        Self::from_kind(BlockKind::ToolResult, &value)
    }

    /// Makes an image block from base64 data.
    pub fn new_image(media_type: &str, base64: &str) -> Self {
        Self::from_kind(
            BlockKind::Image,
            &json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": base64}}),
        )
    }

    /// Returns the block's kind.
    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// Returns the block's JSON text.
    pub fn json(&self) -> &RawJson {
        &self.json
    }

    /// Parses the block as a value.
    pub fn to_value(&self) -> Value {
        self.json.read().unwrap_or(Value::Null)
    }

    /// Returns the text of a text block.
    pub fn text(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Text {
            text: String,
        }
        (self.kind == BlockKind::Text).then(|| self.json.read::<Text>().ok())?.map(|block| block.text)
    }

    /// Returns true for a text block without a letter.
    pub fn is_blank(&self) -> bool {
        self.kind == BlockKind::Text && self.text().is_none_or(|text| text.trim().is_empty())
    }

    /// Returns the call of a tool call block.
    pub fn tool_use(&self) -> Option<ToolUse> {
        (self.kind == BlockKind::ToolUse).then(|| self.json.read().ok())?
    }

    /// Returns the answer of a tool result block.
    pub fn tool_result(&self) -> Option<ToolResult> {
        (self.kind == BlockKind::ToolResult).then(|| self.json.read().ok())?
    }
}

impl Serialize for Block {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(RawJson::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// One message of the conversation, cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; shared so that a view of a long conversation costs pointers.
    pub content: Arc<[Block]>,
}

impl Message {
    /// Makes a message from blocks.
    pub fn new(role: Role, content: impl Into<Arc<[Block]>>) -> Self {
        Self { role, content: content.into() }
    }

    /// Makes a user message of one text block.
    pub fn user_text(text: &str) -> Self {
        Self::new(Role::User, vec![Block::new_text(text)])
    }

    /// Joins the texts of all text blocks.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::text).collect::<Vec<_>>().join("")
    }
}

/// Content as the wire and the transcript write it: a plain string or a list of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A plain prompt.
    Text(String),
    /// Blocks.
    Blocks(Vec<Block>),
}

impl Content {
    /// Turns either form into blocks.
    pub fn into_blocks(self) -> Vec<Block> {
        match self {
            Self::Text(text) => vec![Block::new_text(&text)],
            Self::Blocks(blocks) => blocks,
        }
    }

    /// Joins what a person would read of it.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => blocks.iter().filter_map(Block::text).collect::<Vec<_>>().join("\n"),
        }
    }

    /// Returns true when there is nothing to send: no blocks, or only text without a letter.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Blocks(blocks) => blocks.iter().all(Block::is_blank),
        }
    }
}

/// Read by hand: raw JSON cannot pass through the buffer that derived untagged enums use.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> serde::de::Visitor<'de> for ContentVisitor {
            type Value = Content;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or a list of content blocks")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
                let mut blocks = Vec::with_capacity(seq.size_hint().unwrap_or(1));
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_byte_for_byte() {
        for json in [
            r#"{"type":"thinking","thinking":"Hm.","signature":"c2ln"}"#,
            r#"{"type":"text","text":"a","citations":[{"n":1.50}]}"#,
            r#"{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"x"}}"#,
            r#"{"type":"from_the_future","n":12345678901234567890123}"#,
            r#"{"tool_use_id":"t","type":"tool_result","content":[{"type":"text","text":"x"}],"is_error":false}"#,
        ] {
            let block: Block = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&block).unwrap(), json);
        }
    }

    #[test]
    fn blocks_read_as_tool_use_and_result() {
        let call = Block::new_tool_use(&"toolu_1".into(), "Read", &json!({"file_path": "/a"}));
        assert_eq!(call.kind(), BlockKind::ToolUse);
        assert_eq!(call.tool_use().unwrap().name, "Read");
        assert_eq!(call.text(), None);
        let result = Block::new_tool_result(&"toolu_1".into(), &json!("ok"), Some(true));
        assert_eq!(result.tool_result().unwrap().is_error, Some(true));
        assert!(serde_json::from_str::<Block>(r#"{"text":"no type"}"#).is_err());
    }
}
