//! Frames that were written and of which the terminal has not said yet for which size it carried them out.
//!
//! Between the change of a window and the word of it there are some milliseconds, in tmux a quarter of a second. A frame that is
//! written meanwhile lands in other rows than it was made for: it may overwrite rows that were final, and what it made final may
//! not be there. The terminal is asked for its size behind every frame. What a frame made final counts when the answer
//! is the size it was made for. Otherwise the next frame begins above everything that may have been overwritten, and writes it
//! once more.

use std::collections::VecDeque;

use super::Size;
use super::sketch::{Reflow, Sketch};
use crate::text::Row;

/// So many final rows are remembered: more than a screen that a frame could overwrite by moving up too far.
const TAIL_LIMIT: usize = 200;
/// A terminal that owes so many answers gives none.
const FRAME_LIMIT: usize = 256;

/// A frame that was written.
#[derive(Debug)]
pub(super) struct SentFrame {
    /// The size for which it was made.
    pub(super) size: Size,
    /// The rows of the live region before it, and the size for which they were made.
    pub(super) shown: Vec<Row>,
    pub(super) laid_for: Size,
    /// The cursor before it: row of `shown`, and column.
    pub(super) cursor: (usize, usize),
    /// What it made final.
    pub(super) committed: Vec<Row>,
    pub(super) bytes: Vec<u8>,
    /// Whether it wrote everything anew from the first row that may be wrong.
    pub(super) is_anew: bool,
    /// The size for which the terminal carried it out, once it said so.
    pub(super) ran_at: Option<Size>,
}

/// What is to be written again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recovery {
    /// Final rows that may not be there.
    pub(super) owed: Vec<Row>,
    /// How many rows above the cursor they begin.
    pub(super) rows_above: usize,
}

/// The frames, and the final rows before them.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    tail: VecDeque<Row>,
    frames: VecDeque<SentFrame>,
}

impl InFlight {
    /// Notes a frame that is written now. One without bytes is not asked for: its rows became final where they stood.
    pub(super) fn push(&mut self, mut frame: SentFrame) {
        match self.frames.back_mut() {
            Some(last) if frame.bytes.is_empty() => return last.committed.append(&mut frame.committed),
            None if frame.bytes.is_empty() => {
                self.tail.extend(frame.committed);
                return;
            }
            _ => self.frames.push_back(frame),
        }
        if self.frames.len() > FRAME_LIMIT {
            self.settle(1);
        }
    }

    /// Takes the answer behind the oldest frame that has none; tells whether it was carried out for the size it was made for.
    pub(super) fn answer(&mut self, size: Size) -> bool {
        let Some(at) = self.frames.iter().position(|frame| frame.ran_at.is_none()) else { return true };
        let frame = &mut self.frames[at];
        frame.ran_at = Some(size);
        let is_right = frame.size == size;
        if is_right && (at == 0 || frame.is_anew) {
            self.settle(at + 1);
        }
        is_right
    }

    /// Forgets everything: what comes begins below all of it.
    pub(super) fn clear(&mut self) {
        self.tail.clear();
        self.frames.clear();
    }

    /// The first frames are carried out as they were meant, or made good by the last of them.
    fn settle(&mut self, n_frames: usize) {
        self.tail.extend(self.frames.drain(..n_frames).flat_map(|frame| frame.committed));
        let n_over = self.tail.len().saturating_sub(TAIL_LIMIT);
        self.tail.drain(..n_over);
    }

    /// Says what is to be written again in a terminal that has a size now; nothing when every frame was carried out as it was meant.
    pub(super) fn recover(&mut self, size: Size, reflows: bool) -> Option<Recovery> {
        if self.frames.is_empty() {
            return None;
        }
        let is_known = self.frames.iter().all(|frame| frame.ran_at.is_some());
        // A frame without an answer ran before the change or after it, and terminals differ in how they wrap. What any of them would
        // have overwritten is written again, from where it stands at the lowest.
        let ran_late: &[bool] = if is_known { &[true] } else { &[true, false] };
        let reflows: &[Reflow] = if reflows { &Reflow::ON } else { &Reflow::OFF };
        let guesses: Vec<Sketch> = ran_late
            .iter()
            .flat_map(|ran_late| reflows.iter().map(|reflow| self.sketch(size, *reflow, *ran_late)))
            .collect();
        let n_tail = self.tail.len();
        let touched = guesses.iter().filter_map(Sketch::first_touched).min();
        let first = touched.map_or(n_tail, |touched| touched.min(n_tail));
        let rows_above = guesses.iter().map(|sketch| sketch.rows_above_cursor(first)).min().unwrap_or(0);
        let again: Vec<Row> = self.tail.drain(first..).collect();
        let mut owed = again.clone();
        for frame in &mut self.frames {
            owed.append(&mut frame.committed);
        }
        if let Some(base) = self.frames.front_mut() {
            base.cursor.0 += again.len();
            base.shown.splice(0..0, again);
        }
        Some(Recovery { owed, rows_above })
    }

    fn sketch(&self, size: Size, reflow: Reflow, ran_late: bool) -> Sketch {
        let width = |size: Size| usize::from(size.width);
        let base = &self.frames[0];
        let rows = self.tail.iter().chain(&base.shown);
        let cursor = (self.tail.len() + base.cursor.0, base.cursor.1);
        let mut sketch = Sketch::new(rows, cursor, width(base.laid_for), reflow);
        for frame in &self.frames {
            let guess = if ran_late { size } else { frame.size };
            sketch.resize(width(frame.ran_at.unwrap_or(guess)));
            sketch.run(&frame.bytes);
        }
        sketch.resize(width(size));
        sketch
    }
}
