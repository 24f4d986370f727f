//! A list of blocks of which only those in sight, or passed on the way, are made into rows.
//!
//! A place in it is a block and a row of that, so that a key or a delta costs the same however long the list is. Blocks have
//! numbers that stay theirs while others come in behind them and go before them. Rows are kept for a width and a look.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::render::RenderContext;
use crate::screen::split_row;
use crate::text::Row;

/// How many blocks are kept as rows.
const MOST_CACHED: usize = 256;

/// A place: a block, and a row of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Position {
    pub(crate) block: usize,
    pub(crate) row: usize,
}

/// The rows of a block: those that stay, and behind them those that may still change.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockRows {
    pub(crate) done: Rc<Vec<Row>>,
    pub(crate) rest: Rc<Vec<Row>>,
}

impl BlockRows {
    /// Makes the rows of a block that is done.
    pub(crate) fn new(rows: Vec<Row>) -> Self {
        Self { done: Rc::new(rows), rest: Rc::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.done.len() + self.rest.len()
    }

    pub(crate) fn get(&self, row: usize) -> Option<&Row> {
        self.done.get(row).or_else(|| self.rest.get(row.checked_sub(self.done.len())?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.done.iter().chain(self.rest.iter())
    }
}

/// Where a list has its blocks from.
pub(crate) trait RowSource {
    /// Returns the numbers of the blocks.
    fn numbers(&self) -> Range<usize>;
    /// Returns the rows of a block, with the blank row that stands before it; none wider than the width.
    fn rows(&self, number: usize, ctx: &RenderContext) -> BlockRows;
    /// Tells whether a block can no longer change.
    fn is_stable(&self, number: usize) -> bool;
}

/// What of a list is seen.
#[derive(Debug, Default)]
pub(crate) struct VirtualList {
    position: Position,
    /// Whether the end stays in sight while more comes.
    pub(crate) is_at_end: bool,
    /// How many rows are seen.
    height: usize,
    cache: RefCell<RowCache>,
}

/// Rows of blocks that do not change.
#[derive(Debug, Default)]
struct RowCache {
    look: Option<RenderContext>,
    rows: HashMap<usize, BlockRows>,
}

impl VirtualList {
    /// Makes one that shows the end.
    pub(crate) fn at_end() -> Self {
        Self { is_at_end: true, ..Self::default() }
    }

    /// Takes how many rows are seen, and how they look; tells whether rows that were made before are others now.
    pub(crate) fn set_layout(&mut self, ctx: &RenderContext, height: usize) -> bool {
        self.height = height;
        let look = RenderContext { now: std::time::Duration::ZERO, ..ctx.clone() };
        let mut cache = self.cache.borrow_mut();
        if cache.look.as_ref() == Some(&look) {
            return false;
        }
        let is_other = cache.look.is_some();
        *cache = RowCache { look: Some(look), rows: HashMap::new() };
        is_other
    }

    pub(crate) fn height(&self) -> usize {
        self.height
    }

    /// Forgets all rows: there are other blocks now.
    pub(crate) fn forget_rows(&self) {
        self.cache.borrow_mut().rows.clear();
    }

    /// Forgets the rows of a block.
    pub(crate) fn forget(&self, number: usize) {
        self.cache.borrow_mut().rows.remove(&number);
    }

    /// Takes rows of a block that were made elsewhere.
    pub(crate) fn keep(&self, number: usize, rows: BlockRows) {
        let mut cache = self.cache.borrow_mut();
        if cache.look.is_some() {
            cache.rows.insert(number, rows);
        }
    }

    /// Returns the rows of a block.
    pub(crate) fn rows(&self, number: usize, source: &impl RowSource, ctx: &RenderContext) -> BlockRows {
        if let Some(rows) = self.cache.borrow().rows.get(&number) {
            return rows.clone();
        }
        let rows = source.rows(number, ctx);
        if source.is_stable(number) {
            let mut cache = self.cache.borrow_mut();
            if cache.rows.len() > MOST_CACHED {
                cache.rows.clear();
            }
            cache.rows.insert(number, rows.clone());
        }
        rows
    }

    #[cfg(test)]
    pub(crate) fn n_cached(&self) -> usize {
        self.cache.borrow().rows.len()
    }

    /// Goes to a place.
    pub(crate) fn go(&mut self, position: Position) {
        self.position = position;
        self.is_at_end = false;
    }

    /// Goes to the first row.
    pub(crate) fn go_to_start(&mut self, source: &impl RowSource) {
        self.go(Position { block: source.numbers().start, row: 0 });
    }

    /// Stays where it is, also when more comes.
    pub(crate) fn hold(&mut self, source: &impl RowSource, ctx: &RenderContext) {
        let at = self.settled(source, ctx);
        self.go(at);
    }

    /// Goes down by rows; at the end it stays there.
    pub(crate) fn down(&mut self, n: usize, source: &impl RowSource, ctx: &RenderContext) {
        let mut left = n;
        let mut at = self.settled(source, ctx);
        while left > 0 && at.block < source.numbers().end {
            let n_rows = self.rows(at.block, source, ctx).len();
            let step = left.min(n_rows.saturating_sub(at.row));
            left -= step;
            at.row += step;
            if at.row >= n_rows {
                at = Position { block: at.block + 1, row: 0 };
            }
        }
        let end = self.end(source, ctx);
        self.go(at.min(end));
        self.is_at_end = at >= end;
    }

    /// Goes up by rows.
    pub(crate) fn up(&mut self, n: usize, source: &impl RowSource, ctx: &RenderContext) {
        let mut left = n;
        let mut at = self.settled(source, ctx);
        let start = Position { block: source.numbers().start, row: 0 };
        while left > 0 && at > start {
            let step = left.min(at.row);
            left -= step;
            at.row -= step;
            if at.row == 0 && left > 0 {
                if at.block <= start.block {
                    break;
                }
                let block = at.block - 1;
                at = Position { block, row: self.rows(block, source, ctx).len() };
            }
        }
        self.go(at);
    }

    /// Returns the place from which the end is just seen.
    pub(crate) fn end(&self, source: &impl RowSource, ctx: &RenderContext) -> Position {
        let mut left = self.height.max(1);
        let numbers = source.numbers();
        for block in numbers.clone().rev() {
            let n_rows = self.rows(block, source, ctx).len();
            if n_rows >= left {
                return Position { block, row: n_rows - left };
            }
            left -= n_rows;
        }
        Position { block: numbers.start, row: 0 }
    }

    /// Returns where it stands: with the end in sight where that is wanted, and never before the first block.
    pub(crate) fn settled(&self, source: &impl RowSource, ctx: &RenderContext) -> Position {
        match self.is_at_end {
            true => self.end(source, ctx),
            false => self.position.max(Position { block: source.numbers().start, row: 0 }),
        }
    }

    /// Returns the rows that are seen, each with its place; what was made shorter meanwhile leaves no gap at the end.
    pub(crate) fn visible(&mut self, source: &impl RowSource, ctx: &RenderContext) -> Vec<(Position, Row)> {
        let mut seen = self.rows_from(self.settled(source, ctx), source, ctx);
        if seen.len() < self.height && !self.is_at_end {
            let end = self.end(source, ctx);
            self.go(end);
            seen = self.rows_from(end, source, ctx);
        }
        seen
    }

    fn rows_from(&self, at: Position, source: &impl RowSource, ctx: &RenderContext) -> Vec<(Position, Row)> {
        let mut seen = Vec::with_capacity(self.height);
        let mut first = at.row;
        for block in at.block..source.numbers().end {
            let rows = self.rows(block, source, ctx);
            for row in first..rows.len() {
                if seen.len() == self.height {
                    return seen;
                }
                seen.extend(rows.get(row).map(|it| (Position { block, row }, it.clone())));
            }
            first = 0;
        }
        seen
    }
}

/// Breaks rows that are left to the terminal to wrap elsewhere. A row that goes on in the next one is marked as overlong.
pub(crate) fn broken(rows: Vec<Row>, width: usize) -> Vec<Row> {
    let mut out = Vec::with_capacity(rows.len());
    for row in rows {
        let mut parts = split_row(&row, width);
        let last = parts.len() - 1;
        parts.iter_mut().enumerate().for_each(|(idx, part)| part.is_overlong = idx < last);
        out.extend(parts);
    }
    out
}
