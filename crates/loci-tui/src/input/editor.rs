//! The text of the input with its caret, and what editing does to it.
//!
//! By hand, because the crates for it (`tui-textarea`, `reedline`) draw as well, and know neither chips nor our wrapping.

use std::borrow::Cow;
use std::ops::Range;

use super::buffer::{Buffer, Position};
use super::chip::{ChipContent, Chips, Draft, InputMode, PastedImage, mark, number_of, without_chip_marks};
use super::command::EditCommand;
use super::kill_ring::{KillRing, KillSide};
use super::undo::{Edit, UndoHistory};
use super::words::{Flavor, blank_before, word_end_after, word_start_before};
use crate::text::without_controls;

#[cfg(test)]
mod tests;
mod view;

pub use view::{InputStyles, InputView};

/// A paste of more lines becomes a chip.
const CHIP_LINES: usize = 10;
/// A paste of more bytes becomes a chip.
const CHIP_BYTES: usize = 2048;

/// The input.
#[derive(Debug, Default)]
pub struct Editor {
    buffer: Buffer,
    caret: Position,
    /// The column that Up and Down keep to.
    goal: Option<usize>,
    mode: InputMode,
    flavor: Flavor,
    chips: Chips,
    kill_ring: KillRing,
    undo: UndoHistory,
    last: Last,
    /// What was put aside, the last at the end.
    stash: Vec<Draft>,
    ghost: Option<String>,
    /// What is shown as selected.
    selection: Option<(Position, Position)>,
    view: view::Viewport,
}

/// What the last command was, where the next one goes on from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Other,
    Kill,
    /// It put in what stands from here to the caret.
    Yank(Position),
}

/// What a command did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditOutcome {
    /// The text or the mode is another one.
    Changed,
    /// Only the caret moved.
    Moved,
    /// Nothing: there was nothing to delete, or no way further. Up and Down go to the history then.
    Nothing,
}

/// What Enter means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnterOutcome {
    /// A backslash stood before the caret and became a line break.
    Newline,
    /// The text is to be sent.
    Submit,
}

impl Editor {
    /// Makes an empty input with these keys.
    pub fn new(flavor: Flavor) -> Self {
        Self { flavor, ..Self::default() }
    }

    /// Says which words the keys take from now on.
    pub fn set_flavor(&mut self, flavor: Flavor) {
        self.flavor = flavor;
    }

    /// Tells whether nothing is typed.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns how the input is meant.
    pub fn mode(&self) -> InputMode {
        self.mode
    }

    /// Returns the text as it is seen: chips by their labels.
    pub fn text(&self) -> String {
        self.draft().display()
    }

    /// Returns all that is typed, as it stands.
    pub fn draft(&self) -> Draft {
        let marked = self.buffer.text();
        let chips = self.chips.in_text(&marked);
        Draft { mode: self.mode, caret: self.buffer.offset(self.caret), marked, chips }
    }

    /// Returns all that is typed and leaves nothing behind.
    pub fn take(&mut self) -> Draft {
        let draft = self.draft();
        self.clear();
        draft
    }

    /// Makes another draft the input; undo brings back what was there.
    pub fn set_draft(&mut self, draft: &Draft) {
        let mut marked = draft.marked.clone();
        for chip in &draft.chips {
            let old = draft.marked.chars().find(|char| number_of(*char) == Some(chip.number));
            if let (Some(old), Some(new)) = (old, self.chips.adopt(chip))
                && old != new
            {
                marked = marked.replace(old, new.encode_utf8(&mut [0; 4]));
            }
        }
        self.begin(Last::Other);
        self.replace(Position::default(), self.buffer.end(), &marked);
        self.caret = self.buffer.position(draft.caret);
        self.mode = draft.mode;
    }

    /// Empties the input, with all that could be undone.
    pub fn clear(&mut self) {
        self.buffer = Buffer::default();
        self.caret = Position::default();
        self.undo.clear();
        self.mode = InputMode::Prompt;
        self.begin(Last::Other);
        let kill_ring = &self.kill_ring;
        self.chips.retain(|mark| kill_ring.contains(mark));
    }

