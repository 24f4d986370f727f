//! What a message entry holds, as far as the pairing of calls and results asks.

use crate::entry::{Entry, EntryKind};
use crate::ids::ToolUseId;
use crate::message::BlockKind;

/// The calls and results of one entry, and whether it holds anything besides.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) calls: Vec<ToolUseId>,
    pub(super) results: Vec<ToolUseId>,
    /// Something other than calls, results, reasoning and blank text.
    pub(super) has_words: bool,
}

impl Shape {
    pub(super) fn of(entry: &Entry) -> Self {
        let mut shape = Self::default();
        if !matches!(entry.head().kind, EntryKind::User | EntryKind::Assistant) {
            return shape;
        }
        let is_user = entry.head().kind == EntryKind::User;
        for block in entry.blocks() {
            match block.kind() {
                BlockKind::ToolUse if !is_user => shape.calls.extend(block.tool_use().map(|call| call.id)),
                BlockKind::ToolResult if is_user => {
                    shape.results.extend(block.tool_result().map(|result| result.tool_use_id));
                }
                BlockKind::Text => shape.has_words |= !block.is_blank(),
                BlockKind::Thinking | BlockKind::RedactedThinking => {}
                BlockKind::ToolUse
                | BlockKind::ToolResult
                | BlockKind::Image
                | BlockKind::Document
                | BlockKind::Other => shape.has_words = true,
            }
        }
        shape
    }

    /// Returns true for an entry that is nothing but answers to calls.
    pub(super) fn is_only_results(&self) -> bool {
        !self.results.is_empty() && self.calls.is_empty() && !self.has_words
    }
}
