//! Plain lines, for screen readers and terminals that know no escape sequences.
//!
//! What is final is printed, a line each. Of the live region only the row of the caret is shown, as a shell shows the line
//! that is typed: letters are added and taken back with blanks and backspaces alone. Rows of a dialog or a panel are
//! printed when they come or change, all of them where most do: then it is another question. A spinner and whatever else
//! only moves is not.

use super::Frame;
use crate::text::{Row, clusters, width};

/// Draws frames as lines.
#[derive(Debug, Default)]
pub struct PlainWriter {
    /// The line that is typed, as it stands on the screen.
    typed: String,
    /// How many cells of it are behind the cursor.
    n_behind: usize,
    /// Rows of the dialog or panel that were printed.
    printed: Vec<String>,
}

impl PlainWriter {
    /// Returns the bytes between what is shown and this frame, on a terminal so wide.
    pub fn draw(&mut self, frame: &Frame, columns: u16) -> Vec<u8> {
        let mut out = String::new();
        let caret_row = frame.caret.map(|(row, _)| row);
        let mut lines: Vec<String> = frame.committed.iter().map(text_of).collect();
        if frame.is_tall {
            let rows = frame.live.iter().enumerate().filter(|(idx, _)| Some(*idx) != caret_row);
            let rows: Vec<String> = rows.map(|(_, row)| text_of(row)).filter(|row| !row.is_empty()).collect();
            let is_new = |row: &&String| !self.printed.contains(row);
            let is_another = rows.iter().filter(is_new).count() * 3 > rows.len() * 2;
            lines.extend(rows.iter().filter(|row| is_another || is_new(row)).cloned());
            self.printed = rows;
        } else {
            self.printed.clear();
        }
        if !lines.is_empty() {
            self.erase(&mut out);
            for line in &lines {
                out.push_str(line);
                out.push_str("\r\n");
            }
        }
        let (next, column) = match frame.caret {
            Some((row, column)) => {
                (frame.live.get(row).map(text_of).unwrap_or_default(), usize::from(column))
            }
            None => (String::new(), 0),
        };
        self.show(&next, column, usize::from(columns.max(2)) - 1, &mut out);
        out.into_bytes()
    }

    /// Returns the bytes that leave the line that is typed, and the cursor below everything.
    pub fn leave(&mut self) -> Vec<u8> {
        let is_fresh = self.typed.is_empty();
        *self = Self::default();
        if is_fresh { Vec::new() } else { b"\r\n".to_vec() }
    }

    /// Takes the typed line away.
    fn erase(&mut self, out: &mut String) {
        let n_cells = width(&self.typed);
        if n_cells > 0 {
            out.push('\r');
            out.extend(std::iter::repeat_n(' ', n_cells));
            out.push('\r');
        }
        self.typed.clear();
        self.n_behind = 0;
    }

    fn show(&mut self, next: &str, column: usize, columns: usize, out: &mut String) {
        let (next, column) = fit(next, column, columns);
        let n_next = width(&next);
        let n_behind = n_next.saturating_sub(column);
        if next != self.typed {
            let common = common_start(&self.typed, &next);
            let (old, new) = (&self.typed[common..], &next[common..]);
            let (n_old, n_new) = (width(old), width(new));
            // From the cursor to where the lines part.
            let at = width(&self.typed) - self.n_behind;
            let part = width(&self.typed[..common]);
            match part.checked_sub(at) {
                Some(n_ahead) => out.push_str(&cells_at(&self.typed, at, n_ahead)),
                None => out.extend(std::iter::repeat_n('\u{8}', at - part)),
            }
            out.push_str(new);
            let n_left = n_old.saturating_sub(n_new);
            out.extend(std::iter::repeat_n(' ', n_left));
            out.extend(std::iter::repeat_n('\u{8}', n_left + n_behind));
        } else if n_behind > self.n_behind {
            out.extend(std::iter::repeat_n('\u{8}', n_behind - self.n_behind));
        } else if n_behind < self.n_behind {
            out.push_str(&cells_at(&next, n_next - self.n_behind, self.n_behind - n_behind));
        }
        self.typed = next;
        self.n_behind = n_behind;
    }
}

fn text_of(row: &Row) -> String {
    row.text().trim_end().to_owned()
}

