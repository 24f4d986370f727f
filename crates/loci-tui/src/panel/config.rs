//! `/config`: the session's status, the settings with where they come from and a way to change them, usage, statistics.

use std::sync::Arc;

use loci_app::commands::ReportTopic;
use loci_app::commands::config::SettingRow;
use loci_engine::SessionSnapshot;

use super::report::report_rows;
use super::{
    FilteredList, ListStep, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, Tabs,
    ask_snapshot,
};
use crate::app::{Action, Effect};
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::Context;
use crate::layout::{code, faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style, sanitize_line};

const TITLES: &[&str] = &["Status", "Config", "Usage", "Stats"];
/// The tab of the settings.
const CONFIG: usize = 1;
/// From this many rows on what is marked is explained below the list.
const ROOM_FOR_DETAILS: usize = 9;

/// Status, settings, usage and statistics.
#[derive(Debug)]
pub(crate) struct ConfigPanel {
    tabs: Tabs,
    session: Option<Arc<SessionSnapshot>>,
    /// What the tabs beside the settings say, once they are known.
    reports: Vec<(ReportTopic, String)>,
    settings: Option<Vec<SettingRow>>,
    list: FilteredList,
    /// The value that is being typed.
    editing: Option<TextField>,
    note: Option<String>,
    scroll: Scroll,
}

impl ConfigPanel {
    /// Shows the settings first.
    pub(crate) fn new() -> Self {
        Self {
            tabs: Tabs::at(TITLES, CONFIG),
            session: None,
            reports: Vec::new(),
            settings: None,
            list: FilteredList::default(),
            editing: None,
            note: None,
            scroll: Scroll::default(),
        }
    }

    /// Returns what is asked for when it is opened.
    pub(crate) fn begin() -> Vec<Action> {
        vec![Action::Effect(Effect::AskPanel(PanelRequest::Settings)), ask_snapshot()]
    }

    fn topic(&self) -> Option<ReportTopic> {
        match self.tabs.shown() {
            0 => Some(ReportTopic::Status),
            2 => Some(ReportTopic::Usage),
            3 => Some(ReportTopic::Stats),
            _ => None,
        }
    }

    /// Asks for what the tab that is shown says, unless that is known.
    fn ask_report(&self) -> Vec<Action> {
        let (Some(topic), Some(session)) = (self.topic(), &self.session) else { return Vec::new() };
        match self.reports.iter().any(|(known, _)| *known == topic) {
            true => Vec::new(),
            false => vec![Action::Effect(Effect::AskPanel(PanelRequest::Report {
                topic,
                snapshot: Arc::clone(session),
            }))],
        }
    }

    fn marked(&self) -> Option<&SettingRow> {
        self.settings.as_ref()?.get(self.list.marked()?)
    }

    fn refilter(&mut self) {
        let rows = self.settings.as_deref().unwrap_or_default();
        let texts: Vec<String> =
            rows.iter().map(|row| format!("{} {}", row.explained.key, row.explained.about)).collect();
        self.list.refilter(texts.iter().map(String::as_str));
    }

    /// Takes the next value of a setting that has a few, or lets one be typed.
    fn change(&mut self) -> PanelStep {
        let Some(row) = self.marked() else { return PanelStep::Stay };
        if let Some(why) = &row.refusal {
            self.note = Some(why.clone());
            return PanelStep::Stay;
        }
        let key = row.explained.key.to_owned();
        match row.next_choice() {
            Some(value) => PanelStep::Act(change_action(key, value.to_owned())),
            None => {
                let mut field = TextField::default();
                field.insert(&row.typed_value());
                self.editing = Some(field);
                PanelStep::Stay
            }
        }
    }

