//! Vim's keys in the prompt (`editorMode: vim`): a machine from keys to edits, pure.
//!
//! In INSERT mode keys are those of the ordinary editor; in NORMAL and VISUAL mode what is typed is read by `grammar`,
//! `motion` and `text_object` say which part of the text is meant, and `execute` changes it. Keys with Control, Alt or
//! Super are not vim's: they go on to the keymap. One change, however it was made, is undone by one `u`.

mod execute;
mod grammar;
mod motion;
mod operand;
#[cfg(test)]
mod tests;
mod text_object;

use std::time::Duration;

use super::buffer::Position;
use super::chip::InputMode;
use super::command::{EditCommand, edit_command};
use super::editor::Editor;
use crate::key::{Key, KeyCode};
use execute::Extent;
use grammar::{Find, InsertAt, Parsed, VimCommand, parse};
use motion::left_in_line;

/// Within this time the second key of a remap counts.
const REMAP_TIME: Duration = Duration::from_secs(1);

/// The mode of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VimMode {
    /// Keys are typed.
    #[default]
    Insert,
    /// Keys are commands.
    Normal,
    /// Characters are selected.
    Visual,
    /// Lines are selected.
    VisualLine,
}

impl VimMode {
    /// Returns its name, as people and status lines read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Normal => "NORMAL",
            Self::Visual => "VISUAL",
            Self::VisualLine => "VISUAL LINE",
        }
    }
}

/// What came of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VimStep {
    /// It is none of vim's.
    Passed,
    /// It is done.
    Taken,
    /// The prompt before this one is wanted.
    HistoryPrevious,
    /// The prompt behind this one is wanted.
    HistoryNext,
    /// Earlier prompts are to be searched.
    HistorySearch,
    /// The keys are to be explained.
    Help,
}

/// Two keys that together mean Escape in INSERT mode (`vimInsertModeRemaps`).
pub type VimRemap = (char, char);

/// Vim's state beside the text.
#[derive(Debug, Default)]
pub struct Vim {
    mode: VimMode,
    remaps: Vec<VimRemap>,
    /// What was typed of a command.
    keys: Vec<char>,
    register: Register,
    find: Option<Find>,
    /// Where a selection began.
    anchor: Position,
    /// Whether the caret went to the end of its line, and keeps to the ends of lines.
    keeps_line_end: bool,
    /// What `.` does again.
    last_change: Option<Change>,
    /// What began INSERT mode, and what was typed in it.
    insertion: Option<Change>,
    /// The key that may be the first of a remap, and when it was typed.
    remap_begun: Option<(char, Duration)>,
}

/// What was deleted or yanked.
#[derive(Debug, Clone, Default)]
struct Register {
    text: String,
    /// Whole lines.
    is_lines: bool,
}

/// A change that can be made again.
#[derive(Debug, Clone)]
struct Change {
    command: VimCommand,
    count: Option<usize>,
    /// How much was selected.
    extent: Option<Extent>,
    /// What was typed then.
    typed: Vec<Typed>,
}

#[derive(Debug, Clone)]
enum Typed {
    Edit(EditCommand),
    Text(String),
}

impl Vim {
    /// Makes the state of a prompt in INSERT mode.
    pub fn new(editor: &mut Editor) -> Self {
        editor.begin_undo_group();
        Self::default()
    }

    /// Returns the mode.
    pub fn mode(&self) -> VimMode {
        self.mode
    }

    /// Says which pairs of keys mean Escape.
    pub fn set_remaps(&mut self, remaps: &[VimRemap]) {
        remaps.clone_into(&mut self.remaps);
    }

    /// Has what is selected shown as such.
    pub fn show_selection(&self, editor: &mut Editor) {
        let selection = match self.mode {
            VimMode::Insert | VimMode::Normal => None,
            VimMode::Visual | VimMode::VisualLine => {
                let part = self.selected(editor);
                Some((part.from, part.to))
            }
        };
        editor.set_selection(selection);
    }

    /// Takes a key.
    pub fn key(&mut self, editor: &mut Editor, key: Key, now: Duration) -> VimStep {
        match self.mode {
            VimMode::Insert => self.insert_key(editor, key, now),
            VimMode::Normal | VimMode::Visual | VimMode::VisualLine => self.command_key(editor, key),
        }
    }

    /// Notes an edit whose key is bound elsewhere.
    pub fn edited(&mut self, command: EditCommand) {
        self.note(Typed::Edit(command));
    }

    /// Notes text that was pasted.
    pub fn pasted(&mut self, text: &str) {
        self.note(Typed::Text(text.to_owned()));
    }

    /// Notes that another text stands in the prompt now, so that nothing refers to the old one.
    pub fn text_replaced(&mut self, editor: &mut Editor) {
        self.keys.clear();
        self.remap_begun = None;
        if let Some(insertion) = &mut self.insertion {
            insertion.typed.clear();
        }
        if self.mode != VimMode::Insert {
            self.mode = VimMode::Normal;
        }
        self.settle(editor);
    }

    /// Leaves the text to the ordinary keys.
    pub fn end(&self, editor: &mut Editor) {
        editor.end_undo_group();
        editor.set_selection(None);
    }

