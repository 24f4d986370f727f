//! Keys: first the dialog, then the panel, then what the keymap says, then the prompt.

use loci_engine::Command;

use super::{Action, App, ExitReason};
use crate::dialog::DialogStep;
use crate::input::{Draft, EditOutcome, InputMode};
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::{Action as KeyAction, Context, Resolution};
use crate::status::next_mode;

impl App {
    pub(super) fn typed(&mut self, event: InputEvent) -> Vec<Action> {
        match self.dialogs.handle(&event, self.now) {
            Some(DialogStep::Answered(actions)) => return self.keep_own(actions),
            Some(DialogStep::Open) => return Vec::new(),
            None => {}
        }
        if let Some(actions) = self.panel_typed(&event) {
            return actions;
        }
        let InputEvent::Key(key) = event else {
            self.prompt.take_event(&event);
            return Vec::new();
        };
        if key == Key::plain(KeyCode::Char('?')) && self.prompt.is_empty() && !self.prompt.is_shell() {
            self.is_help_shown = !self.is_help_shown;
            return Vec::new();
        }
        let is_task = self.work.is_some();
        let contexts: &[Context] = match is_task {
            true => &[Context::Task, Context::Chat, Context::Global],
            false => &[Context::Chat, Context::Global],
        };
        let actions = match self.keymap.resolve(contexts, key) {
            Resolution::Action(action) => self.key_action(action, key),
            Resolution::Pending | Resolution::ChordFailed => Some(Vec::new()),
            Resolution::Unbound => None,
        };
        actions.unwrap_or_else(|| {
            self.armed = None;
            self.is_help_shown = false;
            self.prompt.edit(key);
            Vec::new()
        })
    }

    /// Does what a key is bound to; none where it is for the prompt.
    fn key_action(&mut self, action: KeyAction, key: Key) -> Option<Vec<Action>> {
        Some(match action {
            KeyAction::AppInterrupt => self.interrupt_or_leave(),
            KeyAction::AppExit if self.prompt.is_empty() => self.leave_on_second(key),
            KeyAction::AppRedraw | KeyAction::ChatClearScreen => vec![Action::Repaint],
            KeyAction::ChatClearInput if self.prompt.is_empty() => vec![Action::Repaint],
            KeyAction::ChatClearInput => {
                self.prompt.clear();
                vec![Action::Repaint]
            }
            KeyAction::AppToggleTodos => {
                self.are_tasks_shown = !self.are_tasks_shown;
                Vec::new()
            }
            KeyAction::AppSuspend => vec![Action::Suspend],
            KeyAction::ChatCancel => self.escape(key),
            KeyAction::ChatCycleMode => self.cycle_mode(),
            KeyAction::ChatSubmit => match self.prompt.enter() {
                Some(draft) => self.submit_draft(&draft),
                None => Vec::new(),
            },
            KeyAction::ChatStash => {
                self.prompt.stash();
                Vec::new()
            }
            KeyAction::HistoryPrevious => match self.prompt.edit(key) {
                EditOutcome::Nothing if !(self.queued.is_empty() && self.held.is_empty()) => {
                    self.take_back_queue()
                }
                EditOutcome::Nothing | EditOutcome::Moved | EditOutcome::Changed => Vec::new(),
            },
            _ => return None,
        })
    }

    fn cycle_mode(&mut self) -> Vec<Action> {
        self.set_mode(next_mode(self.session.mode, self.session.may_bypass))
    }

    /// Ctrl+C: stops a turn; else empties the prompt; else leaves, when said twice.
    pub(super) fn interrupt_or_leave(&mut self) -> Vec<Action> {
        let key = Key { ctrl: true, ..Key::plain(KeyCode::Char('c')) };
        if self.work.is_some() {
            return self.interrupt();
        }
        if !self.prompt.is_empty() {
            self.prompt.clear();
            return Vec::new();
        }
        self.leave_on_second(key)
    }

    fn interrupt(&mut self) -> Vec<Action> {
        if let Some(work) = &mut self.work {
            work.is_stopping = true;
        }
        vec![Action::Send(Command::Interrupt)]
    }

    fn leave_on_second(&mut self, key: Key) -> Vec<Action> {
        if self.armed.is_some_and(|(armed, _)| armed == key) {
            return self.exit(ExitReason::Asked);
        }
        self.armed = Some((key, self.now));
        Vec::new()
    }

    /// Escape: stops a turn; twice it empties the prompt.
    fn escape(&mut self, key: Key) -> Vec<Action> {
        if std::mem::take(&mut self.is_help_shown) || self.prompt.leave_shell_mode() {
            return Vec::new();
        }
        if self.work.is_some() {
            return self.interrupt();
        }
        let is_second = self.armed.is_some_and(|(armed, _)| armed == key);
        match (is_second, self.prompt.is_empty()) {
            (true, false) => {
                drop(self.prompt.take());
                self.armed = None;
            }
            (true, true) | (false, _) => self.armed = Some((key, self.now)),
        }
        Vec::new()
    }

    /// Sends what was typed, chips and all.
    fn submit_draft(&mut self, draft: &Draft) -> Vec<Action> {
        (self.armed, self.is_help_shown) = (None, false);
        if draft.mode == InputMode::Shell {
            self.flash("Commands of the shell cannot be run from here yet; ask loci to run it");
            self.prompt.set_text(&draft.expanded());
            return Vec::new();
        }
        self.submit(draft.expanded().trim().to_owned())
    }
}
