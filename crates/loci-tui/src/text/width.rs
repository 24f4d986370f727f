//! How many cells text takes: one function for all who ask.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Returns the clusters of a text: what people take for one sign.
pub fn clusters(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.graphemes(true)
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

/// Whether a text has one byte, one sign and one cell at each place.
pub(crate) fn is_plain_ascii(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
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
}
