//! `/permissions`: the rules by list, the directories, and what was denied; rules are added and removed.

use std::path::PathBuf;

use loci_app::commands::permissions::{PermissionReport, RuleRow, describe_rule};
use loci_core::permission::{Destination, RuleChange, RuleList, Update};
use loci_engine::{Command, DirectorySource};

use super::{ListMark, Panel, PanelContext, PanelData, PanelStep, PanelView, Tabs, ask_snapshot, mark_row};
use crate::app::{Action, Effect};
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{code, faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line};

const TITLES: &[&str] = &["Allow", "Ask", "Deny", "Workspace", "Recently denied"];
const WORKSPACE: usize = 3;
const DENIED: usize = 4;
/// Where a rule may be kept, the usual one first.
const DESTINATIONS: [(Destination, &str); 4] = [
    (Destination::Local, "for you, in this project"),
    (Destination::User, "for you, everywhere"),
    (Destination::Project, "for all who work on this project"),
    (Destination::Session, "for this session"),
];

/// Rules, directories and denials.
#[derive(Debug)]
pub(crate) struct PermissionsPanel {
    tabs: Tabs,
    report: Option<PermissionReport>,
    mark: ListMark,
    /// What is being added, and where it is to be kept.
    adding: Option<(TextField, usize)>,
    note: Option<String>,
}

impl PermissionsPanel {
    /// Shows the rules that allow first.
    pub(crate) fn new() -> Self {
        Self { tabs: Tabs::new(TITLES), report: None, mark: ListMark::default(), adding: None, note: None }
    }

    fn list(&self) -> RuleList {
        match self.tabs.shown() {
            1 => RuleList::Ask,
            2 => RuleList::Deny,
            _ => RuleList::Allow,
        }
    }

    fn rules(&self) -> Vec<&RuleRow> {
        let rules = self.report.iter().flat_map(|report| &report.rules);
        rules.filter(|rule| rule.list == self.list()).collect()
    }

    fn directories(&self) -> &[PathBuf] {
        self.report.as_ref().map_or(&[], |report| &report.directories)
    }

    fn denied(&self) -> &[(String, String)] {
        self.report.as_ref().map_or(&[], |report| &report.denied)
    }

    fn len(&self) -> usize {
        match self.tabs.shown() {
            WORKSPACE => self.directories().len(),
            DENIED => self.denied().len(),
            _ => self.rules().len(),
        }
    }

    fn add(&mut self) -> PanelStep {
        let Some((field, to)) = &self.adding else { return PanelStep::Stay };
        let text = field.text().trim().to_owned();
        if self.tabs.shown() == WORKSPACE {
            let command = Command::AddDirectory {
                request: "panel".to_owned(),
                directory: PathBuf::from(&text),
                source: DirectorySource::SlashCommand,
            };
            self.adding = None;
            return PanelStep::Act(vec![Action::Effect(Effect::Send(command)), ask_snapshot()]);
        }
        let (list, to) = (self.list(), DESTINATIONS[*to].0);
        match describe_rule(list, &text) {
            Ok(meaning) => {
                self.note = Some(format!("Added: {meaning}"));
                self.adding = None;
                let change = RuleChange { list, rules: vec![text], to };
                PanelStep::Act(vec![
                    Action::Effect(Effect::Send(Command::ChangePermission(Update::AddRules(change)))),
                    ask_snapshot(),
                ])
            }
            Err(why) => {
                self.note = Some(why);
                PanelStep::Stay
            }
        }
    }

    fn remove(&mut self) -> PanelStep {
        let update = match self.tabs.shown() {
            DENIED => return PanelStep::Stay,
            WORKSPACE => match self.directories().get(self.mark.at) {
                Some(_) if self.mark.at == 0 => {
                    self.note = Some("The session began here; this directory stays".to_owned());
                    return PanelStep::Stay;
                }
                Some(dir) => Update::RemoveDirectories(vec![dir.clone()], Destination::Session),
                None => return PanelStep::Stay,
            },
            _ => match self.rules().get(self.mark.at) {
                Some(RuleRow { text, list, destination: Some(to), .. }) => {
                    Update::RemoveRules(RuleChange { list: *list, rules: vec![text.clone()], to: *to })
                }
                Some(RuleRow { origin, .. }) => {
                    self.note = Some(format!("It comes from {origin} and cannot be removed here"));
                    return PanelStep::Stay;
                }
                None => return PanelStep::Stay,
            },
        };
        PanelStep::Act(vec![Action::Effect(Effect::Send(Command::ChangePermission(update))), ask_snapshot()])
    }

    /// Begins to add a rule that would let a denied call run.
    fn allow_denied(&mut self) {
        let Some((tool, what)) = self.denied().get(self.mark.at).cloned() else { return };
        let text = if what.starts_with('{') { tool } else { format!("{tool}({what})") };
        let mut field = TextField::default();
        field.insert(&text);
        self.tabs = Tabs::new(TITLES);
        (self.mark.at, self.adding) = (0, Some((field, 0)));
    }

