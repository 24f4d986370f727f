//! The one filter between text of others and the screen.
//!
//! [`sanitize`] hides nothing: whatever a terminal would obey or reorder becomes a mark that can be seen, so that a
//! command or a file name is read as it is. Output of commands is better served by `ansi::parse_output`, which takes
//! escape sequences away and keeps colours.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns a text in which control characters, escape sequences and bidi overrides are marks; line ends are `\n`, and
/// newlines and tabs stay.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    // Nearly all that is written is ASCII, which is looked through many bytes at a time.
    let is_suspect = |byte: u8| byte < 0x20 && byte != b'\n' && byte != b'\t' || byte >= 0x7f;
    if !text.bytes().fold(false, |found, byte| found | is_suspect(byte)) {
        return Cow::Borrowed(text);
    }
    let Some(first) = text.char_indices().find(|(_, c)| is_harmful(*c)).map(|(at, _)| at) else {
        return Cow::Borrowed(text);
    };
    let (clean, rest) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(clean);
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            c if is_harmful(c) => push_mark(c, &mut out),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Returns a text in which line ends are `\n` and other control characters but tabs are gone, as an editor wants it. Text
/// that has none is looked through many bytes at a time: a paste may be megabytes.
pub(crate) fn without_controls(text: &str) -> Cow<'_, str> {
    if !may_have_controls(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                chars.next_if_eq(&'\n');
                clean.push('\n');
            }
            '\n' | '\t' => clean.push(c),
            _ if c.is_control() => {}
            _ => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// Tells whether there may be control characters other than line feeds and tabs among bytes; those above ASCII begin with
/// 0xc2, as harmless characters do.
///
/// By hand, eight bytes at a time: a build that is made small has no loop do so by itself, and byte by byte a megabyte takes
/// a millisecond, for which a key waits.
fn may_have_controls(bytes: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let is_suspect = |byte: &u8| matches!(byte, 0..=0x08 | 0x0b..=0x1f | 0x7f | 0xc2);
    // Each is zero unless one of the eight bytes is below a number, or is a number.
    let below = |word: u64, number: u64| word.wrapping_sub(ONES * number) & !word & HIGH;
    let is = |word: u64, number: u64| below(word ^ (ONES * number), 1);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut may_be = words.iter().filter(|bytes| {
        let word = u64::from_ne_bytes(**bytes);
        below(word, 0x20) | is(word, 0x7f) | is(word, 0xc2) != 0
    });
    may_be.any(|bytes| bytes.iter().any(is_suspect)) || rest.iter().any(is_suspect)
}

/// Returns a text for one row: clean, with newlines and tabs as single spaces.
pub fn sanitize_line(text: &str) -> String {
    sanitize(text).replace(['\n', '\t'], " ")
}

/// Whether a terminal would obey, reorder by or hide this character.
pub(crate) fn is_harmful(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Overrides, embeddings and isolates of the bidirectional algorithm, its marks, and two line ends.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => false,
    }
}

/// Whether a character may not stand in a row: harmful, a newline or a tab.
pub(crate) fn is_harmful_in_row(c: char) -> bool {
    // Most of what is written is ASCII or a letter: one comparison each.
    !(' '..'\u{7f}').contains(&c) && (is_harmful(c) || matches!(c, '\n' | '\t'))
}

/// Writes a mark for a harmful character.
pub(crate) fn push_mark(c: char, out: &mut String) {
    let picture = match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        _ => None,
    };
    match picture {
        Some(picture) => out.push(picture),
        // Writing to a string cannot fail.
        None => write!(out, "<U+{:04X}>", u32::from(c)).unwrap_or_default(),
    }
}

/// Returns a text with its tabs as blanks, as they fall when it starts at a column.
pub fn expand_tabs(text: &str, column: usize, tab_width: usize) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = column;
    for (idx, part) in text.split('\t').enumerate() {
        if idx > 0 {
            let blanks = tab_width - at % tab_width;
            out.extend(std::iter::repeat_n(' ', blanks));
            at += blanks;
        }
        out.push_str(part);
        at += super::width(part);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitize_shows_what_a_terminal_would_obey() {
        let cases = [
            ("plain ünï漢👍\n\ttab", "plain ünï漢👍\n\ttab"),
            ("a\r\nb", "a\nb"),
            ("a\rb", "a␍b"),
            ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
            ("\x1b]0;title\x07x", "␛]0;title␇x"),
            ("bell\x07 del\x7f nul\0", "bell␇ del␡ nul␀"),
            ("c1 \u{9b}31m", "c1 <U+009B>31m"),
            ("a\u{202e}txt.exe", "a<U+202E>txt.exe"),
            ("i\u{2066}x\u{2069}", "i<U+2066>x<U+2069>"),
            ("line\u{2028}sep", "line<U+2028>sep"),
        ];
        for (text, expected) in cases {
            assert_eq!(sanitize(text), expected, "{text:?}");
            assert!(!sanitize(text).chars().any(is_harmful));
        }
        assert_eq!(sanitize_line("a\nb\tc\x1b"), "a b c␛");
    }

    #[test]
    fn every_control_character_is_found_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            let is_suspect = byte < 0x20 && byte != b'\n' && byte != b'\t' || byte == 0x7f || byte == 0xc2;
            for at in 0..20 {
                for around in [b'a', b'\n', 0x80, 0xff] {
                    let mut bytes = [around; 20];
                    bytes[at] = byte;
                    assert_eq!(may_have_controls(&bytes), is_suspect, "{byte:#x} at {at} among {around:#x}");
                }
            }
        }
        assert!(!may_have_controls(b""));
    }

    #[test]
    fn text_for_the_editor_keeps_all_but_control_characters() {
        let cases = [
            ("plain ünï漢👍\n\ttab", "plain ünï漢👍\n\ttab"),
            ("a\r\nb\rc\r\r\nd", "a\nb\nc\n\nd"),
            ("\x1b[31mred\x07\x7f\0", "[31mred"),
            ("c1 \u{80}\u{9f}x \u{a0}© é", "c1 x \u{a0}© é"),
        ];
        for (text, expected) in cases {
            assert_eq!(without_controls(text), expected, "{text:?}");
        }
    }

    #[test]
    fn expand_tabs_fills_to_the_next_stop() {
        assert_eq!(expand_tabs("a\tb\t\tc", 0, 4), "a   b       c");
        assert_eq!(expand_tabs("\tx", 3, 4), " x");
        assert_eq!(expand_tabs("漢\tx", 0, 4), "漢  x");
    }
}
