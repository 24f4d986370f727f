//! How many tokens something takes: what the server counted, and estimates for what it has not seen yet.
//!
//! Claude's tokenizer is not public. Prose runs at about four characters a token, JSON at two; a picture counts two
//! thousand whatever its size. Reasoning counts by its text alone, because signatures are not read as text.

use std::borrow::Cow;

use loci_core::message::{Block, BlockKind, Message};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Tokens of a picture.
const IMAGE: u64 = 2_000;
/// What a block costs besides its content: its kind, its ids.
const FRAME: u64 = 4;

/// Characters of prose to a token.
const PROSE: usize = 4;
/// Characters of JSON to a token.
const JSON: usize = 2;

/// Estimates the tokens of prose.
pub fn prose_tokens(text: &str) -> u64 {
    tokens(text, PROSE)
}

/// Estimates the tokens of JSON.
pub fn json_tokens(text: &str) -> u64 {
    tokens(text, JSON)
}

fn tokens(text: &str, chars_a_token: usize) -> u64 {
    u64::try_from(text.chars().count().div_ceil(chars_a_token)).unwrap_or(u64::MAX)
}

/// Estimates the tokens of messages.
pub fn estimate_messages(messages: &[Message]) -> u64 {
    messages.iter().flat_map(|message| message.content.iter()).map(estimate_block).sum()
}

/// Estimates the tokens of a block.
pub(crate) fn estimate_block(block: &Block) -> u64 {
    estimate_json(block.json().as_str())
}

/// Estimates the tokens of a block that is nothing but this text.
pub(crate) fn estimate_text(text: &str) -> u64 {
    FRAME + prose_tokens(text)
}

/// Estimates the tokens of a block that is written as JSON.
pub(crate) fn estimate_json(json: &str) -> u64 {
    match MeasuredBlock::read(json) {
        Some(block) => block.tokens(json),
        None => FRAME + (json.len() as u64).div_ceil(4),
    }
}

/// What a block is measured by, read in one go; text without escapes is not copied.
#[derive(Deserialize)]
pub(crate) struct MeasuredBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    /// Of a call: its id.
    #[serde(borrow, default)]
    pub(crate) id: Option<Cow<'a, str>>,
    /// Of a call: the tool.
    #[serde(borrow, default)]
    pub(crate) name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    /// Of a result: the call it answers.
    #[serde(borrow, default)]
    pub(crate) tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl<'a> MeasuredBlock<'a> {
    /// Reads a block; `None` when it is none, or its fields are not what those names stand for.
    pub(crate) fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    pub(crate) fn kind(&self) -> BlockKind {
        BlockKind::from_name(&self.kind)
    }

    /// Tells whether it is text with a letter in it.
    pub(crate) fn has_words(&self) -> bool {
        self.kind() == BlockKind::Text && self.text.as_deref().is_some_and(|text| !text.trim().is_empty())
    }

    /// Estimates its tokens; `json` is what it was read from.
    pub(crate) fn tokens(&self, json: &str) -> u64 {
        let content = match self.kind() {
            BlockKind::Text => self.text.as_deref().map_or(0, prose_tokens),
            BlockKind::Thinking => self.thinking.as_deref().map_or(0, prose_tokens),
            BlockKind::RedactedThinking => 0,
            BlockKind::ToolUse => self.input.map_or(0, |input| json_tokens(input.get())),
            BlockKind::ToolResult => self.content.map_or(0, |content| estimate_result(content.get())),
            BlockKind::Image => IMAGE,
            BlockKind::Document => estimate_document(json),
            BlockKind::Other => (json.len() as u64).div_ceil(4),
        };
        FRAME + content
    }
}

/// Estimates text, or a list of blocks.
fn estimate_result(content: &str) -> u64 {
    if let Some(text) = json_text(content) {
        return prose_tokens(&text);
    }
    match serde_json::from_str::<Vec<&RawValue>>(content) {
        Ok(parts) => parts.iter().map(|part| estimate_json(part.get())).sum(),
        Err(_) => json_tokens(content),
    }
}

/// Reads a JSON string; `None` when it is something else.
pub(crate) fn json_text(json: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    json.starts_with('"').then(|| serde_json::from_str::<Text<'_>>(json).ok())?.map(|text| text.0)
}

/// A page of a document is shown as a picture and as its text; without opening it, its bytes must do: about one page
/// in 50,000 characters of base64, and no fewer than one.
fn estimate_document(json: &str) -> u64 {
    const CHARS_A_PAGE: u64 = 50_000;
    (json.len() as u64).div_ceil(CHARS_A_PAGE).max(1) * IMAGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn block(value: Value) -> Block {
        Block::from_value(&value).unwrap()
    }

    #[test]
    fn token_is_four_letters_of_prose_or_two_of_json() {
        for (text, prose, json) in [("", 0, 0), ("a", 1, 1), ("abcd", 1, 2), ("abcde", 2, 3), ("éééé", 1, 2)]
        {
            assert_eq!((prose_tokens(text), json_tokens(text)), (prose, json), "{text}");
        }
    }

    #[test]
    fn block_kinds_have_their_token_estimates() {
        let words = "word ".repeat(80);
        for (value, expected) in [
            (json!({"type": "text", "text": words}), 100),
            (json!({"type": "text", "text": ""}), 0),
            (json!({"type": "text", "text": "ü".repeat(8)}), 2),
            (json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}), 8),
            (json!({"type": "tool_result", "tool_use_id": "t", "content": words}), 100),
            (
                json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": words}]}),
                104,
            ),
            (json!({"type": "image", "source": {"type": "base64", "data": "x".repeat(90_000)}}), 2_000),
            (json!({"type": "document", "source": {"type": "base64", "data": "x".repeat(90_000)}}), 4_000),
        ] {
            assert_eq!(estimate_block(&block(value.clone())), FRAME + expected, "{value}");
        }
    }

    /// Counting what the server does not read would compact too early (regression class 4).
    #[test]
    fn signatures_and_sealed_reasoning_are_not_counted() {
        let thinking = json!({"type": "thinking", "thinking": "Hm. ", "signature": "x".repeat(9_000)});
        assert_eq!(estimate_block(&block(thinking)), FRAME + 1);
        let sealed = json!({"type": "redacted_thinking", "data": "x".repeat(9_000)});
        assert_eq!(estimate_block(&block(sealed)), FRAME);
    }
}
