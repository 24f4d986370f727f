//! `/model`: the models that can be chosen, and how hard they think. While what was said can be read from the provider's
//! cache, another one is chosen twice: it would read all of it anew.
//!
//! A letter that is bound to nothing begins to narrow the list down; `s` asks the marked model for this session alone.

use std::sync::Arc;

use loci_app::commands::effort::{LEVELS, current};
use loci_app::commands::model::ModelRow;
use loci_app::commands::short_tokens;
use loci_engine::{Command, SessionSnapshot};

use super::{FilteredList, ListStep, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView};
use crate::app::{Action, Effect, UiAction};
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{cells, code, faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line};

/// What a model is asked for with that is not kept.
const SESSION_MODEL_REQUEST: &str = "session-model";

/// For how long a model is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duration {
    /// For new sessions, too: it is kept in settings.
    Default,
    /// For this session alone.
    Session,
}

/// The models, once they are known.
#[derive(Debug, Default)]
pub(crate) struct ModelPanel {
    session: Option<Arc<SessionSnapshot>>,
    models: Option<Vec<ModelRow>>,
    problem: Option<String>,
    list: FilteredList,
    /// Whether letters narrow the list down.
    is_searching: bool,
    /// The effort that is to be asked for, by its place among the levels.
    effort: Option<usize>,
    /// The one that was chosen and waits for the key once more, and for how long it is meant.
    confirming: Option<(usize, Duration)>,
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
            let name = name.clone();
            let row = ModelRow { name, id, window, price, is_current, ..ModelRow::default() };
            models.push(ModelRow { is_available: true, ..row });
            models.len() - 1
        });
        if models.get(place).is_some_and(|row| row.is_current || !row.is_available) {
            return vec![
                Action::Ui(UiAction::ClosePanel),
                Action::Ui(UiAction::RunInSession(format!("/model {name}"))),
            ];
        }
        self.list = FilteredList::new(models.len());
        self.list.mark(place);
        self.confirming = Some((place, Duration::Default));
        Vec::new()
    }

    fn choose(&mut self, place: usize, duration: Duration) -> PanelStep {
        let Some(row) = self.models.as_ref().and_then(|models| models.get(place)) else {
            return PanelStep::Stay;
        };
        if !row.is_available {
            self.problem = Some("Settings (availableModels) do not let it be chosen".to_owned());
            return PanelStep::Stay;
        }
        let mut actions: Vec<Action> = self.effort_action(row).into_iter().collect();
        if row.is_current {
            return match actions.is_empty() {
                true => PanelStep::Close,
                false => PanelStep::CloseWith(actions),
            };
        }
        let is_warm =
            self.session.as_ref().is_some_and(|session| session.is_cache_warm && session.has_messages);
        if is_warm && self.confirming != Some((place, duration)) {
            self.confirming = Some((place, duration));
            return PanelStep::Stay;
        }
        let model = match duration {
            Duration::Default => Action::Ui(UiAction::RunInSession(format!("/model {}", row.name))),
            Duration::Session => Action::Effect(Effect::Send(Command::SetModel {
                request: Some(SESSION_MODEL_REQUEST.to_owned()),
                model: Some(row.name.clone()),
            })),
        };
        // The effort is one that the new model takes.
        actions.insert(0, model);
        PanelStep::CloseWith(actions)
    }

    /// Returns the model whose number was typed, unless letters narrow the list down.
    fn typed_number(&self, event: &InputEvent) -> Option<usize> {
        let InputEvent::Key(key) = event else { return None };
        let KeyCode::Char(digit @ '1'..='9') = key.code else { return None };
        let place = digit as usize - '1' as usize;
        let is_there = place < self.models.as_ref()?.len();
        (is_there && !self.is_searching && !key.ctrl && !key.alt).then_some(place)
    }

    /// Returns the model that is marked, where it takes an effort.
    fn with_effort(&self) -> Option<&ModelRow> {
        let row = self.models.as_ref()?.get(self.list.marked()?)?;
        self.session.as_ref()?.catalog.facts(&row.id).has_effort.then_some(row)
    }

    /// Returns the level that is marked: the one that was moved to, or the one at hand.
    fn level(&self) -> Option<usize> {
        let level = current(self.session.as_ref()?).0;
        self.effort.or_else(|| LEVELS.iter().position(|it| *it == level))
    }

    /// Asks for another effort by so many steps.
    fn move_effort(&mut self, step: isize) {
        if self.with_effort().is_some()
            && let Some(level) = self.level()
        {
            self.effort = Some(level.saturating_add_signed(step).min(LEVELS.len() - 1));
        }
    }

    /// Returns what asks for the effort that was moved to, where it is another one than now and the model takes one.
    fn effort_action(&self, row: &ModelRow) -> Option<Action> {
        let session = self.session.as_ref()?;
        let level = LEVELS.get(self.effort?)?;
        let is_other = session.effort.as_deref() != Some(level) && session.catalog.facts(&row.id).has_effort;
        is_other.then(|| Action::Ui(UiAction::RunInSession(format!("/effort {level}"))))
    }

    /// Says how hard the marked model is to think.
    fn effort_row(&self) -> Option<Row> {
        self.with_effort()?;
        let level = LEVELS.get(self.level()?)?;
        Some(line(&format!("Effort: ← {level} →"), faint()))
    }

    fn warning(&self) -> Option<String> {
        let (place, duration) = self.confirming?;
        let row = self.models.as_ref()?.get(place)?;
        let key = if duration == Duration::Session { "s" } else { "Enter" };
        let tokens = self.session.as_ref().map_or(0, |session| session.context.fullness.tokens);
        Some(format!(
            "{key} again to switch: {} reads all {} tokens anew, the model at hand has them in its cache",
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
        match ctx.action {
            Some(KeyAction::ModelPickerDecreaseEffort) => self.move_effort(-1),
            Some(KeyAction::ModelPickerIncreaseEffort) => self.move_effort(1),
            Some(KeyAction::ModelPickerThisSessionOnly) => {
                return self.list.marked().map_or(PanelStep::Stay, |it| self.choose(it, Duration::Session));
            }
            _ => {}
        }
        let is_slash = matches!(event, InputEvent::Key(key) if key.code == KeyCode::Char('/'));
        if is_slash && !self.is_searching {
            self.is_searching = true;
            return PanelStep::Stay;
        }
        if let Some(place) = self.typed_number(event) {
            self.list.mark(place);
            return self.choose(place, Duration::Default);
        }
        let step = self.list.handle(event, ctx);
        if !matches!(step, ListStep::Chosen(_)) {
            self.confirming = None;
            self.problem = None;
        }
        match step {
            ListStep::Chosen(place) => return self.choose(place, Duration::Default),
            ListStep::Filtered => {
                self.is_searching = true;
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
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::Models { snapshot }))];
            }
            PanelData::Models(models) => {
                self.list = FilteredList::new(models.len());
                // Enter alone changes nothing.
                if let Some(place) = models.iter().position(|row| row.is_current) {
                    self.list.mark(place);
                }
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

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        let keys = match self.is_searching {
            true => "type to search · Enter choose · Esc close",
            false => "Enter or 1-9 choose · s this session only · ←→ effort · / search · Esc close",
        };
        let mut view = PanelView::new("Model", keys);
        if self.is_searching {
            view.push_field("Search: ", self.list.field());
        }
        view.head.extend(self.effort_row());
        if let Some(text) = self.warning().or_else(|| self.problem.clone()) {
            view.head.extend(paragraph("", &text, warning(), size.width));
        }
        let room = view.room(size);
        let models = self.models.as_deref().unwrap_or_default();
        let widths = models.iter().map(title).map(|(name, state)| cells(&name) + cells(state));
        let column = widths.filter(|width| *width <= size.width / 3).max().map_or(0, usize::from);
        view.body = self.list.rows(room, |place| {
            let mut row = models.get(place).map_or_else(Row::default, |row| model_row(row, column));
            // Whoever listens hears numbers before each row of a list.
            if !self.is_searching && !ctx.is_screen_reader {
                row.spans.insert(0, Span::styled(format!("{}. ", place + 1), faint()));
            }
            row
        });
        if self.models.is_none() && self.problem.is_none() {
            view.body = vec![line("Reading…", faint())];
        }
        view
    }

    fn is_typing(&self) -> bool {
        self.is_searching
    }

    fn contexts(&self) -> &'static [Context] {
        // In a field the arrows move the caret.
        match self.is_searching {
            true => &[Context::Select, Context::Global],
            false => &[Context::ModelPicker, Context::Select, Context::Global],
        }
    }
}

