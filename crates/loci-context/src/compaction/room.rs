//! What a compaction is measured against, and how what is left of the window is shared out.
//!
//! What every request has (system prompt, tools, instruction files) is no part of the conversation and cannot be made
//! shorter. Where it comes near the trigger, or passes it, a conversation would be compacted before every request, to no
//! end. So where less than a twentieth of the window would be left, the trigger moves up: to what can be used, or as far as
//! that twentieth takes, but never further than a request can be answered at all.

use std::sync::Arc;

use loci_core::entry::Entry;

use crate::ledger::context_tokens;
use crate::replaced::Replaced;
use crate::weight::estimate_path;
use loci_core::window::{Fullness, Thresholds, Window};

/// The least a conversation is given before it is made shorter: one part of the window in so many.
const LEAST_PART: u64 = 20;
/// Where not even this part of the window is left, there is no room for a conversation.
const NO_ROOM_PART: u64 = 100;
/// The least in any window: with less, the shortest summary and what goes over beside it would not stay below the trigger.
const LEAST_ROOM: u64 = 6 * LEAST_SUMMARY;
/// What a request leaves for its answer at least.
const LEAST_OUTPUT: u64 = 3_000;

/// The most a summary may take.
const MOST_SUMMARY: u64 = 12_000;
/// The least that is left to a summary, however small the window.
const LEAST_SUMMARY: u64 = 200;
/// The most that is carried over word for word beside the summary.
const MOST_CARRIED: u64 = 16_000;
/// Estimates are trusted to be wrong by no more than this, in percent of themselves.
const MOST_SCALE: u64 = 200;

/// What bounds a conversation and its compaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContextRoom {
    /// The window.
    pub window: Window,
    /// What a request has besides its messages: system prompt, tools, opening context.
    pub overhead: u64,
    /// How many tokens the server counts where we estimate a hundred.
    scale: u64,
}

/// How what is left of the window is shared out after a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomShares {
    /// For the summary.
    pub summary: u64,
    /// For the user's last words, changed paths and the like.
    pub carryover: u64,
    /// For the user's last words alone, should they need more than that.
    pub said: u64,
    /// For all of it, and what is kept word for word.
    pub all: u64,
}

impl ContextRoom {
    /// Makes the room of a conversation whose estimates are taken as they are.
    pub fn new(window: Window, overhead: u64) -> Self {
        Self { window, overhead, scale: 100 }
    }

    /// Makes the room of a conversation, by what the server counted last.
    pub fn from_path(window: Window, overhead: u64, path: &[Arc<Entry>], replaced: &Replaced) -> Self {
        let estimated = overhead + estimate_path(path, replaced);
        Self::new(window, overhead).counted(context_tokens(path, replaced, overhead), estimated)
    }

    /// Takes into account that the server counted more than we estimate, for what every request has as for the rest.
    pub fn counted(self, counted: u64, estimated: u64) -> Self {
        let scale = percent(counted, estimated).clamp(100, MOST_SCALE);
        Self { overhead: self.overhead.saturating_mul(scale) / 100, scale, ..self }
    }

    /// Takes into account that the server refused a request; what it said names the true size and window.
    pub fn refused(self, message: &str, estimated: u64) -> Self {
        let Some((counted, most)) = overflow(message) else {
            return self.counted(self.window.tokens, estimated);
        };
        let window = Window { tokens: self.window.tokens.min(most), ..self.window };
        // What every request has is as much of the server's count as it is of our estimate.
        let share = percent(counted, estimated).min(MOST_SCALE);
        let overhead = self.overhead.saturating_mul(share) / 100;
        Self { overhead, ..Self { window, ..self }.counted(counted, estimated) }
    }

    /// Returns from how many tokens on a conversation is made shorter.
    pub fn trigger(&self) -> u64 {
        self.at_least(self.window.thresholds().compact)
    }

    /// Returns from how many tokens on something is done that would be done from so many on: later, where what every request
    /// has leaves too little for a conversation.
    pub fn at_least(&self, tokens: u64) -> u64 {
        let least = self.least();
        let from = if least <= self.usual() { least } else { least.max(self.window.thresholds().usable) };
        if least <= tokens { tokens } else { from.min(self.limit()).max(tokens) }
    }

    /// Returns where a conversation has the least that it is given.
    fn least(&self) -> u64 {
        self.overhead.saturating_add(LEAST_ROOM.max(self.window.tokens / LEAST_PART))
    }

    /// Returns the trigger of the window, where nobody wants it earlier.
    fn usual(&self) -> u64 {
        Window { percent: None, ..self.window }.thresholds().compact
    }

    /// Returns the thresholds of a conversation in this room.
    pub fn thresholds(&self) -> Thresholds {
        let (thresholds, compact) = (self.window.thresholds(), self.trigger());
        Thresholds { compact, blocked: thresholds.blocked.max(compact), ..thresholds }
    }

