//! Keys: first the dialog, then the panel, then what the keymap says, then the prompt.

use loci_engine::{BackgroundStatus, BackgroundTask, Command};

use super::{App, Effect};
use crate::dialog::DialogStep;
use crate::input::{EditCommand, Menu};
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::{Action as KeyAction, Context, KILL_AGENTS_TIME, Resolution};
use crate::panel::ModelPanel;
use crate::status::next_mode;

/// More keys do not stand for one click.
const MOST_KEYS: usize = 200;

impl App {
    pub(super) fn typed(&mut self, event: InputEvent) -> Vec<Effect> {
        if let Some(actions) = self.leave_dump() {
            return actions;
        }
        match self.typed_answer(&event) {
            Some(actions) => actions,
            None => self.typed_directly(event),
        }
    }

    /// Takes what was typed where no answer is being typed.
    fn typed_directly(&mut self, event: InputEvent) -> Vec<Effect> {
        match self.dialogs.handle(&event, &mut self.keymap, self.now) {
            Some(DialogStep::Answered(actions) | DialogStep::Act(actions)) => return self.carry_out(actions),
            Some(DialogStep::Open) => return Vec::new(),
            None => {}
        }
        if let Some(actions) = self.transcript_typed(&event) {
            return actions;
        }
        if let Some(actions) = self.panel_typed(&event) {
            return actions;
        }
        let key = match event {
            InputEvent::Key(key) => key,
            InputEvent::Paste(text) => return self.pasted(&text),
            _ => return Vec::new(),
        };
        if self.recall.is_searching() {
            let action = match self.keymap.resolve(&[Context::HistorySearch, Context::Global], key) {
                Resolution::Action(action) => Some(action),
                Resolution::Command(_) | Resolution::Pending | Resolution::Nothing => return Vec::new(),
                Resolution::Unbound => None,
            };
            return self.search_key(action, key);
        }
        self.chat_key(key)
    }

    /// Presses keys that stand for something else: a click, or the number of an answer.
    pub(super) fn press_keys(&mut self, keys: impl IntoIterator<Item = KeyCode>) -> Vec<Effect> {
        let keys: Vec<KeyCode> = keys.into_iter().take(MOST_KEYS).collect();
        let press = |code| InputEvent::Key(Key::plain(code));
        let pressed = keys.into_iter().flat_map(|code| self.typed_directly(press(code)));
        let mut actions: Vec<Effect> = pressed.collect();
        actions.extend(self.refresh_completion());
        actions
    }

    /// Takes a key that is for the prompt, or for what is around it.
    pub(super) fn chat_key(&mut self, key: Key) -> Vec<Effect> {
        if let Some(actions) = self.vim_key(key) {
            return actions;
        }
        if key == Key::plain(KeyCode::Char('?')) && self.prompt.is_empty() && !self.prompt.is_shell() {
            self.is_help_shown = !self.is_help_shown;
            return Vec::new();
        }
        let is_on_empty = self.prompt.is_empty() && !self.prompt.is_shell();
        if key == Key::plain(KeyCode::Left) && is_on_empty && self.has_agent_view() {
            return self.open_agents();
        }
        let mut contexts = Vec::with_capacity(5);
        if self.completion.is_open() {
            contexts.push(Context::Autocomplete);
        }
        if self.is_fullscreen() {
            contexts.push(Context::Scroll);
        }
        if self.work.is_some() || self.front.is_some() {
            contexts.push(Context::Task);
        }
        contexts.extend([Context::Chat, Context::Global]);
        let actions = match self.keymap.resolve(&contexts, key) {
            Resolution::Action(action) => {
                self.forget_selection(key, Some(action));
                self.key_action(action, key)
            }
            Resolution::Command(idx) => {
                self.forget_selection(key, None);
                // What stands in the prompt stays there.
                self.keymap.command(idx).map(str::to_owned).map(|line| self.submit(line))
            }
            Resolution::Pending | Resolution::Nothing => Some(Vec::new()),
            Resolution::Unbound => None,
        };
        actions.unwrap_or_else(|| {
            self.forget_selection(key, None);
            self.begin_edit();
            if self.accept_suggestion(key) {
                return Vec::new();
            }
            match key == Key::plain(KeyCode::Tab) {
                true if self.completion.awaits() => return self.accept_completion(),
                true if self.prompt.is_shell() => return self.complete_shell(),
                _ => {}
            }
            self.join_line_range(key);
            self.prompt.edit(key);
            if key.code == KeyCode::Char(':') {
                self.replace_emoji_name();
            }
            if !self.prompt.is_empty() {
                self.prompt.suggest(None);
            }
            Vec::new()
        })
    }

