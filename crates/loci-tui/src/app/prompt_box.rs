//! The prompt: the editor, with what the application needs to know of it.

use std::ops::Range;
use std::time::Duration;

use crate::input::{
    Draft, EditCommand, EditOutcome, Editor, EnterOutcome, Flavor, InputMode, InputStyles, PastedImage,
    Token, Vim, VimMode, VimRemap, VimStep, edit_command, whole_name,
};
use crate::key::Key;
use crate::layout::{bold, cells};
use crate::text::{Color, Row, Span, Style};
use crate::theme::ThemeToken;

/// In a longer line nothing is completed, so that a key costs the same in it.
const LONGEST_COMPLETED: usize = 4096;

/// The prompt.
#[derive(Debug, Default)]
pub(super) struct PromptBox {
    editor: Editor,
    /// Vim's keys, where they are wanted.
    vim: Option<Vim>,
}

impl PromptBox {
    /// Tells whether nothing is typed.
    pub(super) fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    /// Tells whether what is typed is for the shell.
    pub(super) fn is_shell(&self) -> bool {
        self.editor.mode() == InputMode::Shell
    }

    /// Takes all that is typed.
    pub(super) fn take(&mut self) -> Draft {
        let draft = self.editor.take();
        self.text_replaced();
        draft
    }

    /// Takes what was put aside, the oldest first, and then what is typed.
    pub(super) fn take_all(&mut self) -> Vec<Draft> {
        let mut drafts = self.editor.take_stash();
        drafts.push(self.take());
        drafts.retain(|draft| !draft.is_empty());
        drafts
    }

    /// Has vim's keys, with these pairs that mean Escape in INSERT mode, or has them no more.
    pub(super) fn set_vim(&mut self, remaps: Option<&[VimRemap]>) {
        match (remaps, &mut self.vim) {
            (Some(remaps), Some(vim)) => vim.set_remaps(remaps),
            (Some(remaps), None) => self.vim.insert(Vim::new(&mut self.editor)).set_remaps(remaps),
            (None, Some(vim)) => {
                vim.end(&mut self.editor);
                self.vim = None;
            }
            (None, None) => {}
        }
    }

    /// Returns the mode of vim's keys, where they are in force.
    pub(super) fn vim_mode(&self) -> Option<VimMode> {
        self.vim.as_ref().map(Vim::mode)
    }

    /// Takes a key for vim.
    pub(super) fn vim_key(&mut self, key: Key, now: Duration) -> VimStep {
        self.vim.as_mut().map_or(VimStep::Passed, |vim| vim.key(&mut self.editor, key, now))
    }

    /// Says that another text stands here now.
    fn text_replaced(&mut self) {
        if let Some(vim) = &mut self.vim {
            vim.text_replaced(&mut self.editor);
        }
    }

    /// Keeps the caret where vim's mode may have it.
    fn settle(&mut self) {
        if let Some(vim) = &self.vim {
            vim.settle(&mut self.editor);
        }
    }

    /// Leaves the mode of the shell; tells whether that meant something.
    pub(super) fn leave_shell_mode(&mut self) -> bool {
        self.editor.leave_shell_mode() == EditOutcome::Changed
    }

    /// Stashes what is typed, or brings it back.
    pub(super) fn stash(&mut self) -> EditOutcome {
        let outcome = self.editor.stash();
        self.text_replaced();
        outcome
    }

    /// Brings back what was put aside last, where nothing is typed; tells whether there was something.
    pub(super) fn restore_stash(&mut self) -> bool {
        self.is_empty() && !self.is_shell() && self.stash() == EditOutcome::Changed
    }

    /// Puts a draft before what stands there.
    pub(super) fn prepend(&mut self, draft: &Draft) {
        if draft.is_empty() {
            return;
        }
        let mut all = draft.clone();
        if !self.is_empty() {
            all.append(&self.editor.draft());
        }
        self.set_draft(&all);
    }

    /// Makes a text the prompt.
    pub(super) fn set_text(&mut self, text: &str) {
        self.set_draft(&Draft::plain(InputMode::Prompt, text));
    }

    /// Makes a draft the prompt.
    pub(super) fn set_draft(&mut self, draft: &Draft) {
        self.editor.set_draft(draft);
        self.text_replaced();
    }

    /// Returns all that is typed, with `|` where the caret stands.
    #[cfg(test)]
    pub(super) fn marked_text(&self) -> String {
        let draft = self.editor.draft();
        let (before, behind) = draft.around_caret();
        format!("{before}|{behind}")
    }

    /// Returns how much of the caret's line stands before the caret.
    pub(super) fn n_bytes_before(&self) -> usize {
        self.editor.before_caret().len()
    }

    /// Takes away the blank directly before the caret.
    pub(super) fn remove_blank_before(&mut self) {
        let end = self.editor.before_caret().len();
        if self.editor.before_caret().ends_with(' ') {
            self.editor.replace_in_line(end - 1..end, "");
        }
    }

    /// Returns all that is typed, as it stands.
    pub(super) fn draft(&self) -> Draft {
        self.editor.draft()
    }

    /// Puts in the chip of a picture that is about to be read; returns its number.
    pub(super) fn begin_image(&mut self, pasted: Option<&str>) -> Option<u32> {
        self.editor.begin_image(pasted)
    }

    /// Takes a picture that was read, or that there is none.
    pub(super) fn finish_image(&mut self, number: u32, image: Option<PastedImage>) {
        self.editor.finish_image(number, image);
    }

