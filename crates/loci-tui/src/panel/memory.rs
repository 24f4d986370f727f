//! `/memory`: instruction files and memories, to be looked at and edited, and the review of those that wait for a word. What
//! was done to a memory last can be taken back.

use std::sync::Arc;

use loci_app::commands::memory::{
    InstructionFile, InstructionState, MemoryReport, MemoryRequest, MemoryRow, MemoryVerb,
};
use loci_engine::SessionSnapshot;

use super::{
    ListMark, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, Tabs, mark_row,
};
use crate::app::{Action, Effect};
use crate::block::FileDiff;
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{code, faint, line, paragraph, warning};
use crate::render::{RenderContext, render_diff};
use crate::screen::Size;
use crate::text::{Row, Span, Style, sanitize_line};

const TITLES: &[&str] = &["Files", "Memories", "Review"];
const MEMORIES: usize = 1;
const REVIEW: usize = 2;
/// The most letters of a memory that are shown.
const MOST_LETTERS: usize = 20_000;

/// Files, memories and proposals.
#[derive(Debug)]
pub(crate) struct MemoryPanel {
    tabs: Tabs,
    session: Option<Arc<SessionSnapshot>>,
    report: Option<MemoryReport>,
    mark: ListMark,
    /// Whether the text of what is marked is shown.
    is_open: bool,
    scroll: Scroll,
    note: Option<String>,
    /// The memory that `x` would forget when it is pressed again.
    armed: Option<String>,
    /// What is to be remembered, while it is typed.
    adding: Option<TextField>,
    /// The change that was made last, by which it can be taken back.
    change: Option<u64>,
}

impl MemoryPanel {
    /// Shows the files first.
    pub(crate) fn new() -> Self {
        Self {
            tabs: Tabs::new(TITLES),
            session: None,
            report: None,
            mark: ListMark::default(),
            is_open: false,
            scroll: Scroll::default(),
            note: None,
            armed: None,
            adding: None,
            change: None,
        }
    }

    fn rows(&self) -> &[MemoryRow] {
        let Some(report) = &self.report else { return &[] };
        match self.tabs.shown() {
            MEMORIES => &report.memories,
            REVIEW => &report.proposals,
            _ => &[],
        }
    }

    fn len(&self) -> usize {
        match self.tabs.shown() {
            0 => self.report.as_ref().map_or(0, |report| report.files.len()),
            _ => self.rows().len(),
        }
    }

    /// Tells whether the file that is marked does not exist.
    fn is_missing_marked(&self) -> bool {
        let file = self.report.as_ref().and_then(|report| report.files.get(self.mark.at));
        file.is_some_and(|file| file.state == InstructionState::Missing)
    }

