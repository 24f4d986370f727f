//! What a screen reader is told that others see: where turns begin and end. Modes and hints are notices (`TranscriptView::speak`).

use super::Effect;
use super::preferences::Preferences;

/// Why everything is plain lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainMode {
    /// For a screen reader; who said so.
    ScreenReader(String),
    /// The terminal knows no escape sequences.
    Dumb,
}

impl Preferences {
    /// Returns the mark of a turn's boundary, and the bell, for whoever listens.
    pub(super) fn turn_mark(&self, mark: TurnMark) -> Vec<Effect> {
        if !self.is_spoken() {
            return Vec::new();
        }
        let sequence = match mark {
            TurnMark::Begin => "\x1b]133;C\x07",
            TurnMark::End => "\x1b]133;D\x07\x1b]133;A\x07\x07",
            TurnMark::Question | TurnMark::LongCall => "\x07",
        };
        vec![Effect::Write(sequence.to_owned())]
    }
}

/// A boundary in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnMark {
    /// A turn begins.
    Begin,
    /// A turn is over.
    End,
    /// Something is asked.
    Question,
    /// A call has ended that took long.
    LongCall,
}