    /// Returns how full a conversation of so many tokens is.
    pub fn fullness(&self, tokens: u64) -> Fullness {
        let thresholds = self.thresholds();
        Fullness { tokens, window: self.window.tokens, thresholds, level: thresholds.level(tokens) }
    }

    /// Returns how many tokens there are for a conversation before it is made shorter.
    pub(crate) fn way(&self) -> u64 {
        self.trigger().saturating_sub(self.overhead)
    }

    /// Returns the most tokens of a request that can still be answered.
    pub fn limit(&self) -> u64 {
        let tokens = self.window.tokens;
        (tokens - LEAST_OUTPUT.min(tokens / 10)).max(self.window.thresholds().usable)
    }

    /// Tells whether what every request has leaves no room for a conversation, so that none can be made to fit.
    pub fn is_filled(&self) -> bool {
        let least = LEAST_ROOM.max(self.window.tokens / NO_ROOM_PART);
        self.overhead.saturating_add(least) >= self.limit()
    }

    /// Tells whether what every request has leaves so little that a conversation is made shorter time and again.
    pub fn is_crowded(&self) -> bool {
        self.least() > self.usual()
    }

    /// Returns what the server would count for an estimate of ours.
    pub fn scaled(&self, estimate: u64) -> u64 {
        estimate.saturating_mul(self.scale) / 100
    }

    /// Returns how many tokens of our estimate fit into so many of the server's.
    pub(crate) fn unscaled(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(100) / self.scale
    }

    /// Returns how full the context should be at most after a compaction: four tenths of the window below the
    /// trigger, so that the next one is far away; in windows with little room, a quarter of what there is.
    pub fn target(&self) -> u64 {
        let trigger = self.trigger();
        let far = trigger.saturating_sub(self.window.tokens * 2 / 5);
        let near = self.overhead + self.way() / 4;
        far.max(near)
    }

    /// Returns how much there is up to the target beside a conversation of so many tokens, all in our estimate.
    pub fn left(&self, tokens: u64) -> u64 {
        self.unscaled(self.target().saturating_sub(self.overhead + self.scaled(tokens)))
    }

    /// Shares out what is left up to the target, in our estimate.
    pub fn shares(&self) -> RoomShares {
        let all = self.unscaled(self.target().saturating_sub(self.overhead));
        let summary = (all / 3).clamp(LEAST_SUMMARY, MOST_SUMMARY);
        let carryover = (all / 3).min(all.saturating_sub(summary)).min(MOST_CARRIED);
        // With half of what there is they are word for word, and all of it still stays below the trigger.
        RoomShares { summary, carryover, said: self.unscaled(self.way() / 2), all }
    }

    /// Returns how much a single request can hold besides overhead and answer, in our estimate.
    pub(crate) fn request(&self) -> u64 {
        self.request_without(0)
    }

    /// Returns the same for a request that goes without so much of what others have, in our estimate.
    pub(crate) fn request_without(&self, tokens: u64) -> u64 {
        let overhead = self.overhead.saturating_sub(self.scaled(tokens));
        self.unscaled(self.window.thresholds().usable.saturating_sub(overhead))
    }
}

/// Returns how many tokens were counted where a hundred were estimated.
fn percent(counted: u64, estimated: u64) -> u64 {
    counted.saturating_mul(100).checked_div(estimated).unwrap_or(100)
}

