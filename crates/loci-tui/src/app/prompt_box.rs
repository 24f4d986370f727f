//! The prompt: the editor, with what the application needs to know of it.

use crate::input::{Draft, EditOutcome, Editor, EnterOutcome, InputMode, InputStyles, edit_command};
use crate::key::{InputEvent, Key};
use crate::layout::{bold, cells};
use crate::text::{Row, Span};

/// The prompt.
#[derive(Debug, Default)]
pub(super) struct PromptBox {
    editor: Editor,
}

impl PromptBox {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Tells whether nothing is typed.
    pub(super) fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    /// Tells whether what is typed is for the shell.
    pub(super) fn is_shell(&self) -> bool {
        self.editor.mode() == InputMode::Shell
    }

    pub(super) fn clear(&mut self) {
        self.editor.clear();
    }

    /// Takes all that is typed.
    pub(super) fn take(&mut self) -> Draft {
        self.editor.take()
    }

    /// Leaves the mode of the shell; tells whether that meant something.
    pub(super) fn leave_shell_mode(&mut self) -> bool {
        self.editor.leave_shell_mode() == EditOutcome::Changed
    }

    /// Stashes what is typed, or brings it back.
    pub(super) fn stash(&mut self) -> EditOutcome {
        self.editor.stash()
    }

    /// Puts a text before what stands there.
    pub(super) fn prepend(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let both = match self.is_empty() {
            true => text.to_owned(),
            false => format!("{text}\n{}", self.editor.text()),
        };
        self.set_text(&both);
    }

    /// Makes a text the prompt.
    pub(super) fn set_text(&mut self, text: &str) {
        self.editor.set_draft(&Draft::plain(InputMode::Prompt, text));
    }

    /// Takes Enter; returns what is to be sent.
    pub(super) fn enter(&mut self) -> Option<Draft> {
        match self.editor.enter() {
            EnterOutcome::Newline => None,
            EnterOutcome::Submit if self.editor.text().trim().is_empty() => None,
            EnterOutcome::Submit => Some(self.editor.take()),
        }
    }

    /// Takes a key that edits; tells what it did.
    pub(super) fn edit(&mut self, key: Key) -> EditOutcome {
        edit_command(key).map_or(EditOutcome::Nothing, |command| self.editor.apply(command))
    }

    /// Takes what is no key.
    pub(super) fn take_event(&mut self, event: &InputEvent) {
        if let InputEvent::Paste(text) = event {
            self.editor.paste(text);
        }
    }

    /// Returns its rows, at most so many, and where the caret stands.
    pub(super) fn rows(&mut self, width: u16, height: usize) -> (Vec<Row>, (usize, u16)) {
        let lead = if self.is_shell() { "! " } else { "> " };
        let indent = cells(lead);
        let room = usize::from(width.saturating_sub(indent)).max(1);
        let view = self.editor.rows(room, height, &InputStyles::default());
        let rows = view.rows.into_iter().enumerate().map(|(idx, row)| {
            let lead = if idx == 0 { Span::styled(lead, bold()) } else { Span::plain("  ") };
            let mut spans = vec![lead];
            spans.extend(row.spans);
            Row::new(spans)
        });
        let (row, column) = view.caret;
        (rows.collect(), (row, column + indent))
    }
}