    /// Stashes what is typed and empties the input; on an empty input, brings back what was stashed last.
    pub fn stash(&mut self) -> EditOutcome {
        if !self.is_empty() {
            let draft = self.take();
            self.stash.push(draft);
            return EditOutcome::Changed;
        }
        match self.stash.pop() {
            Some(draft) => {
                self.set_draft(&draft);
                EditOutcome::Changed
            }
            None => EditOutcome::Nothing,
        }
    }

    /// Takes all that is stashed, the oldest first.
    pub fn take_stash(&mut self) -> Vec<Draft> {
        std::mem::take(&mut self.stash)
    }

    /// Tells whether something is stashed.
    pub fn has_stash(&self) -> bool {
        !self.stash.is_empty()
    }

    /// Suggests a text that is shown faintly while nothing is typed.
    pub fn set_ghost(&mut self, ghost: Option<String>) {
        self.ghost = ghost;
    }

    /// Makes the suggested text the input, if there is one and nothing is typed.
    pub fn accept_ghost(&mut self) -> EditOutcome {
        match self.ghost.take() {
            Some(ghost) if self.is_empty() => self.insert(&ghost),
            ghost => {
                self.ghost = ghost;
                EditOutcome::Nothing
            }
        }
    }

    /// Returns the line of the caret up to it.
    pub fn before_caret(&self) -> &str {
        &self.buffer.line(self.caret.line)[..self.caret.byte]
    }

    /// Returns the line of the caret from it on.
    pub fn behind_caret(&self) -> &str {
        &self.buffer.line(self.caret.line)[self.caret.byte..]
    }

    /// Tells whether the caret is in the first line.
    pub fn is_in_first_line(&self) -> bool {
        self.caret.line == 0
    }

    /// Replaces bytes of the caret's line and puts the caret behind what is new.
    pub fn replace_in_line(&mut self, bytes: Range<usize>, text: &str) -> EditOutcome {
        let line = self.buffer.line(self.caret.line);
        let is_inside = line.is_char_boundary(bytes.start) && line.is_char_boundary(bytes.end);
        if !is_inside || bytes.start > bytes.end {
            return EditOutcome::Nothing;
        }
        self.begin(Last::Other);
        let place = |byte| Position { byte, ..self.caret };
        let text = clean(text);
        self.replace(place(bytes.start), place(bytes.end), &text)
    }

    /// Puts text in at the caret, as it is.
    pub fn insert(&mut self, text: &str) -> EditOutcome {
        self.begin(Last::Other);
        let text = clean(text);
        self.replace(self.caret, self.caret, &text)
    }

    /// Puts pasted text in: what is long becomes a chip, and what begins with `!` is for the shell where nothing is typed.
    pub fn paste(&mut self, text: &str) -> EditOutcome {
        self.begin(Last::Other);
        let text = clean(text);
        let mut text = text.as_ref();
        if self.is_empty()
            && self.mode == InputMode::Prompt
            && let Some(command) = text.strip_prefix('!')
        {
            self.mode = InputMode::Shell;
            text = command;
        }
        let is_long = text.len() > CHIP_BYTES || text.matches('\n').count() >= CHIP_LINES;
        if is_long && let Some(before) = self.pasted_before_caret(text) {
            return self.replace(before, self.caret, text);
        }
        let mark = if is_long { self.chips.add_text(text) } else { None };
        match mark {
            Some(mark) => self.replace(self.caret, self.caret, mark.encode_utf8(&mut [0; 4])),
            None => self.replace(self.caret, self.caret, text),
        }
    }

    /// Returns where the chip of a pasted text begins, where it is the one directly before the caret.
    fn pasted_before_caret(&self, text: &str) -> Option<Position> {
        let mark = self.before_caret().chars().next_back()?;
        let chip = self.chips.of(mark)?;
        let is_it = matches!(&chip.content, ChipContent::Text(content) if **content == *text);
        is_it.then(|| Position { byte: self.caret.byte - mark.len_utf8(), ..self.caret })
    }