    fn handle_adding(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let Some((field, to)) = &mut self.adding else { return PanelStep::Stay };
        match event {
            _ if ctx.is_cancel() => self.adding = None,
            InputEvent::Key(key) => match key.code {
                KeyCode::Enter => return self.add(),
                KeyCode::Tab => *to = (*to + 1) % DESTINATIONS.len(),
                _ => drop(field.handle(*key)),
            },
            InputEvent::Paste(text) => field.insert(text),
            _ => {}
        }
        PanelStep::Stay
    }

    fn row(&self, idx: usize) -> Row {
        match self.tabs.shown() {
            WORKSPACE => {
                let dir =
                    self.directories().get(idx).map(|dir| dir.display().to_string()).unwrap_or_default();
                line(&dir, code())
            }
            DENIED => self.denied().get(idx).map_or_else(Row::default, |(tool, what)| {
                Row::new(vec![
                    Span::plain(sanitize_line(&format!("{tool}  "))),
                    Span::styled(sanitize_line(what), code()),
                ])
            }),
            _ => self.rules().get(idx).map_or_else(Row::default, |rule| {
                Row::new(vec![
                    Span::styled(sanitize_line(&rule.text), code()),
                    Span::styled(sanitize_line(&format!("  {}", rule.origin)), faint()),
                ])
            }),
        }
    }

    /// Says what is being added, and what it would mean.
    fn adding_rows(&self, view: &mut PanelView) {
        let Some((field, to)) = &self.adding else { return };
        if self.tabs.shown() == WORKSPACE {
            return view.push_field("Directory: ", field);
        }
        view.push_field("Rule: ", field);
        let meaning = match describe_rule(self.list(), field.text()) {
            _ if field.text().trim().is_empty() => {
                "For example Bash(npm run *), Read(~/docs/**), WebFetch".to_owned()
            }
            Ok(meaning) => meaning,
            Err(why) => why,
        };
        view.head.push(line(&meaning, faint()));
        view.head.push(line(&format!("Kept {} (Tab changes that)", DESTINATIONS[*to].1), faint()));
    }
}

