//! Where rows of a terminal are after bytes of ours ran at a width that they were not made for.
//!
//! Only what a position depends on is kept: how many cells of each row are used, and which rows the terminal would join when it
//! gets wider. What cannot be known is taken so that a row is never thought to be further above the cursor than it is: who moves
//! up too few rows leaves some standing twice, who moves up too many overwrites what was final.

use std::ops::ControlFlow;

use super::row_diff;
use crate::text::{self, Row};

/// A row of the screen.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    /// Cells up to the last that was written.
    n_cells: usize,
    /// It goes on from the row above, which the terminal wrapped.
    is_joined: bool,
    /// Which of the rows that were laid it is, or began with.
    source: Option<usize>,
}

/// What is known of the rows from some row on.
#[derive(Debug)]
pub(super) struct Sketch {
    lines: Vec<Line>,
    row: usize,
    column: usize,
    width: usize,
    reflows: bool,
    first_touched: Option<usize>,
}

impl Sketch {
    /// Lays rows as they stand in a terminal of a width; the cursor is in the given one of them.
    pub(super) fn new<'a>(
        rows: impl Iterator<Item = &'a Row>,
        cursor: (usize, usize),
        width: usize,
        reflows: bool,
    ) -> Self {
        let mut sketch = Self {
            lines: Vec::new(),
            row: 0,
            column: cursor.1.min(width.saturating_sub(1)),
            width: width.max(1),
            reflows,
            first_touched: None,
        };
        for (idx, row) in rows.enumerate() {
            if idx == cursor.0 {
                sketch.row = sketch.lines.len();
            }
            let parts = row_diff::split(row, sketch.width);
            let lines = parts.iter().enumerate();
            sketch.lines.extend(lines.map(|(part, row)| Line {
                n_cells: row.width(),
                is_joined: part > 0,
                source: Some(idx),
            }));
        }
        if sketch.lines.is_empty() {
            sketch.lines.push(Line::default());
        }
        sketch.row = sketch.row.min(sketch.lines.len() - 1);
        sketch
    }

    /// Gives the terminal another width.
    pub(super) fn resize(&mut self, width: usize) {
        let width = width.max(1);
        if width == self.width {
            return;
        }
        if self.reflows {
            self.wrap_anew(width);
        }
        self.width = width;
        self.column = self.column.min(width - 1);
    }

    fn wrap_anew(&mut self, width: usize) {
        let mut lines: Vec<Line> = Vec::with_capacity(self.lines.len());
        let (mut row, mut column) = (0, self.column);
        let mut at = 0;
        while at < self.lines.len() {
            let n_joined = self.lines[at + 1..].iter().take_while(|line| line.is_joined).count();
            let group = &self.lines[at..=at + n_joined];
            let n_cells: usize = group.iter().map(|line| line.n_cells).sum();
            if (at..=at + n_joined).contains(&self.row) {
                let before: usize = group[..self.row - at].iter().map(|line| line.n_cells).sum();
                let is_in_text = self.column < self.lines[self.row].n_cells;
                // Behind the text the cursor stays in the last row of it.
                let offset = if is_in_text { before + self.column } else { n_cells.max(1) - 1 };
                row = lines.len() + offset / width;
                column = if is_in_text { offset % width } else { self.column.min(width - 1) };
            }
            let source = group.iter().filter_map(|line| line.source).min();
            for part in 0..n_cells.max(1).div_ceil(width) {
                let n_cells = (n_cells - part * width).min(width);
                lines.push(Line { n_cells, is_joined: part > 0, source });
            }
            at += n_joined + 1;
        }
        (self.lines, self.row, self.column) = (lines, row, column);
    }

    /// Has the terminal do what a frame says.
    pub(super) fn run(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let mut rest = text.as_ref();
        while let ControlFlow::Continue(next) = self.step(rest) {
            rest = next;
        }
    }

    fn step<'a>(&mut self, rest: &'a str) -> ControlFlow<(), &'a str> {
        if let Some(rest) = rest.strip_prefix("\x1b[") {
            let Some(end) = rest.find(|c: char| ('@'..='~').contains(&c)) else {
                return ControlFlow::Break(());
            };
            self.control(&rest[..end], rest.as_bytes()[end]);
            return ControlFlow::Continue(&rest[end + 1..]);
        }
        if let Some(rest) = rest.strip_prefix("\x1b]") {
            return rest
                .split_once("\x1b\\")
                .map_or(ControlFlow::Break(()), |(_, rest)| ControlFlow::Continue(rest));
        }
        let Some(cluster) = text::clusters(rest).next() else { return ControlFlow::Break(()) };
        match cluster {
            "\r\n" => {
                self.column = 0;
                self.feed();
            }
            "\r" => self.column = 0,
            "\n" => self.feed(),
            _ => self.put(text::cells(cluster)),
        }
        ControlFlow::Continue(&rest[cluster.len()..])
    }

    fn control(&mut self, parameter: &str, last: u8) {
        let n = parameter.parse().unwrap_or(1).max(1);
        match last {
            b'A' => self.row = self.row.saturating_sub(n),
            b'B' => self.row = (self.row + n).min(self.lines.len() - 1),
            b'G' => self.column = (n - 1).min(self.width - 1),
            b'J' => {
                self.lines.truncate(self.row + 1);
                self.erase();
            }
            b'K' => {
                self.erase();
                if parameter == "2" {
                    self.lines[self.row].n_cells = 0;
                }
            }
            b'L' => {
                self.touch();
                // What comes in stands where the row stood.
                let inserted = Line { source: self.lines[self.row].source, ..Line::default() };
                self.lines.splice(self.row..self.row, std::iter::repeat_n(inserted, n));
            }
            _ => {}
        }
    }

    /// Erased cells may count or not; a row that counts fewer has fewer rows at another width.
    fn erase(&mut self) {
        self.touch();
        let line = &mut self.lines[self.row];
        line.n_cells = line.n_cells.min(self.column);
    }

    fn feed(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Line::default());
        }
    }

    fn put(&mut self, n_cells: usize) {
        if self.column + n_cells > self.width {
            self.feed();
            self.column = 0;
            self.lines[self.row].is_joined = true;
        }
        self.touch();
        self.column += n_cells;
        let line = &mut self.lines[self.row];
        line.n_cells = line.n_cells.max(self.column);
    }

    fn touch(&mut self) {
        let source = self.lines[self.row].source;
        self.first_touched = [self.first_touched, source].into_iter().flatten().min();
    }

    /// Returns the first of the rows that were laid of which something was overwritten.
    pub(super) fn first_touched(&self) -> Option<usize> {
        self.first_touched
    }

    /// Returns how far above the cursor a row that was laid begins; none where it is below, or gone.
    pub(super) fn rows_above_cursor(&self, source: usize) -> usize {
        let begin = self.lines.iter().position(|line| line.source.is_some_and(|it| it >= source));
        begin.map_or(0, |begin| self.row.saturating_sub(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lays rows at a width with the cursor at the end of the last, runs bytes at another and says how far each row is above the
    /// cursor at the third.
    fn check(rows: &[&str], widths: [usize; 3], bytes: &str, expected: &[usize], touched: Option<usize>) {
        let laid: Vec<Row> = rows.iter().map(|row| Row::plain(*row)).collect();
        let cursor = (laid.len() - 1, laid[laid.len() - 1].width());
        let mut sketch = Sketch::new(laid.iter(), cursor, widths[0], true);
        sketch.resize(widths[1]);
        sketch.run(bytes.as_bytes());
        sketch.resize(widths[2]);
        let above: Vec<usize> = (0..rows.len()).map(|row| sketch.rows_above_cursor(row)).collect();
        assert_eq!((above.as_slice(), sketch.first_touched()), (expected, touched), "{rows:?} {bytes:?}");
    }

    #[test]
    fn rows_are_found_after_frames_of_another_width() {
        let rows = ["one row of twenty ce", "two", "> key"];
        check(&rows, [20, 20, 20], "", &[2, 1, 0], None);
        check(&rows, [20, 20, 10], "", &[3, 1, 0], None);
        check(&rows, [20, 10, 20], "", &[2, 1, 0], None);
        check(&rows, [20, 10, 10], "\r> key\x1b[2A\x1b[2Gx\n\n", &[3, 1, 0], Some(0));
        check(&rows, [20, 20, 20], "\r\nnew row\r\n> ", &[4, 3, 2], None);
        // A text that wraps joins with the row below it: that is one row when there is room for it.
        check(&rows, [20, 3, 20], "\x1b[2A\rtwo more\r", &[1, 0, 0], Some(1));
        // Too high: what was overwritten is said.
        check(&rows, [10, 20, 20], "\x1b[3A\x1b[J\rnew", &[0, 0, 0], Some(0));
        check(&rows, [20, 20, 20], "\n\x1b[3A\x1b[L\rnew\n\n\n", &[3, 1, 0], Some(0));
        check(&["漢字漢字", "> "], [9, 5, 5], "\x1b[?25l\x1b]8;;x\x1b\\a\x1b[m", &[2, 0], Some(1));
    }
}