    /// Puts in the chip of a picture that is about to be read; `pasted` is the text that names it, if any. Returns its
    /// number, by which [`Editor::finish_image`] knows it.
    pub fn begin_image(&mut self, pasted: Option<&str>) -> Option<u32> {
        self.begin(Last::Other);
        let (mark, number) = self.chips.add_image(pasted)?;
        self.replace(self.caret, self.caret, mark.encode_utf8(&mut [0; 4]));
        Some(number)
    }

    /// Takes a picture that was read. Without one the chip goes, and what was pasted for it stands there as text.
    pub fn finish_image(&mut self, number: u32, image: Option<PastedImage>) {
        let pasted = match self.chips.reading(number) {
            Some(ChipContent::Reading { pasted }) => pasted.clone(),
            _ => None,
        };
        let is_there = image.is_some();
        let content = image.map_or(ChipContent::Missing, |image| ChipContent::Image(image.into()));
        let stashed = self.stash.iter_mut().flat_map(|draft| draft.chips.iter_mut());
        stashed
            .filter(|chip| chip.number == number && matches!(chip.content, ChipContent::Reading { .. }))
            .for_each(|chip| chip.content = content.clone());
        self.chips.set_content(number, content);
        if !is_there && let Some(place) = mark(number).and_then(|mark| self.buffer.text().find(mark)) {
            let text = pasted.as_deref().map(clean).unwrap_or_default();
            self.replace_elsewhere(place, &text);
        }
    }

    /// Replaces the one character at a place of the text; the caret stays where it was in the rest.
    fn replace_elsewhere(&mut self, place: usize, text: &str) {
        self.begin(Last::Other);
        let caret = self.buffer.offset(self.caret);
        let from = self.buffer.position(place);
        let Some(to) = self.buffer.right_of(from) else { return };
        let n_removed = self.buffer.offset(to) - place;
        self.replace(from, to, text);
        let caret = if caret > place { caret - n_removed + text.len() } else { caret };
        self.caret = self.buffer.position(caret);
    }

    /// Takes Enter: a backslash before the caret makes it a line break.
    pub fn enter(&mut self) -> EnterOutcome {
        if !self.before_caret().ends_with('\\') {
            return EnterOutcome::Submit;
        }
        self.begin(Last::Other);
        let from = Position { byte: self.caret.byte - 1, ..self.caret };
        self.replace(from, self.caret, "\n");
        EnterOutcome::Newline
    }

    /// Leaves the mode of the shell, if nothing is typed: what Escape does there.
    pub fn leave_shell_mode(&mut self) -> EditOutcome {
        if self.mode == InputMode::Shell && self.is_empty() {
            self.mode = InputMode::Prompt;
            return EditOutcome::Changed;
        }
        EditOutcome::Nothing
    }