/// Reads "prompt is too long: A tokens > B maximum".
fn overflow(message: &str) -> Option<(u64, u64)> {
    let rest = message.split("too long:").nth(1)?;
    let (counted, rest) = rest.split_once(" tokens > ")?;
    let most: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((counted.trim().parse().ok()?, most.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { tokens: 200_000, max_output: 32_000, percent: None };

    #[test]
    fn compaction_leaves_room_until_the_next() {
        let room = ContextRoom::new(WINDOW, 15_000);
        assert_eq!(room.target(), 87_000);
        assert_eq!(
            room.shares(),
            RoomShares { summary: 12_000, carryover: 16_000, said: 76_000, all: 72_000 }
        );
    }

    /// However little there is, all shares together stay below the trigger.
    #[test]
    fn any_window_is_shared_out_below_its_trigger() {
        for tokens in [8_000, 32_000, 200_000, 1_000_000] {
            for max_output in [1_000, 8_000, 64_000] {
                for overhead in [0, 500, 2_000, 20_000, tokens / 2, tokens * 4 / 5, tokens * 9 / 10] {
                    let room = ContextRoom::new(Window { tokens, max_output, percent: None }, overhead);
                    let (shares, trigger) = (room.shares(), room.trigger());
                    if !room.is_filled() {
                        assert!(overhead + shares.all < trigger, "{room:?} {shares:?}");
                        let words = shares.summary + shares.carryover / 2 + shares.said;
                        assert!(overhead + words < trigger, "{room:?} {shares:?}");
                        assert!(shares.summary + shares.carryover <= shares.all, "{room:?} {shares:?}");
                    }
                }
            }
        }
    }

    /// What comes back after a compaction does not fill what the server counts higher than we do.
    #[test]
    fn room_left_follows_the_servers_count() {
        for (overhead, counted, estimated, tokens, expected) in [
            (15_000, 100_000, 100_000, 20_000, 52_000),
            // Twice as much: 87,000 less 30,000 and 40,000 are 17,000 of the server's tokens.
            (15_000, 100_000, 50_000, 20_000, 8_500),
            (100_000, 168_000, 120_000, 2_000, 2_821),
            (15_000, 100_000, 100_000, 90_000, 0),
        ] {
            let room = ContextRoom::new(WINDOW, overhead).counted(counted, estimated);
            let left = room.left(tokens);
            assert_eq!(left, expected, "{overhead} {counted} {estimated}");
            assert!(left == 0 || room.overhead + room.scaled(tokens + left) <= room.target(), "{room:?}");
        }
    }

    /// A first try that is sized by a wrong estimate would be refused again (regression class 3).
    #[test]
    fn a_refusal_names_the_true_size_and_window() {
        let room = ContextRoom::new(WINDOW, 0);
        for (message, estimated, scale, tokens) in [
            ("prompt is too long: 210000 tokens > 200000 maximum", 150_000, 140, 200_000),
            ("prompt is too long: 210000 tokens > 128000 maximum", 300_000, 100, 128_000),
            ("The prompt does not fit (400): prompt is too long: 9 tokens > 8 maximum", 1, 200, 8),
            ("Input is too long for requested model.", 160_000, 125, 200_000),
            ("prompt is too long: many tokens > 5 maximum", 160_000, 125, 200_000),
        ] {
            let found = room.refused(message, estimated);
            assert_eq!((found.scale, found.window.tokens), (scale, tokens), "{message}");
        }
    }

    /// Where what every request has comes near the trigger, the conversation still has a twentieth of the window, as long as a
    /// request can be answered; then there is no room.
    /// Invariant 29 of `docs/design/compaction.md`.
    #[test]
    fn the_trigger_leaves_room_for_a_conversation() {
        for (tokens, percent, overhead, trigger, is_crowded, is_filled) in [
            (200_000, None, 15_000, 167_000, false, false),
            (200_000, None, 157_000, 167_000, false, false),
            (200_000, None, 157_001, 180_000, true, false),
            (200_000, None, 167_000, 180_000, true, false),
            (200_000, None, 172_000, 182_000, true, false),
            (200_000, None, 180_000, 190_000, true, false),
            (200_000, None, 194_000, 197_000, true, false),
            (200_000, None, 195_000, 197_000, true, true),
            (200_000, None, 400_000, 197_000, true, true),
            (100_000, None, 120_000, 97_000, true, true),
            (8_000, None, 5_900, 7_100, true, false),
            (8_000, None, 6_000, 7_200, true, true),
            (32_000, None, 27_799, 29_000, true, false),
            (32_000, None, 27_800, 29_000, true, true),
            // A wish to compact early is no crowd.
            (100_000, Some(1), 20_000, 25_000, false, false),
        ] {
            let room = ContextRoom::new(Window { tokens, max_output: 32_000, percent }, overhead);
            let found = (room.trigger(), room.is_crowded(), room.is_filled());
            assert_eq!(found, (trigger, is_crowded, is_filled), "{overhead} of {tokens}");
            let thresholds = room.thresholds();
            assert!(thresholds.compact == trigger && thresholds.blocked >= trigger, "{thresholds:?}");
        }
    }

    /// What every request has is measured by what the server counted, in both directions.
    /// Invariant 26 of `docs/design/compaction.md`.
    #[test]
    fn a_refusal_tells_what_every_request_has() {
        for (overhead, estimated, message, expected, is_filled) in [
            // Nearly all of it: nothing that could be made shorter is in the way.
            (120_000, 120_020, "prompt is too long: 210000 tokens > 200000 maximum", 208_800, true),
            // A sixth of it is the conversation.
            (100_000, 120_000, "prompt is too long: 210000 tokens > 200000 maximum", 175_000, false),
            // Estimated too high.
            (210_000, 270_000, "prompt is too long: 210000 tokens > 200000 maximum", 161_700, false),
            (150_000, 190_000, "Input is too long for requested model.", 157_500, false),
        ] {
            let room = ContextRoom::new(WINDOW, overhead).refused(message, estimated);
            assert_eq!((room.overhead, room.is_filled()), (expected, is_filled), "{message}");
        }
    }
}
