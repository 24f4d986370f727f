//! Two virtual terminals behind one face: `vt100` leaves rows as they are when the width changes, `avt` wraps them anew.

use std::num::NonZeroU16;

use loci_tui::screen::Size;

/// A terminal that keeps everything that ever scrolled off its screen.
pub(crate) trait VirtualTerminal {
    /// Makes one.
    fn of(size: Size) -> Self;
    /// Takes what a program wrote.
    fn write(&mut self, bytes: &[u8]);
    /// Gets another size.
    fn resize(&mut self, size: Size);
    /// Returns all lines from the oldest on, blank ones at the end left out. A terminal that wraps anew joins what it
    /// wrapped; the other gives its rows.
    fn lines(&mut self) -> Vec<String>;
    /// Returns the rows of the screen.
    fn screen(&self) -> Vec<String>;
    /// Returns the row and column of the cursor.
    fn cursor(&self) -> (u16, u16);
    /// Whether it wraps rows anew when the width changes.
    const REFLOWS: bool;
}

impl VirtualTerminal for vt100::Parser {
    fn of(size: Size) -> Self {
        vt100::Parser::new(cells(size.height), cells(size.width), 100_000)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.process(bytes);
    }

    fn resize(&mut self, size: Size) {
        self.set_size(cells(size.height), cells(size.width));
    }

    fn lines(&mut self) -> Vec<String> {
        let (height, width) = self.screen().size();
        let mut lines = Vec::new();
        let n_scrolled = self.screen().scrollback_len();
        for offset in (0..=n_scrolled).rev() {
            self.screen_mut().set_scrollback(offset);
            let n_rows = if offset == 0 { height.get() } else { 1 };
            for row in 0..n_rows {
                lines.push(self.screen().rows(0, width.get()).nth(usize::from(row)).unwrap_or_default());
            }
        }
        without_blank_end(lines)
    }

    fn screen(&self) -> Vec<String> {
        let (_, width) = vt100::Parser::screen(self).size();
        without_blank_end(vt100::Parser::screen(self).rows(0, width.get()).collect())
    }

    fn cursor(&self) -> (u16, u16) {
        vt100::Parser::screen(self).cursor_position()
    }

    const REFLOWS: bool = false;
}

impl VirtualTerminal for avt::Terminal {
    fn of(size: Size) -> Self {
        avt::Terminal::with_scrollback(usize::from(size.width), usize::from(size.height), None).unwrap()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.feed(std::str::from_utf8(bytes).unwrap());
    }

    fn resize(&mut self, size: Size) {
        avt::Terminal::resize(self, usize::from(size.width), usize::from(size.height));
    }

    fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut is_joined = false;
        for line in avt::Terminal::screen(self).all_lines() {
            push_line(&mut lines, &line.text(), is_joined);
            is_joined = line.is_wrapped();
        }
        without_blank_end(lines)
    }

    fn screen(&self) -> Vec<String> {
        let lines = avt::Terminal::screen(self).visible_lines();
        without_blank_end(lines.map(avt::Line::text).collect())
    }

    fn cursor(&self) -> (u16, u16) {
        let position = self.cursor_position();
        (u16::try_from(position.row).unwrap(), u16::try_from(position.col).unwrap())
    }

    const REFLOWS: bool = true;
}

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}

fn push_line(lines: &mut Vec<String>, text: &str, is_joined: bool) {
    match lines.last_mut() {
        Some(last) if is_joined => last.push_str(text),
        _ => lines.push(text.to_owned()),
    }
}

fn without_blank_end(mut lines: Vec<String>) -> Vec<String> {
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