    /// Does what a key stands for.
    pub fn apply(&mut self, command: EditCommand) -> EditOutcome {
        let last = self.last;
        let goal = self.goal;
        if !matches!(command, EditCommand::Insert(_)) {
            self.undo.interrupt();
        }
        self.last = Last::Other;
        self.goal = None;
        match command {
            EditCommand::Insert(char) => self.type_char(char),
            EditCommand::Newline => self.replace(self.caret, self.caret, "\n"),
            EditCommand::Left => self.move_to(self.buffer.left_of(self.caret)),
            EditCommand::Right => self.move_to(self.buffer.right_of(self.caret)),
            EditCommand::Up => self.move_rows(goal, RowStep::Up),
            EditCommand::Down => self.move_rows(goal, RowStep::Down),
            EditCommand::WordLeft => self.move_to(Some(self.word_left())),
            EditCommand::WordRight => self.move_to(Some(self.word_right())),
            EditCommand::LineStart => self.move_to(Some(Position { byte: 0, ..self.caret })),
            EditCommand::LineEnd => self.move_to(Some(self.buffer.line_end(self.caret.line))),
            EditCommand::TextStart => self.move_to(Some(Position::default())),
            EditCommand::TextEnd => self.move_to(Some(self.buffer.end())),
            EditCommand::DeleteLeft => self.delete_left(),
            EditCommand::DeleteRight => {
                let to = self.buffer.right_of(self.caret).unwrap_or(self.caret);
                self.replace(self.caret, to, "")
            }
            EditCommand::KillWordLeft => {
                let from = match self.flavor {
                    Flavor::Readline if self.caret.byte > 0 => Position {
                        byte: blank_before(self.buffer.line(self.caret.line), self.caret.byte),
                        ..self.caret
                    },
                    Flavor::Readline | Flavor::Classic => self.word_left(),
                };
                self.kill(from, self.caret, KillSide::Before, last)
            }
            EditCommand::DeleteWordRight => match self.flavor {
                Flavor::Classic => self.replace(self.caret, self.word_right(), ""),
                Flavor::Readline => self.kill(self.caret, self.word_right(), KillSide::Behind, last),
            },
            EditCommand::KillToLineStart => self.kill_to_line_start(last),
            EditCommand::KillToLineEnd => {
                let end = self.buffer.line_end(self.caret.line);
                let to = if end == self.caret { self.buffer.right_of(end).unwrap_or(end) } else { end };
                self.kill(self.caret, to, KillSide::Behind, last)
            }
            EditCommand::Yank => self.yank(),
            EditCommand::YankPop => self.yank_pop(last),
            EditCommand::Undo => {
                let caret = self.undo.undo(&mut self.buffer);
                self.jump(caret)
            }
            EditCommand::Redo => {
                let caret = self.undo.redo(&mut self.buffer);
                self.jump(caret)
            }
        }
    }

    pub(super) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    pub(super) fn caret(&self) -> Position {
        self.caret
    }

    /// Puts the caret elsewhere.
    pub(super) fn set_caret(&mut self, to: Position) {
        self.begin(Last::Other);
        self.caret = self.buffer.nearest(to);
    }

    /// Puts the caret a little elsewhere; Up and Down keep to their column.
    pub(super) fn nudge_caret(&mut self, to: Position) {
        self.caret = self.buffer.nearest(to);
    }

    /// Replaces a part of the text and puts the caret behind what is new.
    pub(super) fn replace_part(&mut self, from: Position, to: Position, text: &str) {
        self.begin(Last::Other);
        self.replace(from, to, text);
    }

    /// Keeps a text as if it had been killed.
    pub(super) fn keep_killed(&mut self, text: &str) {
        self.kill_ring.kill(text, KillSide::Behind, false);
    }

    /// Lets edits from now on be one change for [`Self::undo_group`].
    pub(super) fn begin_undo_group(&mut self) {
        self.undo.begin_group();
    }

    pub(super) fn end_undo_group(&mut self) {
        self.undo.end_group();
    }

    /// Takes the last change back, with all its edits.
    pub(super) fn undo_group(&mut self) -> EditOutcome {
        let caret = self.undo.undo_group(&mut self.buffer);
        self.jump(caret)
    }

    /// Shows a part of the text as selected; none is.
    pub(super) fn set_selection(&mut self, selection: Option<(Position, Position)>) {
        self.selection = selection;
    }

    /// Begins something that is no command of the table.
    fn begin(&mut self, last: Last) {
        self.last = last;
        self.goal = None;
        self.undo.interrupt();
    }

    fn type_char(&mut self, char: char) -> EditOutcome {
        if char == '!' && self.is_empty() && self.mode == InputMode::Prompt {
            self.mode = InputMode::Shell;
            return EditOutcome::Changed;
        }
        let mut bytes = [0; 4];
        let text = clean(char.encode_utf8(&mut bytes));
        self.replace_noting(self.caret, self.caret, &text, true)
    }

    fn delete_left(&mut self) -> EditOutcome {
        if self.is_empty() {
            return self.leave_shell_mode();
        }
        let from = self.buffer.left_of(self.caret).unwrap_or(self.caret);
        self.replace(from, self.caret, "")
    }

