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
    /// The change it is a part of; none where it is one by itself.
    pub(super) group: Option<u64>,
}

/// Edits that were made, and those that were undone.
#[derive(Debug, Clone, Default)]
pub(super) struct UndoHistory {
    done: Vec<Edit>,
    undone: Vec<Edit>,
    /// The next letter joins the last edit.
    is_typing: bool,
    /// The change that edits are a part of now.
    group: Option<u64>,
    n_groups: u64,
}

impl UndoHistory {
    /// Notes an edit; `is_typed` says that it is a letter, which may join the one before.
    pub(super) fn note(&mut self, mut edit: Edit, is_typed: bool) {
        self.undone.clear();
        edit.group = self.group;
        let joins = is_typed && self.is_typing;
        self.is_typing = is_typed;
        match self.done.last_mut() {
            Some(last) if joins && continues(last, &edit) => last.inserted.push_str(&edit.inserted),
            _ => self.done.push(edit),
        }
    }

    /// Lets edits from now on be one change, until [`Self::end_group`].
    pub(super) fn begin_group(&mut self) {
        self.n_groups += 1;
        self.group = Some(self.n_groups);
        self.is_typing = false;
    }

    /// Ends the change that edits are a part of.
    pub(super) fn end_group(&mut self) {
        self.group = None;
        self.is_typing = false;
    }

    /// Forgets all edits.
    pub(super) fn clear(&mut self) {
        *self = Self { group: self.group, n_groups: self.n_groups, ..Self::default() };
    }

    /// Takes the last change back, with all its edits, and returns where the caret was.
    pub(super) fn undo_group(&mut self, buffer: &mut Buffer) -> Option<Position> {
        let group = self.done.last()?.group;
        let mut caret = self.undo(buffer);
        while group.is_some() && self.done.last().is_some_and(|edit| edit.group == group) {
            caret = self.undo(buffer);
        }
        caret
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