impl Panel for PermissionsPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if self.adding.is_some() {
            return self.handle_adding(event, ctx);
        }
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        self.note = None;
        if self.tabs.handle(ctx.action) {
            self.mark.at = 0;
            return PanelStep::Stay;
        }
        match ctx.action {
            _ if self.mark.handle_event(self.len(), event, ctx.action) => {}
            Some(KeyAction::SelectAccept) if self.tabs.shown() == DENIED => self.allow_denied(),
            _ => {
                let InputEvent::Key(key) = event else { return PanelStep::Stay };
                match key.code {
                    KeyCode::Char('a') if self.tabs.shown() != DENIED => {
                        self.adding = Some((TextField::default(), 0));
                    }
                    KeyCode::Char('x' | 'd') | KeyCode::Delete => return self.remove(),
                    _ => {}
                }
            }
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(session) => {
                self.report = Some(PermissionReport::new(&session));
                self.mark.at = self.mark.at.min(self.len().saturating_sub(1));
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let hint = match (&self.adding, self.tabs.shown()) {
            (Some(_), _) => "Enter add · Esc back",
            (None, DENIED) => "Enter make a rule of it · Tab next tab · Esc close",
            (None, _) => "a add · x remove · Tab next tab · Esc close",
        };
        let mode = self.report.as_ref().map(|report| format!(" · mode {}", report.mode)).unwrap_or_default();
        let mut view = PanelView::new(&format!("Permissions{mode}"), hint);
        view.head.push(self.tabs.row(size.width));
        self.adding_rows(&mut view);
        view.head.extend(self.note.iter().flat_map(|text| paragraph("", text, warning(), size.width)));
        let room = view.room(size);
        view.body = self.mark.rows(self.len(), room, |idx, is_marked| mark_row(self.row(idx), is_marked));
        if self.len() == 0 {
            view.body = vec![line(if self.report.is_some() { "None" } else { "Reading…" }, faint())];
        }
        view
    }

    fn contexts(&self) -> &'static [Context] {
        match self.adding {
            Some(_) => &[Context::Select, Context::Global],
            None => &[Context::Tabs, Context::Select, Context::Global],
        }
    }

    fn is_typing(&self) -> bool {
        self.adding.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loci_core::app_state::Denial;
    use loci_core::permission::{RuleOrigin, RuleSource};
    use loci_engine::SessionSnapshot;
    use serde_json::json;

    use super::super::testing::{Shown, snapshot};
    use super::*;

    fn session() -> Arc<SessionSnapshot> {
        let mut it = SessionSnapshot::clone(&snapshot());
        let book = &mut it.rulebook;
        book.dirs = vec!["/p".into(), "/other".into()];
        assert!(
            book.add(RuleList::Allow, "Bash(ls *)", &RuleOrigin::new(RuleSource::Session, "/p")).is_none()
        );
        assert!(
            book.add(RuleList::Deny, "WebFetch", &RuleOrigin::new(RuleSource::CommandLine, "/p")).is_none()
        );
        let denial = |command: &str| Denial {
            tool_name: "Bash".into(),
            tool_use_id: "t".into(),
            tool_input: json!({"command": command}),
        };
        it.recent_denials = vec![denial("rm -rf x\u{1b}[2J"), denial("make")];
        Arc::new(it)
    }

    fn shown(width: u16, height: u16) -> Shown<PermissionsPanel> {
        let mut shown = Shown::new(PermissionsPanel::new(), width, height);
        assert!(shown.text().contains("Reading…"), "{}", shown.text());
        shown.receive(PanelData::Snapshot(session()));
        shown
    }

    #[test]
    fn rules_are_listed_added_and_removed() {
        for (width, height) in [(20, 5), (60, 12), (120, 24)] {
            let mut shown = shown(width, height);
            shown.assert_clean();
            assert!(shown.text().contains("Bash(ls *)"), "{}", shown.text());
            let removed = RuleChange {
                list: RuleList::Allow,
                rules: vec!["Bash(ls *)".into()],
                to: Destination::Session,
            };
            let remove =
                Action::Effect(Effect::Send(Command::ChangePermission(Update::RemoveRules(removed))));
            assert_eq!(shown.key(KeyCode::Char('x'), None), PanelStep::Act(vec![remove, ask_snapshot()]));
            shown.key(KeyCode::Char('a'), None);
            shown.type_text("Bash(npm test)");
            if height > 10 {
                assert!(
                    shown.text().contains("runs without asking"),
                    "what it would allow: {}",
                    shown.text()
                );
            }
            shown.key(KeyCode::Tab, None);
            let added = RuleChange {
                list: RuleList::Allow,
                rules: vec!["Bash(npm test)".into()],
                to: Destination::User,
            };
            let add = Action::Effect(Effect::Send(Command::ChangePermission(Update::AddRules(added))));
            assert_eq!(shown.key(KeyCode::Enter, None), PanelStep::Act(vec![add, ask_snapshot()]));
        }
    }

    #[test]
    fn rule_that_was_saved_a_moment_ago_is_removed_from_its_file() {
        let mut shown = shown(100, 16);
        let mut saved = SessionSnapshot::clone(&session());
        let origin = RuleOrigin::new(Destination::Local.scope().map(RuleSource::Saved).unwrap(), "/p");
        saved.rulebook.allow.clear();
        assert!(saved.rulebook.add(RuleList::Allow, "Bash(ls *)", &origin).is_none());
        shown.receive(PanelData::Snapshot(Arc::new(saved)));
        assert!(shown.text().contains("Bash(ls *)  local settings"), "{}", shown.text());
        let removed =
            RuleChange { list: RuleList::Allow, rules: vec!["Bash(ls *)".into()], to: Destination::Local };
        let remove = Action::Effect(Effect::Send(Command::ChangePermission(Update::RemoveRules(removed))));
        assert_eq!(shown.key(KeyCode::Char('x'), None), PanelStep::Act(vec![remove, ask_snapshot()]));
    }

    #[test]
    fn rule_of_the_command_line_stays_and_says_why() {
        let mut shown = shown(100, 16);
        shown.action(KeyAction::TabsNext);
        shown.action(KeyAction::TabsNext);
        assert!(shown.text().contains("WebFetch"), "{}", shown.text());
        assert_eq!(shown.key(KeyCode::Char('x'), None), PanelStep::Stay);
        assert!(shown.text().contains("cannot be removed here"), "{}", shown.text());
    }

    #[test]
    fn denied_call_becomes_a_rule_to_add_and_directories_are_added() {
        let mut shown = shown(100, 16);
        shown.action(KeyAction::TabsPrevious);
        shown.assert_clean();
        assert!(shown.text().contains("make"), "the newest first: {}", shown.text());
        shown.action(KeyAction::SelectAccept);
        assert!(shown.text().contains("Rule: Bash(make)"), "{}", shown.text());
        assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay);
        for _ in 0..WORKSPACE {
            shown.action(KeyAction::TabsNext);
        }
        assert!(shown.text().contains("/other"), "{}", shown.text());
        assert_eq!(shown.key(KeyCode::Char('x'), None), PanelStep::Stay, "the first stays");
        shown.key(KeyCode::Char('a'), None);
        shown.type_text("/more");
        let add = Command::AddDirectory {
            request: "panel".into(),
            directory: "/more".into(),
            source: DirectorySource::SlashCommand,
        };
        assert_eq!(
            shown.key(KeyCode::Enter, None),
            PanelStep::Act(vec![Action::Effect(Effect::Send(add)), ask_snapshot()])
        );
    }
}
