//! Words: what a text is searched by.
//!
//! A word is a run of letters and digits, in lower case. Everything else separates, so `cache_ttl` and `cache-ttl`
//! are both two words. Scripts that write without spaces are taken letter by letter.

use std::ops::Range;

/// The most bytes of a word that count; the rest of a longer one is not looked at.
pub const MAX_WORD: usize = 48;

/// Hands out the words of a text in order, each with its place.
pub fn each_word(text: &str, mut take: impl FnMut(&str, Range<usize>)) {
    let mut word = String::new();
    let mut start = 0;
    let mut end = 0;
    for (at, char) in text.char_indices() {
        let stands_alone = is_ideograph(char);
        if (stands_alone || !char.is_alphanumeric()) && !word.is_empty() {
            take(&word, start..end);
            word.clear();
        }
        if stands_alone {
            word.push(char);
            take(&word, at..at + char.len_utf8());
            word.clear();
        } else if char.is_alphanumeric() {
            if word.is_empty() {
                start = at;
            }
            end = at + char.len_utf8();
            push_lower(&mut word, char);
        }
    }
    if !word.is_empty() {
        take(&word, start..end);
    }
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

fn is_ideograph(char: char) -> bool {
    matches!(u32::from(char),
        0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x2_0000..=0x2_fa1f)
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn long_words_count_by_their_beginning() {
        let found = words(&"x".repeat(1_000));
        assert_eq!(found, ["x".repeat(MAX_WORD)]);
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = "Ä bc, D";
        let mut places = Vec::new();
        each_word(text, |_, place| places.push(&text[place]));
        assert_eq!(places, ["Ä", "bc", "D"]);
    }
}
