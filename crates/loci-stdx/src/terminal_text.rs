//! Text of others on a terminal: nothing in it moves the cursor, sets colours, talks to the terminal, hides or reorders words.
//!
//! Control characters (line feeds and tabs aside; escape and the 8-bit controls among them), marks of direction and
//! characters that are nowhere on the screen are written as JSON writes them, `\u001b`: what is JSON stays that, with the
//! same values. Joiners that scripts and emoji need stay.

use std::borrow::Cow;
use std::io::{self, Write};

/// Returns `text` with everything visible that could do something to a terminal or its reader.
#[must_use]
pub fn escape_for_terminal(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !is_escaped(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    Cow::Owned(out)
}

fn is_escaped(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Writes text for a terminal, escaped; a character that comes in two pieces is put together first.
#[derive(Debug)]
pub struct TerminalWriter<W> {
    inner: W,
    /// The beginning of a character whose end is yet to come.
    begun: Vec<u8>,
}

impl<W: Write> TerminalWriter<W> {
    /// Writes to what leads to the terminal.
    pub fn new(inner: W) -> Self {
        Self { inner, begun: Vec::new() }
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.begun.extend_from_slice(bytes);
        let n_whole = match std::str::from_utf8(&self.begun) {
            // An end that may still become a character waits; what never will is written as what stands for it.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.begun.len(),
        };
        let whole: Vec<u8> = self.begun.drain(..n_whole).collect();
        self.inner.write_all(escape_for_terminal(&String::from_utf8_lossy(&whole)).as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_visible_and_all_else_stays() {
        for (text, expected) in [
            ("plain\n\ttext é 日本 👩‍👩‍👧 ✔️", "plain\n\ttext é 日本 👩‍👩‍👧 ✔️"),
            ("\u{1b}]52;c;UFdO\u{7}", r"\u001b]52;c;UFdO\u0007"),
            ("\u{9b}2K\u{7f}\r", r"\u009b2K\u007f\u000d"),
            ("a\u{202e}txt.exe\u{2066}", r"a\u202etxt.exe\u2066"),
            ("a\u{200b}b\u{e0041}", r"a\u200bb\udb40\udc41"),
            ("\u{2028}\u{feff}", r"\u2028\ufeff"),
        ] {
            assert_eq!(escape_for_terminal(text), expected);
            assert_eq!(escape_for_terminal(expected), expected, "what is escaped stays as it is");
        }
        let json = "{\"a\": \"x\u{9b}\u{202e}\u{e0041}\"}";
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&escape_for_terminal(json)), read(json), "JSON means the same");
    }

    #[test]
    fn characters_that_come_in_pieces_are_put_together() {
        let text = "é\u{9b}日\u{202e}\u{1b}[2J😀";
        for size in 1..6 {
            let mut writer = TerminalWriter::new(Vec::new());
            text.as_bytes().chunks(size).for_each(|chunk| writer.write_all(chunk).unwrap());
            assert_eq!(String::from_utf8(writer.inner).unwrap(), escape_for_terminal(text), "{size}");
        }
        let mut writer = TerminalWriter::new(Vec::new());
        writer.write_all(b"a\xff\xc3(").unwrap();
        assert_eq!(String::from_utf8(writer.inner).unwrap(), "a\u{fffd}\u{fffd}(");
    }
}
