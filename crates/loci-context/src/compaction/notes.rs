//! Compaction from notes: what was written down beside the conversation stands for it, and no model is asked.

use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;

use super::CompactionPlan;
use super::room::ContextRoom;
use super::rounds::rounds;
use crate::replaced::Replaced;
use crate::tokens::prose_tokens;
use crate::weight::{entry_tokens, weight};

/// What is kept besides what the notes do not cover: at least so many tokens,
const LEAST_TOKENS: u64 = 10_000;
/// and so many messages with words in them,
const LEAST_TEXTS: usize = 5;
/// but not beyond so many tokens.
const MOST_TOKENS: u64 = 40_000;

/// Running notes of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notes {
    /// What they say.
    pub text: String,
    /// The last entry that they cover.
    pub covers: EntryId,
}

/// Plans a compaction in which notes take the place of what they cover. `None` when they cover nothing of the path,
/// say nothing, or would leave the conversation as full as it is.
///
/// The cut falls between rounds, so a call is never parted from its result nor reasoning from its response, and what
/// precedes the first response, a former summary among it, is never kept.
pub fn plan_from_notes(
    path: &[Arc<Entry>],
    replaced: &Replaced,
    notes: &Notes,
    room: &ContextRoom,
) -> Option<CompactionPlan> {
    if notes.text.trim().is_empty() {
        return None;
    }
    let covered = path.iter().rposition(|entry| entry.head().uuid.as_ref() == Some(&notes.covers))?;
    let rounds = rounds(path);
    let tokens = |idx: usize| -> u64 {
        path[rounds[idx].clone()].iter().map(|entry| entry_tokens(entry, replaced)).sum()
    };
    let texts = |idx: usize| path[rounds[idx].clone()].iter().filter(|entry| weight(entry).has_words).count();
    // A round that the notes cover in part is kept in whole.
    let mut from = rounds.iter().position(|round| round.end - 1 > covered).unwrap_or(rounds.len());
    let mut kept: u64 = (from..rounds.len()).map(tokens).sum();
    let mut n_texts: usize = (from..rounds.len()).map(texts).sum();
    while from > 1 && (kept < LEAST_TOKENS || n_texts < LEAST_TEXTS) {
        let more = tokens(from - 1);
        if kept + more > MOST_TOKENS {
            break;
        }
        from -= 1;
        kept += more;
        n_texts += texts(from);
    }
    let cut = rounds.get(from).map_or(path.len(), |round| round.start);
    let size = room.overhead + room.scaled(prose_tokens(&notes.text) + kept);
    (cut > 0 && from > 0 && size < room.trigger())
        .then_some(CompactionPlan { summarised: 0..cut, preserved: cut..path.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_core::window::Window;
    use serde_json::json;

    const WINDOW: Window = Window { tokens: 200_000, max_output: 32_000, percent: None };

    /// A path in short: `u<n>` a prompt of about n tokens, `a<n>` a response (each its own), `c<n>` a response that
    /// is a call, `r<n>` its result, `b` a boundary, `s` a summary.
    fn path(text: &str) -> Vec<Arc<Entry>> {
        text.split_whitespace()
            .enumerate()
            .map(|(idx, word)| {
                let (kind, size) = word.split_at(1);
                let words = "word".repeat(size.parse().unwrap_or(0));
                let id = format!("m{idx}");
                let mut value = match kind {
                    "a" => json!({"type": "assistant", "message": {"id": id, "content": [{"type": "text", "text": words}]}}),
                    "c" => json!({"type": "assistant", "message": {"id": id, "content": [
                        {"type": "thinking", "thinking": words, "signature": "x"},
                        {"type": "tool_use", "id": format!("t{}", idx + 1), "name": "Read", "input": {}}]}}),
                    "r" => json!({"type": "user", "message": {"content": [
                        {"type": "tool_result", "tool_use_id": format!("t{idx}"), "content": words}]}}),
                    "b" => json!({"type": "system", "subtype": "compact_boundary"}),
                    "s" => json!({"type": "user", "isCompactSummary": true, "message": {"content": "s"}}),
                    _ => json!({"type": "user", "message": {"content": words}}),
                };
                value["uuid"] = json!(idx.to_string());
                Arc::new(Entry::parse(value.to_string()).unwrap())
            })
            .collect()
    }

    fn check(text: &str, covers: &str, notes_tokens: usize, expected: Option<usize>) {
        let notes = Notes { text: "word".repeat(notes_tokens), covers: covers.into() };
        let room = ContextRoom::new(WINDOW, 15_000);
        let path = path(text);
        let plan = plan_from_notes(&path, &Replaced::default(), &notes, &room);
        let cut = plan.map(|plan| {
            assert_eq!((plan.summarised, plan.preserved.end), (0..plan.preserved.start, path.len()));
            plan.preserved.start
        });
        assert_eq!(cut, expected, "{text} covered to {covers}");
    }

    /// What the notes do not cover is kept, and more until there are ten thousand tokens and five texts.
    #[test]
    fn entries_not_covered_by_notes_are_kept_with_some_before() {
        // Enough of both right away.
        check("u9 a9 u3000 a3000 u3000 a3000 u3000 a9", "2", 500, Some(3));
        // Too few tokens: one round more, then enough.
        check("u9 a6000 u6000 a5000 u5000 a9 u9 a9 u9", "4", 500, Some(3));
        // Tokens enough, but not five texts.
        check("u9 a9 u9 a9 u9 a20000", "4", 500, Some(1));
    }

    #[test]
    fn widening_stops_at_forty_thousand_tokens() {
        check("u9 a9 u30000 a9 u9 a9 u15000", "4", 500, Some(3));
        // What is not covered is kept whatever its size.
        check("u9 a9 u30000 a9 u60000 a9", "2", 500, Some(3));
    }

    #[test]
    fn calls_stay_with_their_results_and_reasoning_with_its_response() {
        // The notes end between a call and its result: the whole round is kept.
        check("u9 a9 u9 c12000 r9 a9 u9 a9 u9 a9", "3", 500, Some(3));
    }

    /// What precedes the first response is never kept: there a former summary stands.
    #[test]
    fn notes_plan_never_keeps_a_former_summary() {
        check("b s a9 u9 a9", "2", 500, Some(2));
        check("b s u9", "1", 500, None);
    }

    #[test]
    fn notes_that_do_not_help_are_not_taken() {
        check("u9 a9 u9 a9", "elsewhere", 500, None);
        check("u9 a9 u9 a9", "1", 0, None);
        // Still over the trigger of 167,000 tokens.
        check("u9 a9 u9 a153000 u9", "2", 500, None);
        check("u9 a9 u9 a9 u9", "2", 160_000, None);
    }
}
