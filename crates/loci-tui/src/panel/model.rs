//! `/model`: the models that can be chosen. While what was said can be read from the provider's cache, another one is
//! chosen twice: it would read all of it anew.

use std::sync::Arc;

use loci_app::commands::model::ModelRow;
use loci_app::commands::short_tokens;
use loci_engine::SessionSnapshot;

use super::{FilteredList, ListStep, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView};
use crate::app::Action;
use crate::key::InputEvent;
use crate::layout::{code, faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line};

/// The models, once they are known.
#[derive(Debug, Default)]
pub(crate) struct ModelPanel {
    session: Option<Arc<SessionSnapshot>>,
    models: Option<Vec<ModelRow>>,
    problem: Option<String>,
    list: FilteredList,
    /// The one that was chosen and waits for a second Enter.
    confirming: Option<usize>,
    /// The one that was named, until the models are known.
    wanted: Option<String>,
}

impl ModelPanel {
    /// Asks whether a model that was named is to be asked, though another has what was said in its cache.
    pub(crate) fn switching_to(name: String, session: Arc<SessionSnapshot>) -> Self {
        Self { wanted: Some(name), session: Some(session), ..Self::default() }
    }

    /// Marks the model that was named, and waits for a word; one that is asked already, or cannot be, is left to the session.
    fn take_wanted(&mut self, name: String) -> Vec<Action> {
        let models = self.models.get_or_insert_default();
        let is_it = |row: &ModelRow| row.name.eq_ignore_ascii_case(&name) || row.id == name;
        let place = models.iter().position(is_it).unwrap_or_else(|| {
            let facts = loci_core::model::facts(&name);
            let price = facts.price.map(|price| (price.input, price.output));
            let is_current = self.session.as_ref().is_some_and(|session| session.model == name);
            let (id, window) = (name.clone(), facts.window);
            models.push(ModelRow { name: name.clone(), id, window, price, is_current, is_available: true });
            models.len() - 1
        });
        if models.get(place).is_some_and(|row| row.is_current || !row.is_available) {
            return vec![Action::ClosePanel, Action::RunInSession(format!("/model {name}"))];
        }
        self.list = FilteredList::new(models.len());
        self.list.mark(place);
        self.confirming = Some(place);
        Vec::new()
    }

    fn choose(&mut self, place: usize) -> PanelStep {
        let Some(row) = self.models.as_ref().and_then(|models| models.get(place)) else {
            return PanelStep::Stay;
        };
        if !row.is_available {
            self.problem = Some("Settings (availableModels) do not let it be chosen".to_owned());
            return PanelStep::Stay;
        }
        if row.is_current {
            return PanelStep::Close;
        }
        let is_warm =
            self.session.as_ref().is_some_and(|session| session.is_cache_warm && session.has_messages);
        if is_warm && self.confirming != Some(place) {
            self.confirming = Some(place);
            return PanelStep::Stay;
        }
        PanelStep::CloseWith(vec![Action::RunInSession(format!("/model {}", row.name))])
    }

    fn warning(&self) -> Option<String> {
        let row = self.models.as_ref()?.get(self.confirming?)?;
        let tokens = self.session.as_ref().map_or(0, |session| session.context.fullness.tokens);
        Some(format!(
            "Enter again to switch: {} reads all {} tokens anew, the model at hand has them in its cache",
            row.name,
            short_tokens(tokens)
        ))
    }
}

impl Panel for ModelPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return match self.confirming.take() {
                Some(_) => PanelStep::Stay,
                None => PanelStep::Close,
            };
        }
        let step = self.list.handle(event, ctx);
        if !matches!(step, ListStep::Chosen(_)) {
            self.confirming = None;
            self.problem = None;
        }
        match step {
            ListStep::Chosen(place) => return self.choose(place),
            ListStep::Filtered => {
                let models = self.models.as_deref().unwrap_or_default();
                let names: Vec<String> =
                    models.iter().map(|row| format!("{} {}", row.name, row.id)).collect();
                self.list.refilter(names.iter().map(String::as_str));
            }
            ListStep::Moved | ListStep::Unknown => {}
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => {
                self.session = Some(Arc::clone(&snapshot));
                return vec![Action::AskPanel(PanelRequest::Models { snapshot })];
            }
            PanelData::Models(models) => {
                self.list = FilteredList::new(models.len());
                self.models = Some(models);
                if let Some(name) = self.wanted.take() {
                    return self.take_wanted(name);
                }
            }
            PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let mut view = PanelView::new("Model", "type to search · Enter choose · Esc close");
        view.push_field("Search: ", self.list.field());
        if let Some(text) = self.warning().or_else(|| self.problem.clone()) {
            view.head.extend(paragraph("", &text, warning(), size.width));
        }
        let room = view.room(size);
        let models = self.models.as_deref().unwrap_or_default();
        view.body = self.list.rows(room, |place| models.get(place).map_or_else(Row::default, model_row));
        if self.models.is_none() && self.problem.is_none() {
            view.body = vec![line("Reading…", faint())];
        }
        view
    }

    fn is_typing(&self) -> bool {
        true
    }
}

