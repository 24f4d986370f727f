//! A whole screen of rows on the alternate screen: the fullscreen renderer, pagers and pickers.
//!
//! Only cells that differ are written. Rows at the top that only move, as a conversation does when it scrolls, are moved by
//! the terminal: rows are taken out at one end and inserted at the other (`CSI M`, `CSI L`), without a scroll region.

use super::pen::Pen;
use super::{Size, WriterOptions, row_diff};
use crate::text::{Row, truncate};

/// By more rows than this nothing is looked for: then the rows are written.
const FARTHEST_SHIFT: usize = 24;

/// Draws whole screens. Entering and leaving the alternate screen is the terminal guard's.
#[derive(Debug, Default)]
pub struct FullScreen {
    options: WriterOptions,
    /// The size that is known to be shown; none where nothing is known of the screen.
    size: Option<Size>,
    shown: Vec<Row>,
    /// How many rows at the top scroll.
    n_scrolling: usize,
    /// Where the cursor is, and whether it is seen.
    cursor: (usize, usize),
    is_cursor_visible: bool,
}

impl FullScreen {
    /// Makes a writer for a screen of which nothing is known.
    pub fn new(options: WriterOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Changes what is known of the terminal, as its answers come.
    pub fn set_options(&mut self, options: WriterOptions) {
        self.options = options;
    }

    /// Returns the bytes that make the screen show these rows, cut to its size, with the caret where it is to stand; none
    /// where nothing differs.
    pub fn draw(&mut self, rows: &[Row], caret: Option<(usize, u16)>, size: Size) -> Vec<u8> {
        self.draw_scrolling(rows, 0, caret, size)
    }

    /// Does the same for a screen of which so many rows at the top scroll.
    pub fn draw_scrolling(
        &mut self,
        rows: &[Row],
        n_scrolling: usize,
        caret: Option<(usize, u16)>,
        size: Size,
    ) -> Vec<u8> {
        let (width, height) = (usize::from(size.width).max(1), usize::from(size.height).max(1));
        let mut rows: Vec<Row> = rows.iter().take(height).map(|row| truncate(row, width)).collect();
        rows.resize(height, Row::default());
        let is_new = self.size != Some(size);
        let mut pen = Pen::new(self.cursor.0, self.cursor.1, &self.options);
        if is_new {
            self.is_cursor_visible = true;
            pen = Pen::new(0, 0, &self.options);
            pen.raw(b"\x1b[H");
            pen.has_moved_rows = true;
        } else if n_scrolling == self.n_scrolling {
            self.shift_rows(&mut pen, &rows[..n_scrolling.min(height)]);
        }
        let blank = Row::default();
        for (idx, new) in rows.iter().enumerate() {
            let old = if is_new { &blank } else { self.shown.get(idx).unwrap_or(&blank) };
            if !is_new && old == new {
                continue;
            }
            pen.move_to_row(idx);
            if is_new {
                pen.move_to_column(0);
            }
            row_diff::write_difference(&mut pen, old, new, width, self.options.writes_whole_rows && !is_new);
            if is_new && new.width() < width {
                pen.move_to_column(new.width());
                pen.erase_to_row_end();
            }
        }
        (self.size, self.n_scrolling, self.shown) = (Some(size), n_scrolling, rows);
        let (row, column) = match caret {
            Some((row, column)) => (row.min(height - 1), usize::from(column).min(width - 1)),
            None => (pen.row, pen.column.unwrap_or(0)),
        };
        pen.move_to_row(row);
        pen.move_to_column(column);
        self.cursor = (row, column);
        self.finish_frame(pen, caret.is_some())
    }

    /// Moves rows that are shown elsewhere in what scrolls, where that is shorter than writing them.
    fn shift_rows(&mut self, pen: &mut Pen, rows: &[Row]) {
        let n_rows = rows.len().min(self.shown.len());
        let old = &self.shown[..n_rows];
        let Some(shift) = best_shift(old, &rows[..n_rows]).filter(|_| self.options.inserts_rows) else {
            return;
        };
        let (out, into, n_moved) = match shift {
            Shift::Up(n) => (0, n_rows - n, n),
            Shift::Down(n) => (n_rows - n, 0, n),
        };
        pen.move_to_row(out);
        pen.delete_rows(n_moved);
        pen.move_to_row(into);
        pen.insert_rows(n_moved);
        self.shown.drain(out..out + n_moved);
        self.shown.splice(into..into, std::iter::repeat_n(Row::default(), n_moved));
    }

    fn finish_frame(&mut self, pen: Pen, is_cursor_visible: bool) -> Vec<u8> {
        let was_visible = std::mem::replace(&mut self.is_cursor_visible, is_cursor_visible);
        pen.finish_frame(was_visible, is_cursor_visible, self.options.is_synchronized)
    }
}

/// Which way rows move, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shift {
    Up(usize),
    Down(usize),
}

