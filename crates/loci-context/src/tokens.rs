//! How many tokens something takes: what the server counted, and estimates for what it has not seen yet.
//!
//! Claude's tokenizer is not public. Prose runs at about four characters a token, JSON at two; a picture counts two
//! thousand whatever its size. Reasoning counts by its text alone, because signatures are not read as text.

use loci_core::entry::{Entry, EntryKind};
use loci_core::message::{Block, BlockKind, Message};
use serde_json::Value;

use crate::projection::attachment_blocks;
use crate::replaced::Replaced;

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

/// Estimates the tokens of what an entry adds to what is sent.
pub(crate) fn entry_tokens(entry: &Entry, replaced: &Replaced) -> u64 {
    let head = entry.head();
    match head.kind {
        EntryKind::User => {
            entry.blocks().into_iter().map(|block| estimate_block(&replaced.apply(block))).sum()
        }
        EntryKind::Assistant if !head.is_api_error => entry.blocks().iter().map(estimate_block).sum(),
        EntryKind::Attachment => {
            let blocks = entry.attachment().map(|attachment| attachment_blocks(&attachment));
            blocks.unwrap_or_default().iter().map(estimate_block).sum()
        }
        EntryKind::System => entry.fields().read::<String>("content").as_deref().map_or(0, prose_tokens),
        EntryKind::Assistant | EntryKind::Progress | EntryKind::Metadata => 0,
    }
}

/// Estimates the tokens of a block.
pub(crate) fn estimate_block(block: &Block) -> u64 {
    FRAME
        + match block.kind() {
            BlockKind::Text => block.text().as_deref().map_or(0, prose_tokens),
            BlockKind::Thinking => text_field(block, "thinking"),
            BlockKind::RedactedThinking => 0,
            BlockKind::ToolUse => block.tool_use().map_or(0, |call| json_tokens(&call.input.to_string())),
            BlockKind::ToolResult => block.tool_result().map_or(0, |result| estimate_result(&result.content)),
            BlockKind::Image => IMAGE,
            BlockKind::Document => estimate_document(block),
            BlockKind::Other => (block.json().as_str().len() as u64).div_ceil(4),
        }
}

fn text_field(block: &Block, key: &str) -> u64 {
    block.to_value().get(key).and_then(Value::as_str).map_or(0, prose_tokens)
}

fn estimate_result(content: &Value) -> u64 {
    match content {
        Value::String(text) => prose_tokens(text),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| Block::from_value(part).ok())
            .map(|block| estimate_block(&block))
            .sum(),
        other => json_tokens(&other.to_string()),
    }
}

/// A page of a document is shown as a picture and as its text; without opening it, its bytes must do: about one page
/// in 50,000 characters of base64, and no fewer than one.
fn estimate_document(block: &Block) -> u64 {
    const CHARS_A_PAGE: u64 = 50_000;
    (block.json().as_str().len() as u64).div_ceil(CHARS_A_PAGE).max(1) * IMAGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn block(value: Value) -> Block {
        Block::from_value(&value).unwrap()
    }

    #[test]
    fn four_letters_of_prose_and_two_of_json() {
        for (text, prose, json) in [("", 0, 0), ("a", 1, 1), ("abcd", 1, 2), ("abcde", 2, 3), ("éééé", 1, 2)]
        {
            assert_eq!((prose_tokens(text), json_tokens(text)), (prose, json), "{text}");
        }
    }

    #[test]
    fn each_kind_has_its_measure() {
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
