//! Keys: first the dialog, then the panel, then what the keymap says, then the prompt.

use loci_engine::Command;

use super::spoken_menu::{MenuStep, SpokenMenu, dialog_menu, list_menu};
use super::{App, Effect};
use crate::dialog::DialogStep;
use crate::input::{EditCommand, Menu, VimStep};
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::{Action as KeyAction, Context, Resolution};
use crate::panel::ModelPanel;

/// More keys do not stand for one click.
const MOST_KEYS: usize = 200;

impl App {
    pub(super) fn typed(&mut self, event: InputEvent) -> Vec<Effect> {
        if self.transcript.leave_dump() {
            return Vec::new();
        }
        let is_spoken = self.preferences.is_spoken();
        let answered = match &event {
            InputEvent::Key(key) if is_spoken && !(key.ctrl || key.alt || key.sup) => {
                self.spoken_menu().and_then(|menu| self.menu_answer.handle(key.code, &menu))
            }
            _ => None,
        };
        match answered {
            None => return self.typed_directly(event),
            Some(MenuStep::Taken) => {}
            Some(MenuStep::Say(text)) => self.transcript.speak(text),
            Some(MenuStep::Press(keys)) => return self.press_keys(keys),
        }
        Vec::new()
    }

    /// Returns the menu that whoever listens may choose from by typing.
    fn spoken_menu(&self) -> Option<SpokenMenu> {
        match self.dialogs.is_empty() {
            true => list_menu(&self.panel.drawn_rows(&self.render_context(self.panel.space().width))?),
            false if !self.dialogs.is_armed(self.now) || self.dialogs.is_typing() => None,
            false => dialog_menu(&self.dialogs.view(&self.render_context(u16::MAX))?),
        }
    }

    /// Takes what was typed where no answer is being typed.
    fn typed_directly(&mut self, event: InputEvent) -> Vec<Effect> {
        match self.dialogs.handle(&event, &mut self.keymap, self.now) {
            Some(DialogStep::Answered(actions) | DialogStep::Act(actions)) => return self.carry_out(actions),
            Some(DialogStep::Open) => return Vec::new(),
            None => {}
        }
        if let Some(width) = self.transcript.pager_width() {
            let (ctx, is_kept) = (self.render_context(width), self.session.is_persistent);
            return self.transcript.pager_typed(&event, &mut self.keymap, &ctx, is_kept).unwrap_or_default();
        }
        if let Some(actions) = self.panel.typed(&event, &mut self.keymap) {
            return self.carry_out(actions);
        }
        match event {
            InputEvent::Key(key) if self.prompt.recall.is_searching() => {
                let kind = self.transcript.search_kind();
                match self.prompt.search_key(key, &mut self.keymap, kind) {
                    true => self.chat_key(key),
                    false => Vec::new(),
                }
            }
            InputEvent::Key(key) => self.chat_key(key),
            InputEvent::Paste(text) => {
                let (prompt, ctx) = self.prompt_parts();
                prompt.paste(&text, &ctx)
            }
            _ => Vec::new(),
        }
    }

    /// Presses keys that stand for something else: a click, or the number of an answer.
    pub(super) fn press_keys(&mut self, keys: impl IntoIterator<Item = KeyCode>) -> Vec<Effect> {
        let keys: Vec<KeyCode> = keys.into_iter().take(MOST_KEYS).collect();
        let press = |code| InputEvent::Key(Key::plain(code));
        let pressed = keys.into_iter().flat_map(|code| self.typed_directly(press(code)));
        let mut effects: Vec<Effect> = pressed.collect();
        effects.extend(self.refresh_completion());
        effects
    }

    /// Takes a key that is for the prompt, or for what is around it.
    fn chat_key(&mut self, key: Key) -> Vec<Effect> {
        if let Some(effects) = self.vim_key(key) {
            return effects;
        }
        let is_on_empty = self.prompt.input.is_empty() && !self.prompt.input.is_shell();
        if key == Key::plain(KeyCode::Char('?')) && is_on_empty {
            self.prompt.is_help_shown = !self.prompt.is_help_shown;
            return Vec::new();
        }
        if key == Key::plain(KeyCode::Left) && is_on_empty && self.preferences.has_agent_view() {
            return self.open_agents();
        }
        let mut contexts = Vec::with_capacity(5);
        if self.prompt.completion.is_open() {
            contexts.push(Context::Autocomplete);
        }
        if self.transcript.is_fullscreen() {
            contexts.push(Context::Scroll);
        }
        if self.session.is_working() || !self.background.front.is_none() {
            contexts.push(Context::Task);
        }
        contexts.extend([Context::Chat, Context::Global]);
        let effects = match self.keymap.resolve(&contexts, key) {
            Resolution::Action(action) => {
                self.transcript.forget_selection(key, Some(action));
                self.key_action(action, key)
            }
            Resolution::Command(idx) => {
                self.transcript.forget_selection(key, None);
                // What stands in the prompt stays there.
                self.keymap.command(idx).map(str::to_owned).map(|line| self.submit(line))
            }
            Resolution::Pending | Resolution::Nothing => Some(Vec::new()),
            Resolution::Unbound => None,
        };
        effects.unwrap_or_else(|| {
            self.transcript.forget_selection(key, None);
            let (prompt, ctx) = self.prompt_parts();
            prompt.edit(key, &ctx)
        })
    }