    /// Keeps the caret on a sign, where the mode asks for it; a selection may end with its line.
    pub fn settle(&self, editor: &mut Editor) {
        if matches!(self.mode, VimMode::Insert | VimMode::Visual) {
            return;
        }
        let at = editor.caret();
        let is_behind = at.byte > 0 && at == editor.buffer().line_end(at.line);
        if is_behind {
            editor.nudge_caret(left_in_line(editor.buffer(), at));
        }
    }

    fn insert_key(&mut self, editor: &mut Editor, key: Key, now: Duration) -> VimStep {
        if key == Key::plain(KeyCode::Esc) {
            self.leave_insert(editor);
            return VimStep::Taken;
        }
        let begun = self.remap_begun.take().filter(|(_, since)| now.saturating_sub(*since) <= REMAP_TIME);
        if let Key { code: KeyCode::Char(char), ctrl: false, alt: false, sup: false, .. } = key {
            if let Some((first, _)) = begun
                && self.remaps.contains(&(first, char))
            {
                editor.apply(EditCommand::DeleteLeft);
                if let Some(insertion) = &mut self.insertion {
                    insertion.typed.pop();
                }
                self.leave_insert(editor);
                return VimStep::Taken;
            }
            // A `!` that only switches the mode of the prompt leaves nothing behind that could be taken back.
            let is_typed = !(char == '!' && editor.is_empty() && editor.mode() == InputMode::Prompt);
            let begins = is_typed && self.remaps.iter().any(|(first, _)| *first == char);
            self.remap_begun = begins.then_some((char, now));
        }
        let is_typing = |command: &EditCommand| !matches!(command, EditCommand::Up | EditCommand::Down);
        if let Some(command) = edit_command(key).filter(is_typing) {
            self.note(Typed::Edit(command));
        }
        VimStep::Passed
    }

    fn note(&mut self, typed: Typed) {
        if self.mode != VimMode::Insert {
            return;
        }
        let caret = VimCommand::Insert(InsertAt::Caret);
        let fresh = || Change { command: caret, count: None, extent: None, typed: Vec::new() };
        self.insertion.get_or_insert_with(fresh).typed.push(typed);
    }

    fn leave_insert(&mut self, editor: &mut Editor) {
        self.mode = VimMode::Normal;
        self.remap_begun = None;
        if let Some(insertion) = self.insertion.take() {
            let n_more = match insertion.command {
                VimCommand::Insert(_) => insertion.count.unwrap_or(1) - 1,
                _ => 0,
            };
            let is_on_own_line =
                matches!(insertion.command, VimCommand::Insert(InsertAt::LineBelow | InsertAt::LineAbove));
            for _ in 0..n_more {
                if is_on_own_line {
                    editor.set_caret(editor.buffer().line_end(editor.caret().line));
                    editor.insert("\n");
                }
                replay(editor, &insertion.typed);
            }
            self.last_change = Some(insertion);
        }
        editor.set_caret(left_in_line(editor.buffer(), editor.caret()));
        editor.end_undo_group();
    }

    fn command_key(&mut self, editor: &mut Editor, key: Key) -> VimStep {
        let has_modifier = key.ctrl || key.alt || key.sup;
        let is_visual = self.mode != VimMode::Normal;
        let is_begun = !self.keys.is_empty();
        let letter = match key.code {
            _ if has_modifier => None,
            KeyCode::Char(char) => Some(char),
            // Another line takes the place of the sign.
            KeyCode::Enter if !is_visual && self.keys.last() == Some(&'r') => Some('\n'),
            KeyCode::Left | KeyCode::Backspace => Some('h'),
            KeyCode::Right => Some('l'),
            KeyCode::Home => Some('0'),
            KeyCode::End => Some('$'),
            KeyCode::Delete => Some('x'),
            // Alone they go to the rows of the text, the queue and the history, as everywhere.
            KeyCode::Up if is_visual || is_begun => Some('k'),
            KeyCode::Down if is_visual || is_begun => Some('j'),
            KeyCode::Esc if is_visual && !is_begun => {
                self.mode = VimMode::Normal;
                self.settle(editor);
                return VimStep::Taken;
            }
            KeyCode::Esc if is_begun => {
                self.keys.clear();
                return VimStep::Taken;
            }
            _ => None,
        };
        let Some(letter) = letter else {
            self.keys.clear();
            return VimStep::Passed;
        };
        self.keys.push(letter);
        match parse(&self.keys, is_visual) {
            Parsed::Incomplete => VimStep::Taken,
            Parsed::Unknown => {
                self.keys.clear();
                VimStep::Taken
            }
            Parsed::Command(command, count) => {
                self.keys.clear();
                let step = self.execute(editor, command, count);
                self.settle(editor);
                step
            }
        }
    }
}

/// Types something again.
fn replay(editor: &mut Editor, typed: &[Typed]) {
    for piece in typed {
        match piece {
            Typed::Edit(command) => drop(editor.apply(*command)),
            Typed::Text(text) => drop(editor.insert(text)),
        }
    }
}
