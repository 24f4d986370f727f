//! Context collapse: old stretches of a conversation are folded into summaries, one after the other, while the
//! transcript keeps every message.
//!
//! Folds are a log. Each is a line of the transcript (`context-collapse`) that names the first and the last entry of a
//! stretch and what stands for it; the view is made from the path and the log, so a session that is loaded again, or
//! forked, sees the same. A fold that names an entry which is not on the path says nothing.
//!
//! The line: `{"type":"context-collapse","sessionId","collapseId","firstUuid","lastUuid","summary","saidTokens","afterUuid",
//! "freedTokens"}`. `saidTokens` is how much of the user's own words stands beside the summary; it depends on the window, so
//! it is written down and every window makes the same of it. `afterUuid` is the entry it was written behind; what it freed
//! counts until the server counts anew.

mod user_messages;

use std::ops::Range;
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use serde::Deserialize;
use serde_json::json;

use crate::compaction::{CompactionCarryover, ContextRoom, clip_tokens, is_fold, rounds};
use crate::replaced::Replaced;
use crate::tokens::prose_tokens;
use crate::weight::estimate_path;
use loci_core::window::Window;

/// The type of line that holds a fold.
pub(crate) const LINE: &str = "context-collapse";

/// From this share of what can be used on, in percent, a stretch is folded beside the conversation.
const COMMITS_AT: u64 = 90;
/// From this on the conversation waits for it.
const BLOCKS_AT: u64 = 95;
/// Rounds at the end that are never folded.
const LEAST_ROUNDS: usize = 2;
/// The most folds at once; then it is time for a compaction.
const MOST_FOLDS: usize = 8;
/// The most tokens of a fold.
const MOST_TOKENS: u64 = 4_000;
/// The share of what can be used that the user's words beside it may take: one part in so many.
const SAID_PART: u64 = 8;
/// What lines without a share say.
const USUAL_USER_TOKENS: u64 = 2_000;

const OPENING: &str = "An earlier part of this conversation was folded to make room. It is summarised here; what \
     follows is as it was. Where you have the Recall tool, it finds and quotes any message of that part.";
const ASK: &str =
    "Summarise only what comes after the summaries above, if there are any: they stay where they are.";

/// Where folding begins and where it must be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollapseThresholds {
    /// From here a stretch is folded beside the conversation.
    pub commits: u64,
    /// From here the conversation waits.
    pub blocks: u64,
}

impl CollapseThresholds {
    /// Returns the places of a window.
    pub fn of(window: &Window) -> Self {
        let usable = window.thresholds().usable;
        Self { commits: usable * COMMITS_AT / 100, blocks: usable * BLOCKS_AT / 100 }
    }
}

/// A stretch of a conversation, and what stands for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fold {
    /// Its own id, which its place in the view has.
    #[serde(rename = "collapseId")]
    pub id: EntryId,
    /// The first entry of the stretch.
    #[serde(rename = "firstUuid")]
    pub first: EntryId,
    /// The last.
    #[serde(rename = "lastUuid")]
    pub last: EntryId,
    /// What stands for them.
    pub summary: String,
    /// The most tokens of the user's words beside it.
    #[serde(default = "usual_user_tokens")]
    pub said_tokens: u64,
}

fn usual_user_tokens() -> u64 {
    USUAL_USER_TOKENS
}

impl Fold {
    /// Returns where the stretch lies on a path.
    fn range(&self, path: &[Arc<Entry>]) -> Option<Range<usize>> {
        let at = |id: &EntryId| path.iter().position(|entry| entry.head().uuid.as_ref() == Some(id));
        let (first, last) = (at(&self.first)?, at(&self.last)?);
        (first <= last).then_some(first..last + 1)
    }