    /// Takes a key for vim; none where it is for the keymap, or there is no vim.
    fn vim_key(&mut self, key: Key) -> Option<Vec<Effect>> {
        if self.keymap.pending().is_some() {
            return None;
        }
        let taken = self.prompt.vim_key(key, self.now)?;
        if let Some(mode) = taken.mode {
            self.transcript.speak(format!("{} mode", mode.name()));
            self.status.line.trigger(self.now);
        }
        Some(match taken.step {
            VimStep::Passed => return None,
            VimStep::HistoryPrevious => self.go_up(),
            VimStep::HistoryNext => {
                self.prompt.down();
                Vec::new()
            }
            VimStep::HistorySearch => return self.prompt_action(KeyAction::HistorySearch),
            VimStep::Taken | VimStep::Help => Vec::new(),
        })
    }

    /// Does what a key is bound to; none where it is for the prompt.
    fn key_action(&mut self, action: KeyAction, key: Key) -> Option<Vec<Effect>> {
        if action != KeyAction::HistoryPrevious {
            self.prompt.recall.forget_early_steps();
        }
        match action {
            KeyAction::AppInterrupt => return Some(self.interrupt_or_leave()),
            KeyAction::AppExit if self.prompt.input.is_empty() => return Some(self.leave_on_second(key)),
            KeyAction::AppRedraw | KeyAction::ChatClearScreen => return Some(vec![Effect::Repaint]),
            // Draws everything anew, and keeps what is typed; said twice, all that was said lately is shown again.
            KeyAction::ChatClearInput if self.prompt.is_armed(key) => {
                self.prompt.disarm();
                self.transcript.replay();
                return Some(vec![Effect::RepaintAll]);
            }
            KeyAction::ChatClearInput => {
                self.prompt.arm(key, self.now);
                return Some(vec![Effect::Repaint]);
            }
            KeyAction::ChatExternalEditor => {
                let is_wanted = self.preferences.interface.shows_answer_in_editor;
                let answer = self.transcript.log.answer(0).filter(|_| is_wanted);
                match self.prompt.edit_elsewhere(answer) {
                    Ok(effect) => return Some(vec![effect]),
                    Err(why) => self.flash(why),
                }
            }
            KeyAction::ChatKillAgents => {
                let (text, effects) = self.background.stop_agents(self.now);
                self.flash(text);
                return Some(effects);
            }
            KeyAction::ChatFastMode => {
                self.flash("There is no fast mode; `/effort low` makes answers quicker");
            }
            KeyAction::AppToggleTodos => {
                self.tasks.toggle().into_iter().for_each(|text| self.flash(text));
                return Some(self.tasks.keep(self.session.is_started));
            }
            KeyAction::AppToggleTranscript => self.transcript.open_pager(),
            KeyAction::AppSuspend => return Some(vec![Effect::Suspend]),
            KeyAction::ChatCancel => return Some(self.escape(key)),
            KeyAction::ChatCycleMode => return Some(self.set_mode(self.session.next_mode())),
            KeyAction::ChatModelPicker => return Some(self.open_snapshot_panel(ModelPanel::default())),
            KeyAction::ChatThinkingToggle => {
                let (text, effect) = self.session.toggle_thinking();
                self.flash(text);
                return Some(vec![effect]);
            }
            KeyAction::TaskBackground if self.background.front.clear() => {
                self.flash("It goes on in the background · /tasks has it");
            }
            KeyAction::TaskBackground if self.session.is_working() => {
                return Some(vec![Effect::Send(Command::MoveToBackground { call: None })]);
            }
            action => return self.prompt_action(action),
        }
        Some(Vec::new())
    }

