//! When notes are written: tokens are always required, calls alone never suffice.

/// How often notes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotesPace {
    /// The conversation must hold so many tokens before the first time; prompt and tools do not count.
    pub first_tokens: u64,
    /// And so many more before each further time.
    pub more_tokens: u64,
    /// Together with so many tool calls, unless the model just paused.
    pub calls: u32,
}

impl Default for NotesPace {
    fn default() -> Self {
        Self { first_tokens: 10_000, more_tokens: 5_000, calls: 10 }
    }
}

/// What has happened since notes were last asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SinceNotes {
    tokens: Option<u64>,
    calls: u32,
}

impl SinceNotes {
    /// Goes on where notes were last written at so many tokens.
    pub fn resumed(tokens: u64) -> Self {
        Self { tokens: Some(tokens), calls: 0 }
    }

    /// Takes note of a response and its calls.
    pub fn on_response(&mut self, n_calls: usize) {
        self.calls = self.calls.saturating_add(u32::try_from(n_calls).unwrap_or(u32::MAX));
    }

    /// Takes note that the conversation is shorter now.
    pub fn shortened(&mut self, tokens: u64) {
        self.tokens = self.tokens.map(|last| last.min(tokens));
    }

    /// Tells whether notes are to be written now. `is_pause` means that the last response made no calls.
    pub fn is_due(&self, pace: &NotesPace, tokens: u64, is_pause: bool) -> bool {
        match self.tokens {
            None => tokens >= pace.first_tokens,
            Some(last) => {
                tokens.saturating_sub(last) >= pace.more_tokens && (is_pause || self.calls >= pace.calls)
            }
        }
    }

    /// Takes note that notes were asked for at so many tokens.
    pub fn record_request(&mut self, tokens: u64) {
        *self = Self::resumed(tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: NotesPace = NotesPace { first_tokens: 8_000, more_tokens: 15_000, calls: 5 };

    /// Invariant 2 of `docs/design/memory.md`.
    #[test]
    fn notes_need_token_growth_not_only_tool_calls() {
        let usual = NotesPace::default();
        for (pace, last, calls, tokens, is_pause, expected) in [
            (usual, None, 0, 9_999, true, false),
            (usual, None, 99, 9_999, true, false),
            (usual, None, 0, 10_000, false, true),
            (usual, Some(10_000), 99, 14_999, true, false),
            (usual, Some(10_000), 9, 15_000, false, false),
            (usual, Some(10_000), 10, 15_000, false, true),
            (usual, Some(10_000), 0, 15_000, true, true),
            (usual, Some(10_000), 99, 9_000, true, false),
            (SLOW, None, 0, 7_999, true, false),
            (SLOW, None, 0, 8_000, false, true),
            (SLOW, Some(8_000), 5, 22_999, true, false),
            (SLOW, Some(8_000), 4, 23_000, false, false),
            (SLOW, Some(8_000), 5, 23_000, false, true),
            (SLOW, Some(8_000), 0, 23_000, true, true),
        ] {
            let since = SinceNotes { tokens: last, calls };
            assert_eq!(since.is_due(&pace, tokens, is_pause), expected, "{since:?} {tokens} {is_pause}");
        }
    }

    #[test]
    fn counting_starts_again_after_each_time_and_after_a_compaction() {
        let pace = NotesPace::default();
        let mut since = SinceNotes::default();
        since.on_response(30);
        assert!(since.is_due(&pace, 90_000, false));
        since.record_request(90_000);
        assert!(!since.is_due(&pace, 95_000, false), "the calls were before");
        since.on_response(10);
        assert!(since.is_due(&pace, 95_000, false));
        since.shortened(20_000);
        assert!(!since.is_due(&pace, 24_000, true));
        assert!(since.is_due(&pace, 25_000, true), "measured from the shorter conversation");
    }
}
