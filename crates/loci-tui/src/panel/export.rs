//! `/export` without a file: whether the conversation goes to the clipboard or to a file.

use super::{Panel, PanelContext, PanelRequest, PanelStep, PanelView, list_rows, mark_row};
use crate::app::{Action, Effect};
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{faint, line};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::Row;

const CHOICES: [&str; 2] = ["Copy to the clipboard", "Save to a file"];

/// Where the conversation goes.
#[derive(Debug, Default)]
pub(crate) struct ExportPanel {
    marked: usize,
    /// The name of the file, once that was chosen.
    file: Option<TextField>,
}

impl ExportPanel {
    fn choose(&mut self) -> PanelStep {
        match self.marked {
            0 => PanelStep::CloseWith(vec![Action::Effect(Effect::AskPanel(PanelRequest::ExportText))]),
            _ => {
                self.file = Some(TextField::default());
                PanelStep::Stay
            }
        }
    }
}

impl Panel for ExportPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return match self.file.take() {
                Some(_) => PanelStep::Stay,
                None => PanelStep::Close,
            };
        }
        let Some(field) = &mut self.file else {
            match ctx.action {
                Some(KeyAction::SelectNext | KeyAction::SelectPrevious) => {
                    self.marked = (self.marked + 1) % CHOICES.len();
                }
                Some(KeyAction::SelectAccept) => return self.choose(),
                _ => {}
            }
            return PanelStep::Stay;
        };
        match event {
            InputEvent::Paste(text) => field.insert(text),
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let file = Some(field.text().trim().to_owned()).filter(|name| !name.is_empty());
                return PanelStep::CloseWith(vec![Action::Effect(Effect::AskPanel(PanelRequest::Export {
                    file,
                }))]);
            }
            InputEvent::Key(key) => drop(field.handle(*key)),
            _ => {}
        }
        PanelStep::Stay
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let Some(field) = &self.file else {
            let mut view = PanelView::new("Export the conversation", "↑↓ move · Enter choose · Esc close");
            let room = view.room(size);
            view.body = list_rows(CHOICES.len(), self.marked, room, |idx, is_marked| {
                mark_row(Row::plain(CHOICES[idx]), is_marked)
            });
            return view;
        };
        let mut view = PanelView::new("Export the conversation to a file", "Enter save · Esc back");
        view.push_field("File: ", field);
        view.body.push(line("Without a name it is called by the day and the title.", faint()));
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        self.file.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Shown;
    use super::*;

    #[test]
    fn conversation_is_copied_or_saved() {
        for (width, height) in [(20, 5), (80, 12)] {
            let mut shown = Shown::new(ExportPanel::default(), width, height);
            assert!(shown.text().contains("❯ Copy to the"), "{}", shown.text());
            let copy = Action::Effect(Effect::AskPanel(PanelRequest::ExportText));
            assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::CloseWith(vec![copy]));
            for (name, file) in [("", None), ("talk.md", Some("talk.md".to_owned()))] {
                let mut shown = Shown::new(ExportPanel::default(), width, height);
                shown.action(KeyAction::SelectNext);
                assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Stay);
                shown.type_text(name);
                assert!(
                    shown.text().contains(&format!("File: {name}")) || name.is_empty(),
                    "{}",
                    shown.text()
                );
                let save = Action::Effect(Effect::AskPanel(PanelRequest::Export { file }));
                assert_eq!(shown.key(KeyCode::Enter, None), PanelStep::CloseWith(vec![save]));
            }
            shown.action(KeyAction::SelectNext);
            shown.action(KeyAction::SelectAccept);
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay, "back to the choice");
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }
}
