//! What the pager shows: blocks that are final, and those that may still change behind them.

use std::ops::Range;

use crate::app::block_log::BlockLog;
use crate::app::conversation::{Conversation, Item};
use crate::app::virtual_list::{BlockRows, RowSource, broken};
use crate::block::Block;
use crate::render::{RenderContext, has_gap, render_block};
use crate::text::Row;

/// The blocks of a conversation, oldest first.
pub(crate) struct PagerSource<'a> {
    stable: Stable<'a>,
    /// What is not in the scrollback yet, or still changes.
    live: Vec<Block>,
    n_left_out: usize,
}

enum Stable<'a> {
    /// What the interface remembers.
    Log(&'a BlockLog),
    /// What was read.
    Whole(&'a [Block]),
}

impl<'a> PagerSource<'a> {
    /// Shows what the interface remembers.
    pub(crate) fn of_log(log: &'a BlockLog, conversation: &Conversation) -> Self {
        let n_left_out = log.n_left_out();
        Self { stable: Stable::Log(log), live: live_blocks(conversation, 0), n_left_out }
    }

    /// Shows what was read, and what came since: the first items of the conversation are in what was read.
    pub(crate) fn of_whole(whole: &'a [Block], conversation: &Conversation, n_read_items: usize) -> Self {
        Self { stable: Stable::Whole(whole), live: live_blocks(conversation, n_read_items), n_left_out: 0 }
    }

    /// Returns how many blocks before the first are not here.
    pub(crate) fn n_left_out(&self) -> usize {
        self.n_left_out
    }

    fn stable_numbers(&self) -> Range<usize> {
        match self.stable {
            Stable::Log(log) => log.numbers(),
            Stable::Whole(whole) => 0..whole.len(),
        }
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Block> {
        match number.checked_sub(self.stable_numbers().end) {
            Some(idx) => self.live.get(idx),
            None => match self.stable {
                Stable::Log(log) => log.get(number),
                Stable::Whole(whole) => whole.get(number),
            },
        }
    }

    pub(crate) fn is_prompt(&self, idx: usize) -> bool {
        matches!(self.get(idx), Some(Block::Prompt { .. }))
    }

    /// Tells whether a block has a text, given in small letters.
    pub(crate) fn contains(&self, idx: usize, search: &str) -> bool {
        self.get(idx).is_some_and(|block| texts(block).any(|text| text.to_lowercase().contains(search)))
    }

    /// Returns all blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.numbers().filter_map(|number| self.get(number))
    }
}

impl RowSource for PagerSource<'_> {
    fn numbers(&self) -> Range<usize> {
        let stable = self.stable_numbers();
        stable.start..stable.end + self.live.len()
    }

    fn rows(&self, number: usize, ctx: &RenderContext) -> BlockRows {
        let Some(block) = self.get(number) else { return BlockRows::default() };
        let before = number.checked_sub(1).and_then(|before| self.get(before));
        let mut rows: Vec<Row> = Vec::new();
        if before.is_some_and(|before| has_gap(before, block)) {
            rows.push(Row::default());
        }
        rows.extend(render_block(block, ctx));
        BlockRows::new(broken(rows, ctx.width))
    }

    fn is_stable(&self, number: usize) -> bool {
        self.stable_numbers().contains(&number)
    }
}

fn live_blocks(conversation: &Conversation, n_skipped: usize) -> Vec<Block> {
    let block = |item: &Item| match item {
        Item::Final(block) => block.clone(),
        Item::Answer { source, .. } => Block::Answer { markdown: source.clone() },
        Item::Thinking { text, .. } => Block::Thinking { text: text.clone(), duration: None },
        Item::Shell { command, output, .. } => {
            Block::Shell { command: command.clone(), output: output.clone(), exit_code: None }
        }
        Item::Call { block, .. } => Block::Call(block.clone()),
    };
    conversation.items().skip(n_skipped).map(block).collect()
}

/// Returns what of a block is looked into; names of tools and the like are seen beside it.
fn texts(block: &Block) -> impl Iterator<Item = &str> {
    let texts: Vec<&str> = match block {
        Block::Prompt { text, .. }
        | Block::Thinking { text, .. }
        | Block::Notice { text, .. }
        | Block::Compaction { text }
        | Block::TurnEnd { text } => vec![text],
        Block::Answer { markdown } | Block::Output { markdown } => vec![markdown],
        Block::Shell { command, output, .. } => vec![command, output],
        Block::Call(call) => {
            let mut texts: Vec<&str> = vec![&call.tool, &call.summary, &call.output];
            if let Some(diff) = &call.diff {
                texts.extend([diff.path.as_str(), &diff.before, &diff.after]);
            }
            texts
        }
    };
    texts.into_iter()
}
