//! What was said lately, as blocks: for the fullscreen renderer, the transcript pager and `/copy`.
//!
//! Inline the scrollback has all of it; this is what can be searched and copied as its source. It is bounded: what is older
//! is on disk. Each block has a number that stays its own.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use crate::block::Block;

/// The most bytes of text that are kept.
const MOST_BYTES: usize = 4_000_000;
/// The most blocks that are kept.
const MOST_BLOCKS: usize = 10_000;

/// The last blocks, oldest first.
#[derive(Debug)]
pub(crate) struct BlockLog {
    blocks: VecDeque<Block>,
    n_bytes: usize,
    most_bytes: usize,
    n_dropped: usize,
    /// The number of the first block that is kept.
    first: usize,
    /// Numbers before which a group of calls has ended, because a turn had.
    group_ends: BTreeSet<usize>,
}

impl Default for BlockLog {
    fn default() -> Self {
        Self::bounded(MOST_BYTES)
    }
}

impl BlockLog {
    /// Keeps so many bytes of text.
    pub(crate) fn bounded(most_bytes: usize) -> Self {
        Self {
            blocks: VecDeque::new(),
            n_bytes: 0,
            most_bytes,
            n_dropped: 0,
            first: 0,
            group_ends: BTreeSet::new(),
        }
    }

    /// Adds one; the oldest go where there are too many.
    pub(crate) fn push(&mut self, block: Block) {
        self.n_bytes += size(&block);
        self.blocks.push_back(block);
        while self.n_bytes > self.most_bytes && self.blocks.len() > 1 || self.blocks.len() > MOST_BLOCKS {
            let Some(dropped) = self.blocks.pop_front() else { return };
            self.n_bytes = self.n_bytes.saturating_sub(size(&dropped));
            self.n_dropped += 1;
            self.group_ends.remove(&self.first);
            self.first += 1;
        }
    }

    /// Notes that no call joins those at the end any more.
    pub(crate) fn end_group(&mut self) {
        if matches!(self.blocks.back(), Some(Block::Call(_))) {
            self.group_ends.insert(self.numbers().end);
        }
    }

    /// Tells whether the calls before a number are a group of their own.
    pub(crate) fn is_group_end(&self, number: usize) -> bool {
        self.group_ends.contains(&number)
    }

    /// Returns the numbers of the blocks.
    pub(crate) fn numbers(&self) -> Range<usize> {
        self.first..self.first + self.blocks.len()
    }

    /// Returns the block of a number.
    pub(crate) fn get(&self, number: usize) -> Option<&Block> {
        self.blocks.get(number.checked_sub(self.first)?)
    }

    /// Returns the source of an answer, the last being the first.
    pub(crate) fn answer(&self, n: usize) -> Option<&str> {
        let answers = self.blocks.iter().rev().filter_map(|block| match block {
            Block::Answer { markdown } => Some(markdown.as_str()),
            _ => None,
        });
        answers.filter(|markdown| !markdown.trim().is_empty()).nth(n)
    }

    /// Returns how many were said before the first that is kept, at least.
    pub(crate) fn n_left_out(&self) -> usize {
        self.n_dropped
    }

    /// Notes that so many were never here, since only the end of a session is shown.
    pub(crate) fn leave_out(&mut self, n: usize) {
        self.n_dropped += n;
    }

    /// Forgets everything: another session is shown. Numbers are not used twice.
    pub(crate) fn clear(&mut self) {
        *self = Self { first: self.numbers().end, ..Self::bounded(self.most_bytes) };
    }
}

/// About how much memory a block takes.
fn size(block: &Block) -> usize {
    64 + match block {
        Block::Prompt { text, .. }
        | Block::Thinking { text, .. }
        | Block::Notice { text, .. }
        | Block::Compaction { text }
        | Block::TurnEnd { text } => text.len(),
        Block::Answer { markdown } | Block::Output { markdown } => markdown.len(),
        Block::Shell { command, output, .. } => command.len() + output.len(),
        Block::Call(call) => {
            let diff = call.diff.as_ref().map_or(0, |diff| diff.before.len() + diff.after.len());
            call.summary.len() + call.output.len() + diff
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_bounded_and_the_last_answer_is_the_first() {
        let mut log = BlockLog::default();
        for idx in 0..50 {
            log.push(Block::Answer { markdown: format!("{idx}{}", "x".repeat(200_000)) });
        }
        assert!(log.n_bytes <= MOST_BYTES && log.n_dropped > 20, "{}", log.n_bytes);
        assert!(log.answer(0).is_some_and(|text| text.starts_with("49")));
        assert!(log.answer(1).is_some_and(|text| text.starts_with("48")));
        assert_eq!(log.answer(40), None);
        log.push(Block::Answer { markdown: " \n".into() });
        assert!(log.answer(0).is_some_and(|text| text.starts_with("49")), "an empty answer is none");
    }
}