    fn handle_editing(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let Some(field) = &mut self.editing else { return PanelStep::Stay };
        match event {
            _ if ctx.is_cancel() => self.editing = None,
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let value = field.text().trim().to_owned();
                self.editing = None;
                let Some(row) = self.marked() else { return PanelStep::Stay };
                return PanelStep::Act(change_action(row.explained.key.to_owned(), value));
            }
            InputEvent::Key(key) => drop(field.handle(*key)),
            InputEvent::Paste(text) => field.insert(text),
            _ => {}
        }
        PanelStep::Stay
    }

    fn settings_view(&self, view: &mut PanelView, size: Size) {
        match &self.editing {
            Some(field) => {
                let key = self.marked().map_or("", |row| row.explained.key);
                view.push_field(&format!("{key} = "), field);
            }
            None => view.push_field("Search: ", self.list.field()),
        }
        view.head.extend(self.note.iter().flat_map(|text| paragraph("", text, warning(), size.width)));
        let room = view.room(size);
        let details = match self.marked().filter(|_| room >= ROOM_FOR_DETAILS) {
            Some(row) => details(row, size.width),
            None => Vec::new(),
        };
        let n_details = details.len().min(room / 2);
        let rows = self.settings.as_deref().unwrap_or_default();
        view.body =
            self.list.rows(room - n_details, |place| rows.get(place).map_or_else(Row::default, setting_row));
        if self.list.len() == 0 {
            let text = if self.settings.is_some() { "Nothing fits" } else { "Reading…" };
            view.body = vec![line(text, faint())];
        }
        view.body.extend(details.into_iter().take(n_details));
    }
}

impl Panel for ConfigPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if self.editing.is_some() {
            return self.handle_editing(event, ctx);
        }
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        if self.tabs.handle(ctx.action) {
            self.scroll = Scroll::default();
            return PanelStep::Act(self.ask_report());
        }
        if self.tabs.shown() != CONFIG {
            self.scroll.handle(event);
            return PanelStep::Stay;
        }
        let is_space = matches!(event, InputEvent::Key(key) if key.code == KeyCode::Char(' '));
        if is_space && self.list.field().text().is_empty() {
            return self.change();
        }
        match self.list.handle(event, ctx) {
            ListStep::Chosen(_) => return self.change(),
            ListStep::Filtered => self.refilter(),
            ListStep::Moved | ListStep::Unknown => {}
        }
        self.note = None;
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(session) => {
                self.session = Some(session);
                return self.ask_report();
            }
            PanelData::Report { topic, markdown } => self.reports.push((topic, markdown)),
            PanelData::Settings { rows, note, .. } => {
                let is_first = self.settings.is_none();
                if is_first {
                    self.list = FilteredList::new(rows.len());
                }
                self.settings = Some(rows);
                if !is_first {
                    self.refilter();
                }
                self.note = note;
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        let hint = match (self.tabs.shown(), &self.editing) {
            (CONFIG, Some(_)) => "Enter save, empty removes it · Esc back",
            (CONFIG, None) => "type to search · Enter change · Tab next tab · Esc close",
            _ => "↑↓ scroll · Tab next tab · Esc close",
        };
        let mut view = PanelView::new("Settings", hint);
        view.head.push(self.tabs.row(size.width));
        match self.topic() {
            None => self.settings_view(&mut view, size),
            Some(topic) => {
                let report = self.reports.iter().rev().find(|(known, _)| *known == topic);
                let rows = report_rows(report.map(|(_, text)| text.as_str()), ctx);
                let room = view.room(size);
                view.body = self.scroll.rows(rows, room);
            }
        }
        view
    }

    fn contexts(&self) -> &'static [Context] {
        match self.editing {
            // Arrows move within the field.
            Some(_) => &[Context::Settings, Context::Select, Context::Global],
            None => &[Context::Settings, Context::Tabs, Context::Select, Context::Global],
        }
    }

    fn is_typing(&self) -> bool {
        self.tabs.shown() == CONFIG
    }
}

fn change_action(key: String, value: String) -> Vec<Action> {
    vec![Action::Effect(Effect::AskPanel(PanelRequest::ChangeSetting { key, value }))]
}

fn setting_row(row: &SettingRow) -> Row {
    let is_set = row.explained.value.is_some();
    Row::new(vec![
        Span::plain(row.explained.key),
        Span::styled(
            format!("  {}", sanitize_line(&row.display_value())),
            if is_set { code() } else { faint() },
        ),
        Span::styled(if row.refusal.is_some() { "  (managed)" } else { "" }, faint()),
    ])
}

/// Says what a setting is, where its value comes from and why, and where a change goes.
fn details(row: &SettingRow, width: u16) -> Vec<Row> {
    let mut rows = vec![Row::default()];
    for text in row.details() {
        rows.extend(paragraph("", &text, Style { is_dim: true, ..Style::default() }, width));
    }
    rows
}