/// Returns the way in which most rows stay what they are, if that saves more than a few.
fn best_shift(old: &[Row], new: &[Row]) -> Option<Shift> {
    let n_rows = new.len();
    let n_text = |row: &Row| usize::from(!row.spans.is_empty());
    let n_same = |old: &[Row], new: &[Row]| -> usize {
        old.iter().zip(new).filter(|(old, new)| old == new).map(|(_, new)| n_text(new)).sum()
    };
    let n_staying = n_same(old, new);
    let farthest = FARTHEST_SHIFT.min(n_rows.saturating_sub(1));
    let ups = (1..=farthest).map(|n| (Shift::Up(n), n_same(&old[n..], &new[..n_rows - n])));
    let downs = (1..=farthest).map(|n| (Shift::Down(n), n_same(&old[..n_rows - n], &new[n..])));
    let (shift, n_kept) = ups.chain(downs).max_by_key(|(_, n_kept)| *n_kept)?;
    (n_kept > n_staying + 1).then_some(shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 20, height: 8 };

    fn rows(texts: impl IntoIterator<Item = String>) -> Vec<Row> {
        texts.into_iter().map(Row::plain).collect()
    }

    fn numbered(first: usize) -> Vec<Row> {
        let mut rows = rows((first..first + 6).map(|n| format!("row number {n}")));
        rows.extend(["> ", "  footer"].map(Row::plain));
        rows
    }

    #[test]
    fn scrolled_rows_are_moved_and_not_written_again() {
        let mut screen = FullScreen::new(WriterOptions::default());
        let mut shown = vt100::Parser::new(8.try_into().unwrap(), 20.try_into().unwrap(), 0);
        shown.process(&screen.draw_scrolling(&numbered(0), 6, Some((6, 2)), SIZE));
        for first in [1, 3, 2, 0, 40] {
            let bytes = screen.draw_scrolling(&numbered(first), 6, Some((6, 2)), SIZE);
            shown.process(&bytes);
            let expected: Vec<String> = numbered(first).iter().map(Row::text).collect();
            assert_eq!(shown.screen().contents(), expected.join("\n"), "{first}");
            assert_eq!(shown.screen().cursor_position(), (6, 2));
            if first < 4 {
                assert!(bytes.len() < 90, "{first}: {:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }

    #[test]
    fn frame_that_shows_what_is_shown_has_no_bytes() {
        let mut screen = FullScreen::new(WriterOptions::default());
        screen.draw_scrolling(&numbered(0), 6, Some((6, 2)), SIZE);
        assert!(screen.draw_scrolling(&numbered(0), 6, Some((6, 2)), SIZE).is_empty());
        let typed = screen.draw_scrolling(
            &rows((0..8).map(|n| if n == 6 { "> a".into() } else { numbered(0)[n].text() })),
            6,
            Some((6, 3)),
            SIZE,
        );
        assert_eq!(String::from_utf8(typed).unwrap(), "a");
    }
}
