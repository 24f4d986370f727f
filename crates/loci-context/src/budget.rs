//! How much of a window the results of tools may take, whatever each tool's own limit is.
//!
//! Tools have limits of their own. But many calls may be answered at once, and a window may be small: then what is too
//! long goes to a file, and a preview stands in its place.

use crate::compaction::ContextRoom;

/// Results of one message take no more than this in any window.
const MOST_MESSAGE: u64 = 50_000;
/// What a preview takes at most; less is not worth a file.
const PREVIEW: u64 = 700;

/// The bounds for results, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultBudget {
    /// For one.
    pub single: u64,
    /// For all that answer one response.
    pub message: u64,
}

impl ResultBudget {
    /// Returns the bounds for a window, and for what there is for a conversation in it: where that is little, one message
    /// does not take more than half of it.
    pub fn of(room: &ContextRoom) -> Self {
        let (trigger, way) = (room.window.thresholds().compact, room.way());
        Self { single: (trigger / 6).min(way / 3), message: (trigger / 4).min(way / 2).min(MOST_MESSAGE) }
    }

    /// Tells whether a result may stay as it is when so many tokens of its message are taken already.
    pub fn allows(&self, tokens: u64, taken: u64) -> bool {
        tokens <= PREVIEW.min(self.single) || (tokens <= self.single && taken + tokens <= self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_core::window::Window;

    #[test]
    fn one_result_and_many_have_their_bounds() {
        let room =
            |tokens| ContextRoom::new(Window { tokens, max_output: 20_000, percent: None }, tokens / 25);
        for (tokens, result, taken, expected) in [
            // The most that Read shows has its place in an ordinary window.
            (200_000, 25_000, 0, true),
            (200_000, 27_834, 0, false),
            (200_000, 25_000, 16_750, true),
            (200_000, 25_000, 16_751, false),
            // What is no longer than a preview is not worth a file.
            (200_000, 600, 60_000, true),
            (8_000, 444, 0, true),
            (8_000, 445, 0, false),
            (1_000_000, 50_000, 0, true),
            (1_000_000, 50_000, 1, false),
        ] {
            let budget = ResultBudget::of(&room(tokens));
            assert_eq!(budget.allows(result, taken), expected, "{tokens}: {result} behind {taken}");
        }
    }

    /// Where instructions take most of a window, results do not take all of the rest at once.
    #[test]
    fn little_room_has_smaller_bounds() {
        let window = Window { tokens: 200_000, max_output: 20_000, percent: None };
        for (overhead, single, message) in
            [(15_000, 27_833, 41_750), (107_000, 20_000, 30_000), (172_000, 3_333, 5_000)]
        {
            let budget = ResultBudget::of(&ContextRoom::new(window, overhead));
            assert_eq!(budget, ResultBudget { single, message }, "{overhead}");
        }
    }
}
