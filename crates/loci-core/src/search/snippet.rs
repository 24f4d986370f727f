//! The part of a text that shows best why it was found.

use std::ops::Range;

use super::query::Query;
use super::words::each_word;

/// A part of a text, with the places of what was searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// The part.
    pub range: Range<usize>,
    /// What was searched for, as places in the whole text, in order.
    pub marks: Vec<Range<usize>>,
}

/// Returns the part of about `max_bytes` of a text in which most of the query's words stand close together; all of a
/// text that is short enough.
pub fn snippet(query: &Query, text: &str, max_bytes: usize) -> Snippet {
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    each_word(text, |word, place| {
        if let Some(idx) = query.term_of(word) {
            found.push((idx, place));
        }
    });
    let range = part_around(text, &best(&found, max_bytes, query.terms().len()), max_bytes);
    let marks = found.into_iter().map(|(_, place)| place);
    let marks = marks.filter(|place| range.start <= place.start && place.end <= range.end).collect();
    Snippet { range, marks }
}

/// Returns the stretch that has the most different words, and of those the most words.
fn best(found: &[(usize, Range<usize>)], max_bytes: usize, n_terms: usize) -> Range<usize> {
    let mut best = (0, 0, 0..0);
    let mut counts = vec![0_usize; n_terms];
    let mut first = 0;
    for (last, (term, place)) in found.iter().enumerate() {
        counts[*term] += 1;
        while found[first].1.start + max_bytes * 2 / 3 < place.end && first < last {
            counts[found[first].0] -= 1;
            first += 1;
        }
        let n_different = counts.iter().filter(|count| **count > 0).count();
        let n_all = last - first + 1;
        if (n_different, n_all) > (best.0, best.1) {
            best = (n_different, n_all, found[first].1.start..place.end);
        }
    }
    best.2
}

/// Returns the part of about `max_bytes` around a stretch of a text, ending between characters and, where one is near,
/// at the end of a line or word; all of a text that is short enough.
pub fn part_around(text: &str, around: &Range<usize>, max_bytes: usize) -> Range<usize> {
    if text.len() <= max_bytes {
        return 0..text.len();
    }
    let spare = max_bytes.saturating_sub(around.len());
    let start = around.start.saturating_sub(spare / 3);
    let end = (start + max_bytes).min(text.len());
    let start = end.saturating_sub(max_bytes).min(start);
    let start = text.ceil_char_boundary(start).min(around.start.max(start));
    let end = text.floor_char_boundary(end);
    nearest_start(text, start, around.start)..nearest_end(text, end, around.end.max(start))
}

fn nearest_start(text: &str, start: usize, limit: usize) -> usize {
    if start == 0 || limit <= start {
        return text.floor_char_boundary(start);
    }
    let near = &text[start..text.floor_char_boundary(limit.min(start + 60))];
    let gap = near.find('\n').or_else(|| near.find(' '));
    gap.map_or(start, |at| start + at + 1)
}

fn nearest_end(text: &str, end: usize, limit: usize) -> usize {
    let from = text.ceil_char_boundary(limit.max(end.saturating_sub(60)));
    if end == text.len() || from >= end {
        return end;
    }
    let near = &text[from..end];
    let gap = near.rfind('\n').or_else(|| near.rfind(' '));
    gap.map_or(end, |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, text: &str, max_bytes: usize, expected: &str) {
        let found = snippet(&Query::parse(query), text, max_bytes);
        let mut shown = text[found.range.clone()].to_owned();
        for mark in found.marks.iter().rev() {
            shown.insert(mark.end - found.range.start, ']');
            shown.insert(mark.start - found.range.start, '[');
        }
        assert_eq!(shown, expected);
    }

    #[test]
    fn short_texts_are_shown_whole() {
        check("port", "The Port is 9.", 100, "The [Port] is 9.");
        check("none", "The port is 9.", 100, "The port is 9.");
    }

    #[test]
    fn long_texts_are_shown_where_the_words_are_together() {
        let filler = "filler words and more of them ".repeat(20);
        let text = format!("port {filler}the staging port is 9000 {filler}port");
        check("staging port", &text, 60, "of them the [staging] [port] is 9000 filler words and more");
    }

    #[test]
    fn any_text_can_be_cut_anywhere() {
        let text = "é日ß wörter 😀 ".repeat(30);
        for max_bytes in 1..80 {
            for query in ["wörter", "日", "nichts"] {
                let found = snippet(&Query::parse(query), &text, max_bytes);
                assert!(text.get(found.range.clone()).is_some(), "{max_bytes} {query}");
                assert!(found.range.len() <= max_bytes.max(12), "{max_bytes} {:?}", found.range);
            }
        }
    }
}