fn model_row(row: &ModelRow) -> Row {
    let state = match (row.is_current, row.is_available) {
        (true, _) => " (now)",
        (false, true) => "",
        (false, false) => " (not available)",
    };
    let id = if row.id == row.name { String::new() } else { format!("  {}", sanitize_line(&row.id)) };
    Row::new(vec![
        Span::styled(sanitize_line(&row.name), code()),
        Span::plain(state),
        Span::plain(id),
        Span::styled(format!("  {}", row.facts()), faint()),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;
    use crate::keymap::Action as KeyAction;

    fn row(name: &str, is_current: bool, is_available: bool) -> ModelRow {
        let id = format!("claude-{name}\u{1b}");
        ModelRow {
            name: name.into(),
            id,
            window: 200_000,
            price: Some((3.0, 15.0)),
            is_current,
            is_available,
        }
    }

    fn shown(is_warm: bool, width: u16, height: u16) -> Shown<ModelPanel> {
        let mut shown = Shown::new(ModelPanel::default(), width, height);
        let mut session = SessionSnapshot::clone(&snapshot());
        (session.is_cache_warm, session.has_messages) = (is_warm, true);
        let actions = shown.receive(PanelData::Snapshot(Arc::new(session)));
        assert!(matches!(&actions[..], [Action::AskPanel(PanelRequest::Models { .. })]));
        shown.receive(PanelData::Models(vec![
            row("opus", true, true),
            row("sonnet", false, true),
            row("haiku", false, false),
        ]));
        shown
    }

    #[test]
    fn model_is_chosen_at_once_while_the_cache_is_cold() {
        for (width, height) in [(20, 5), (60, 10), (100, 20)] {
            let mut shown = shown(false, width, height);
            shown.assert_clean();
            assert!(shown.text().contains("opus (now)"), "{}", shown.text());
            shown.action(KeyAction::SelectNext);
            let submit = Action::RunInSession("/model sonnet".to_owned());
            assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::CloseWith(vec![submit]));
        }
    }

    #[test]
    fn warm_cache_asks_for_a_second_enter() {
        let mut shown = shown(true, 120, 12);
        shown.type_text("sonn");
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Stay);
        assert!(shown.text().contains("Enter again to switch"), "{}", shown.text());
        assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay, "back to the list");
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Stay);
        let submit = Action::RunInSession("/model sonnet".to_owned());
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::CloseWith(vec![submit]));
    }

    #[test]
    fn model_that_was_named_waits_for_a_word_while_the_cache_is_warm() {
        let run = |name: &str| Action::RunInSession(format!("/model {name}"));
        for (name, expected) in [
            ("Sonnet", None),
            ("some-model", None),
            ("opus", Some(vec![Action::ClosePanel, run("opus")])),
            ("haiku", Some(vec![Action::ClosePanel, run("haiku")])),
        ] {
            let mut shown = Shown::new(ModelPanel::switching_to(name.to_owned(), snapshot()), 120, 12);
            let rows = vec![row("opus", true, true), row("sonnet", false, true), row("haiku", false, false)];
            let actions = shown.receive(PanelData::Models(rows));
            let Some(expected) = expected else {
                assert_eq!(actions, [], "{name}");
                shown.assert_clean();
                assert!(shown.text().contains("Enter again to switch"), "{}", shown.text());
                let step = shown.action(KeyAction::SelectAccept);
                let named = name.to_lowercase();
                assert_eq!(step, PanelStep::CloseWith(vec![run(&named)]), "{name}");
                continue;
            };
            assert_eq!(actions, expected, "{name}");
        }
    }

    #[test]
    fn model_that_is_not_available_says_why() {
        let mut shown = shown(false, 120, 12);
        shown.action(KeyAction::SelectPrevious);
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Stay);
        assert!(shown.text().contains("availableModels"), "{}", shown.text());
    }
}
