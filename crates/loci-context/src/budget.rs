//! How much of a window the results of tools may take, whatever each tool's own limit is.
//!
//! Tools have limits of their own. But many calls may be answered at once, and a window may be small: then what is too
//! long goes to a file, and a preview stands in its place.

use crate::window::Window;

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
    /// Returns the bounds for a window.
    pub fn of(window: &Window) -> Self {
        let trigger = window.thresholds().compact;
        Self { single: trigger / 6, message: (trigger / 4).min(MOST_MESSAGE) }
    }

    /// Tells whether a result may stay as it is when so many tokens of its message are taken already.
    pub fn allows(&self, tokens: u64, taken: u64) -> bool {
        tokens <= PREVIEW.min(self.single) || (tokens <= self.single && taken + tokens <= self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_result_and_many_have_their_bounds() {
        let window = |tokens| Window { tokens, max_output: 20_000, percent: None };
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
            let budget = ResultBudget::of(&window(tokens));
            assert_eq!(budget.allows(result, taken), expected, "{tokens}: {result} behind {taken}");
        }
    }
}
