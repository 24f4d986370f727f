//! How full the context is: what the server counted last, and estimates for everything added since.

use std::sync::Arc;

use loci_core::entry::Entry;

use crate::replaced::Replaced;
use crate::weight::{estimate_path, weight};

/// Counts the tokens of a path. `overhead` is what a request has besides its messages, for paths that no response
/// has counted yet.
///
/// Blocks of one response carry the same usage, so the last of them is enough. What a compaction preserved was
/// counted with the conversation it stood in, which says nothing about this one. What was cleared since the last
/// response is no longer there.
pub fn context_tokens(path: &[Arc<Entry>], replaced: &Replaced, overhead: u64) -> u64 {
    let boundary = path.first().filter(|entry| entry.is_compact_boundary());
    let preserved = boundary.map_or(&[][..], |entry| &weight(entry).preserved);
    let is_preserved = |entry: &Entry| entry.head().uuid.as_ref().is_some_and(|id| preserved.contains(id));
    let counted = path.iter().enumerate().rev().find_map(|(idx, entry)| {
        let tokens = weight(entry).counted?;
        (!is_preserved(entry)).then_some((idx, tokens))
    });
    match counted {
        Some((idx, tokens)) => {
            let since = estimate_path(&path[idx + 1..], replaced);
            // Replaced results among what came since are counted as what replaces them already.
            let freed = replaced.freed_behind(&path[idx..]);
            tokens.saturating_sub(freed) + since
        }
        None => overhead + estimate_path(path, replaced),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn count(path: &[Arc<Entry>], overhead: u64) -> u64 {
        context_tokens(path, &Replaced::default(), overhead)
    }

    fn entry(value: Value) -> Arc<Entry> {
        Arc::new(Entry::parse(value.to_string()).unwrap())
    }

    fn user(words: usize) -> Arc<Entry> {
        entry(json!({"type": "user", "message": {"role": "user", "content": "word".repeat(words)}}))
    }

    fn answer(id: &str, tokens: u64) -> Arc<Entry> {
        let usage = json!({"input_tokens": 1, "cache_read_input_tokens": tokens - 2, "output_tokens": 1});
        let content = json!([{"type": "text", "text": "x".repeat(4_000)}]);
        entry(
            json!({"type": "assistant", "uuid": id, "message": {"id": id, "content": content, "usage": usage}}),
        )
    }

    /// What was read from the cache counts too, or it would be compacted too late (regression class 4).
    #[test]
    fn the_servers_count_and_an_estimate_of_what_came_after() {
        assert_eq!(count(&[], 500), 500);
        assert_eq!(count(&[user(10)], 500), 514);
        assert_eq!(count(&[user(10), answer("a", 9_000)], 500), 9_000);
        assert_eq!(count(&[user(10), answer("a", 9_000), user(10)], 500), 9_014);
        // Every block of a response says the same, and it is counted once.
        assert_eq!(count(&[user(10), answer("a", 9_000), answer("a", 9_000), user(6)], 0), 9_010);
    }

    #[test]
    fn uncounted_entries_are_estimated() {
        let failed = entry(json!({"type": "assistant", "isApiErrorMessage": true,
            "message": {"id": "e", "content": [], "usage": {"input_tokens": 77, "output_tokens": 0}}}));
        assert_eq!(count(&[user(10), answer("a", 9_000), failed], 0), 9_000);
    }

    /// Otherwise a session would look full right after it was compacted.
    /// Invariant 5 of `docs/design/compaction.md`.
    #[test]
    fn preserved_answers_do_not_count_as_they_did() {
        let boundary = entry(json!({"type": "system", "subtype": "compact_boundary",
            "compactMetadata": {"preservedMessages": {"uuids": ["a"]}}}));
        let path = [boundary, user(10), answer("a", 150_000)];
        assert_eq!(count(&path, 500), 500 + 14 + 1_004);
        let mut path = path.to_vec();
        path.push(answer("b", 2_000));
        assert_eq!(count(&path, 500), 2_000);
    }
}
