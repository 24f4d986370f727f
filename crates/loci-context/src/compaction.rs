//! Compacting a conversation: what is summarised, what is kept word for word, and what the model is asked.
//!
//! A conversation is a list of rounds: a prompt, then each response with the results of its calls. A compaction
//! summarises the older rounds and preserves the newest, so a call is never parted from its result nor reasoning
//! from its response. The transcript keeps every entry; only what is sent begins anew.

mod rounds;
mod summary;

use std::ops::Range;
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;

use rounds::rounds;
pub use summary::{summary_of, summary_request, summary_text};

/// Why a conversation is compacted, as the boundary says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// It has grown too long.
    Auto,
    /// The user wants it.
    Manual,
}

impl Trigger {
    /// Returns the trigger's name in the transcript.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
        }
    }
}

/// How much is kept word for word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The newest round: before the window is full.
    LastRound,
    /// The newer half of the rounds: when the server has refused, so that the rest surely fits.
    NewerHalf,
}

/// What a compaction would do to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionPlan {
    /// Entries that the summary will stand for.
    pub summarised: Range<usize>,
    /// Entries that stay as they are, behind the summary.
    pub preserved: Range<usize>,
}

impl CompactionPlan {
    /// Plans the compaction of a path; `None` when there is nothing older than what would be kept.
    pub fn new(path: &[Arc<Entry>], keep: Keep) -> Option<Self> {
        let rounds = rounds(path);
        let kept_from = match keep {
            Keep::LastRound => rounds.len().checked_sub(1)?,
            Keep::NewerHalf => rounds.len() / 2,
        };
        // A prompt alone, or a summary alone, is no conversation to summarise.
        if kept_from < 2 {
            return None;
        }
        let cut = rounds[kept_from].start;
        Some(Self { summarised: 0..cut, preserved: cut..path.len() })
    }

    /// Returns the ids of the preserved entries, in order.
    pub fn preserved_ids(&self, path: &[Arc<Entry>]) -> Vec<EntryId> {
        path[self.preserved.clone()].iter().filter_map(|entry| entry.head().uuid.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A path in short: `u` a prompt, `a<n>` a block of response n, `r` a result, `b` a boundary, `s` a summary,
    /// `e` a stored API failure.
    fn path(text: &str) -> Vec<Arc<Entry>> {
        text.split_whitespace()
            .enumerate()
            .map(|(idx, word)| {
                let (kind, id) = word.split_at(1);
                let mut value: Value = match kind {
                    "a" => json!({"type": "assistant", "message": {"id": id, "content": []}}),
                    "e" => json!({"type": "assistant", "isApiErrorMessage": true, "message": {"id": "e"}}),
                    "b" => json!({"type": "system", "subtype": "compact_boundary"}),
                    "s" => json!({"type": "user", "isCompactSummary": true, "message": {"content": "s"}}),
                    _ => json!({"type": "user", "message": {"content": "u"}}),
                };
                value["uuid"] = Value::from(format!("{word}@{idx}"));
                Arc::new(Entry::parse(value.to_string()).unwrap())
            })
            .collect()
    }

    fn check(text: &str, keep: Keep, expected: Option<&str>) {
        let path = path(text);
        let kept = CompactionPlan::new(&path, keep).map(|plan| {
            assert_eq!((plan.summarised.start, plan.summarised.end), (0, plan.preserved.start));
            let ids = plan.preserved_ids(&path);
            let words: Vec<&str> = ids.iter().map(|id| id.as_str().split('@').next().unwrap()).collect();
            words.join(" ")
        });
        assert_eq!(kept.as_deref(), expected, "{text}");
    }

    /// Invariant 2 of `docs/design/compaction.md`.
    #[test]
    fn the_last_round_is_kept_before_the_window_is_full() {
        check("u a1 r a2 r", Keep::LastRound, Some("a2 r"));
        check("u a1 a1 r r a2 a2 r r", Keep::LastRound, Some("a2 a2 r r"));
        check("u a1 u", Keep::LastRound, None);
        check("u a1 u a2 u", Keep::LastRound, Some("a2 u"));
        check("u a1 u a2 e u", Keep::LastRound, Some("a2 e u"));
        check("b s a1 r a2 r", Keep::LastRound, Some("a2 r"));
    }

    /// With a single exchange there is nothing that a summary could stand for.
    #[test]
    fn too_little_is_not_compacted() {
        for text in ["", "u", "u a1", "u a1 r", "b s", "b s a1 r"] {
            check(text, Keep::LastRound, None);
            check(text, Keep::NewerHalf, None);
        }
    }

    /// Invariant 2 of `docs/design/compaction.md`.
    #[test]
    fn the_newer_half_is_kept_when_the_server_refused() {
        check("u a1 r a2 r a3 r", Keep::NewerHalf, Some("a2 r a3 r"));
        let nine = "u a1 r a2 r a3 r a4 r a5 r a6 r a7 r a8 r";
        check(nine, Keep::NewerHalf, Some("a4 r a5 r a6 r a7 r a8 r"));
    }
}
