//! How many cells text takes: one function for all who ask.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Returns the clusters of a text: what people take for one sign.
pub fn clusters(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    Clusters { rest: text }
}

/// Clusters from both ends. Between two letters of ASCII there always is a boundary, so only other text is asked about.
struct Clusters<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Clusters<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let n_bytes = match self.rest.as_bytes() {
            [] => return None,
            [b'\r', b'\n', ..] => 2,
            [first] | [first, ..=0x7f, ..] if first.is_ascii() => 1,
            _ => self.rest.graphemes(true).next().map_or(1, str::len),
        };
        let (cluster, rest) = self.rest.split_at_checked(n_bytes)?;
        self.rest = rest;
        Some(cluster)
    }
}

impl DoubleEndedIterator for Clusters<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let n_bytes = match self.rest.as_bytes() {
            [] => return None,
            [.., b'\r', b'\n'] => 2,
            [last] | [.., ..=0x7f, last] if last.is_ascii() => 1,
            _ => self.rest.graphemes(true).next_back().map_or(1, str::len),
        };
        let (rest, cluster) = self.rest.split_at_checked(self.rest.len() - n_bytes)?;
        self.rest = rest;
        Some(cluster)
    }
}

/// Returns how many cells a cluster takes on the screen.
pub fn cells(cluster: &str) -> usize {
    match cluster.as_bytes() {
        [byte] => usize::from((0x20..0x7f).contains(byte)),
        _ => cluster.width(),
    }
}

/// Returns how many cells a text takes on the screen.
pub fn width(text: &str) -> usize {
    if is_plain_ascii(text) { text.len() } else { clusters(text).map(cells).sum() }
}

/// Whether a text has one byte, one sign and one cell at each place. Every row that streams in is asked about several times,
/// so eight bytes are looked at at once.
pub(crate) fn is_plain_ascii(text: &str) -> bool {
    let (words, rest) = text.as_bytes().as_chunks();
    words.iter().all(|word| is_plain_word(u64::from_ne_bytes(*word)))
        && rest.iter().all(|byte| (0x20..0x7f).contains(byte))
}

/// Whether each of eight bytes is at least 0x20 and below 0x7f; no carry goes from one to the next before that is clear.
fn is_plain_word(word: u64) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const BLANK: u64 = 0x2020_2020_2020_2020;
    const ONE: u64 = 0x0101_0101_0101_0101;
    let is_ascii = word & HIGH == 0;
    is_ascii && ((word | HIGH) - BLANK) & HIGH == HIGH && (word + ONE) & HIGH == 0
}

/// Whether terminals disagree about the cells of a cluster: emoji of several parts and those with a selector.
///
/// After such a cluster the column is set, not assumed.
pub fn is_uncertain(cluster: &str) -> bool {
    let mut chars = cluster.chars();
    let Some(first) = chars.next() else { return false };
    let is_flag_part = |c: char| ('\u{1F1E6}'..='\u{1F1FF}').contains(&c);
    let is_joiner = |c: char| {
        matches!(c, '\u{200D}' | '\u{FE0E}' | '\u{FE0F}' | '\u{20E3}')
            || ('\u{1F3FB}'..='\u{1F3FF}').contains(&c)
            || ('\u{E0020}'..='\u{E007F}').contains(&c)
    };
    is_flag_part(first) || is_joiner(first) || chars.any(|c| is_joiner(c) || cells_of_char(c) > 1)
}

fn cells_of_char(c: char) -> usize {
    unicode_width::UnicodeWidthChar::width(c).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_told_byte_by_byte_and_word_by_word_alike() {
        for place in 0..19 {
            for c in (0..=0x1_0000).filter_map(char::from_u32).step_by(if place == 3 { 1 } else { 7 }) {
                let mut text = "abcdefghijklmnopqrs".to_owned();
                text.replace_range(place..=place, c.encode_utf8(&mut [0; 4]));
                let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
                assert_eq!(is_plain_ascii(&text), is_plain, "{text:?}");
            }
            for byte in 0..0x80_u8 {
                let text = format!("{}{}{}", "~".repeat(place), char::from(byte), " ".repeat(20 - place));
                assert_eq!(is_plain_ascii(&text), (0x20..0x7f).contains(&byte), "{text:?}");
            }
        }
    }

    #[test]
    fn cells_counts_what_a_person_sees() {
        let cases = [
            ("a", 1),
            ("é", 1),
            ("e\u{301}", 1),
            ("漢", 2),
            ("한", 2),
            ("👍", 2),
            ("👍🏽", 2),
            ("👨‍👩‍👧", 2),
            ("❤\u{FE0F}", 2),
            ("🇩🇪", 2),
            ("\u{200B}", 0),
            ("ﷺ", 1),
        ];
        for (cluster, expected) in cases {
            assert_eq!(cells(cluster), expected, "{cluster:?}");
            assert_eq!(width(cluster), expected, "{cluster:?}");
        }
        assert_eq!(width("a漢👍🏽b"), 6);
    }

    #[test]
    fn emoji_of_several_parts_are_uncertain_and_letters_are_not() {
        for cluster in ["👍🏽", "👨‍👩‍👧", "❤\u{FE0F}", "🇩🇪", "1\u{FE0F}\u{20E3}"] {
            assert!(is_uncertain(cluster), "{cluster:?}");
        }
        for cluster in ["a", "é", "e\u{301}", "漢", "👍", "—", "─"] {
            assert!(!is_uncertain(cluster), "{cluster:?}");
        }
    }

    #[test]
    fn clusters_are_those_of_the_standard_from_both_ends() {
        for text in [
            "",
            "plain text",
            "a\r\nb\n\rc\r\n",
            "e\u{301}a\u{301}\u{301}b",
            "漢字a漢b",
            "x👨‍👩‍👧y🇩🇪🇫🇷z👍🏽",
            "\u{301}a",
            "\u{600}1a",
            "1\u{FE0F}\u{20E3}2",
            "क्षि a",
            "\t\u{200B}x",
        ] {
            let expected: Vec<&str> = text.graphemes(true).collect();
            assert_eq!(clusters(text).collect::<Vec<_>>(), expected, "{text:?}");
            let mut back: Vec<&str> = clusters(text).rev().collect();
            back.reverse();
            assert_eq!(back, expected, "{text:?} backwards");
        }
    }

    proptest::proptest! {
        #[test]
        fn clusters_of_any_text_are_those_of_the_standard(text in "[a-z \\r\\n\u{301}\u{200d}👍🏽🇩🇪漢क\u{94d}\u{600}]{0,12}") {
            let expected: Vec<&str> = text.graphemes(true).collect();
            proptest::prop_assert_eq!(clusters(&text).collect::<Vec<_>>(), expected.clone());
            let mut back: Vec<&str> = clusters(&text).rev().collect();
            back.reverse();
            proptest::prop_assert_eq!(back, expected);
        }
    }
}