    /// Does what a key is bound to, where that concerns the prompt; none where it only edits.
    fn prompt_action(&mut self, action: KeyAction) -> Option<Vec<Effect>> {
        match action {
            KeyAction::AutocompleteAccept => {
                let (prompt, ctx) = self.prompt_parts();
                return Some(prompt.accept_completion(&ctx));
            }
            KeyAction::AutocompleteDismiss => self.prompt.completion.dismiss(),
            KeyAction::AutocompletePrevious => self.prompt.completion.choose(Menu::previous),
            KeyAction::AutocompleteNext => self.prompt.completion.choose(Menu::next),
            KeyAction::ChatSubmit => {
                let (prompt, ctx) = self.prompt_parts();
                let taken = prompt.enter_in_menu(&ctx);
                return Some(taken.unwrap_or_else(|| self.submit_prompt()));
            }
            KeyAction::ChatNewline => self.prompt.edit_by(EditCommand::Newline),
            KeyAction::ChatUndo => self.prompt.edit_by(EditCommand::Undo),
            KeyAction::ChatStash => match self.prompt.stash() {
                Some(text) => self.flash(text),
                None => self.status.clear_flash(),
            },
            KeyAction::ChatImagePaste => return Some(self.prompt.paste_picture().into_iter().collect()),
            KeyAction::HistoryPrevious => return Some(self.go_up()),
            KeyAction::HistoryNext => self.prompt.down(),
            KeyAction::HistorySearch => {
                let (prompt, ctx) = self.prompt_parts();
                return Some(vec![prompt.begin_search(&ctx)]);
            }
            KeyAction::SelectionCopy => return self.copy_selection(),
            action => {
                let width = self.transcript.screen_width()?;
                let (transcript, ctx) = self.transcript_parts(width);
                transcript.scroll(action, &ctx)?;
            }
        }
        Some(Vec::new())
    }

    /// Up: a row up in the text; at its top what is queued comes back, else the prompt before.
    fn go_up(&mut self) -> Vec<Effect> {
        if self.prompt.up() {
            return Vec::new();
        }
        if self.queue.has_queued() {
            return vec![Effect::Send(Command::TakeBackQueue)];
        }
        match self.queue.has_held() {
            true => self.queue.take_back(&[], &mut self.prompt.input),
            false => self.prompt.step_back(),
        }
        Vec::new()
    }

    /// Ctrl+C: stops a turn; else empties the prompt; else leaves, when said twice.
    pub(super) fn interrupt_or_leave(&mut self) -> Vec<Effect> {
        let key = Key { ctrl: true, ..Key::plain(KeyCode::Char('c')) };
        let copied = self.copy_selection();
        if self.transcript.clear_selection()
            && let Some(effects) = copied
        {
            return effects;
        }
        if self.session.is_working() {
            return vec![self.session.interrupt()];
        }
        if !self.prompt.input.is_empty() {
            // The next one leaves, as it does where nothing is typed; Up brings back what stood here.
            let (prompt, ctx) = self.prompt_parts();
            prompt.set_aside(&ctx);
        }
        self.leave_on_second(key)
    }

    fn leave_on_second(&mut self, key: Key) -> Vec<Effect> {
        if self.prompt.is_armed(key) {
            return self.leave();
        }
        self.prompt.arm(key, self.now);
        self.transcript.speak("Press the same key again to leave");
        Vec::new()
    }

    /// Escape: stops a turn; twice it empties the prompt and keeps what stood there in the history, or lets a prompt be
    /// chosen to go back to.
    fn escape(&mut self, key: Key) -> Vec<Effect> {
        if std::mem::take(&mut self.prompt.is_help_shown) || self.prompt.input.leave_shell_mode() {
            return Vec::new();
        }
        if self.session.is_working() {
            return vec![self.session.interrupt()];
        }
        let is_second = self.prompt.is_armed(key);
        match (is_second, self.prompt.input.is_empty()) {
            (true, false) => {
                let (prompt, ctx) = self.prompt_parts();
                prompt.put_away(&ctx).into_iter().collect()
            }
            (true, true) => {
                self.prompt.disarm();
                self.choose_rewind()
            }
            (false, is_empty) => {
                self.prompt.arm(key, self.now);
                // A loop may wait for its next round; nothing else is under way that could be stopped.
                is_empty.then_some(Effect::Send(Command::Interrupt)).into_iter().collect()
            }
        }
    }

    /// Copies what is selected; none where nothing is.
    fn copy_selection(&mut self) -> Option<Vec<Effect>> {
        let width = self.transcript.screen_width()?;
        let (transcript, ctx) = self.transcript_parts(width);
        let text = transcript.selected_text(&ctx)?;
        Some(self.copy(text, selection_note))
    }
}

/// Says how much was selected and copied.
pub(super) fn selection_note(text: &str) -> String {
    format!("Copied {} characters to the clipboard of the terminal", text.chars().count())
}
