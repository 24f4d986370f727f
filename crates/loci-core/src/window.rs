//! How much a conversation may hold, and what happens as it fills: one function for every threshold.

use serde::{Deserialize, Serialize};

/// What bounds a conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Tokens the model, or a setting, lets the context hold.
    pub tokens: u64,
    /// The most the model may write.
    pub max_output: u64,
    /// A share of what can be used at which to compact earlier, in percent.
    pub percent: Option<u8>,
}

/// Where a conversation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// There is room.
    Fine,
    /// It fills up.
    Warning,
    /// It is compacted before the next request.
    Compact,
    /// Without compaction nothing more is taken.
    Blocked,
}

impl Level {
    /// Returns the level's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warning => "warning",
            Self::Compact => "compact",
            Self::Blocked => "blocked",
        }
    }
}

/// How full a conversation is: one figure for every front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fullness {
    /// Tokens it holds.
    pub tokens: u64,
    /// Tokens the window holds.
    pub window: u64,
    /// Where things happen.
    pub thresholds: Thresholds,
    /// Where it stands.
    pub level: Level,
}

/// The thresholds of a window, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// What the conversation can use: the window without the reserve for a summary.
    pub usable: u64,
    /// From here people are warned.
    pub warning: u64,
    /// From here it is compacted.
    pub compact: u64,
    /// From here prompts are refused, where compaction is off.
    pub blocked: u64,
}

/// What is kept free so that a summary can be written.
const RESERVE: u64 = 20_000;
const WARNING_BELOW: u64 = 20_000;
const COMPACT_BELOW: u64 = 13_000;
const BLOCKED_BELOW: u64 = 3_000;

impl Window {
    /// Returns the thresholds. In a window too small for the usual distances they are shares of it instead.
    pub fn thresholds(&self) -> Thresholds {
        let reserve = self.max_output.min(RESERVE).min(self.tokens / 2);
        let usable = self.tokens - reserve;
        let below = |distance: u64| usable - distance.min(usable / 3);
        let compact = below(COMPACT_BELOW);
        let early = self.percent.map(|percent| usable * u64::from(percent.clamp(1, 100)) / 100);
        Thresholds {
            usable,
            warning: below(WARNING_BELOW).min(compact),
            compact: early.map_or(compact, |early| early.min(compact)),
            blocked: below(BLOCKED_BELOW).max(compact),
        }
    }
}

impl Thresholds {
    /// Tells where a conversation of so many tokens stands.
    pub fn level(&self, tokens: u64) -> Level {
        match tokens {
            n if n >= self.blocked => Level::Blocked,
            n if n >= self.compact => Level::Compact,
            n if n >= self.warning => Level::Warning,
            _ => Level::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(tokens: u64, max_output: u64, percent: Option<u8>) -> Window {
        Window { tokens, max_output, percent }
    }

    /// The anchors that are documented or were measured on the reference.
    /// Invariant 7 of `docs/design/compaction.md`.
    #[test]
    fn compaction_trigger_matches_the_reference() {
        for (tokens, max_output, percent, expected) in [
            (200_000, 32_000, None, 167_000),
            (1_000_000, 64_000, None, 967_000),
            (100_000, 32_000, None, 67_000),
            (100_000, 8_000, None, 79_000),
            (100_000, 64_000, None, 67_000),
            (100_000, 32_000, Some(50), 40_000),
            (100_000, 32_000, Some(100), 67_000),
            (100_000, 32_000, Some(0), 800),
        ] {
            let found = window(tokens, max_output, percent).thresholds().compact;
            assert_eq!(found, expected, "{tokens} {max_output} {percent:?}");
        }
    }

    #[test]
    fn context_levels_follow_each_other() {
        let window = window(200_000, 32_000, None);
        for (tokens, expected) in [
            (0, Level::Fine),
            (159_999, Level::Fine),
            (160_000, Level::Warning),
            (166_999, Level::Warning),
            (167_000, Level::Compact),
            (176_999, Level::Compact),
            (177_000, Level::Blocked),
        ] {
            assert_eq!(window.thresholds().level(tokens), expected, "{tokens}");
        }
    }

    #[test]
    fn any_window_has_thresholds_in_order_and_room_below_them() {
        for tokens in [0, 1, 10, 1_000, 8_000, 20_000, 33_000, 50_000, 200_000, 1_000_000] {
            for max_output in [0, 1_000, 8_000, 64_000] {
                for percent in [None, Some(1), Some(80)] {
                    let found = window(tokens, max_output, percent).thresholds();
                    assert!(found.usable <= tokens && found.compact <= found.blocked, "{found:?}");
                    assert!(found.blocked <= found.usable, "{found:?}");
                    if tokens >= 8_000 && percent.is_none() {
                        assert!(found.compact >= tokens / 4, "{tokens} {max_output}: {found:?}");
                    }
                }
            }
        }
    }
}
