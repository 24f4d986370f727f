//! What editing keys do: a table from keys to commands.
//!
//! These keys are not actions of a keymap: the reference does not let them be bound either, though a `null` for one of
//! them switches it off. Line breaks and undo are actions, and therefore not here.

use crate::key::{Key, KeyCode};

/// A step of editing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditCommand {
    /// Puts a character in.
    Insert(char),
    /// Breaks the line.
    Newline,
    /// Moves over a cluster.
    Left,
    /// Moves over a cluster.
    Right,
    /// Moves to the row above.
    Up,
    /// Moves to the row below.
    Down,
    /// Moves to the beginning of a word.
    WordLeft,
    /// Moves over a word.
    WordRight,
    /// Moves to the beginning of the line.
    LineStart,
    /// Moves to the end of the line.
    LineEnd,
    /// Moves to the beginning of the text.
    TextStart,
    /// Moves to the end of the text.
    TextEnd,
    /// Deletes the cluster before the caret.
    DeleteLeft,
    /// Deletes the cluster behind the caret.
    DeleteRight,
    /// Kills the word before the caret.
    KillWordLeft,
    /// Deletes the word behind the caret; with readline's keys it is killed.
    DeleteWordRight,
    /// Kills to the beginning of the line, or the line end before it.
    KillToLineStart,
    /// Kills to the end of the line, or the line end.
    KillToLineEnd,
    /// Puts in what was killed last.
    Yank,
    /// Puts what was killed before that in the place of what was yanked.
    YankPop,
    /// Takes the last edit back.
    Undo,
    /// Makes an edit again that was undone.
    Redo,
}

/// The keys, in the notation of keymaps.
pub(super) const EDIT_KEYS: &[(&str, EditCommand)] = &[
    ("left", EditCommand::Left),
    ("ctrl+b", EditCommand::Left),
    ("right", EditCommand::Right),
    ("ctrl+f", EditCommand::Right),
    ("up", EditCommand::Up),
    ("ctrl+p", EditCommand::Up),
    ("down", EditCommand::Down),
    ("ctrl+n", EditCommand::Down),
    ("alt+b", EditCommand::WordLeft),
    ("alt+left", EditCommand::WordLeft),
    ("ctrl+left", EditCommand::WordLeft),
    ("alt+f", EditCommand::WordRight),
    ("alt+right", EditCommand::WordRight),
    ("ctrl+right", EditCommand::WordRight),
    ("ctrl+a", EditCommand::LineStart),
    ("home", EditCommand::LineStart),
    ("super+left", EditCommand::LineStart),
    ("ctrl+e", EditCommand::LineEnd),
    ("end", EditCommand::LineEnd),
    ("super+right", EditCommand::LineEnd),
    ("ctrl+home", EditCommand::TextStart),
    ("alt+<", EditCommand::TextStart),
    ("ctrl+end", EditCommand::TextEnd),
    ("alt+>", EditCommand::TextEnd),
    ("backspace", EditCommand::DeleteLeft),
    ("shift+backspace", EditCommand::DeleteLeft),
    ("ctrl+h", EditCommand::DeleteLeft),
    ("delete", EditCommand::DeleteRight),
    ("ctrl+d", EditCommand::DeleteRight),
    ("ctrl+w", EditCommand::KillWordLeft),
    ("alt+backspace", EditCommand::KillWordLeft),
    ("ctrl+backspace", EditCommand::KillWordLeft),
    ("alt+d", EditCommand::DeleteWordRight),
    ("alt+delete", EditCommand::DeleteWordRight),
    ("ctrl+delete", EditCommand::DeleteWordRight),
    ("ctrl+u", EditCommand::KillToLineStart),
    ("super+backspace", EditCommand::KillToLineStart),
    ("ctrl+k", EditCommand::KillToLineEnd),
    ("ctrl+y", EditCommand::Yank),
    ("alt+y", EditCommand::YankPop),
    ("alt+_", EditCommand::Redo),
    ("ctrl+shift+z", EditCommand::Redo),
    ("alt+shift+enter", EditCommand::Newline),
    ("shift+space", EditCommand::Insert(' ')),
];

/// Returns what a key does in the text; keys that are characters put themselves in.
pub fn edit_command(key: Key) -> Option<EditCommand> {
    if let Key { code: KeyCode::Char(char), ctrl: false, alt: false, sup: false, .. } = key {
        return Some(EditCommand::Insert(char));
    }
    EDIT_KEYS
        .iter()
        .find(|(name, _)| crate::keymap::parse_key(name) == Some(key))
        .map(|(_, command)| *command)
}
