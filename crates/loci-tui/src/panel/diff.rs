//! `/diff`: what the working tree has changed since the last commit, file by file.

use loci_app::commands::diff::ChangedFile;

use super::{
    Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, list_rows, mark_row,
};
use crate::app::Action;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{faint, line};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style, expand_tabs, sanitize_line};
use crate::theme::Role;

/// The files, or one of them.
#[derive(Debug, Default)]
pub(crate) struct DiffPanel {
    files: Option<Vec<ChangedFile>>,
    problem: Option<String>,
    marked: usize,
    is_open: bool,
    scroll: Scroll,
}

impl DiffPanel {
    fn file(&self) -> Option<&ChangedFile> {
        self.files.as_ref()?.get(self.marked)
    }

    fn go(&mut self, is_next: bool) {
        let last = self.files.as_ref().map_or(0, |files| files.len().saturating_sub(1));
        self.marked = match is_next {
            true if self.marked >= last => 0,
            true => self.marked + 1,
            false => self.marked.checked_sub(1).unwrap_or(last),
        };
        self.scroll = Scroll::default();
    }
}

impl Panel for DiffPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return match std::mem::take(&mut self.is_open) {
                true => PanelStep::Stay,
                false => PanelStep::Close,
            };
        }
        let InputEvent::Key(key) = event else { return PanelStep::Stay };
        match (self.is_open, key.code, ctx.action) {
            (true, KeyCode::Left, _) => self.go(false),
            (true, KeyCode::Right, _) => self.go(true),
            (true, ..) if self.scroll.handle(event) => {}
            (false, _, Some(KeyAction::SelectNext)) => self.go(true),
            (false, _, Some(KeyAction::SelectPrevious)) => self.go(false),
            (false, _, Some(KeyAction::SelectAccept)) => {
                self.is_open = self.file().is_some();
                self.scroll = Scroll::default();
            }
            (_, KeyCode::Char('r'), _) => return PanelStep::Act(vec![Action::AskPanel(PanelRequest::Diff)]),
            _ => {}
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Diff(Ok(files)) => {
                self.marked = self.marked.min(files.len().saturating_sub(1));
                self.files = Some(files);
            }
            PanelData::Diff(Err(why)) | PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(file) = self.file().filter(|_| self.is_open) {
            let title = format!("{} · +{} -{}", file.path, file.added, file.removed);
            let mut view = PanelView::new(&title, "↑↓ scroll · ←→ file · Esc back");
            let mut rows: Vec<Row> = file.lines.iter().map(|line| diff_row(line, ctx)).collect();
            if rows.is_empty() {
                rows.push(line("Git does not know this file yet", faint()));
            }
            let room = view.room(size);
            view.body = self.scroll.rows(rows, room);
            return view;
        }
        let mut view =
            PanelView::new("Changes since the last commit", "Enter look · r read again · Esc close");
        let room = view.room(size);
        let files = self.files.as_deref().unwrap_or_default();
        view.body = list_rows(files.len(), self.marked, room, |idx, is_marked| {
            mark_row(files.get(idx).map_or_else(Row::default, file_row), is_marked)
        });
        if files.is_empty() {
            let text = match (&self.problem, &self.files) {
                (Some(why), _) => why,
                (None, Some(_)) => "Nothing has changed",
                (None, None) => "Reading…",
            };
            view.body = vec![line(text, faint())];
        }
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }
}

fn file_row(file: &ChangedFile) -> Row {
    let figures = match file.lines.is_empty() {
        true => "  new to git".to_owned(),
        false => format!("  +{} -{}", file.added, file.removed),
    };
    Row::new(vec![Span::plain(sanitize_line(&file.path)), Span::styled(figures, faint())])
}

fn diff_row(text: &str, ctx: &RenderContext) -> Row {
    let style = match text.as_bytes().first() {
        Some(b'+') => ctx.theme.style(Role::Added),
        Some(b'-') => ctx.theme.style(Role::Removed),
        Some(b'@') => faint(),
        _ => Style::default(),
    };
    Row::new(vec![Span::styled(sanitize_line(&expand_tabs(text, 0, 8)), style)])
}

#[cfg(test)]
mod tests {
    use super::super::testing::Shown;
    use super::*;

    fn file(path: &str, lines: &[&str]) -> ChangedFile {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        ChangedFile { path: path.into(), added: 1, removed: 1, lines }
    }

    #[test]
    fn files_are_listed_and_looked_at_one_after_the_other() {
        for (width, height) in [(20, 5), (60, 12), (120, 30)] {
            let mut shown = Shown::new(DiffPanel::default(), width, height);
            assert!(shown.text().contains("Reading…"), "{}", shown.text());
            let files =
                vec![file("a\u{1b}.rs", &["@@ -1 +1 @@", "-old\u{1b}[2J", "+new\t日本"]), file("b.rs", &[])];
            shown.receive(PanelData::Diff(Ok(files)));
            shown.assert_clean();
            shown.action(KeyAction::SelectAccept);
            shown.assert_clean();
            assert!(shown.text().contains("@@ -1 +1 @@"), "{}", shown.text());
            shown.key(KeyCode::Right, None);
            assert!(shown.text().contains("b.rs"), "{}", shown.text());
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay, "back to the list");
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }

    #[test]
    fn why_nothing_can_be_compared_is_told() {
        let mut shown = Shown::new(DiffPanel::default(), 60, 8);
        shown.receive(PanelData::Diff(Err("no repository".into())));
        assert!(shown.text().contains("no repository"), "{}", shown.text());
    }
}