    /// Returns what is being typed at the caret, where it can be completed.
    pub(super) fn token(&self, is_skill: impl Fn(&str) -> bool) -> Option<Token> {
        let is_long = self.editor.before_caret().len() > LONGEST_COMPLETED;
        let is_typing = self.vim_mode().is_none_or(|mode| mode == VimMode::Insert);
        if is_long || !is_typing { None } else { Token::at_caret(&self.editor, is_skill) }
    }

    /// Returns the directory that is being typed behind a command that takes one.
    pub(super) fn directory(&self, takes_directory: impl Fn(&str) -> bool) -> Option<Token> {
        let is_long = self.editor.before_caret().len() > LONGEST_COMPLETED;
        if is_long { None } else { Token::directory_at_caret(&self.editor, takes_directory) }
    }

    /// Returns the argument that is being typed, and its command, where somebody else knows what it could be.
    pub(super) fn argument(&self, takes_arguments: impl Fn(&str) -> bool) -> Option<(String, Token)> {
        let is_long = self.editor.before_caret().len() > LONGEST_COMPLETED;
        if is_long { None } else { Token::argument_at_caret(&self.editor, takes_arguments) }
    }

    /// Returns the whole name of an emoji that stands before the caret: its bytes, and the picture.
    pub(super) fn emoji_name(&self) -> Option<(Range<usize>, &'static str)> {
        let before = self.editor.before_caret();
        let (start, picture) = whole_name(before).filter(|_| !self.is_shell())?;
        Some((start..before.len(), picture))
    }

    /// Replaces bytes of the caret's line.
    pub(super) fn replace_in_line(&mut self, bytes: Range<usize>, text: &str) {
        self.editor.replace_in_line(bytes, text);
    }

    /// Makes a command of the shell the prompt.
    pub(super) fn set_shell_text(&mut self, command: &str) {
        self.set_draft(&Draft::plain(InputMode::Shell, command));
    }

    /// Returns how long the line of the caret is.
    pub(super) fn n_bytes(&self) -> usize {
        self.editor.before_caret().len() + self.editor.behind_caret().len()
    }

    /// Says which words the keys take.
    pub(super) fn set_flavor(&mut self, flavor: Flavor) {
        self.editor.set_flavor(flavor);
    }

    /// Suggests a text for an empty prompt, or none.
    pub(super) fn suggest(&mut self, text: Option<String>) {
        self.editor.set_ghost(text);
    }

    /// Puts in what is suggested; tells whether something was.
    pub(super) fn accept_suggestion(&mut self) -> bool {
        self.editor.accept_ghost() == EditOutcome::Changed
    }

    /// Puts a text in at the caret.
    pub(super) fn insert(&mut self, text: &str) {
        self.editor.insert(text);
    }

    /// Puts pasted text in.
    pub(super) fn paste(&mut self, text: &str) {
        self.editor.paste(text);
        if let Some(vim) = &mut self.vim {
            vim.pasted(text);
        }
        self.settle();
    }

    /// Takes Enter; returns what is to be sent.
    pub(super) fn enter(&mut self) -> Option<Draft> {
        match self.editor.enter() {
            EnterOutcome::Newline => None,
            EnterOutcome::Submit if self.editor.text().trim().is_empty() => None,
            EnterOutcome::Submit => Some(self.take()),
        }
    }

    /// Does what an editing key does; tells what came of it.
    pub(super) fn apply(&mut self, command: EditCommand) -> EditOutcome {
        let outcome = self.editor.apply(command);
        self.settle();
        outcome
    }

    /// The same, where it was typed by a key that is bound to it.
    pub(super) fn type_command(&mut self, command: EditCommand) {
        if let Some(vim) = &mut self.vim {
            vim.edited(command);
        }
        self.apply(command);
    }

    /// Takes a key that edits; tells what it did.
    pub(super) fn edit(&mut self, key: Key) -> EditOutcome {
        edit_command(key).map_or(EditOutcome::Nothing, |command| self.apply(command))
    }

    /// Puts the caret where somebody clicked: so many rows below that of the caret, in this column of the screen. Tells whether
    /// the prompt has such a row.
    pub(super) fn click(&mut self, n_rows: isize, column: u16) -> bool {
        let is_hit = self.editor.click(n_rows, usize::from(column.saturating_sub(cells("> "))));
        self.settle();
        is_hit
    }

    /// Returns its rows, at most so many, and where the caret stands.
    pub(super) fn rows(&mut self, width: u16, height: usize) -> (Vec<Row>, (usize, u16)) {
        let is_shell = self.is_shell();
        let lead = if is_shell { "! " } else { "> " };
        let indent = cells(lead);
        let room = usize::from(width.saturating_sub(indent)).max(1);
        if let Some(vim) = &self.vim {
            vim.show_selection(&mut self.editor);
        }
        let view = self.editor.rows(room, height, &InputStyles::default());
        let rows = view.rows.into_iter().enumerate().map(|(idx, row)| {
            let token = if is_shell { ThemeToken::BashBorder } else { ThemeToken::PromptBorder };
            let style = Style { fg: Color::Themed(token), ..bold() };
            let lead = if idx == 0 { Span::styled(lead, style) } else { Span::plain("  ") };
            let mut spans = vec![lead];
            spans.extend(row.spans);
            Row::new(spans)
        });
        let (row, column) = view.caret;
        (rows.collect(), (row, column + indent))
    }
}