#[cfg(test)]
mod tests {
    use loci_app::settings::editor::SettingsContext;
    use loci_stdx::Env;

    use super::super::testing::{Shown, snapshot};
    use super::*;
    use crate::keymap::Action as KeyAction;

    fn rows() -> Vec<SettingRow> {
        let dir = tempfile::tempdir().unwrap();
        let (home, project) = (dir.path().join("home"), dir.path().join("project"));
        std::fs::create_dir_all(home.join(".claude")).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        let text = r#"{"alwaysThinkingEnabled": true, "model": "son\u001bnet"}"#;
        std::fs::write(home.join(".claude/settings.json"), text).unwrap();
        loci_app::commands::config::rows(&SettingsContext::new(&Env::for_test(home, project)))
    }

    fn shown(width: u16, height: u16) -> Shown<ConfigPanel> {
        let mut shown = Shown::new(ConfigPanel::new(), width, height);
        assert!(height < 6 || shown.text().contains("Reading…"), "{}", shown.text());
        shown.receive(PanelData::Settings { rows: rows(), note: None, interface: Box::default() });
        shown
    }

    #[test]
    fn setting_is_found_toggled_and_explained() {
        for (width, height) in [(20, 5), (60, 16), (120, 30)] {
            let mut shown = shown(width, height);
            shown.type_text("alwaysThink");
            shown.assert_clean();
            let text = shown.text();
            assert!(text.contains("alwaysThinking"), "{text}");
            if height >= 30 {
                assert!(text.contains("settings.json:1") && text.contains("wins"), "{text}");
            }
            let change =
                PanelRequest::ChangeSetting { key: "alwaysThinkingEnabled".into(), value: "false".into() };
            assert_eq!(
                shown.action(KeyAction::SelectAccept),
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(change))])
            );
            shown.receive(PanelData::Settings {
                rows: rows(),
                note: Some("Set it".into()),
                interface: Box::default(),
            });
            shown.assert_clean();
        }
    }

    #[test]
    fn space_changes_the_marked_setting_and_is_a_blank_in_a_search() {
        let mut shown = shown(100, 30);
        let key = shown.panel.marked().map(|row| row.explained.key).unwrap();
        let step = shown.key(KeyCode::Char(' '), None);
        assert!(step != PanelStep::Stay || shown.text().contains(&format!("{key} = ")), "{}", shown.text());
        shown.action(KeyAction::SelectCancel);
        shown.type_text("model to");
        assert!(shown.text().contains("Search: model to"), "{}", shown.text());
    }

    #[test]
    fn text_value_is_typed_and_an_empty_one_removes_it() {
        let mut shown = shown(100, 30);
        shown.type_text("model to start");
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Stay);
        assert!(shown.text().contains("model = son"), "{}", shown.text());
        for _ in 0..20 {
            shown.key(KeyCode::Backspace, None);
        }
        let change = PanelRequest::ChangeSetting { key: "model".into(), value: String::new() };
        assert_eq!(
            shown.key(KeyCode::Enter, None),
            PanelStep::Act(vec![Action::Effect(Effect::AskPanel(change))])
        );
        assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
    }

    #[test]
    fn tabs_ask_for_their_reports_once() {
        let mut shown = shown(80, 24);
        let session = snapshot();
        assert_eq!(shown.receive(PanelData::Snapshot(session.clone())), []);
        let ask = PanelRequest::Report { topic: ReportTopic::Usage, snapshot: session };
        assert_eq!(
            shown.action(KeyAction::TabsNext),
            PanelStep::Act(vec![Action::Effect(Effect::AskPanel(ask))])
        );
        assert!(shown.text().contains("Reading…"), "{}", shown.text());
        shown.receive(PanelData::Report {
            topic: ReportTopic::Usage,
            markdown: "## Usage\n\nTotal cost".into(),
        });
        assert!(shown.text().contains("Total cost"), "{}", shown.text());
        shown.action(KeyAction::TabsPrevious);
        assert_eq!(shown.action(KeyAction::TabsNext), PanelStep::Act(Vec::new()), "it is known");
    }
}
