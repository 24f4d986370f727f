//! Edits, to be undone and done again.
//!
//! Letters that are typed one after the other are one step, a word at a time; everything else is a step by itself.

use super::buffer::{Buffer, Position};

/// A replacement in the text.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub(super) at: Position,
    pub(super) removed: String,
    pub(super) inserted: String,
    /// Where the caret was before.
    pub(super) caret: Position,
}

/// Edits that were made, and those that were undone.
#[derive(Debug, Clone, Default)]
pub(super) struct UndoHistory {
    done: Vec<Edit>,
    undone: Vec<Edit>,
    /// The next letter joins the last edit.
    is_typing: bool,
}

impl UndoHistory {
    /// Notes an edit; `is_typed` says that it is a letter, which may join the one before.
    pub(super) fn note(&mut self, edit: Edit, is_typed: bool) {
        self.undone.clear();
        let joins = is_typed && self.is_typing;
        self.is_typing = is_typed;
        match self.done.last_mut() {
            Some(last) if joins && continues(last, &edit) => last.inserted.push_str(&edit.inserted),
            _ => self.done.push(edit),
        }
    }

    /// Lets the next letter begin a step of its own.
    pub(super) fn interrupt(&mut self) {
        self.is_typing = false;
    }

    /// Takes the last edit back and returns where the caret was.
    pub(super) fn undo(&mut self, buffer: &mut Buffer) -> Option<Position> {
        self.is_typing = false;
        let edit = self.done.pop()?;
        let end = end_of(edit.at, &edit.inserted);
        buffer.remove(edit.at, end);
        buffer.insert(edit.at, &edit.removed);
        let caret = edit.caret;
        self.undone.push(edit);
        Some(caret)
    }

    /// Makes the last edit that was undone again and returns where it ends.
    pub(super) fn redo(&mut self, buffer: &mut Buffer) -> Option<Position> {
        self.is_typing = false;
        let edit = self.undone.pop()?;
        buffer.remove(edit.at, end_of(edit.at, &edit.removed));
        let caret = buffer.insert(edit.at, &edit.inserted);
        self.done.push(edit);
        Some(caret)
    }
}

/// Tells whether a letter goes on where the last one ended, in the same word.
fn continues(last: &Edit, edit: &Edit) -> bool {
    let is_blank = |text: &str| text.chars().next_back().is_some_and(char::is_whitespace);
    let begins_a_word = is_blank(&last.inserted) && !is_blank(&edit.inserted);
    edit.removed.is_empty()
        && end_of(last.at, &last.inserted) == edit.at
        && !begins_a_word
        && edit.inserted != "\n"
}

/// Returns the place behind a text that begins at a place.
fn end_of(at: Position, text: &str) -> Position {
    match text.rfind('\n') {
        None => Position { byte: at.byte + text.len(), ..at },
        Some(last) => Position { line: at.line + text.matches('\n').count(), byte: text.len() - last - 1 },
    }
}
