//! Typing an API key: what is typed is never seen.

use super::{Dialog, DialogStep, DialogView, TextField, is_cancel, width_of};
use crate::app::{Action, Effect, SecretText};
use crate::key::InputEvent;
use crate::keymap::Action as KeyAction;
use crate::layout::{bold, cells, faint, line, paragraph};
use crate::panel::PanelRequest;
use crate::render::RenderContext;
use crate::text::{Row, Style};

/// A field for a key.
pub(crate) struct KeyEntry {
    field: TextField,
    /// Has the key be kept.
    keep: fn(SecretText) -> Action,
    /// What to do when it is left without one.
    cancel: Vec<Action>,
}

impl std::fmt::Debug for KeyEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyEntry")
    }
}

impl KeyEntry {
    /// Asks for a key that a session needs to begin; `cancel` is what follows when none is given.
    pub(crate) fn at_start(cancel: Vec<Action>) -> Self {
        let keep = |key| Action::Effect(Effect::StoreKey(key));
        Self { field: TextField::default(), keep, cancel }
    }

    /// Asks for another key, for the session that runs and those to come.
    pub(crate) fn of_session() -> Self {
        let keep = |key| Action::Effect(Effect::AskPanel(PanelRequest::StoreKey(key)));
        Self { field: TextField::default(), keep, cancel: Vec::new() }
    }
}

impl Dialog for KeyEntry {
    fn is_typing(&self) -> bool {
        true
    }

    fn handle(&mut self, event: &InputEvent, action: Option<KeyAction>) -> DialogStep {
        match event {
            InputEvent::Paste(text) => self.field.insert(text.trim()),
            InputEvent::Key(_) if action == Some(KeyAction::ConfirmYes) => {
                let text = self.field.text().trim();
                if !text.is_empty() {
                    return DialogStep::Answered(vec![(self.keep)(text.into())]);
                }
            }
            InputEvent::Key(key) if is_cancel(action, *key) => {
                return DialogStep::Answered(std::mem::take(&mut self.cancel));
            }
            InputEvent::Key(key) => {
                self.field.handle(*key);
            }
            InputEvent::Focus(_)
            | InputEvent::Mouse(_)
            | InputEvent::Reply(_)
            | InputEvent::Resize { .. }
            | InputEvent::Signal(_)
            | InputEvent::Closed => {}
        }
        DialogStep::Open
    }

    fn view(&self, ctx: &RenderContext) -> DialogView {
        let width = width_of(ctx);
        let mut head = paragraph("", "Paste or type your Anthropic API key", bold(), width);
        head.push(Row::default());
        let about = "It is stored in a file that only you can read, and used from now on. Keys are made at \
                     console.anthropic.com.";
        let mut body = paragraph("", about, Style::default(), width);
        body.push(Row::default());
        let n = self.field.text().chars().count().min(usize::from(width.saturating_sub(4)));
        let shown = format!("> {}", "•".repeat(n));
        let caret = (0, cells(&shown).min(width.saturating_sub(1)));
        DialogView {
            head,
            body,
            foot: vec![line(&shown, Style::default())],
            hint: Some(line("Enter to store it · Esc to go back", faint())),
            caret: Some(caret),
            ..DialogView::default()
        }
    }
}
