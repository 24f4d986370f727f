//! Clearing old tool results by the server: what it is asked to do where it can.
//!
//! The server clears before the model reads, so the transcript and what is sent stay as they are; what it counts is what
//! is left. It is asked to when the window fills, as late as people are warned, and only where that frees a good part.

use crate::clearing::KEPT;
use loci_core::window::Window;

/// What the server is asked to clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerClearing {
    /// Only a request of more tokens than this.
    pub above_tokens: u64,
    /// How many of the newest calls keep their results.
    pub keep: usize,
    /// The least worth it, in tokens.
    pub at_least: u64,
}

impl ServerClearing {
    /// Returns what is asked for with a window.
    pub fn of(window: &Window) -> Self {
        let thresholds = window.thresholds();
        Self { above_tokens: thresholds.warning, keep: KEPT, at_least: thresholds.usable / 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before anything is summarised, and never in windows in which there is nothing to gain.
    #[test]
    fn the_server_clears_before_a_compaction_is_due() {
        for (tokens, above_tokens, at_least) in
            [(200_000, 160_000, 18_000), (1_000_000, 960_000, 98_000), (32_000, 10_667, 1_600)]
        {
            let window = Window { tokens, max_output: 32_000, percent: None };
            let found = ServerClearing::of(&window);
            let expected = ServerClearing { above_tokens, keep: 5, at_least };
            assert_eq!(found, expected, "{tokens}");
            assert!(found.above_tokens <= window.thresholds().compact);
        }
    }
}
