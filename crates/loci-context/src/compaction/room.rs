//! What a compaction is measured against, and how what is left of the window is shared out.

use crate::window::Window;

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
pub struct Room {
    /// The window.
    pub window: Window,
    /// What a request has besides its messages: system prompt, tools, opening context.
    pub overhead: u64,
    /// How many tokens the server counts where we estimate a hundred.
    scale: u64,
}

/// How what is left of the window is shared out after a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// For the summary.
    pub summary: u64,
    /// For the user's last words, changed paths and the like.
    pub carried: u64,
    /// For the user's last words alone, should they need more than that.
    pub said: u64,
    /// For all of it, and what is kept word for word.
    pub all: u64,
}

impl Room {
    /// Makes the room of a conversation whose estimates are taken as they are.
    pub fn new(window: Window, overhead: u64) -> Self {
        Self { window, overhead, scale: 100 }
    }

    /// Takes into account that the server counted more than we estimate.
    pub fn counted(self, counted: u64, estimated: u64) -> Self {
        let scale = counted.saturating_mul(100).checked_div(estimated).unwrap_or(100);
        Self { scale: scale.clamp(100, MOST_SCALE), ..self }
    }

    /// Takes into account that the server refused a request; what it said names the true size and window.
    pub fn refused(self, message: &str, estimated: u64) -> Self {
        let Some((counted, most)) = overflow(message) else {
            return self.counted(self.window.tokens, estimated);
        };
        let window = Window { tokens: self.window.tokens.min(most), ..self.window };
        Self { window, ..self }.counted(counted, estimated)
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
        let trigger = self.window.thresholds().compact;
        let far = trigger.saturating_sub(self.window.tokens * 2 / 5);
        let near = self.overhead + trigger.saturating_sub(self.overhead) / 4;
        far.max(near)
    }

    /// Shares out what is left up to the target, in our estimate.
    pub fn shares(&self) -> Shares {
        let all = self.unscaled(self.target().saturating_sub(self.overhead));
        let summary = (all / 3).clamp(LEAST_SUMMARY, MOST_SUMMARY);
        let carried = (all / 3).min(all.saturating_sub(summary)).min(MOST_CARRIED);
        // With half of what there is they are word for word, and all of it still stays below the trigger.
        let way = self.window.thresholds().compact.saturating_sub(self.overhead);
        Shares { summary, carried, said: self.unscaled(way / 2), all }
    }

    /// Returns how much a single request can hold besides overhead and answer, in our estimate.
    pub(crate) fn request(&self) -> u64 {
        self.unscaled(self.window.thresholds().usable.saturating_sub(self.overhead))
    }
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
    fn the_next_compaction_is_far_away() {
        let room = Room::new(WINDOW, 15_000);
        assert_eq!(room.target(), 87_000);
        assert_eq!(room.shares(), Shares { summary: 12_000, carried: 16_000, said: 76_000, all: 72_000 });
    }

    /// However little there is, all shares together stay below the trigger.
    #[test]
    fn any_window_is_shared_out_below_its_trigger() {
        for tokens in [8_000, 32_000, 200_000, 1_000_000] {
            for max_output in [1_000, 8_000, 64_000] {
                for overhead in [0, 500, 2_000, 20_000] {
                    let room = Room::new(Window { tokens, max_output, percent: None }, overhead);
                    let (shares, trigger) = (room.shares(), room.window.thresholds().compact);
                    if overhead + 6 * LEAST_SUMMARY < trigger {
                        assert!(overhead + shares.all < trigger, "{room:?} {shares:?}");
                        let words = shares.summary + shares.carried / 2 + shares.said;
                        assert!(overhead + words < trigger, "{room:?} {shares:?}");
                        assert!(shares.summary + shares.carried <= shares.all, "{room:?} {shares:?}");
                    }
                }
            }
        }
    }

    /// A first try that is sized by a wrong estimate would be refused again (regression class 3).
    #[test]
    fn a_refusal_names_the_true_size_and_window() {
        let room = Room::new(WINDOW, 0);
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
}
