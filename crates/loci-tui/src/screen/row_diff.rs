//! A row over another one: only cells that differ are written.

use std::sync::Arc;

use super::pen::Pen;
use crate::text::{self, Row, Style};

/// A run of cells that did not change is written again if it is this short: a move would take as many bytes.
const SHORT_GAP: usize = 4;

struct Cell<'a> {
    column: usize,
    cells: usize,
    text: &'a str,
    style: Style,
    link: Option<&'a Arc<str>>,
}

impl Cell<'_> {
    fn looks_like(&self, other: &Cell<'_>) -> bool {
        self.column == other.column
            && self.text == other.text
            && self.style == other.style
            && self.link == other.link
    }
}

/// Writes the difference between what a row of the screen shows and what it is to show; the pen is in that row.
///
/// Both fit into the width. `is_whole` writes all of a row that differs, for terminals that merge scattered writes badly.
pub(super) fn write_difference(pen: &mut Pen, old: &Row, new: &Row, width: usize, is_whole: bool) {
    if old == new {
        return;
    }
    let is_plain = |row: &Row| row.spans.iter().all(|span| text::is_plain_ascii(&span.text));
    if old.spans.is_empty() && is_plain(new) {
        return write_plain(pen, new, width);
    }
    if let Some(column) = appended_at(old, new) {
        let span = &new.spans[0];
        pen.move_to_column(column);
        pen.write(&span.text[column..], span.style, span.link.as_ref());
        pen.column = (span.text.len() < width).then_some(span.text.len());
        return;
    }
    let (old_cells, new_cells) = (cells_of(old), cells_of(new));
    let mut is_changed = changes(&old_cells, &new_cells);
    if is_whole && is_changed.contains(&true) {
        is_changed.fill(true);
    }
    close_short_gaps(&mut is_changed);
    for (cell, _) in new_cells.iter().zip(&is_changed).filter(|(_, is_changed)| **is_changed) {
        write_cell(pen, cell, width);
    }
    let end = new_cells.last().map_or(0, |cell| cell.column + cell.cells);
    let old_end = old_cells.last().map_or(0, |cell| cell.column + cell.cells);
    if end < old_end {
        pen.move_to_column(end);
        pen.erase_to_row_end();
    }
}

/// Returns the column from which on a row of plain letters goes on where the old one ended, as that of a stream does.
fn appended_at(old: &Row, new: &Row) -> Option<usize> {
    let ([old], [new]) = (old.spans.as_slice(), new.spans.as_slice()) else { return None };
    let is_longer = old.style == new.style && old.link == new.link && new.text.starts_with(&old.text);
    (is_longer && text::is_plain_ascii(&new.text)).then_some(old.text.len())
}

/// Writes a row of plain letters where nothing is shown: the same bytes, without looking at every cell.
fn write_plain(pen: &mut Pen, row: &Row, width: usize) {
    let mut column = 0;
    for span in row.spans.iter().filter(|span| !span.text.is_empty()) {
        pen.move_to_column(column);
        pen.write(&span.text, span.style, span.link.as_ref());
        column += span.text.len();
        // In the last column terminals wait with the wrap.
        pen.column = (column < width).then_some(column);
    }
}

/// Writes a row that is left to the terminal to wrap, from the first column of the pen's row on, and returns how many
/// rows it took. Whatever these rows held is gone.
pub(super) fn write_wrapped(pen: &mut Pen, row: &Row, width: usize) -> usize {
    pen.move_to_column(0);
    for span in &row.spans {
        pen.write(&span.text, span.style, span.link.as_ref());
    }
    let parts = split(row, width);
    let last = parts.last().map_or(0, Row::width);
    pen.row += parts.len() - 1;
    pen.has_moved_rows |= parts.len() > 1;
    pen.column = None;
    if last < width {
        pen.erase_to_row_end();
    }
    parts.len()
}

