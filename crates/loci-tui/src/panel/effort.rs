//! `/effort`: how hard the model thinks.

use std::sync::Arc;

use loci_app::commands::effort::{LEVELS, current};
use loci_engine::SessionSnapshot;

use super::{Panel, PanelContext, PanelData, PanelStep, PanelView, list_rows, mark_row};
use crate::app::{Action, UiAction};
use crate::key::InputEvent;
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{faint, line};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span};

/// What leaves the choice to the model.
const AUTO: &str = "auto";

/// The levels.
#[derive(Debug, Default)]
pub(crate) struct EffortPanel {
    session: Option<Arc<SessionSnapshot>>,
    problem: Option<String>,
    marked: usize,
}

impl EffortPanel {
    fn levels() -> impl Iterator<Item = &'static str> {
        LEVELS.into_iter().chain([AUTO])
    }
}

impl Panel for EffortPanel {
    fn handle(&mut self, _event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let last = Self::levels().count() - 1;
        match ctx.action {
            Some(KeyAction::SelectNext) => {
                self.marked = if self.marked == last { 0 } else { self.marked + 1 }
            }
            Some(KeyAction::SelectPrevious) => self.marked = self.marked.checked_sub(1).unwrap_or(last),
            Some(KeyAction::SelectAccept) => {
                let level = Self::levels().nth(self.marked).unwrap_or(AUTO);
                return PanelStep::CloseWith(vec![Action::Ui(UiAction::Submit(format!("/effort {level}")))]);
            }
            _ if ctx.is_cancel() => return PanelStep::Close,
            _ => {}
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(session) => {
                let (level, _) = current(&session);
                self.marked = Self::levels().position(|it| it == level).unwrap_or(0);
                self.session = Some(session);
            }
            PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let title = match &self.session {
            Some(session) if !session.catalog.facts(&session.model).has_effort => {
                format!("Effort · {} takes no effort level", session.model)
            }
            Some(session) => format!("Effort · {}", session.model),
            None => "Effort".to_owned(),
        };
        let mut view = PanelView::new(&title, "↑↓ move · Enter choose · Esc close");
        let Some(session) = &self.session else {
            view.body = vec![line(self.problem.as_deref().unwrap_or("Reading…"), faint())];
            return view;
        };
        let (level, is_chosen) = current(session);
        let levels: Vec<&str> = Self::levels().collect();
        let room = view.room(size);
        view.body = list_rows(levels.len(), self.marked, room, |idx, is_marked| {
            let note = match levels[idx] {
                it if it == level && is_chosen => "  (now)",
                it if it == level => "  (now: the model's own)",
                AUTO => "  leave it to the model",
                "max" => "  for this session only",
                _ => "",
            };
            mark_row(Row::new(vec![Span::plain(levels[idx]), Span::styled(note, faint())]), is_marked)
        });
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;

    #[test]
    fn level_is_chosen_from_the_one_at_hand() {
        for (width, height) in [(20, 5), (60, 12)] {
            let mut shown = Shown::new(EffortPanel::default(), width, height);
            assert!(shown.text().contains("Reading…"));
            let mut session = SessionSnapshot::clone(&snapshot());
            (session.model, session.effort) = ("claude-opus-4-8".to_owned(), Some("medium".to_owned()));
            shown.receive(PanelData::Snapshot(Arc::new(session)));
            shown.assert_clean();
            assert!(shown.text().contains("❯ medium  (now)"), "{}", shown.text());
            shown.action(KeyAction::SelectNext);
            let submit = Action::Ui(UiAction::Submit("/effort high".to_owned()));
            assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::CloseWith(vec![submit]));
        }
    }
}
