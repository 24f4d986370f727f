//! Bytes for the terminal: moves of the cursor, looks and text, each as short as it can be.
//!
//! This is the last gate before the terminal: whatever a span holds, no control character of it is written.

use std::io::Write as _;
use std::sync::Arc;

use super::WriterOptions;
use crate::text::{self, Color, Style};
use crate::theme::Palette;

/// A buffer of one frame, with what the terminal's state will be after it.
///
/// Rows are counted from the top of the region that is drawn; columns from zero. All vertical moves are relative.
#[derive(Debug)]
pub(super) struct Pen {
    out: Vec<u8>,
    /// The row the cursor is in.
    pub(super) row: usize,
    /// The column, where it is known.
    pub(super) column: Option<usize>,
    style: Style,
    link: Option<Arc<str>>,
    has_hyperlinks: bool,
    has_italics: bool,
    /// Whether the cursor left its row: then it is hidden while the frame is drawn.
    pub(super) has_moved_rows: bool,
}

impl Pen {
    pub(super) fn new(row: usize, column: usize, options: &WriterOptions) -> Self {
        Self {
            out: Vec::with_capacity(256),
            row,
            column: Some(column),
            style: Style::default(),
            link: None,
            has_hyperlinks: options.has_hyperlinks,
            has_italics: options.has_italics,
            has_moved_rows: false,
        }
    }

    /// Returns the bytes, with the looks as they were before.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.end_looks();
        self.out
    }

    /// Returns the bytes of a whole frame. The cursor, which was visible or not before it, is hidden while rows move, unless the
    /// terminal paints the frame at once.
    pub(super) fn finish_frame(self, was_visible: bool, is_visible: bool, is_synchronized: bool) -> Vec<u8> {
        let hides = was_visible && (!is_visible || (self.has_moved_rows && !is_synchronized));
        let mut bytes = self.finish();
        if hides {
            bytes.splice(0..0, *b"\x1b[?25l");
        }
        if is_visible && (hides || !was_visible) {
            bytes.extend_from_slice(b"\x1b[?25h");
        }
        if is_synchronized && !bytes.is_empty() {
            bytes.splice(0..0, *b"\x1b[?2026h");
            bytes.extend_from_slice(b"\x1b[?2026l");
        }
        bytes
    }

    /// Moves to a row that is on the screen. Down by line feeds: in a window that has just become lower, rows that are no longer
    /// there are scrolled in, where a move would stop at the last row and have others overwritten.
    pub(super) fn move_to_row(&mut self, row: usize) {
        match row.cmp(&self.row) {
            std::cmp::Ordering::Less => self.number(self.row - row, b'A'),
            std::cmp::Ordering::Greater => self.line_feeds(row - self.row),
            std::cmp::Ordering::Equal => return,
        }
        self.row = row;
        self.has_moved_rows = true;
    }

    /// Moves to a column of the same row, by its absolute number.
    pub(super) fn move_to_column(&mut self, column: usize) {
        if self.column == Some(column) {
            return;
        }
        if column == 0 {
            self.out.push(b'\r');
        } else {
            self.number(column + 1, b'G');
        }
        self.column = Some(column);
    }

    /// Starts the row below the last one: at the bottom of the screen the terminal scrolls.
    pub(super) fn feed_row(&mut self) {
        self.end_looks();
        self.out.extend_from_slice(b"\r\n");
        self.row += 1;
        self.column = Some(0);
        self.has_moved_rows = true;
    }

    /// Feeds rows without writing into them.
    pub(super) fn feed_rows(&mut self, n_rows: usize) {
        self.line_feeds(n_rows);
        self.row += n_rows;
        self.column = None;
        self.has_moved_rows = true;
    }

    /// Inserts blank rows before the one the cursor is in; what is below moves down.
    pub(super) fn insert_rows(&mut self, n_rows: usize) {
        self.end_looks();
        self.number(n_rows, b'L');
        self.column = None;
    }

    /// Takes rows out from the one the cursor is in on; what is below moves up, and blank rows come in at the bottom.
    pub(super) fn delete_rows(&mut self, n_rows: usize) {
        self.end_looks();
        self.number(n_rows, b'M');
        self.column = None;
    }

    /// Erases from the cursor to the end of its row.
    pub(super) fn erase_to_row_end(&mut self) {
        self.end_looks();
        self.out.extend_from_slice(b"\x1b[K");
    }

    /// Erases the row the cursor is in; the cursor stays.
    pub(super) fn erase_row(&mut self) {
        self.end_looks();
        self.out.extend_from_slice(b"\x1b[2K");
    }

    /// Erases from the cursor to the end of the screen; for the first column of the region there is `erase_from_row`.
    pub(super) fn erase_below(&mut self) {
        self.end_looks();
        self.out.extend_from_slice(b"\x1b[J");
    }

    /// Erases the row the cursor is in and everything below it. Never from the first column: at the top of the screen tmux takes
    /// that for clearing all of it, and keeps what it erases in its history.
    pub(super) fn erase_from_row(&mut self) {
        self.erase_row();
        self.move_to_column(1);
        self.erase_below();
        self.move_to_column(0);
    }

    /// Writes a sequence as it is.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Writes text with a look. The caller sets `column` afterwards where it is not the sum.
    pub(super) fn write(&mut self, text: &str, style: Style, link: Option<&Arc<str>>) {
        self.set_link(link);
        self.set_style(style);
        if text.chars().any(text::is_harmful_in_row) {
            let clean: String =
                text.chars().map(|c| if text::is_harmful_in_row(c) { '\u{fffd}' } else { c }).collect();
            self.out.extend_from_slice(clean.as_bytes());
        } else {
            self.out.extend_from_slice(text.as_bytes());
        }
    }

    fn line_feeds(&mut self, n_rows: usize) {
        // What scrolls in has the background of the look.
        self.end_looks();
        self.out.extend(std::iter::repeat_n(b'\n', n_rows));
    }

    fn end_looks(&mut self) {
        self.set_link(None);
        self.set_style(Style::default());
    }

    fn set_link(&mut self, link: Option<&Arc<str>>) {
        if !self.has_hyperlinks || self.link.as_ref() == link {
            return;
        }
        self.out.extend_from_slice(b"\x1b]8;;");
        if let Some(link) = link {
            self.out.extend(link.bytes().filter(|byte| (0x21..0x7f).contains(byte)));
        }
        self.out.extend_from_slice(b"\x1b\\");
        self.link = link.cloned();
    }

    fn set_style(&mut self, style: Style) {
        let style = Style { is_italic: style.is_italic && self.has_italics, ..style };
        if self.style == style {
            return;
        }
        let mut codes = Vec::new();
        let takes_away =
            attributes(&self.style).zip(attributes(&style)).any(|((was, _), (is, _))| was && !is);
        if style == Style::default() {
            self.out.extend_from_slice(b"\x1b[m");
            self.style = style;
            return;
        }
        if takes_away {
            codes.push("0".to_owned());
            self.style = Style::default();
        }
        for ((was, _), (is, code)) in attributes(&self.style).zip(attributes(&style)) {
            if is && !was {
                codes.push(code.to_owned());
            }
        }
        if self.style.fg != style.fg {
            codes.push(color_code(style.fg, 30));
        }
        if self.style.bg != style.bg {
            codes.push(color_code(style.bg, 40));
        }
        self.out.extend_from_slice(b"\x1b[");
        self.out.extend_from_slice(codes.join(";").as_bytes());
        self.out.push(b'm');
        self.style = style;
    }

    fn number(&mut self, n: usize, last: u8) {
        self.out.extend_from_slice(b"\x1b[");
        if n != 1 {
            // Writing to a vector cannot fail.
            write!(self.out, "{n}").unwrap_or_default();
        }
        self.out.push(last);
    }
}

