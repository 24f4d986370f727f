//! `/rename` without a name: a line to type one into.

use loci_engine::Command;

use super::{Panel, PanelContext, PanelStep, PanelView};
use crate::app::{Action, Effect, UiAction};
use crate::block::NoticeLevel;
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::Context;
use crate::layout::{faint, line};
use crate::render::RenderContext;
use crate::screen::Size;

/// A name for the session, being typed.
#[derive(Debug)]
pub(crate) struct RenamePanel {
    name: TextField,
}

impl RenamePanel {
    /// Begins with the name that it has.
    pub(crate) fn new(title: Option<&str>) -> Self {
        let mut name = TextField::default();
        name.insert(title.unwrap_or_default());
        Self { name }
    }
}

/// Returns what gives the session a name.
pub(crate) fn rename_actions(title: &str) -> Vec<Action> {
    let title = title.trim().to_owned();
    let text = format!("This session is called “{title}” from now on; `loci -r \"{title}\"` finds it");
    vec![
        Action::Effect(Effect::Send(Command::Rename { title: title.clone() })),
        Action::Ui(UiAction::Titled(title)),
        Action::Ui(UiAction::Notice(NoticeLevel::Info, text)),
    ]
}

impl Panel for RenamePanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        match event {
            _ if ctx.is_cancel() => PanelStep::Close,
            InputEvent::Paste(text) => {
                self.name.insert(text);
                PanelStep::Stay
            }
            InputEvent::Key(key) if key.code == KeyCode::Enter => match self.name.text().trim() {
                "" => PanelStep::Close,
                name => PanelStep::CloseWith(rename_actions(name)),
            },
            InputEvent::Key(key) => {
                self.name.handle(*key);
                PanelStep::Stay
            }
            _ => PanelStep::Stay,
        }
    }

    fn view(&self, _ctx: &RenderContext, _size: Size) -> PanelView {
        let mut view = PanelView::new("A name for this session", "Enter keep · Esc close");
        view.push_field("Name: ", &self.name);
        view.body.push(line("It is what `/resume` shows, and what `loci -r` finds it by.", faint()));
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Shown;
    use super::*;

    #[test]
    fn name_is_typed_and_kept() {
        let mut shown = Shown::new(RenamePanel::new(Some("a\u{1b}b")), 40, 5);
        shown.assert_clean();
        shown.type_text("日本 c");
        let PanelStep::CloseWith(actions) = shown.key(KeyCode::Enter, None) else { panic!("closed") };
        assert!(
            matches!(&actions[0], Action::Effect(Effect::Send(Command::Rename { title })) if title.ends_with("日本 c")),
            "{actions:?}"
        );
        let mut empty = Shown::new(RenamePanel::new(None), 20, 5);
        assert_eq!(empty.key(KeyCode::Enter, None), PanelStep::Close);
    }
}