/// Cuts a line to what fits, with the caret in it; a caret behind the text stands behind blanks.
fn fit(line: &str, column: usize, columns: usize) -> (String, usize) {
    let mut line = line.to_owned();
    while width(&line) < column {
        line.push(' ');
    }
    let mut column = column;
    while width(&line) > columns {
        let first = clusters(&line).next().map_or(0, str::len);
        let last = clusters(&line).next_back().map_or(0, str::len);
        if column > columns / 2 && column > 0 && first < line.len() {
            column = column.saturating_sub(width(&line[..first]));
            line.drain(..first);
        } else {
            line.truncate(line.len() - last.max(1));
        }
    }
    (line, column)
}

/// Returns how many bytes two lines have in common at their beginnings, by whole clusters.
fn common_start(one: &str, other: &str) -> usize {
    clusters(one).zip(clusters(other)).take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum()
}

/// Returns the clusters of a line from a cell on.
fn cells_at(line: &str, from: usize, n_cells: usize) -> String {
    let mut at = 0;
    let mut out = String::new();
    for cluster in clusters(line) {
        if at >= from + n_cells {
            break;
        }
        if at >= from {
            out.push_str(cluster);
        }
        at += width(cluster);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Span;

    fn row(text: &str) -> Row {
        Row::new(vec![Span::plain(text)])
    }

    fn typed(text: &str, column: u16) -> Frame {
        Frame { live: vec![row(text), row("footer")], caret: Some((0, column)), ..Frame::default() }
    }

    /// What a terminal shows that was sent these bytes.
    fn screen(bytes: &[u8]) -> String {
        let mut parser =
            vt100::Parser::new(std::num::NonZero::new(8).unwrap(), std::num::NonZero::new(30).unwrap(), 0);
        parser.process(bytes);
        parser.screen().contents()
    }

    #[test]
    fn typing_adds_letters_and_takes_them_back_without_escape_sequences() {
        let mut writer = PlainWriter::default();
        let mut all = Vec::new();
        for (text, column, expected) in [
            ("> h", 3, "> h"),
            ("> he", 4, "> he"),
            ("> hello", 7, "> hello"),
            ("> hell", 6, "> hell"),
            ("> hell", 2, "> hell"),
            ("> shell", 3, "> shell"),
            ("> sh", 4, "> sh"),
            ("> 世界", 6, "> 世界"),
            ("> 世", 4, "> 世"),
        ] {
            let bytes = writer.draw(&typed(text, column), 30);
            assert!(!bytes.contains(&0x1b), "{bytes:?}");
            all.extend(bytes);
            assert_eq!(screen(&all).trim_end(), expected);
        }
        assert_eq!(writer.draw(&typed("> 世", 4), 30), b"", "what is shown already costs nothing");
    }

    #[test]
    fn final_lines_come_above_the_line_that_is_typed() {
        let mut writer = PlainWriter::default();
        let mut all = writer.draw(&typed("> dra", 5), 30);
        let frame =
            Frame { committed: vec![row("claude: hello"), row("turn ended: 3s")], ..typed("> dra", 5) };
        all.extend(writer.draw(&frame, 30));
        assert_eq!(screen(&all), "claude: hello\nturn ended: 3s\n> dra");
        all.extend(writer.leave());
        all.extend(b"$ ");
        assert_eq!(screen(&all), "claude: hello\nturn ended: 3s\n> dra\n$ ");
    }

    #[test]
    fn rows_of_a_dialog_are_printed_when_they_change_and_a_spinner_never() {
        let dialog = |rows: &[&str]| Frame {
            live: rows.iter().map(|text| row(text)).collect(),
            is_tall: true,
            ..Frame::default()
        };
        let mut writer = PlainWriter::default();
        let mut all = writer.draw(&dialog(&["May it run?", "> 1. Yes", "  2. No"]), 30);
        all.extend(writer.draw(&dialog(&["May it run?", "  1. Yes", "> 2. No"]), 30));
        assert_eq!(screen(&all), "May it run?\n> 1. Yes\n  2. No\n  1. Yes\n> 2. No");
        let other = writer.draw(&dialog(&["Which?", "  1. This", "> 2. That", "> 2. No"]), 30);
        assert_eq!(screen(&other), "Which?\n  1. This\n> 2. That\n> 2. No", "another question is told whole");
        let mut spinner = typed("> ", 2);
        spinner.live.insert(0, row("⠋ Waiting"));
        spinner.caret = Some((1, 2));
        assert!(!String::from_utf8(writer.draw(&spinner, 30)).unwrap().contains("Waiting"));
    }

    #[test]
    fn line_longer_than_the_window_keeps_the_caret_in_sight() {
        let mut writer = PlainWriter::default();
        let long = format!("> {}", "x".repeat(60));
        let shown = screen(&writer.draw(&typed(&long, 62), 30));
        assert_eq!(shown.trim_end().len(), 29);
    }
}