/// What a model is called, and how it stands.
fn title(row: &ModelRow) -> (String, &'static str) {
    let state = match (row.is_current, row.is_available) {
        (true, _) => " (now)",
        (false, true) => "",
        (false, false) => " (not available)",
    };
    (sanitize_line(&row.name), state)
}

fn model_row(row: &ModelRow, width: usize) -> Row {
    let (name, state) = title(row);
    let n_blanks = width.saturating_sub(usize::from(cells(&name) + cells(state)));
    let id = if row.id == row.name { String::new() } else { format!("  {}", sanitize_line(&row.id)) };
    Row::new(vec![
        Span::styled(name, code()),
        Span::plain(format!("{state}{}", " ".repeat(n_blanks))),
        Span::plain(id),
        Span::styled(format!("  {}", row.facts()), faint()),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;

    fn row(name: &str, is_current: bool, is_available: bool) -> ModelRow {
        let id = format!("claude-{name}\u{1b}");
        ModelRow {
            name: name.into(),
            id,
            window: 200_000,
            price: Some((3.0, 15.0)),
            is_current,
            is_available,
            ..ModelRow::default()
        }
    }

    fn shown(is_warm: bool, width: u16, height: u16) -> Shown<ModelPanel> {
        let mut shown = Shown::new(ModelPanel::default(), width, height);
        let mut session = SessionSnapshot::clone(&snapshot());
        (session.is_cache_warm, session.has_messages) = (is_warm, true);
        let actions = shown.receive(PanelData::Snapshot(Arc::new(session)));
        assert!(matches!(&actions[..], [Action::Effect(Effect::AskPanel(PanelRequest::Models { .. }))]));
        shown.receive(PanelData::Models(vec![
            row("opus", true, true),
            row("sonnet", false, true),
            row("haiku", false, false),
        ]));
        shown
    }

    #[test]
    fn picker_begins_at_the_model_in_use_and_takes_its_numbers() {
        let mut shown = Shown::new(ModelPanel::default(), 60, 12);
        shown.receive(PanelData::Snapshot(snapshot()));
        let rows = vec![row("opus", false, true), row("sonnet", true, true), row("haiku", false, true)];
        shown.receive(PanelData::Models(rows));
        assert!(shown.text().contains("❯ 2. sonnet (now)"), "{}", shown.text());
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Close, "nothing is changed");
        let chosen = Action::Ui(UiAction::RunInSession("/model haiku".to_owned()));
        assert_eq!(shown.key(KeyCode::Char('3'), None), PanelStep::CloseWith(vec![chosen]));
        shown.key(KeyCode::Char('/'), None);
        assert_eq!(shown.key(KeyCode::Char('3'), None), PanelStep::Stay, "it is looked for");
    }

    #[test]
    fn model_is_chosen_at_once_while_the_cache_is_cold() {
        for (width, height) in [(20, 5), (60, 10), (100, 20)] {
            let mut shown = shown(false, width, height);
            shown.assert_clean();
            assert!(shown.text().contains("opus (now)"), "{}", shown.text());
            shown.action(KeyAction::SelectNext);
            let submit = Action::Ui(UiAction::RunInSession("/model sonnet".to_owned()));
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
        let submit = Action::Ui(UiAction::RunInSession("/model sonnet".to_owned()));
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::CloseWith(vec![submit]));
    }

    #[test]
    fn model_that_was_named_waits_for_a_word_while_the_cache_is_warm() {
        let run = |name: &str| Action::Ui(UiAction::RunInSession(format!("/model {name}")));
        for (name, expected) in [
            ("Sonnet", None),
            ("some-model", None),
            ("opus", Some(vec![Action::Ui(UiAction::ClosePanel), run("opus")])),
            ("haiku", Some(vec![Action::Ui(UiAction::ClosePanel), run("haiku")])),
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

    /// A session with a model that takes an effort, and one that does not.
    fn with_efforts() -> Shown<ModelPanel> {
        let mut shown = Shown::new(ModelPanel::default(), 120, 12);
        let mut session = SessionSnapshot::clone(&snapshot());
        (session.model, session.effort) = ("claude-opus-4-8".to_owned(), Some("medium".to_owned()));
        shown.receive(PanelData::Snapshot(Arc::new(session)));
        let named = |name: &str, id: &str, is_current: bool| ModelRow {
            id: id.to_owned(),
            ..row(name, is_current, true)
        };
        shown.receive(PanelData::Models(vec![
            named("opus", "claude-opus-4-8", true),
            named("haiku", "claude-haiku-4-5", false),
        ]));
        shown
    }

    #[test]
    fn left_and_right_choose_the_effort_of_a_model_that_takes_one() {
        let mut shown = with_efforts();
        assert!(shown.text().contains("Effort: ← medium →"), "{}", shown.text());
        shown.action(KeyAction::ModelPickerIncreaseEffort);
        assert!(shown.text().contains("Effort: ← high →"), "{}", shown.text());
        let effort = Action::Ui(UiAction::RunInSession("/effort high".to_owned()));
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::CloseWith(vec![effort]));

        let mut shown = with_efforts();
        for _ in 0..9 {
            shown.action(KeyAction::ModelPickerDecreaseEffort);
        }
        assert!(shown.text().contains("Effort: ← low →"), "{}", shown.text());
        shown.action(KeyAction::SelectNext);
        assert!(!shown.text().contains("Effort"), "{}", shown.text());
        let model = Action::Ui(UiAction::RunInSession("/model haiku".to_owned()));
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::CloseWith(vec![model]));
    }

    #[test]
    fn model_is_chosen_for_this_session_only() {
        let send = |name: &str| {
            let (request, model) = (Some(SESSION_MODEL_REQUEST.to_owned()), Some(name.to_owned()));
            PanelStep::CloseWith(vec![Action::Effect(Effect::Send(Command::SetModel { request, model }))])
        };
        let mut shown = with_efforts();
        shown.action(KeyAction::SelectNext);
        assert_eq!(shown.action(KeyAction::ModelPickerThisSessionOnly), send("haiku"));
        let mut shown = self::shown(true, 120, 12);
        shown.action(KeyAction::SelectNext);
        assert_eq!(shown.action(KeyAction::ModelPickerThisSessionOnly), PanelStep::Stay);
        assert!(shown.text().contains("s again to switch"), "{}", shown.text());
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Stay, "Enter means something else");
        assert_eq!(shown.action(KeyAction::ModelPickerThisSessionOnly), PanelStep::Stay);
        assert_eq!(shown.action(KeyAction::ModelPickerThisSessionOnly), send("sonnet"));
    }

    #[test]
    fn letters_that_are_bound_to_nothing_and_a_slash_begin_a_search() {
        let mut shown = shown(false, 120, 12);
        assert!(!shown.panel.is_typing() && !shown.text().contains("Search"), "{}", shown.text());
        shown.type_text("/");
        assert!(shown.panel.is_typing() && shown.text().contains("Search:"), "{}", shown.text());
        shown.type_text("sonn");
        assert!(shown.text().contains("sonnet") && !shown.text().contains("opus"), "{}", shown.text());
        let mut shown = self::shown(false, 120, 12);
        shown.type_text("h");
        assert!(shown.text().contains("Search: h"), "{}", shown.text());
    }

    #[test]
    fn model_that_is_not_available_says_why() {
        let mut shown = shown(false, 120, 12);
        shown.action(KeyAction::SelectPrevious);
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Stay);
        assert!(shown.text().contains("availableModels"), "{}", shown.text());
    }
}
