//! The user's own words of a folded stretch: the last thing that is cut.
//!
//! All that a person said stays word for word as far as its share goes. Where that is not enough the longest messages are cut
//! first, since those are pastes more often than words; the last one may always have half of the share, for it may be what is
//! being worked on. What is cut names the call that brings the rest. The same stretch and share make the same words.

use std::sync::Arc;

use loci_core::entry::{Entry, EntryKind};

use crate::compaction::{clip_tokens, head_chars, prompt};
use crate::tokens::prose_tokens;
use crate::weight::weight;

/// What the heading of a message takes.
const HEADING: u64 = 8;
/// What saying that a message is cut takes.
const NOTE: u64 = 50;
/// A message of which not even so much fits is left out: the oldest first.
const LEAST: u64 = 120;

/// One message.
struct UserMessage {
    id: Option<String>,
    text: String,
    tokens: u64,
}

/// Estimates what a person said, without reading it again.
pub(super) fn tokens(entries: &[Arc<Entry>]) -> u64 {
    let is_said = |entry: &&Arc<Entry>| {
        let head = entry.head();
        head.kind == EntryKind::User && !head.is_meta && !head.is_compact_summary
    };
    let weights = entries.iter().filter(is_said).map(|entry| weight(entry));
    weights.filter(|weight| weight.results.is_empty()).map(|weight| weight.tokens + HEADING).sum()
}

/// Returns what a person said in a stretch, in at most about so many tokens; `None` when nobody said anything.
pub(super) fn render_all(stretch: &[Arc<Entry>], most_tokens: u64) -> Option<String> {
    let all: Vec<UserMessage> = stretch.iter().filter_map(|entry| user_message(entry)).collect();
    let n_all = all.len();
    let (n_left_out, limits) =
        limits(&all.iter().map(|message| message.tokens).collect::<Vec<_>>(), most_tokens);
    let left_out = (n_left_out > 0).then(|| {
        format!(
            "[The first {n_left_out} of {n_all} are left out here. Recall with {{\"role\": \"user\", \"query\": \"...\"}} finds \
             them by their words.]"
        )
    });
    let shown = all.iter().zip(limits).enumerate().skip(n_left_out);
    let shown = shown.map(|(idx, (message, limit))| message.render(idx + 1, n_all, limit));
    let title = "What the user said in that part, word for word:".to_owned();
    let parts = std::iter::once(title).chain(left_out).chain(shown);
    (n_all > 0).then(|| parts.collect::<Vec<_>>().join("\n\n"))
}

fn user_message(entry: &Entry) -> Option<UserMessage> {
    let text = prompt(entry)?;
    let id = entry.head().uuid.as_ref().map(|id| id.as_str().to_owned());
    Some(UserMessage { id, tokens: prose_tokens(&text) + HEADING, text })
}

impl UserMessage {
    /// Returns the message in at most about so many tokens, what is said about it included.
    fn render(&self, number: usize, n_all: usize, limit: u64) -> String {
        let Self { id, text, tokens } = self;
        if *tokens <= limit {
            return format!("Message {number} of {n_all}:\n{text}");
        }
        let most = limit.saturating_sub(HEADING + NOTE);
        let rest = id.as_ref().map(|id| {
            let offset = head_chars(most);
            format!(" Recall with {{\"message\": \"{id}\", \"offset\": {offset}}} brings the rest.")
        });
        let rest = rest.unwrap_or_default();
        format!("Message {number} of {n_all}, cut in the middle.{rest}\n{}", clip_tokens(text, most))
    }
}

/// Says how many of the first messages are left out, and how many tokens each message may take.
fn limits(sizes: &[u64], most_tokens: u64) -> (usize, Vec<u64>) {
    let Some((last, earlier)) = sizes.split_last() else { return (0, Vec::new()) };
    let mut n_left_out = 0;
    loop {
        let shown = &earlier[n_left_out..];
        let wanted: u64 = shown.iter().sum();
        // What the others do not need is the last one's.
        let last = (*last).min((most_tokens / 2).max(most_tokens.saturating_sub(wanted)));
        let level = level(shown, most_tokens - last);
        if shown.is_empty() || level >= LEAST {
            let limits = vec![level; earlier.len()].into_iter().chain([last]);
            return (n_left_out, limits.collect());
        }
        n_left_out += 1;
    }
}

/// Returns the most that each may take so that all together take no more than there is: only the longest are cut.
fn level(sizes: &[u64], mut left: u64) -> u64 {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut n_more = sizes.len() as u64;
    for size in sizes {
        if size * n_more > left {
            return left / n_more;
        }
        left -= size;
        n_more -= 1;
    }
    u64::MAX
}

#[cfg(test)]
mod tests;