    /// Does what a key is bound to; none where it is for the prompt.
    fn key_action(&mut self, action: KeyAction, key: Key) -> Option<Vec<Effect>> {
        if action != KeyAction::HistoryPrevious {
            self.forget_early_steps();
        }
        Some(match action {
            KeyAction::AppInterrupt => self.interrupt_or_leave(),
            KeyAction::AppExit if self.prompt.is_empty() => self.leave_on_second(key),
            KeyAction::AppRedraw | KeyAction::ChatClearScreen => vec![Effect::Repaint],
            KeyAction::ChatClearInput => self.redraw(key),
            KeyAction::ChatExternalEditor => self.edit_elsewhere(),
            KeyAction::ChatKillAgents => self.stop_agents(),
            KeyAction::ChatFastMode => {
                self.flash("There is no fast mode; `/effort low` makes answers quicker");
                Vec::new()
            }
            KeyAction::AppToggleTodos => self.toggle_tasks(),
            KeyAction::AppToggleTranscript => {
                self.open_transcript();
                Vec::new()
            }
            KeyAction::AppSuspend => vec![Effect::Suspend],
            KeyAction::ChatCancel => self.escape(key),
            KeyAction::ChatCycleMode => self.cycle_mode(),
            KeyAction::ChatModelPicker => self.open_snapshot_panel(ModelPanel::default()),
            KeyAction::ChatThinkingToggle => self.toggle_thinking(),
            KeyAction::AutocompleteAccept => self.accept_completion(),
            KeyAction::AutocompleteDismiss => self.dismiss_completion(),
            KeyAction::AutocompletePrevious => self.move_in_menu(Menu::previous),
            KeyAction::AutocompleteNext => self.move_in_menu(Menu::next),
            KeyAction::ChatSubmit => match self.enter_in_menu() {
                Some(actions) => actions,
                None => self.submit_prompt(),
            },
            KeyAction::ChatNewline => self.edit(EditCommand::Newline),
            KeyAction::ChatUndo => self.edit(EditCommand::Undo),
            KeyAction::ChatStash => {
                let had_text = !self.prompt.is_empty();
                self.prompt.stash();
                match (had_text, self.prompt.is_empty()) {
                    (true, _) => {
                        self.flash("The prompt is put aside · it comes back once something else was sent");
                    }
                    (false, true) => self.flash("Nothing is put aside · Ctrl+S puts what is typed aside"),
                    (false, false) => self.flash = None,
                }
                Vec::new()
            }
            KeyAction::TaskBackground if self.put_back() => Vec::new(),
            KeyAction::TaskBackground if self.work.is_some() => self.move_to_background(),
            KeyAction::ChatImagePaste => self.paste_picture(),
            KeyAction::HistoryPrevious => self.go_up(),
            KeyAction::HistoryNext => self.go_down(),
            KeyAction::HistorySearch => self.begin_search(),
            action => return self.scroll_action(action),
        })
    }

    /// What is typed ends what waits for a second key, and the help.
    fn begin_edit(&mut self) {
        self.armed = None;
        self.is_help_shown = false;
        self.submits_when_read = false;
        self.forget_early_steps();
    }

    /// Edits the prompt, whichever key means it.
    fn edit(&mut self, command: EditCommand) -> Vec<Effect> {
        self.begin_edit();
        self.prompt.type_command(command);
        Vec::new()
    }

    /// Switches thinking off, or back to what the model does by itself.
    fn toggle_thinking(&mut self) -> Vec<Effect> {
        self.session.is_thinking_off = !self.session.is_thinking_off;
        let (most, text) = match self.session.is_thinking_off {
            true => (Some(0), "Thinking is off from the next request on · Alt+T switches it on"),
            false => (None, "Thinking is on from the next request on · Alt+T switches it off"),
        };
        self.flash(text);
        vec![Effect::Send(Command::SetThinking(most))]
    }

