//! Keys of the person's own (`keybindings.json`), and their own editor.

use super::{App, Effect};
use crate::block::NoticeLevel;
use crate::input::{Draft, InputMode};
use crate::keymap::Keymap;

impl App {
    /// Takes what the file of key bindings says. What cannot be used is told; where it cannot be read, keys stay as they are.
    pub(super) fn take_key_bindings(&mut self, read: Result<Option<String>, String>) {
        let (keymap, warnings) = match read {
            Ok(Some(text)) => Keymap::with_overrides(&text),
            Ok(None) => (Keymap::default(), Vec::new()),
            Err(why) => (self.keymap.clone(), vec![why]),
        };
        self.keymap = keymap;
        warnings.into_iter().for_each(|warning| self.notice(NoticeLevel::Warning, warning));
    }

    /// Hands the prompt to the person's editor.
    pub(super) fn edit_elsewhere(&mut self) -> Vec<Effect> {
        let draft = self.prompt.draft();
        if draft.is_reading() {
            self.flash("The picture is still being read");
            return Vec::new();
        }
        let is_wanted = self.interface.shows_answer_in_editor && draft.mode == InputMode::Prompt;
        let answer = self.log.answer(0).filter(|_| is_wanted).map(str::to_owned);
        vec![Effect::EditDraft { draft, answer }]
    }

    /// Takes what became of it.
    pub(super) fn draft_edited(&mut self, edited: Result<Draft, String>) {
        match edited {
            Ok(draft) => self.prompt.set_draft(&draft),
            Err(why) => self.notice(NoticeLevel::Warning, why),
        }
    }
}
