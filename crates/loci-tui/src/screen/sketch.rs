//! Where rows of a terminal are after bytes of ours ran at a width that they were not made for.
//!
//! Only what a position depends on is kept: which cells of each row are used, which of them are no blanks, and which rows the
//! terminal would join when it gets wider. Terminals differ in that ([`Reflow`]); whoever asks looks at each way. What cannot be
//! known is taken so that a row is never thought to be further above the cursor than it is: who moves up too few rows leaves
//! some standing twice, who moves up too many overwrites what was final.

use std::ops::ControlFlow;

use super::row_diff;
use crate::text::{self, Row};

/// A row of the screen.
#[derive(Debug, Clone, Default)]
struct Line {
    /// Cells up to the last that was written: whether there is more in each than a blank.
    cells: Vec<bool>,
    /// It goes on from the row above, which the terminal wrapped.
    is_joined: bool,
    /// Which of the rows that were laid it is, or began with.
    source: Option<usize>,
}

/// What a terminal does with its rows when its width changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reflow {
    /// It wraps them anew.
    pub(super) is_on: bool,
    /// Blanks at the end of a row are wrapped with it; other terminals drop them.
    pub(super) keeps_blanks: bool,
    /// A row that went on from the one above still does so when it was erased and written anew.
    pub(super) joins_erased: bool,
}

impl Reflow {
    /// What terminals do that wrap rows anew, as far as they differ.
    pub(super) const ON: [Self; 4] =
        [Self::on(true, true), Self::on(true, false), Self::on(false, true), Self::on(false, false)];
    /// What those do that leave rows alone.
    pub(super) const OFF: [Self; 1] = [Self { is_on: false, ..Self::on(true, true) }];

    const fn on(keeps_blanks: bool, joins_erased: bool) -> Self {
        Self { is_on: true, keeps_blanks, joins_erased }
    }
}

/// What is known of the rows from some row on.
#[derive(Debug)]
pub(super) struct Sketch {
    lines: Vec<Line>,
    row: usize,
    column: usize,
    width: usize,
    reflow: Reflow,
    first_touched: Option<usize>,
}

impl Sketch {
    /// Lays rows as they stand in a terminal of a width; the cursor is in the given one of them.
    pub(super) fn new<'a>(
        rows: impl Iterator<Item = &'a Row>,
        cursor: (usize, usize),
        width: usize,
        reflow: Reflow,
    ) -> Self {
        let mut sketch = Self {
            lines: Vec::new(),
            row: 0,
            column: cursor.1.min(width.saturating_sub(1)),
            width: width.max(1),
            reflow,
            first_touched: None,
        };
        for (idx, row) in rows.enumerate() {
            if idx == cursor.0 {
                sketch.row = sketch.lines.len();
            }
            let parts = row_diff::split(row, sketch.width);
            let lines = parts.iter().enumerate();
            sketch.lines.extend(lines.map(|(part, row)| Line {
                cells: cells_of(row),
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
        if self.reflow.is_on {
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
            let mut cells: Vec<bool> = group.iter().flat_map(|line| &line.cells).copied().collect();
            if !self.reflow.keeps_blanks {
                cells.truncate(cells.iter().rposition(|is_text| *is_text).map_or(0, |last| last + 1));
            }
            if (at..=at + n_joined).contains(&self.row) {
                let before: usize = group[..self.row - at].iter().map(|line| line.cells.len()).sum();
                let is_in_text =
                    self.column < self.lines[self.row].cells.len() && before + self.column < cells.len();
                // Behind the text the cursor stays in the last row of it.
                let offset = if is_in_text { before + self.column } else { cells.len().max(1) - 1 };
                row = lines.len() + offset / width;
                column = if is_in_text { offset % width } else { self.column.min(width - 1) };
            }
            let source = group.iter().filter_map(|line| line.source).min();
            if cells.is_empty() {
                lines.push(Line { source, ..Line::default() });
            }
            for (part, cells) in cells.chunks(width).enumerate() {
                lines.push(Line { cells: cells.to_vec(), is_joined: part > 0, source });
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
            _ => self.put(text::cells(cluster), cluster == " "),
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
                    self.lines[self.row].cells.clear();
                    self.lines[self.row].is_joined &= self.reflow.joins_erased;
                }
            }
            b'L' => {
                self.touch();
                // What comes in stands where the row stood, which goes on from nothing any more.
                self.lines[self.row].is_joined = false;
                let inserted = Line { source: self.lines[self.row].source, ..Line::default() };
                self.lines.splice(self.row..self.row, std::iter::repeat_n(inserted, n));
            }
            _ => {}
        }
    }

    /// Erased cells may count or not; a row that counts fewer has fewer rows at another width.
    fn erase(&mut self) {
        self.touch();
        self.lines[self.row].cells.truncate(self.column);
    }

    fn feed(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Line::default());
        }
    }

    fn put(&mut self, n_cells: usize, is_blank: bool) {
        if self.column + n_cells > self.width {
            self.feed();
            self.column = 0;
            self.lines[self.row].is_joined = true;
        }
        self.touch();
        let cells = &mut self.lines[self.row].cells;
        let end = self.column + n_cells;
        cells.resize(cells.len().max(end), false);
        cells[self.column..end].fill(!is_blank);
        self.column = end;
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

fn cells_of(row: &Row) -> Vec<bool> {
    let clusters = row.spans.iter().flat_map(|span| text::clusters(&span.text));
    clusters.flat_map(|cluster| std::iter::repeat_n(cluster != " ", text::cells(cluster))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lays rows at a width with the cursor at the end of the last, runs bytes at another and says how far each row is above the
    /// cursor at the third.
    fn check(rows: &[&str], widths: [usize; 3], bytes: &str, expected: &[usize], touched: Option<usize>) {
        let laid: Vec<Row> = rows.iter().map(|row| Row::plain(*row)).collect();
        let cursor = (laid.len() - 1, laid[laid.len() - 1].width());
        let mut sketch = Sketch::new(laid.iter(), cursor, widths[0], Reflow::ON[0]);
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
