//! Cutting text to a size, honestly: what is left out is counted, and both ends stay.

/// Returns a text of at most so many characters, the marker besides: its beginning, how much was left out, its end.
pub(crate) fn clip(text: &str, most_chars: usize) -> String {
    let n_chars = text.chars().count();
    if n_chars <= most_chars {
        return text.to_owned();
    }
    let head = head(most_chars);
    let tail = most_chars - head;
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (from, to) = (at(head), at(n_chars - tail));
    format!("{}\n[… {} characters left out …]\n{}", &text[..from], n_chars - most_chars, &text[to..])
}

/// The same in tokens of prose.
pub(crate) fn clip_tokens(text: &str, most_tokens: u64) -> String {
    clip(text, most_chars(most_tokens))
}

/// Returns after how many characters a text that is cut to so many tokens has its gap.
pub(crate) fn head_chars(most_tokens: u64) -> usize {
    head(most_chars(most_tokens))
}

fn head(most_chars: usize) -> usize {
    most_chars - most_chars.div_ceil(3)
}

fn most_chars(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipped_text_keeps_both_ends_and_counts_the_rest() {
        for (text, most, expected) in [
            ("", 0, ""),
            ("abc", 3, "abc"),
            ("abcdefghij", 6, "abcd\n[… 4 characters left out …]\nij"),
            ("äöüßäöüßäö", 3, "äö\n[… 7 characters left out …]\nö"),
            ("abc", 0, "\n[… 3 characters left out …]\n"),
        ] {
            assert_eq!(clip(text, most), expected, "{text} {most}");
        }
    }
}