/// Returns the rows that a terminal of a width makes of a row.
pub(crate) fn split(row: &Row, width: usize) -> Vec<Row> {
    let width = width.max(1);
    if row.width() <= width {
        return vec![Row { spans: row.spans.clone(), is_overlong: false }];
    }
    let mut rows = vec![Row::default()];
    let mut used = 0;
    for span in &row.spans {
        for cluster in text::clusters(&span.text) {
            let cells = text::cells(cluster);
            if used + cells > width && used > 0 {
                rows.push(Row::default());
                used = 0;
            }
            used += cells;
            if let Some(row) = rows.last_mut() {
                row.push_part(span, cluster);
            }
        }
    }
    rows
}

fn cells_of(row: &Row) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::with_capacity(64);
    let mut column = 0;
    for span in &row.spans {
        for cluster in text::clusters(&span.text) {
            let width = text::cells(cluster);
            let cell =
                Cell { column, cells: width, text: cluster, style: span.style, link: span.link.as_ref() };
            // A sign without a width has no cell to stand in.
            if width > 0 {
                column += width;
                cells.push(cell);
            }
        }
    }
    cells
}

fn changes(old: &[Cell<'_>], new: &[Cell<'_>]) -> Vec<bool> {
    let mut old = old.iter().peekable();
    new.iter()
        .map(|cell| {
            while old.peek().is_some_and(|old| old.column < cell.column) {
                old.next();
            }
            !old.peek().is_some_and(|old| old.looks_like(cell))
        })
        .collect()
}

fn close_short_gaps(is_changed: &mut [bool]) {
    let mut last_change: Option<usize> = None;
    for idx in 0..is_changed.len() {
        if !is_changed[idx] {
            continue;
        }
        if let Some(last) = last_change
            && idx - last - 1 <= SHORT_GAP
        {
            is_changed[last..idx].fill(true);
        }
        last_change = Some(idx);
    }
}

fn write_cell(pen: &mut Pen, cell: &Cell<'_>, width: usize) {
    pen.move_to_column(cell.column);
    pen.write(cell.text, cell.style, cell.link);
    let end = cell.column + cell.cells;
    // In the last column terminals wait with the wrap, and after some emoji they stand elsewhere than we count.
    let is_known = end < width && !text::is_uncertain(cell.text);
    pen.column = is_known.then_some(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::WriterOptions;

    fn check(old: &str, new: &str, expected: &str) {
        let mut pen = Pen::new(0, 0, &WriterOptions::default());
        write_difference(&mut pen, &Row::plain(old), &Row::plain(new), 20, false);
        assert_eq!(String::from_utf8(pen.finish()).unwrap(), expected, "{old:?} -> {new:?}");
    }

    #[test]
    fn only_cells_that_differ_are_written() {
        check("same", "same", "");
        check("", "new", "new");
        check("hello", "hello world", "\x1b[6G world");
        check("hello world", "hello", "\x1b[6G\x1b[K");
        check("⠋ Working 10s", "⠙ Working 11s", "⠙\x1b[12G1");
        check("abcdefghij", "aXcdefgYij", "\x1b[2GX\x1b[8GY");
        check("abcdefghij", "aXcdYfghij", "\x1b[2GXcdY");
        check("漢字", "漢x", "\x1b[3Gx\x1b[K");
        check("a字b", "ab", "\x1b[2Gb\x1b[K");
        check("12345678901234567890", "1234567890123456789X", "\x1b[20GX");
    }

    #[test]
    fn column_is_set_after_an_emoji_that_terminals_count_differently() {
        check("", "👍🏽x", "👍🏽\x1b[3Gx");
        check("", "👍x", "👍x");
    }

    #[test]
    fn split_cuts_where_a_terminal_wraps() {
        let rows = split(&Row::plain("ab漢字cd"), 3);
        let texts: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(texts, ["ab", "漢", "字c", "d"]);
    }
}
