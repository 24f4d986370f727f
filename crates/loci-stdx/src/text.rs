//! Cutting and measuring text without breaking characters, and numbers of things in words.

/// Returns a number with what it counts: `1 session`, `2 sessions`.
#[must_use]
pub fn counted(n: u64, one: &str, several: &str) -> String {
    let what = if n == 1 { one } else { several };
    format!("{n} {what}")
}

/// Returns the first `n_chars` characters of `text`, or all of it.
#[must_use]
pub fn truncate_chars(text: &str, n_chars: usize) -> &str {
    match text.char_indices().nth(n_chars) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Returns `text` on one line of at most `max_chars` characters, with `…` in place of what was cut.
///
/// Runs of white space and control characters become one space; there are none at the ends.
#[must_use]
pub fn single_line(text: &str, max_chars: usize) -> String {
    let is_gap = |c: char| c.is_whitespace() || c.is_control();
    let mut line = String::new();
    let mut n_chars = 0;
    for word in text.split(is_gap).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
            n_chars += 1;
        }
        // One more than fits, to know that something was cut; never the whole of a huge text.
        let part = truncate_chars(word, max_chars.saturating_add(1) - n_chars);
        line.push_str(part);
        n_chars += part.chars().count();
        if n_chars > max_chars {
            return with_ellipsis(&line, max_chars);
        }
    }
    line
}

/// Returns `text` without what moves the cursor, sets colours or talks to the terminal: control characters go, line
/// breaks and tabs stay.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// The most spaces in a row that are shown as they are.
const MOST_SPACES: usize = 20;

/// Returns `text` with everything visible that could hide or reorder what is on the screen.
///
/// Control characters (line feeds aside), marks of direction, characters without width and spaces that are not
/// the plain one are written as `\u{…}`; long runs of spaces are counted.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == ' ' {
            let mut n_spaces = 1;
            while chars.next_if_eq(&' ').is_some() {
                n_spaces += 1;
            }
            match n_spaces {
                0..=MOST_SPACES => out.push_str(&" ".repeat(n_spaces)),
                _ => out.push_str(&format!("[{n_spaces} spaces]")),
            }
        } else if c == '\n' || !is_hidden(c) {
            out.push(c);
        } else {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        }
    }
    out
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

fn with_ellipsis(line: &str, max_chars: usize) -> String {
    let Some(n_kept) = max_chars.checked_sub(1) else { return String::new() };
    format!("{}…", truncate_chars(line, n_kept).trim_end())
}

/// Returns the length of `text` in UTF-16 code units, as JavaScript counts it.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn truncation_counts_characters() {
        for (text, n_chars, expected) in [
            ("", 3, ""),
            ("abc", 0, ""),
            ("abc", 2, "ab"),
            ("abc", 3, "abc"),
            ("abc", 9, "abc"),
            ("aé😀b", 3, "aé😀"),
        ] {
            assert_eq!(truncate_chars(text, n_chars), expected, "{text} {n_chars}");
        }
    }

    #[test]
    fn counted_words_have_singular_and_plural() {
        for (n, expected) in [(0, "0 memories"), (1, "1 memory"), (2, "2 memories"), (11, "11 memories")] {
            assert_eq!(counted(n, "memory", "memories"), expected);
        }
    }

    #[test]
    fn a_single_line_has_single_spaces_and_shows_cuts() {
        for (text, max_chars, expected) in [
            ("", 5, ""),
            (" \n\t ", 5, ""),
            ("  one \r\n\n two\tthree ", 99, "one two three"),
            ("one\u{1b}[31mtwo\0", 99, "one [31mtwo"),
            ("abcdef", 6, "abcdef"),
            ("abcdef", 5, "abcd…"),
            ("abc def", 6, "abc d…"),
            ("abc def", 5, "abc…"),
            ("abc def", 4, "abc…"),
            ("abc   ", 3, "abc"),
            ("é😀é", 2, "é…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(single_line(text, max_chars), expected, "{text:?} {max_chars}");
        }
    }

    #[test]
    fn utf16_counts_surrogates() {
        for (text, expected) in [("", 0), ("abc", 3), ("é", 1), ("😀", 2), ("a😀b", 4)] {
            assert_eq!(utf16_len(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn cuts_hold_for_any_text(text in any::<String>(), n in 0_usize..50) {
            prop_assert!(text.starts_with(truncate_chars(&text, n)));
            let line = single_line(&text, n);
            prop_assert!(line.chars().count() <= n);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert_eq!(utf16_len(&text), text.encode_utf16().count());
        }
    }

    #[test]
    fn control_sequences_are_removed_from_printed_text() {
        for (text, expected) in [
            ("a\u{1b}[31mb\r\n\tc\0", "a[31mb\n\tc"),
            ("\u{1b}]52;c;ZXZpbA==\u{7}", "]52;c;ZXZpbA=="),
            ("\u{9b}2J\u{9d}0;x\u{9c}", "2J0;x"),
            ("grün €", "grün €"),
        ] {
            assert_eq!(printable(text), expected, "{text:?}");
        }
    }

    #[test]
    fn invisible_characters_are_made_visible() {
        for (text, expected) in [
            ("git push\norigin", "git push\norigin"),
            ("grün €", "grün €"),
            ("a\tb\r", "a\\u{9}b\\u{d}"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("a\u{202e}b\u{200b}c\u{feff}", "a\\u{202e}b\\u{200b}c\\u{feff}"),
            ("a\u{a0}b\u{3000}c", "a\\u{a0}b\\u{3000}c"),
            ("\u{e0041}", "\\u{e0041}"),
            ("a   b", "a   b"),
        ] {
            assert_eq!(visible(text), expected);
        }
        assert_eq!(visible(&format!("a{}b", " ".repeat(300))), "a[300 spaces]b");
    }
}
