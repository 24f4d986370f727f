//! The text of the input as lines, with places in it and the steps between them.

use unicode_segmentation::GraphemeCursor;

use super::chip::Chips;
use super::layout::RowStarts;

/// A place in the text: which line, and before which of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) byte: usize,
}

/// Lines of text; there is always one.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Default)]
struct Line {
    text: String,
    rows: RowStarts,
}

impl Line {
    fn new(text: String) -> Self {
        Self { text, rows: RowStarts::default() }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self { lines: vec![Line::default()] }
    }
}

impl Buffer {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.len() == 1 && self.lines[0].text.is_empty()
    }

    pub(super) fn n_lines(&self) -> usize {
        self.lines.len()
    }

    /// A line without its end; nothing behind the last one.
    pub(super) fn line(&self, line: usize) -> &str {
        self.lines.get(line).map_or("", |line| &line.text)
    }

    pub(super) fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|line| line.text.as_str()).collect();
        lines.join("\n")
    }

    /// Where a row of a line begins, if there is such a row.
    pub(super) fn row_start(
        &mut self,
        line: usize,
        row: usize,
        width: usize,
        chips: &Chips,
    ) -> Option<usize> {
        let line = self.lines.get_mut(line)?;
        line.rows.start(&line.text, width, chips, row)
    }

    /// The row of its line that a place is in.
    pub(super) fn row_of(&mut self, at: Position, width: usize, chips: &Chips) -> usize {
        self.lines.get_mut(at.line).map_or(0, |line| line.rows.row_of(&line.text, width, chips, at.byte))
    }

    /// The last row of a line.
    pub(super) fn last_row(&mut self, line: usize, width: usize, chips: &Chips) -> usize {
        self.lines.get_mut(line).map_or(0, |line| line.rows.last_row(&line.text, width, chips))
    }

    pub(super) fn end(&self) -> Position {
        let line = self.lines.len() - 1;
        Position { line, byte: self.line(line).len() }
    }

    pub(super) fn line_end(&self, line: usize) -> Position {
        Position { line, byte: self.line(line).len() }
    }

    /// Puts text in and returns the place behind it.
    pub(super) fn insert(&mut self, at: Position, text: &str) -> Position {
        let mut parts = text.split('\n');
        let first = parts.next().unwrap_or_default();
        let line = &mut self.lines[at.line];
        let Some(second) = parts.next() else {
            line.text.insert_str(at.byte, first);
            line.rows.note_change(at.byte);
            return Position { line: at.line, byte: at.byte + first.len() };
        };
        let tail = line.text.split_off(at.byte);
        line.text.push_str(first);
        line.rows.note_change(at.byte);
        let mut fresh: Vec<Line> =
            std::iter::once(second).chain(parts).map(|part| Line::new(part.to_owned())).collect();
        let end =
            Position { line: at.line + fresh.len(), byte: fresh.last().map_or(0, |line| line.text.len()) };
        if let Some(last) = fresh.last_mut() {
            last.text.push_str(&tail);
        }
        self.lines.splice(at.line + 1..at.line + 1, fresh);
        end
    }

    /// Takes text out and returns it.
    pub(super) fn remove(&mut self, from: Position, to: Position) -> String {
        if from.line == to.line {
            let line = &mut self.lines[from.line];
            line.rows.note_change(from.byte);
            return line.text.drain(from.byte..to.byte).collect();
        }
        let removed = self.slice(from, to);
        let tail = self.lines[to.line].text.split_off(to.byte);
        let line = &mut self.lines[from.line];
        line.rows.note_change(from.byte);
        line.text.truncate(from.byte);
        line.text.push_str(&tail);
        self.lines.drain(from.line + 1..=to.line);
        removed
    }

    pub(super) fn slice(&self, from: Position, to: Position) -> String {
        if from.line == to.line {
            return self.line(from.line)[from.byte..to.byte].to_owned();
        }
        let mut text = self.line(from.line)[from.byte..].to_owned();
        for line in from.line + 1..to.line {
            text.push('\n');
            text.push_str(self.line(line));
        }
        text.push('\n');
        text.push_str(&self.line(to.line)[..to.byte]);
        text
    }

    /// The place behind the next cluster, or the beginning of the next line.
    pub(super) fn right_of(&self, at: Position) -> Option<Position> {
        let line = self.line(at.line);
        if at.byte < line.len() {
            let mut cursor = GraphemeCursor::new(at.byte, line.len(), true);
            let byte = cursor.next_boundary(line, 0).ok().flatten().unwrap_or(line.len());
            return Some(Position { byte, ..at });
        }
        (at.line + 1 < self.lines.len()).then_some(Position { line: at.line + 1, byte: 0 })
    }

    /// The place before the last cluster, or the end of the line before.
    pub(super) fn left_of(&self, at: Position) -> Option<Position> {
        if at.byte > 0 {
            let line = self.line(at.line);
            let mut cursor = GraphemeCursor::new(at.byte, line.len(), true);
            let byte = cursor.prev_boundary(line, 0).ok().flatten().unwrap_or(0);
            return Some(Position { byte, ..at });
        }
        at.line.checked_sub(1).map(|line| self.line_end(line))
    }

    /// The place itself, or the nearest before it where there is no such place.
    pub(super) fn nearest(&self, at: Position) -> Position {
        let line = at.line.min(self.lines.len() - 1);
        let text = self.line(line);
        let byte = at.byte.min(text.len());
        Position { line, byte: (0..=byte).rev().find(|byte| text.is_char_boundary(*byte)).unwrap_or(0) }
    }

    /// How many bytes of the text stand before a place.
    pub(super) fn offset(&self, at: Position) -> usize {
        let before: usize = self.lines[..at.line].iter().map(|line| line.text.len() + 1).sum();
        before + at.byte
    }

    /// The place before which so many bytes stand, at most the end.
    pub(super) fn position(&self, offset: usize) -> Position {
        let mut left = offset;
        for (line, found) in self.lines.iter().enumerate() {
            if left <= found.text.len() {
                let byte = (0..=left).rev().find(|byte| found.text.is_char_boundary(*byte)).unwrap_or(0);
                return Position { line, byte };
            }
            left -= found.text.len() + 1;
        }
        self.end()
    }
}