    fn ask(&self, wish: MemoryRequest) -> PanelStep {
        let Some(snapshot) = self.session.clone() else { return PanelStep::Stay };
        PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::ChangeMemory { wish, snapshot }))])
    }

    fn decide(&mut self, key: KeyCode) -> PanelStep {
        let file = self.rows().get(self.mark.at).map(|row| row.file.clone());
        let armed = self.armed.take();
        let decide = |verb, file| MemoryRequest::Decide(verb, file);
        match (key, self.tabs.shown(), file) {
            (KeyCode::Char('a'), REVIEW, Some(file)) => self.ask(decide(MemoryVerb::Accept, file)),
            (KeyCode::Char('x'), REVIEW, Some(file)) => self.ask(decide(MemoryVerb::Reject, file)),
            (KeyCode::Char('x'), MEMORIES, Some(file)) if armed.as_ref() == Some(&file) => {
                self.ask(decide(MemoryVerb::Forget, file))
            }
            (KeyCode::Char('x'), MEMORIES, Some(file)) => {
                self.note = Some(format!("Press x again to forget {file}"));
                self.armed = Some(file);
                PanelStep::Stay
            }
            (KeyCode::Char('e'), MEMORIES, Some(_)) => self.edit(),
            (KeyCode::Char('n'), MEMORIES, _) => {
                self.adding = Some(TextField::default());
                PanelStep::Stay
            }
            (KeyCode::Char('u'), ..) => match self.change.take() {
                Some(change) => self.ask(MemoryRequest::Undo(change)),
                None => PanelStep::Stay,
            },
            (KeyCode::Char('o'), ..) => {
                let (Some(report), Some(snapshot)) = (&self.report, self.session.clone()) else {
                    return PanelStep::Stay;
                };
                let is_on = !report.is_on;
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::SwitchMemory {
                    is_on,
                    snapshot,
                }))])
            }
            _ => PanelStep::Stay,
        }
    }

    /// Opens what is marked in the person's editor.
    fn edit(&self) -> PanelStep {
        if self.tabs.shown() == 0 {
            let file = self.report.as_ref().and_then(|report| report.files.get(self.mark.at));
            let edit = |file: &InstructionFile| {
                PanelStep::Act(vec![Action::Effect(Effect::EditFile(file.path.clone()))])
            };
            return file.map_or(PanelStep::Stay, edit);
        }
        let edit = |row: &MemoryRow| {
            let (name, text) = (row.file.clone(), row.text.clone());
            PanelStep::Act(vec![Action::Effect(Effect::EditText { name, text })])
        };
        self.rows().get(self.mark.at).map_or(PanelStep::Stay, edit)
    }

    /// Keeps what came back from the editor, where it is another text.
    fn take_edited(&mut self, name: String, text: Result<String, String>) -> Vec<Action> {
        let before = self.rows().iter().find(|row| row.file == name).map(|row| row.text.trim_end());
        match text {
            Err(why) => self.note = Some(why),
            Ok(text) if before == Some(text.trim_end()) => self.note = Some("Nothing was changed".to_owned()),
            Ok(text) => {
                if let PanelStep::Act(actions) = self.ask(MemoryRequest::Edit { file: name, text }) {
                    return actions;
                }
            }
        }
        Vec::new()
    }

    fn handle_adding(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let Some(field) = &mut self.adding else { return PanelStep::Stay };
        match event {
            _ if ctx.is_cancel() => self.adding = None,
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let text = field.text().trim().to_owned();
                self.adding = None;
                if !text.is_empty() {
                    return self.ask(MemoryRequest::Add(text));
                }
            }
            InputEvent::Key(key) => drop(field.handle(*key)),
            InputEvent::Paste(text) => field.insert(text),
            _ => {}
        }
        PanelStep::Stay
    }

    fn row(&self, idx: usize) -> Row {
        if self.tabs.shown() == 0 {
            let file = self.report.as_ref().and_then(|report| report.files.get(idx));
            return file.map_or_else(Row::default, |file| {
                let state = file.state.remark();
                Row::new(vec![
                    Span::styled(sanitize_line(&file.shown), code()),
                    Span::styled(format!("  {}{state}", file.whose), faint()),
                ])
            });
        }
        self.rows().get(idx).map_or_else(Row::default, |row| {
            let what = match (&row.replaces, self.tabs.shown()) {
                (Some(_), _) => "  changes a memory",
                (None, REVIEW) => "  new",
                (None, _) => "",
            };
            Row::new(vec![
                Span::plain(sanitize_line(&row.file)),
                Span::styled(format!("  {}{what}  ", row.kind), faint()),
                Span::plain(sanitize_line(&row.description)),
            ])
        })
    }

    fn open_view(&self, row: &MemoryRow, ctx: &RenderContext, size: Size) -> PanelView {
        let hint = match self.tabs.shown() {
            REVIEW => "↑↓ scroll · a accept · x reject · Esc back",
            _ => "↑↓ scroll · e edit · x forget · Esc back",
        };
        let mut view = PanelView::new(&row.file, hint);
        view.head.extend(self.note.iter().flat_map(|text| paragraph("", text, warning(), size.width)));
        let shown = |text: &str| loci_stdx::truncate_chars(text, MOST_LETTERS).to_owned();
        let rows = match &row.replaces {
            Some(before) => {
                let (before, after) = (shown(before), shown(&row.text));
                render_diff(&FileDiff { path: row.file.clone(), before, after, first_line: 1 }, ctx)
            }
            None => paragraph("", &shown(&row.text), Style::default(), size.width),
        };
        let room = view.room(size);
        view.body = self.scroll.rows(rows, room);
        view
    }
}

