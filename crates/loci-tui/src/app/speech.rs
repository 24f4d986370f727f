//! What a screen reader is told that others see: modes, hints, deleted text, and where turns begin and end.

use loci_app::display::dollars;

use super::{App, Effect};
use crate::block::NoticeLevel;
use crate::input::{EditCommand, edit_command};
use crate::key::{InputEvent, Key};

/// Why everything is plain lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainMode {
    /// For a screen reader; who said so.
    ScreenReader(String),
    /// The terminal knows no escape sequences.
    Dumb,
}

impl App {
    /// Tells whether somebody listens rather than looks.
    pub(super) fn is_spoken(&self) -> bool {
        matches!(self.options.plain, Some(PlainMode::ScreenReader(_)))
    }

    /// Tells in a line what others see below the prompt; nothing where that is seen.
    pub(super) fn speak(&mut self, text: impl Into<String>) {
        if self.options.plain.is_some() {
            self.notice(NoticeLevel::Info, text);
        }
    }

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

    /// Returns what whoever listens is told of the cost at the end.
    pub(super) fn cost_farewell(&self, cost_usd: f64) -> Option<String> {
        (self.is_spoken() && cost_usd > 0.0).then(|| format!("cost: {}", dollars(cost_usd)))
    }

    /// Returns the prompt as it is before a key that deletes, where somebody listens.
    pub(super) fn before_deleting(&self, event: &InputEvent) -> Option<String> {
        let InputEvent::Key(key) = event else { return None };
        (self.is_spoken() && deletes(*key)).then(|| self.prompt.draft().display())
    }

    /// Says what a key has deleted.
    pub(super) fn say_deleted(&mut self, before: &str) {
        let after = self.prompt.draft().display();
        let start = common(before.chars(), after.chars());
        let end = common(before[start..].chars().rev(), after[start..].chars().rev());
        let deleted = &before[start..before.len() - end];
        if !deleted.is_empty() {
            let named = if deleted == " " { "space" } else { deleted };
            self.speak(format!("deleted {named}"));
        }
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

fn deletes(key: Key) -> bool {
    matches!(
        edit_command(key),
        Some(
            EditCommand::DeleteLeft
                | EditCommand::DeleteRight
                | EditCommand::DeleteWordRight
                | EditCommand::KillWordLeft
                | EditCommand::KillToLineStart
                | EditCommand::KillToLineEnd
        )
    )
}

/// Returns how many bytes two texts have in common at their beginnings.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}
