//! Vim's keys in the prompt, and what the application does about those that lead out of it.

use super::{App, Effect};
use crate::input::{VimMode, VimStep};
use crate::key::{Key, KeyCode};

impl App {
    /// Takes a key for vim; none where it is for the keymap, or there is no vim.
    pub(super) fn vim_key(&mut self, key: Key) -> Option<Vec<Effect>> {
        let before = self.prompt.vim_mode()?;
        let is_menu_escape = key == Key::plain(KeyCode::Esc)
            && before == VimMode::Insert
            && (self.completion.is_open() || self.is_help_shown);
        if is_menu_escape || self.keymap.pending().is_some() {
            return None;
        }
        let step = self.prompt.vim_key(key, self.now);
        if let Some(mode) = self.prompt.vim_mode().filter(|mode| *mode != before) {
            self.vim_mode_changed(mode);
        }
        if step == VimStep::Passed {
            return None;
        }
        self.armed = None;
        self.submits_when_read = false;
        self.is_help_shown = step == VimStep::Help && !self.is_help_shown;
        if step != VimStep::HistoryPrevious {
            self.forget_early_steps();
        }
        Some(match step {
            VimStep::HistoryPrevious => self.go_up(),
            VimStep::HistoryNext => self.go_down(),
            VimStep::HistorySearch => self.begin_search(),
            VimStep::Passed | VimStep::Taken | VimStep::Help => Vec::new(),
        })
    }

    /// Tells whoever listens, and the status line, that another mode is in force.
    fn vim_mode_changed(&mut self, mode: VimMode) {
        self.speak(format!("{} mode", mode.name()));
        self.status_line.trigger(self.now);
    }
}
