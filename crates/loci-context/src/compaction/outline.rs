//! A conversation as plain text, for requests that cannot hold it as messages.

use loci_core::entry::{Entry, EntryKind};
use loci_core::message::{Block, BlockKind};
use serde_json::Value;

use super::clip::clip;
use crate::projection::attachment_text;
use crate::replaced::Replaced;

/// Renders an entry, each block of it cut to so many characters; empty when the model was never shown it.
pub(super) fn outline(entry: &Entry, replaced: &Replaced, most_chars: usize) -> String {
    let head = entry.head();
    let lines: Vec<String> = match head.kind {
        EntryKind::User => entry
            .blocks()
            .into_iter()
            .map(|block| excerpt("User", &replaced.apply(block), most_chars))
            .collect(),
        EntryKind::Assistant if !head.is_api_error => {
            entry.blocks().iter().map(|block| excerpt("Assistant", block, most_chars)).collect()
        }
        EntryKind::Attachment => {
            vec![clip(&attachment_text(entry), most_chars)]
        }
        EntryKind::Assistant | EntryKind::System | EntryKind::Progress | EntryKind::Metadata => Vec::new(),
    };
    lines.into_iter().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

fn excerpt(who: &str, block: &Block, most_chars: usize) -> String {
    match block.kind() {
        BlockKind::Text => match block.text().unwrap_or_default() {
            text if text.trim().is_empty() => String::new(),
            text => format!("{who}: {}", clip(&text, most_chars)),
        },
        BlockKind::ToolUse => block
            .tool_use()
            .map(|call| format!("Call {} {}", call.name, clip(&call.input.to_string(), most_chars)))
            .unwrap_or_default(),
        BlockKind::ToolResult => block
            .tool_result()
            .map(|result| format!("Result: {}", clip(&result_text(&result.content), most_chars)))
            .unwrap_or_default(),
        BlockKind::Image => "[image]".to_owned(),
        BlockKind::Document => "[document]".to_owned(),
        BlockKind::Thinking | BlockKind::RedactedThinking | BlockKind::Other => String::new(),
    }
}

fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| Block::from_value(part).ok()).map(|block| match block
                .kind()
            {
                BlockKind::Text => block.text().unwrap_or_default(),
                BlockKind::Image => "[image]".to_owned(),
                _ => "[document]".to_owned(),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}
