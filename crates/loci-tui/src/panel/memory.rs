//! `/memory`: the files in force, the memories, and the review of those that wait for a word.

use std::sync::Arc;

use loci_app::commands::memory::{MemoryReport, MemoryRow, MemoryVerb};
use loci_engine::SessionSnapshot;

use super::{
    Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, Tabs, list_rows, mark_row,
};
use crate::app::Action;
use crate::block::FileDiff;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{code, faint, line, paragraph, warning};
use crate::render::{RenderContext, render_diff};
use crate::screen::Size;
use crate::text::{Row, Span, Style, sanitize_line};

const TITLES: &[&str] = &["Files", "Memories", "Review"];
const MEMORIES: usize = 1;
const REVIEW: usize = 2;

/// Files, memories and proposals.
#[derive(Debug)]
pub(crate) struct MemoryPanel {
    tabs: Tabs,
    session: Option<Arc<SessionSnapshot>>,
    report: Option<MemoryReport>,
    marked: usize,
    /// Whether the text of what is marked is shown.
    is_open: bool,
    scroll: Scroll,
    note: Option<String>,
    /// The memory that `x` would forget when it is pressed again.
    armed: Option<String>,
}

impl MemoryPanel {
    /// Shows the files first.
    pub(crate) fn new() -> Self {
        Self {
            tabs: Tabs::new(TITLES),
            session: None,
            report: None,
            marked: 0,
            is_open: false,
            scroll: Scroll::default(),
            note: None,
            armed: None,
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

    fn ask(&self, verb: MemoryVerb, file: String) -> PanelStep {
        let Some(snapshot) = self.session.clone() else { return PanelStep::Stay };
        PanelStep::Act(vec![Action::AskPanel(PanelRequest::DecideMemory { verb, file, snapshot })])
    }

    fn decide(&mut self, key: KeyCode) -> PanelStep {
        let file = self.rows().get(self.marked).map(|row| row.file.clone());
        let armed = self.armed.take();
        match (key, self.tabs.shown(), file) {
            (KeyCode::Char('a'), REVIEW, Some(file)) => self.ask(MemoryVerb::Accept, file),
            (KeyCode::Char('x'), REVIEW, Some(file)) => self.ask(MemoryVerb::Reject, file),
            (KeyCode::Char('x'), MEMORIES, Some(file)) if armed.as_ref() == Some(&file) => {
                self.ask(MemoryVerb::Forget, file)
            }
            (KeyCode::Char('x'), MEMORIES, Some(file)) => {
                self.note = Some(format!("Press x again to forget {file}"));
                self.armed = Some(file);
                PanelStep::Stay
            }
            (KeyCode::Char('o'), ..) => {
                let (Some(report), Some(snapshot)) = (&self.report, self.session.clone()) else {
                    return PanelStep::Stay;
                };
                let is_on = !report.is_on;
                PanelStep::Act(vec![Action::AskPanel(PanelRequest::SwitchMemory { is_on, snapshot })])
            }
            _ => PanelStep::Stay,
        }
    }

    fn row(&self, idx: usize) -> Row {
        if self.tabs.shown() == 0 {
            let file = self.report.as_ref().and_then(|report| report.files.get(idx));
            return file.map_or_else(Row::default, |(path, whose)| {
                Row::new(vec![
                    Span::styled(sanitize_line(path), code()),
                    Span::styled(format!("  {whose}"), faint()),
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
            _ => "↑↓ scroll · x forget · Esc back",
        };
        let mut view = PanelView::new(&row.file, hint);
        view.head.extend(self.note.iter().flat_map(|text| paragraph("", text, warning(), size.width)));
        let rows = match &row.replaces {
            Some(before) => {
                let (before, after) = (before.clone(), row.text.clone());
                render_diff(&FileDiff { path: row.file.clone(), before, after, first_line: 1 }, ctx)
            }
            None => paragraph("", &row.text, Style::default(), size.width),
        };
        let room = view.room(size);
        view.body = self.scroll.rows(rows, room);
        view
    }
}

impl Panel for MemoryPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
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
            (self.marked, self.armed) = (0, None);
            return PanelStep::Stay;
        }
        let last = self.len().saturating_sub(1);
        match ctx.action {
            Some(KeyAction::SelectNext) => {
                self.marked = if self.marked >= last { 0 } else { self.marked + 1 }
            }
            Some(KeyAction::SelectPrevious) => self.marked = self.marked.checked_sub(1).unwrap_or(last),
            Some(KeyAction::SelectAccept) => {
                self.is_open = self.rows().get(self.marked).is_some();
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
                return vec![Action::AskPanel(PanelRequest::Memory { snapshot })];
            }
            PanelData::Memory { report, note } => {
                self.report = Some(report);
                self.marked = self.marked.min(self.len().saturating_sub(1));
                if note.is_some() {
                    self.is_open = false;
                }
                self.note = note;
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(row) = self.rows().get(self.marked).filter(|_| self.is_open) {
            return self.open_view(row, ctx, size);
        }
        let state = match &self.report {
            Some(report) if report.is_on => format!(" · kept in {}", report.dir),
            Some(_) => " · memories are off".to_owned(),
            None => String::new(),
        };
        let hint = match self.tabs.shown() {
            REVIEW => "Enter look · a accept · x reject · Tab next tab · Esc close",
            MEMORIES => "Enter look · x forget · o on or off · Tab next tab · Esc close",
            _ => "o memories on or off · Tab next tab · Esc close",
        };
        let mut view = PanelView::new(&format!("Memory{state}"), hint);
        view.head.push(self.tabs.row());
        view.head.extend(self.note.iter().flat_map(|text| paragraph("", text, warning(), size.width)));
        let room = view.room(size);
        view.body =
            list_rows(self.len(), self.marked, room, |idx, is_marked| mark_row(self.row(idx), is_marked));
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
        &[Context::Tabs, Context::Select, Context::Global]
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
            files: vec![("~/.claude/CLAUDE.md".into(), "user")],
            is_on: true,
            dir: "~/m".into(),
            memories: vec![row("port.md", None)],
            proposals: vec![row("port.md", Some("The port is 80\n")), row("new.md", None)],
        }
    }

    fn shown(width: u16, height: u16) -> (Shown<MemoryPanel>, Arc<SessionSnapshot>) {
        let mut shown = Shown::new(MemoryPanel::new(), width, height);
        let session = snapshot();
        let ask = Action::AskPanel(PanelRequest::Memory { snapshot: session.clone() });
        assert_eq!(shown.receive(PanelData::Snapshot(session.clone())), [ask]);
        shown.receive(PanelData::Memory { report: report(), note: None });
        (shown, session)
    }

    #[test]
    fn proposals_are_looked_at_and_decided_upon() {
        for (width, height) in [(20, 5), (60, 14), (110, 30)] {
            let (mut shown, session) = shown(width, height);
            assert!(shown.text().contains("CLAUDE"), "{}", shown.text());
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
                PanelStep::Act(vec![Action::AskPanel(PanelRequest::DecideMemory {
                    verb,
                    file: file.into(),
                    snapshot,
                })])
            };
            assert_eq!(shown.key(KeyCode::Char('a'), None), decide(MemoryVerb::Accept, "port.md"));
            shown.receive(PanelData::Memory { report: report(), note: Some("It counts".into()) });
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
}