    fn kill_to_line_start(&mut self, last: Last) -> EditOutcome {
        if self.is_empty() {
            return self.leave_shell_mode();
        }
        let start = Position { byte: 0, ..self.caret };
        let from = if start == self.caret { self.buffer.left_of(start).unwrap_or(start) } else { start };
        self.kill(from, self.caret, KillSide::Before, last)
    }

    fn kill(&mut self, from: Position, to: Position, side: KillSide, last: Last) -> EditOutcome {
        let killed = self.buffer.slice(from, to);
        let outcome = self.replace(from, to, "");
        self.kill_ring.kill(&killed, side, last == Last::Kill);
        self.last = Last::Kill;
        outcome
    }

    fn yank(&mut self) -> EditOutcome {
        let Some(text) = self.kill_ring.yank() else { return EditOutcome::Nothing };
        let from = self.caret;
        let outcome = self.replace(from, from, &text);
        self.last = Last::Yank(from);
        outcome
    }

    fn yank_pop(&mut self, last: Last) -> EditOutcome {
        let Last::Yank(from) = last else { return EditOutcome::Nothing };
        let Some(text) = self.kill_ring.yank_earlier() else { return EditOutcome::Nothing };
        let outcome = self.replace(from, self.caret, &text);
        self.last = Last::Yank(from);
        outcome
    }

    /// The beginning of the word before the caret; from the beginning of a line, the end of the line before.
    fn word_left(&self) -> Position {
        if self.caret.byte == 0 {
            return self.buffer.left_of(self.caret).unwrap_or(self.caret);
        }
        let byte = word_start_before(self.buffer.line(self.caret.line), self.caret.byte, self.flavor);
        Position { byte, ..self.caret }
    }

    fn word_right(&self) -> Position {
        let line = self.buffer.line(self.caret.line);
        if self.caret.byte == line.len() {
            return self.buffer.right_of(self.caret).unwrap_or(self.caret);
        }
        Position { byte: word_end_after(line, self.caret.byte, self.flavor), ..self.caret }
    }

    /// Moves a row up or down, to the column of the first such step; `goal` is that column.
    fn move_rows(&mut self, goal: Option<usize>, step: RowStep) -> EditOutcome {
        let (row, column) = self.caret_cell();
        let column = goal.unwrap_or(column);
        let to = match step {
            RowStep::Up => self.row_above(row),
            RowStep::Down => self.row_below(row),
        };
        let Some(to) = to else { return EditOutcome::Nothing };
        self.caret = self.position_in_row(to, column);
        self.goal = Some(column);
        EditOutcome::Moved
    }

    fn move_to(&mut self, to: Option<Position>) -> EditOutcome {
        match to {
            Some(to) if to != self.caret => {
                self.caret = to;
                EditOutcome::Moved
            }
            _ => EditOutcome::Nothing,
        }
    }

    fn jump(&mut self, caret: Option<Position>) -> EditOutcome {
        match caret {
            Some(caret) => {
                self.caret = caret;
                EditOutcome::Changed
            }
            None => EditOutcome::Nothing,
        }
    }

    fn replace(&mut self, from: Position, to: Position, text: &str) -> EditOutcome {
        self.replace_noting(from, to, text, false)
    }

    /// The one place where the text changes.
    fn replace_noting(&mut self, from: Position, to: Position, text: &str, is_typed: bool) -> EditOutcome {
        if from == to && text.is_empty() {
            return EditOutcome::Nothing;
        }
        let removed = self.buffer.remove(from, to);
        let caret = std::mem::replace(&mut self.caret, self.buffer.insert(from, text));
        self.undo.note(Edit { at: from, removed, inserted: text.to_owned(), caret, group: None }, is_typed);
        EditOutcome::Changed
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowStep {
    Up,
    Down,
}

/// Makes foreign text fit to stand in the input: line ends are `\n`, other control characters but tabs are gone.
fn clean(text: &str) -> Cow<'_, str> {
    match without_chip_marks(text) {
        Cow::Borrowed(text) => without_controls(text),
        Cow::Owned(text) => Cow::Owned(without_controls(&text).into_owned()),
    }
}
