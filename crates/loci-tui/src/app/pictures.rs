//! Pictures in the prompt: a chip stands there at once, and what it stands for comes when it is read.

use super::{App, Effect};
use crate::block::NoticeLevel;
use crate::input::{PastedImage, PictureSource, image_paths};

impl App {
    /// Takes pasted text; paths of pictures alone, as files that are dropped on the window, become pictures.
    pub(super) fn pasted(&mut self, text: &str) -> Vec<Effect> {
        if self.search_paste(text) {
            return Vec::new();
        }
        self.armed = None;
        self.submits_when_read = false;
        let paths = match self.prompt.is_shell() {
            true => None,
            false => image_paths(text, &self.options.cwd, &self.options.home),
        };
        let Some(paths) = paths else {
            self.prompt.paste(text);
            return Vec::new();
        };
        let mut actions = Vec::new();
        for (idx, (written, path)) in paths.into_iter().enumerate() {
            if idx > 0 {
                self.prompt.insert(" ");
            }
            match self.prompt.begin_image(Some(&written)) {
                Some(number) => {
                    actions.push(Effect::ReadPicture { number, source: PictureSource::File(path) });
                }
                None => self.prompt.insert(&written),
            }
        }
        actions
    }

    /// Pastes the picture that is on the clipboard.
    pub(super) fn paste_picture(&mut self) -> Vec<Effect> {
        self.submits_when_read = false;
        match self.prompt.begin_image(None) {
            Some(number) => vec![Effect::ReadPicture { number, source: PictureSource::Clipboard }],
            None => Vec::new(),
        }
    }

    /// Takes a picture that was read; sends what waits for it.
    pub(super) fn picture_read(&mut self, number: u32, read: Result<PastedImage, String>) -> Vec<Effect> {
        match read {
            Ok(image) => self.prompt.finish_image(number, Some(image)),
            Err(why) => {
                self.prompt.finish_image(number, None);
                self.notice(NoticeLevel::Warning, why);
                // What was to be sent with it is not sent without it.
                self.submits_when_read = false;
            }
        }
        if self.submits_when_read && !self.prompt.draft().is_reading() {
            self.submits_when_read = false;
            let draft = self.prompt.take();
            return self.submit_draft(draft);
        }
        Vec::new()
    }
}
