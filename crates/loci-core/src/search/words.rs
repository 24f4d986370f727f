//! Words: what a text is searched by.
//!
//! A word is a run of letters and digits, in lower case. Everything else separates, so `cache_ttl` and `cache-ttl`
//! are both two words. Scripts that write without spaces are taken letter by letter.

use std::ops::Range;

/// The most bytes of a word that count; the rest of a longer one is not looked at.
pub const MAX_WORD: usize = 48;

/// Hands out the words of a text in order, each with its place.
///
/// Most words are plain: ASCII, and short. They are handed out where they stand; only others are put together letter by
/// letter.
pub fn each_word(text: &str, mut take: impl FnMut(&str, Range<usize>)) {
    let bytes = text.as_bytes();
    let mut lower = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let (end, kinds) = plain_run(bytes, at);
        if bytes.get(end).is_some_and(|byte| !byte.is_ascii()) {
            at = each_word_of_run(text, at, &mut lower, &mut take);
        } else if end == at {
            at += 1;
        } else {
            let word = &text[at..end.min(at + MAX_WORD)];
            match kinds & UPPER {
                0 => take(word, at..end),
                _ => take(lowered(word, &mut lower), at..end),
            }
            at = end;
        }
    }
}

/// What a byte is: no part of a word, a part of it as it is, or one to be put in lower case.
const NONE: u8 = 0;
const PLAIN: u8 = 1;
const UPPER: u8 = 2;
const KINDS: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut kinds = [NONE; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_uppercase() {
            kinds[byte as usize] = UPPER;
        } else if byte.is_ascii_alphanumeric() {
            kinds[byte as usize] = PLAIN;
        }
        byte += 1;
    }
    kinds
}

/// Returns where letters and digits of ASCII end, and which kinds there were.
fn plain_run(bytes: &[u8], start: usize) -> (usize, u8) {
    let mut seen = NONE;
    for (idx, byte) in bytes[start..].iter().enumerate() {
        match KINDS[usize::from(*byte)] {
            NONE => return (start + idx, seen),
            kind => seen |= kind,
        }
    }
    (bytes.len(), seen)
}

fn lowered<'a>(word: &str, lower: &'a mut String) -> &'a str {
    lower.clear();
    lower.push_str(word);
    lower.make_ascii_lowercase();
    lower
}

/// Hands out the words from `from` to the next sign that separates, and returns where that is.
fn each_word_of_run(
    text: &str,
    from: usize,
    word: &mut String,
    take: &mut impl FnMut(&str, Range<usize>),
) -> usize {
    word.clear();
    let (mut start, mut end) = (from, from);
    for (at, char) in text[from..].char_indices().map(|(at, char)| (from + at, char)) {
        let stands_alone = is_ideograph(char);
        if (stands_alone || !char.is_alphanumeric()) && !word.is_empty() {
            take(word, start..end);
            word.clear();
        }
        if stands_alone {
            word.push(char);
            take(word, at..at + char.len_utf8());
            word.clear();
        } else if char.is_alphanumeric() {
            if word.is_empty() {
                start = at;
            }
            end = at + char.len_utf8();
            push_lower(word, char);
        } else {
            return at + char.len_utf8();
        }
    }
    if !word.is_empty() {
        take(word, start..end);
    }
    text.len()
}

/// Returns the words of a text.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_word(text, |word, _| found.push(word.to_owned()));
    found
}

fn push_lower(word: &mut String, char: char) {
    if word.len() >= MAX_WORD {
        return;
    }
    if char.is_ascii() {
        word.push(char.to_ascii_lowercase());
    } else {
        word.extend(char.to_lowercase().filter(|lower| lower.is_alphanumeric()));
    }
}

pub(super) fn is_ideograph(char: char) -> bool {
    matches!(u32::from(char),
        0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x2_0000..=0x2_fa1f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_fall_into_words() {
        for (text, expected) in [
            ("", ""),
            ("Hello, World!", "hello world"),
            ("cache_ttl=4711; src/main.rs", "cache ttl 4711 src main rs"),
            ("Ünïcode İx", "ünïcode ix"),
            ("日本語 text", "日 本 語 text"),
            ("don't", "don t"),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    /// The words as they would be found letter by letter.
    fn letter_by_letter(text: &str) -> Vec<(String, Range<usize>)> {
        let mut found = Vec::new();
        let mut at = 0;
        let mut word = String::new();
        while at < text.len() {
            at = each_word_of_run(text, at, &mut word, &mut |word: &str, place| {
                found.push((word.to_owned(), place));
            });
        }
        found
    }

    proptest! {
        /// Plain words take a shorter way and come out the same.
        #[test]
        fn ascii_fast_path_finds_the_same_words(text in "[a-cA-C1 _.é日İß–]{0,40}|\\PC{0,60}|[aB]{40,60}é?[aB]{0,9}") {
            let mut found = Vec::new();
            each_word(&text, |word, place| found.push((word.to_owned(), place)));
            prop_assert_eq!(found, letter_by_letter(&text));
        }
    }

    #[test]
    fn long_words_count_by_their_beginning() {
        let found = words(&"x".repeat(1_000));
        assert_eq!(found, ["x".repeat(MAX_WORD)]);
    }

    #[test]
    fn word_ranges_point_into_the_text() {
        let text = "Ä bc, D";
        let mut places = Vec::new();
        each_word(text, |_, place| places.push(&text[place]));
        assert_eq!(places, ["Ä", "bc", "D"]);
    }
}
