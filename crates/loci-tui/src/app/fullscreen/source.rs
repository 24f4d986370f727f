//! What the fullscreen renderer shows: the blocks that are final, as inline shows them, and those that may still change.

use std::collections::HashSet;
use std::ops::Range;

use super::super::block_log::BlockLog;
use super::super::virtual_list::{BlockRows, RowSource, broken};
use crate::block::{Block, CallBlock};
use crate::render::{RenderContext, has_gap, is_groupable, render_block, render_call_group};
use crate::text::Row;

/// The blocks of the log, and rows of what comes behind them.
pub(super) struct ScreenSource<'a> {
    pub(super) log: &'a BlockLog,
    pub(super) live: Vec<BlockRows>,
    /// Blocks that are shown whole.
    pub(super) expanded: &'a HashSet<usize>,
    /// What the focus view shows of the last turn; none where everything is shown.
    pub(super) focus: Option<FocusedTurn>,
}

/// The last turn, as the focus view shows it.
#[derive(Debug, Clone, Default)]
pub(super) struct FocusedTurn {
    /// Its first block.
    pub(super) start: usize,
    /// The first call, in whose place the line about all of them stands.
    pub(super) call: Option<usize>,
    /// The answer that is shown.
    pub(super) answer: Option<usize>,
    /// The line about the calls.
    pub(super) summary: Vec<Row>,
}

impl FocusedTurn {
    /// Finds the last turn of a log; what comes behind it may have an answer already.
    pub(super) fn of(log: &BlockLog, has_live_answer: bool, summary: Vec<Row>) -> Self {
        let numbers = log.numbers();
        let mut turn = Self { start: numbers.start, summary, ..Self::default() };
        for number in numbers.rev() {
            match log.get(number) {
                Some(Block::Prompt { .. }) => {
                    turn.start = number;
                    break;
                }
                Some(Block::Answer { markdown }) if turn.answer.is_none() && !markdown.trim().is_empty() => {
                    turn.answer = Some(number);
                }
                Some(Block::Call(_)) => turn.call = Some(number),
                _ => {}
            }
        }
        if has_live_answer {
            turn.answer = None;
        }
        turn
    }

    fn rows(&self, number: usize, block: &Block, ctx: &RenderContext) -> Vec<Row> {
        let blank = (number > self.start).then(Row::default);
        let body = match block {
            Block::Call(_) if self.call == Some(number) => self.summary.clone(),
            Block::Answer { .. } if self.answer == Some(number) => render_block(block, ctx),
            Block::Call(_) | Block::Answer { .. } | Block::Thinking { .. } => Vec::new(),
            _ => render_block(block, ctx),
        };
        if body.is_empty() { body } else { blank.into_iter().chain(body).collect() }
    }
}

impl ScreenSource<'_> {
    /// Tells whether a block has more to show, or less, than it shows; returns the number that it is known by.
    pub(super) fn expandable(&self, number: usize, ctx: &RenderContext) -> Option<usize> {
        if self.focus.is_some() {
            return None;
        }
        let brief = RenderContext { is_verbose: false, ..ctx.clone() };
        let whole = RenderContext { is_verbose: true, ..ctx.clone() };
        (log_rows(self.log, number, &brief) != log_rows(self.log, number, &whole)).then_some(number)
    }
}

impl RowSource for ScreenSource<'_> {
    fn numbers(&self) -> Range<usize> {
        let numbers = self.log.numbers();
        let start = self.focus.as_ref().map_or(numbers.start, |focus| focus.start);
        start..numbers.end + self.live.len()
    }

    fn rows(&self, number: usize, ctx: &RenderContext) -> BlockRows {
        if let Some(idx) = number.checked_sub(self.log.numbers().end) {
            return self.live.get(idx).cloned().unwrap_or_default();
        }
        let rows = match (&self.focus, self.log.get(number)) {
            (Some(focus), Some(block)) => focus.rows(number, block, ctx),
            _ if self.expanded.contains(&number) => {
                log_rows(self.log, number, &RenderContext { is_verbose: true, ..ctx.clone() })
            }
            _ => log_rows(self.log, number, ctx),
        };
        BlockRows::new(broken(rows, ctx.width))
    }

    fn is_stable(&self, number: usize) -> bool {
        number < self.log.numbers().end
    }
}

/// Returns the rows of a block of the log, with the blank row before it. Calls that only looked are told by the first of
/// them, in one row; the others have none.
pub(crate) fn log_rows(log: &BlockLog, number: usize, ctx: &RenderContext) -> Vec<Row> {
    let Some(block) = log.get(number) else { return Vec::new() };
    let before = number.checked_sub(1).and_then(|before| log.get(before));
    let rows = match (block, before) {
        (Block::Call(call), Some(Block::Call(other)))
            if is_groupable(call) && is_groupable(other) && !log.is_group_end(number) =>
        {
            return Vec::new();
        }
        (Block::Call(call), _) if is_groupable(call) => render_call_group(&group_from(log, number), ctx),
        _ => render_block(block, ctx),
    };
    let has_blank = !rows.is_empty() && before.is_some_and(|before| has_gap(before, block));
    has_blank.then(Row::default).into_iter().chain(rows).collect()
}

/// Returns the calls from a number on that are told in one row.
fn group_from(log: &BlockLog, number: usize) -> Vec<&CallBlock> {
    let calls = (number..log.numbers().end).map_while(|at| match log.get(at) {
        Some(Block::Call(call)) if is_groupable(call) && (at == number || !log.is_group_end(at)) => {
            Some(call)
        }
        _ => None,
    });
    calls.collect()
}
