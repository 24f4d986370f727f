//! A response as it arrives, block by block.

use std::collections::BTreeMap;

use loci_core::message::{Block, BlockKind};
use loci_core::stream::{Delta, Started, StreamEvent};

use super::clumsy_calls::is_written_call;

/// What has been heard of a response so far.
#[derive(Debug, Default)]
pub(super) struct Response {
    started: Option<Started>,
    blocks: BTreeMap<usize, Block>,
    partial: BTreeMap<usize, String>,
}

impl Response {
    pub(super) fn on_stream_event(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Started(started) => self.started = Some(started.clone()),
            StreamEvent::Delta { index, delta: Delta::Text(text) } => {
                self.partial.entry(*index).or_default().push_str(text);
            }
            StreamEvent::BlockDone { index, block } => {
                self.partial.remove(index);
                self.blocks.insert(*index, block.clone());
            }
            StreamEvent::Delta { .. }
            | StreamEvent::BlockStarted { .. }
            | StreamEvent::Wire(_)
            | StreamEvent::Ended(_) => {}
        }
    }

    /// Returns the text of the block that is still being written.
    pub(super) fn partial_text(&self) -> Option<String> {
        self.partial.values().next_back().filter(|text| !text.trim().is_empty()).cloned()
    }

    /// Returns true when a complete call was heard: repeating the request could run it twice.
    pub(super) fn has_call(&self) -> bool {
        self.blocks.values().any(|block| block.kind() == BlockKind::ToolUse)
    }

    /// Returns true when a complete text was heard, which people have read by now.
    pub(super) fn has_text(&self) -> bool {
        self.blocks.values().any(|block| block.text().is_some_and(|text| !text.trim().is_empty()))
    }

    /// Returns true when there is nothing in it for anybody to read or do.
    pub(super) fn is_silent(&self) -> bool {
        self.blocks.values().all(|block| match block.kind() {
            BlockKind::Text => block.text().is_none_or(|text| text.trim().is_empty()),
            kind => kind.is_thinking(),
        })
    }

    /// Returns true when a call was written as text.
    pub(super) fn has_written_call(&self) -> bool {
        self.blocks.values().filter_map(Block::text).any(|text| is_written_call(&text))
    }

    /// Returns true when anything at all was heard.
    pub(super) fn has_begun(&self) -> bool {
        self.started.is_some()
    }

    pub(super) fn into_parts(self) -> (Option<Started>, Vec<Block>) {
        (self.started, self.blocks.into_values().collect())
    }
}
