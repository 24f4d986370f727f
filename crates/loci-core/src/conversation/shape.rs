//! What a message entry holds, as far as the pairing of calls and results asks.

use crate::entry::{Entry, EntryKind};
use crate::ids::ToolUseId;
use crate::message::{Block, BlockKind};

/// The calls and results of one entry, and whether it holds anything besides.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) calls: Vec<ToolUseId>,
    pub(super) results: Vec<ToolUseId>,
    /// Something other than calls, results, reasoning and blank text.
    pub(super) has_words: bool,
    /// A call or result that no server would take.
    pub(super) has_unusable: bool,
}

impl Shape {
    pub(super) fn from_entry(entry: &Entry) -> Self {
        let mut shape = Self::default();
        if !matches!(entry.head().kind, EntryKind::User | EntryKind::Assistant) {
            return shape;
        }
        let is_user = entry.head().kind == EntryKind::User;
        for block in entry.blocks() {
            match block.kind() {
                _ if !is_usable(&block, is_user) => shape.has_unusable = true,
                BlockKind::ToolUse => shape.calls.extend(block.tool_use().map(|call| call.id)),
                BlockKind::ToolResult => {
                    shape.results.extend(block.tool_result().map(|result| result.tool_use_id));
                }
                BlockKind::Text => shape.has_words |= !block.is_blank(),
                BlockKind::Thinking | BlockKind::RedactedThinking => {}
                BlockKind::Image | BlockKind::Document | BlockKind::Other => shape.has_words = true,
            }
        }
        shape
    }

    /// Returns true for an entry that is nothing but answers to calls.
    pub(super) fn is_only_results(&self) -> bool {
        !self.results.is_empty() && self.calls.is_empty() && !self.has_words
    }
}

/// Tells whether a block may stand where it does: a call is the model's and has an id and a name, a result the user's and
/// says which call it answers.
pub(super) fn is_usable(block: &Block, is_user: bool) -> bool {
    match block.kind() {
        BlockKind::ToolUse => !is_user && block.tool_use().is_some(),
        BlockKind::ToolResult => is_user && block.tool_result().is_some(),
        _ => true,
    }
}