    /// Puts the summary in the place of the stretch; returns about how many tokens that frees, or nothing when the
    /// stretch is not on the path.
    pub fn apply(&self, path: &mut Vec<Arc<Entry>>, replaced: &Replaced) -> Option<u64> {
        let range = self.range(path)?;
        let entry = Arc::new(self.entry(&path[range.clone()])?);
        let before = estimate_path(&path[range.clone()], replaced);
        let after = estimate_path(std::slice::from_ref(&entry), replaced);
        path.splice(range, [entry]);
        Some(before.saturating_sub(after))
    }

    /// Makes the entry that stands for a stretch. It says only what the stretch says, so it is the same every time.
    fn entry(&self, stretch: &[Arc<Entry>]) -> Option<Entry> {
        let carryover = CompactionCarryover::from_path(stretch, Vec::new(), Vec::new());
        let said = user_messages::render_all(stretch, self.said_tokens);
        let parts = [Some(OPENING.to_owned()), Some(self.summary.clone()), said];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let mut line = json!({"type": "user", "uuid": self.id.as_str(), "isMeta": true,
            "message": {"role": "user", "content": text}});
        carryover.keep_in(&mut line);
        Entry::parse(line.to_string()).ok()
    }
}

/// What is to be folded next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldPlan {
    /// Entries of the view that are read by whoever summarises: all up to the end of the stretch, so that the beginning is
    /// the one that is cached.
    pub read: Range<usize>,
    /// The first entry of the stretch.
    pub first: EntryId,
    /// The last.
    pub last: EntryId,
    /// The most tokens the summary may take.
    pub most_tokens: u64,
    /// The most tokens the user's words may take.
    pub said_tokens: u64,
}

/// Plans the next fold: the oldest rounds that are not folded yet, as many as free a third of what can be used, but
/// never the last two. `None` when that would not free an eighth, or there are many folds already. What stays of the stretch,
/// the summary and the user's words, is not freed.
pub fn plan_fold(path: &[Arc<Entry>], replaced: &Replaced, room: &ContextRoom) -> Option<FoldPlan> {
    let usable = room.unscaled(room.window.thresholds().usable);
    let start = path.iter().position(|entry| !is_opening(entry))?;
    let n_folds = path[..start].iter().filter(|entry| is_fold(entry)).count();
    let rounds = rounds(path);
    let most_end = rounds.len().checked_sub(LEAST_ROUNDS).and_then(|idx| rounds.get(idx))?.start;
    let (most_tokens, said_tokens) = (room.shares().summary.min(MOST_TOKENS), usable / SAID_PART);
    let (mut size, mut said, mut freed, mut end) = (0, 0, 0, start);
    for round in rounds.iter().filter(|round| round.end > start && round.end <= most_end) {
        let more = &path[round.start.max(start)..round.end];
        size += estimate_path(more, replaced);
        said += user_messages::tokens(more);
        end = round.end;
        freed = size.saturating_sub(most_tokens + said.min(said_tokens));
        if freed >= usable / 3 {
            break;
        }
    }
    let stretch = &path[start..end];
    let id = |entry: &Arc<Entry>| entry.head().uuid.clone();
    let (first, last) = (stretch.iter().find_map(id)?, stretch.iter().rev().find_map(id)?);
    (n_folds < MOST_FOLDS && freed >= usable / 8).then_some(FoldPlan {
        read: 0..end,
        first,
        last,
        most_tokens,
        said_tokens,
    })
}

/// Returns what the model is asked for, besides what every summary is asked for.
pub fn fold_request() -> &'static str {
    ASK
}

/// Cuts the summary of a stretch to its share.
pub fn fold_summary(summary: &str, most_tokens: u64) -> String {
    if prose_tokens(summary) <= most_tokens {
        return summary.to_owned();
    }
    clip_tokens(summary, most_tokens)
}

/// Tells whether an entry is what a view begins with: a boundary, its summary, folds.
fn is_opening(entry: &Entry) -> bool {
    entry.is_compact_boundary() || entry.head().is_compact_summary || is_fold(entry)
}

#[cfg(test)]
mod tests;