impl Panel for MemoryPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if self.adding.is_some() {
            return self.handle_adding(event, ctx);
        }
        if ctx.is_cancel() {
            return match std::mem::take(&mut self.is_open) {
                true => PanelStep::Stay,
                false => PanelStep::Close,
            };
        }
        if self.is_open && self.scroll.handle(event) {
            return PanelStep::Stay;
        }
        self.note = None;
        if !self.is_open && self.tabs.handle(ctx.action) {
            (self.mark.at, self.armed) = (0, None);
            return PanelStep::Stay;
        }
        match ctx.action {
            _ if self.mark.handle_event(self.len(), event, ctx.action) => {}
            Some(KeyAction::SelectAccept) if self.tabs.shown() == 0 => return self.edit(),
            Some(KeyAction::SelectAccept) => {
                self.is_open = self.rows().get(self.mark.at).is_some();
                self.scroll = Scroll::default();
            }
            _ => {
                if let InputEvent::Key(key) = event {
                    return self.decide(key.code);
                }
            }
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => {
                self.session = Some(Arc::clone(&snapshot));
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::Memory { snapshot }))];
            }
            PanelData::Memory { report, note, change } => {
                self.report = Some(report);
                self.mark.at = self.mark.at.min(self.len().saturating_sub(1));
                if note.is_some() {
                    self.is_open = false;
                }
                let undo = if change.is_some() { " · u takes it back" } else { "" };
                self.note = note.map(|text| format!("{text}{undo}"));
                self.change = change;
            }
            PanelData::EditedText { name, text } => return self.take_edited(name, text),
            PanelData::EditedFile(problem) => {
                self.note = problem;
                let snapshot = self.session.clone();
                return snapshot
                    .map(|snapshot| Action::Effect(Effect::AskPanel(PanelRequest::Memory { snapshot })))
                    .into_iter()
                    .collect();
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(row) = self.rows().get(self.mark.at).filter(|_| self.is_open) {
            return self.open_view(row, ctx, size);
        }
        let state = match &self.report {
            Some(report) if report.is_on => format!(" · kept in {}", report.dir),
            Some(_) => " · memories are off".to_owned(),
            None => String::new(),
        };
        let hint = match self.tabs.shown() {
            REVIEW => "Enter look · a accept · x reject · Tab next tab · Esc close",
            MEMORIES => "Enter look · e edit · n new · x forget · o on or off · Tab next tab · Esc close",
            _ if self.is_missing_marked() => {
                "Enter make it and edit · o memories on or off · Tab next tab · Esc close"
            }
            _ => "Enter edit · o memories on or off · Tab next tab · Esc close",
        };
        let mut view = PanelView::new(&format!("Memory{state}"), hint);
        view.head.push(self.tabs.row(size.width));
        if let Some(field) = &self.adding {
            view.push_field("Remember: ", field);
            view.hint = Some(line("Enter keep it · Esc back", faint()));
        }
        view.head.extend(self.note.iter().flat_map(|text| paragraph("", text, warning(), size.width)));
        let room = view.room(size);
        view.body = self.mark.rows(self.len(), room, |idx, is_marked| mark_row(self.row(idx), is_marked));
        if self.len() == 0 {
            let text = match (&self.report, self.tabs.shown()) {
                (None, _) => "Reading…",
                (Some(_), REVIEW) => "Nothing waits for your word",
                (Some(_), _) => "None",
            };
            view.body = vec![line(text, faint())];
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
    use super::super::testing::{Shown, snapshot};
    use super::*;

    fn row(file: &str, replaces: Option<&str>) -> MemoryRow {
        MemoryRow {
            file: file.into(),
            kind: "project",
            description: "about\u{1b}[2J 日本".into(),
            text: "The port is 8080\n".into(),
            replaces: replaces.map(str::to_owned),
        }
    }

    fn report() -> MemoryReport {
        MemoryReport {
            files: vec![InstructionFile {
                path: "/h/.claude/CLAUDE.md".into(),
                shown: "~/.claude/CLAUDE.md".into(),
                whose: "user",
                state: InstructionState::Missing,
            }],
            is_on: true,
            dir: "~/m".into(),
            memories: vec![row("port.md", None)],
            proposals: vec![row("port.md", Some("The port is 80\n")), row("new.md", None)],
        }
    }

    fn shown(width: u16, height: u16) -> (Shown<MemoryPanel>, Arc<SessionSnapshot>) {
        let mut shown = Shown::new(MemoryPanel::new(), width, height);
        let session = snapshot();
        let ask = Action::Effect(Effect::AskPanel(PanelRequest::Memory { snapshot: session.clone() }));
        assert_eq!(shown.receive(PanelData::Snapshot(session.clone())), [ask]);
        shown.receive(PanelData::Memory { report: report(), note: None, change: None });
        (shown, session)
    }

    #[test]
    fn proposals_are_looked_at_and_decided_upon() {
        for (width, height) in [(20, 5), (60, 14), (110, 30)] {
            let (mut shown, session) = shown(width, height);
            assert!(shown.text().contains("CLAUDE"), "{}", shown.text());
            let text = shown.text();
            assert!(width < 100 || text.contains("does not exist yet") && text.contains("make it"), "{text}");
            shown.action(KeyAction::TabsPrevious);
            shown.assert_clean();
            shown.action(KeyAction::SelectAccept);
            shown.assert_clean();
            assert!(
                height < 14 || shown.text().contains("8080") && shown.text().contains("80"),
                "{}",
                shown.text()
            );
            let decide = |verb, file: &str| {
                let snapshot = session.clone();
                let wish = MemoryRequest::Decide(verb, file.into());
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::ChangeMemory {
                    wish,
                    snapshot,
                }))])
            };
            assert_eq!(shown.key(KeyCode::Char('a'), None), decide(MemoryVerb::Accept, "port.md"));
            let note = Some("It counts".into());
            shown.receive(PanelData::Memory { report: report(), note, change: Some(7) });
            let undo = PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::ChangeMemory {
                wish: MemoryRequest::Undo(7),
                snapshot: session.clone(),
            }))]);
            assert_eq!(shown.key(KeyCode::Char('u'), None), undo);
            assert_eq!(shown.key(KeyCode::Char('u'), None), PanelStep::Stay, "once");
            shown.action(KeyAction::SelectNext);
            assert_eq!(shown.key(KeyCode::Char('x'), None), decide(MemoryVerb::Reject, "new.md"));
        }
    }

    #[test]
    fn memory_is_forgotten_on_the_second_key() {
        let (mut shown, _) = shown(100, 20);
        shown.action(KeyAction::TabsNext);
        assert_eq!(shown.key(KeyCode::Char('x'), None), PanelStep::Stay);
        assert!(shown.text().contains("Press x again"), "{}", shown.text());
        assert!(matches!(shown.key(KeyCode::Char('x'), None), PanelStep::Act(_)));
    }

    #[test]
    fn files_and_memories_are_edited_and_added() {
        for (width, height) in [(20, 5), (60, 14), (110, 30)] {
            let (mut shown, session) = shown(width, height);
            let change = |wish| {
                vec![Action::Effect(Effect::AskPanel(PanelRequest::ChangeMemory {
                    wish,
                    snapshot: session.clone(),
                }))]
            };
            let edit = Action::Effect(Effect::EditFile("/h/.claude/CLAUDE.md".into()));
            assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Act(vec![edit]));
            assert!(matches!(
                &shown.receive(PanelData::EditedFile(None))[..],
                [Action::Effect(Effect::AskPanel(PanelRequest::Memory { .. }))]
            ));
            shown.action(KeyAction::TabsNext);
            let (name, text) = ("port.md".to_owned(), "The port is 8080\n".to_owned());
            let edit = Action::Effect(Effect::EditText { name: name.clone(), text: text.clone() });
            assert_eq!(shown.key(KeyCode::Char('e'), None), PanelStep::Act(vec![edit]));
            let edited = |text: Result<&str, &str>| PanelData::EditedText {
                name: name.clone(),
                text: text.map(str::to_owned).map_err(str::to_owned),
            };
            assert_eq!(shown.receive(edited(Ok("The port is 8080"))), [], "nothing was changed");
            let wish = MemoryRequest::Edit { file: name.clone(), text: "The port is 9\n".into() };
            assert_eq!(shown.receive(edited(Ok("The port is 9\n"))), change(wish));
            shown.receive(edited(Err("no editor")));
            assert!(shown.text().contains("no editor"), "{}", shown.text());
            shown.key(KeyCode::Char('n'), None);
            shown.type_text("never x 日本");
            shown.assert_clean();
            assert!(shown.text().contains("never x 日本") || width < 30, "{}", shown.text());
            let wish = MemoryRequest::Add("never x 日本".into());
            assert_eq!(shown.key(KeyCode::Enter, None), PanelStep::Act(change(wish)));
        }
    }
}