    fn cycle_mode(&mut self) -> Vec<Effect> {
        self.set_mode(next_mode(self.session.mode, self.session.optional_modes))
    }

    /// Ctrl+L: draws everything anew, and keeps what is typed; said twice, all that was said lately is shown again.
    fn redraw(&mut self, key: Key) -> Vec<Effect> {
        let is_second = self.armed.is_some_and(|(armed, _)| armed == key);
        self.armed = (!is_second).then_some((key, self.now));
        if is_second {
            // Fullscreen draws everything anew as it is.
            self.replays = !self.is_fullscreen();
            return vec![Effect::RepaintAll];
        }
        vec![Effect::Repaint]
    }

    /// Ctrl+X Ctrl+K, twice: stops the agents that work in the background.
    fn stop_agents(&mut self) -> Vec<Effect> {
        let mut tasks = self.background_tasks();
        tasks.retain(|task| task.agent_type().is_some() && matches!(task.status, BackgroundStatus::Running));
        if tasks.is_empty() {
            self.flash("No agent works in the background");
            return Vec::new();
        }
        let is_second =
            self.kill_armed.is_some_and(|since| self.now.saturating_sub(since) <= KILL_AGENTS_TIME);
        self.kill_armed = (!is_second).then_some(self.now);
        if !is_second {
            self.flash("Press Ctrl+X Ctrl+K again to stop all agents in the background");
            return Vec::new();
        }
        let stop = |task: &BackgroundTask| {
            let (request, task) = (format!("stop-{}", task.id), task.id.clone());
            Effect::Send(Command::StopTask { request, task })
        };
        let n_agents = loci_stdx::counted(tasks.len() as u64, "agent", "agents");
        self.flash(format!("Stopping {n_agents}"));
        tasks.iter().map(stop).collect()
    }

    /// Ctrl+C: stops a turn; else empties the prompt; else leaves, when said twice.
    pub(super) fn interrupt_or_leave(&mut self) -> Vec<Effect> {
        let key = Key { ctrl: true, ..Key::plain(KeyCode::Char('c')) };
        if let Some(actions) = self.take_selection() {
            return actions;
        }
        if self.work.is_some() {
            return self.interrupt();
        }
        if !self.prompt.is_empty() {
            // The next one leaves, as it does where nothing is typed; Up brings back what stood here.
            let draft = self.prompt.take();
            self.set_aside(draft);
            self.armed = None;
        }
        self.leave_on_second(key)
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        if let Some(work) = &mut self.work {
            work.is_stopping = true;
        }
        vec![Effect::Send(Command::Interrupt)]
    }

    fn leave_on_second(&mut self, key: Key) -> Vec<Effect> {
        if self.armed.is_some_and(|(armed, _)| armed == key) {
            return self.leave();
        }
        self.armed = Some((key, self.now));
        self.speak("Press the same key again to leave");
        Vec::new()
    }

    /// Escape: stops a turn; twice it empties the prompt and keeps what stood there in the history, or lets a prompt be
    /// chosen to go back to.
    fn escape(&mut self, key: Key) -> Vec<Effect> {
        if std::mem::take(&mut self.is_help_shown) || self.prompt.leave_shell_mode() {
            return Vec::new();
        }
        if self.work.is_some() {
            return self.interrupt();
        }
        let is_second = self.armed.is_some_and(|(armed, _)| armed == key);
        match (is_second, self.prompt.is_empty()) {
            (true, false) => {
                let draft = self.prompt.take();
                self.armed = None;
                return self.remember(&draft).into_iter().collect();
            }
            (true, true) => {
                self.armed = None;
                return self.choose_rewind();
            }
            (false, is_empty) => {
                self.armed = Some((key, self.now));
                // A loop may wait for its next round; nothing else is under way that could be stopped.
                if is_empty {
                    return vec![Effect::Send(Command::Interrupt)];
                }
            }
        }
        Vec::new()
    }
}