fn attributes(style: &Style) -> impl Iterator<Item = (bool, &'static str)> {
    [
        (style.is_bold, "1"),
        (style.is_dim, "2"),
        (style.is_italic, "3"),
        (style.is_underlined, "4"),
        (style.is_reversed, "7"),
        (style.is_struck, "9"),
    ]
    .into_iter()
}

/// The SGR code of a colour, `base` being 30 for letters and 40 for what is behind them.
fn color_code(color: Color, base: u16) -> String {
    match color {
        Color::Default => (base + 9).to_string(),
        Color::Ansi(n @ 0..8) => (base + u16::from(n)).to_string(),
        Color::Ansi(n @ 8..16) => (base + 60 + u16::from(n - 8)).to_string(),
        Color::Ansi(n) | Color::Indexed(n) => format!("{};5;{n}", base + 8),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
        // Nobody has asked a theme: the terminal's own colours do.
        Color::Themed(token) => color_code(Palette::TERMINAL.get(token), base),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Pen)) -> String {
        let mut pen = Pen::new(3, 0, &WriterOptions::default());
        write(&mut pen);
        String::from_utf8(pen.finish()).unwrap()
    }

    #[test]
    fn looks_are_changed_by_what_differs_and_ended() {
        let bold = Style { is_bold: true, ..Style::default() };
        let bold_red = Style { fg: Color::Ansi(1), ..bold };
        let red = Style { is_bold: false, ..bold_red };
        let bytes = written(|pen| {
            pen.write("a", bold, None);
            pen.write("b", bold_red, None);
            pen.write("c", red, None);
            pen.write("d", Style { fg: Color::Ansi(9), bg: Color::Rgb(1, 2, 3), ..red }, None);
        });
        assert_eq!(bytes, "\x1b[1ma\x1b[31mb\x1b[0;31mc\x1b[91;48;2;1;2;3md\x1b[m");
    }

    #[test]
    fn italics_are_left_out_where_they_are_shown_in_reverse() {
        let mut pen = Pen::new(0, 0, &WriterOptions { has_italics: false, ..WriterOptions::default() });
        pen.write("a", Style { is_dim: true, is_italic: true, ..Style::default() }, None);
        pen.write("b", Style { is_italic: true, ..Style::default() }, None);
        assert_eq!(pen.finish(), b"\x1b[2ma\x1b[mb");
    }

    #[test]
    fn control_characters_never_pass() {
        let link: Arc<str> = "http://x/\x1b]0;t\x07 ü".into();
        let bytes = written(|pen| pen.write("a\x1b[2J\n\u{9b}b\u{202e}", Style::default(), Some(&link)));
        assert_eq!(bytes, "\x1b]8;;http://x/]0;t\x1b\\a\u{fffd}[2J\u{fffd}\u{fffd}b\u{fffd}\x1b]8;;\x1b\\");
    }

    #[test]
    fn moves_are_relative_in_rows_and_absolute_in_columns() {
        let bytes = written(|pen| {
            pen.move_to_row(1);
            pen.move_to_column(9);
            pen.move_to_column(9);
            pen.move_to_row(2);
            pen.move_to_column(0);
        });
        assert_eq!(bytes, "\x1b[2A\x1b[10G\n\r");
    }
}
