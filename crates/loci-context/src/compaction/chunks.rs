//! Summarising what does not fit into one request: as text, part by part, each part read once.

use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;

use super::clip::clip;
use super::outline::outline;
use crate::replaced::Replaced;

/// The most parts; what would need more is cut more.
const MOST_PARTS: usize = 8;
/// The least that is left of a block, in characters.
const LEAST_CHARS: usize = 200;

/// One part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// It as text.
    pub(super) text: String,
    /// The last entry in it.
    pub(super) last: Option<EntryId>,
}

/// Splits entries into parts of at most so many characters. Long blocks are cut first, the more the more parts there
/// would be; where even that is not enough the oldest entries are left out, and the first part says so.
pub(super) fn parts(span: &[Arc<Entry>], replaced: &Replaced, most_chars: usize) -> Vec<Part> {
    let mut limit = most_chars / 4;
    loop {
        let mut parts = pack(span, replaced, most_chars, limit);
        if parts.len() <= MOST_PARTS {
            return parts;
        }
        if limit <= LEAST_CHARS {
            let n_more = parts.len() - MOST_PARTS;
            parts.drain(..n_more);
            if let Some(first) = parts.first_mut() {
                let note =
                    format!("[The first {n_more} parts of the conversation are left out: they do not fit]\n");
                first.text.insert_str(0, &note);
            }
            return parts;
        }
        limit = (limit / 2).max(LEAST_CHARS);
    }
}

fn pack(span: &[Arc<Entry>], replaced: &Replaced, most_chars: usize, limit: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut n_chars = most_chars;
    for entry in span {
        let text = clip(&outline(entry, replaced, limit), most_chars);
        let size = text.chars().count() + 1;
        if n_chars + size > most_chars || parts.is_empty() {
            parts.push(Part { text: String::new(), last: None });
            n_chars = 0;
        }
        let Some(part) = parts.last_mut() else { continue };
        if !text.is_empty() {
            part.text.push_str(&text);
            part.text.push('\n');
            n_chars += size;
        }
        part.last = entry.head().uuid.clone().or(part.last.take());
    }
    parts.retain(|part| !part.text.is_empty());
    parts
}

/// Returns the words that put a part before the model.
pub(super) fn part_request(part: &Part, so_far: Option<&str>, n_left: usize, request: &str) -> String {
    let before = so_far.map(|text| {
        format!("What came before it is summarised already; take that over into your summary:\n\n{text}\n\n")
    });
    let after = match n_left {
        0 => "",
        _ => " More follows after it, which you will be asked about next.",
    };
    format!(
        "A conversation between a user and an assistant is too long to be read at once. This is a part of it, as \
         text.{after}\n\n{}<conversation>\n{}</conversation>\n\n{request}",
        before.unwrap_or_default(),
        part.text
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn span(sizes: &[usize]) -> Vec<Arc<Entry>> {
        let entry = |(idx, size): (usize, &usize)| {
            let text = format!("{idx}:{}", "x".repeat(*size));
            let line =
                json!({"type": "user", "uuid": idx.to_string(), "message": {"content": text}}).to_string();
            Arc::new(Entry::parse(line).unwrap())
        };
        sizes.iter().enumerate().map(entry).collect()
    }

    fn check(sizes: &[usize], most_chars: usize) -> Vec<Part> {
        let found = parts(&span(sizes), &Replaced::default(), most_chars);
        assert!(found.len() <= MOST_PARTS, "{}", found.len());
        for part in &found {
            let n_chars = part.text.chars().count();
            assert!(n_chars <= most_chars + 100, "{n_chars} of {most_chars}");
        }
        found
    }

    #[test]
    fn everything_is_in_one_part_and_in_order() {
        let found = check(&[100; 30], 1_000);
        let text: String = found.iter().map(|part| part.text.as_str()).collect();
        let numbers: Vec<usize> = text
            .lines()
            .filter_map(|line| line.strip_prefix("User: ")?.split_once(':')?.0.parse().ok())
            .collect();
        assert_eq!(numbers, (0..30).collect::<Vec<_>>());
        assert_eq!(found.last().unwrap().last, Some("29".into()));
        assert_eq!(found[0].last, Some("8".into()));
    }

    #[test]
    fn part_too_long_for_a_request_is_cut_and_says_so() {
        let found = check(&[9_000_000, 10, 50_000], 4_000);
        assert!(found[0].text.contains("characters left out"));
        assert_eq!(found.last().unwrap().last, Some("2".into()));
    }

    #[test]
    fn too_many_entries_lose_the_oldest_and_say_so() {
        let found = check(&[400; 900], 4_000);
        assert!(found[0].text.starts_with("[The first "), "{}", &found[0].text[..60]);
        assert_eq!(found.last().unwrap().last, Some("899".into()));
    }
}
