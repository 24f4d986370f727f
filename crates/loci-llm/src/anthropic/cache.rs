//! Where the prompt cache may end: at most four marks, the last of which moves with the conversation.

use loci_core::message::{Block, BlockKind, Role};

use crate::request::Request;

/// The most marks the API accepts, one of which is kept for the conversation.
const MOST_MARKS: usize = 4;

/// The places that get a cache mark.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    mark: &'static str,
    system: Vec<usize>,
    block: Option<(usize, usize)>,
}

impl Marks {
    /// Chooses the system blocks that asked for it and the end of the last user message.
    ///
    /// Of too many system blocks the last are taken, because each mark covers all before it.
    pub(crate) fn plan(request: &Request, mark: &'static str) -> Self {
        let wishes = request.system.iter().enumerate();
        let mut system: Vec<usize> = wishes
            .filter(|(_, block)| block.is_cached && !block.text.trim().is_empty())
            .map(|(idx, _)| idx)
            .collect();
        system.drain(..system.len().saturating_sub(MOST_MARKS - 1));
        Self { mark, system, block: conversation_end(request) }
    }

    /// Marks nothing.
    pub(crate) fn none() -> Self {
        Self { mark: "", system: Vec::new(), block: None }
    }

    /// Returns the mark of a system block, if it gets one.
    pub(crate) fn on_system(&self, idx: usize) -> Option<&'static str> {
        self.system.contains(&idx).then_some(self.mark)
    }

    /// Returns the mark of a block of a message, if it gets one.
    pub(crate) fn on_block(&self, message_idx: usize, block_idx: usize) -> Option<&'static str> {
        (self.block == Some((message_idx, block_idx))).then_some(self.mark)
    }
}

/// Returns the last block of the last user message, or the nearest block before it that can bear a mark.
fn conversation_end(request: &Request) -> Option<(usize, usize)> {
    let last_user = request.messages.iter().rposition(|message| message.role == Role::User)?;
    let messages = request.messages[..=last_user].iter().enumerate().rev();
    messages.filter_map(|(idx, message)| Some((idx, message.content.iter().rposition(can_bear_mark)?))).next()
}

/// The API refuses marks on reasoning and on empty text.
fn can_bear_mark(block: &Block) -> bool {
    match block.kind() {
        BlockKind::Thinking | BlockKind::RedactedThinking => false,
        BlockKind::Text => block.text().is_some_and(|text| !text.trim().is_empty()),
        BlockKind::ToolUse
        | BlockKind::ToolResult
        | BlockKind::Image
        | BlockKind::Document
        | BlockKind::Other => true,
    }
}
