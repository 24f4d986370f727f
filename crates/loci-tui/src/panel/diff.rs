//! `/diff`: what the working tree has changed since the last commit, and what each turn changed, file by file.

use loci_app::commands::diff::ChangedFile;
use loci_app::sessions::command::TurnChanges;

use super::{ListMark, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, mark_row};
use crate::app::{Action, Effect};
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{faint, line};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style, expand_tabs, sanitize_line};
use crate::theme::Role;

/// Where changes come from, and the files of one of them, or a file.
#[derive(Debug, Default)]
pub(crate) struct DiffPanel {
    /// What changed since the last commit, once it is known.
    files: Option<Vec<ChangedFile>>,
    problem: Option<String>,
    /// What the turns changed, the newest first.
    turns: Vec<TurnChanges>,
    /// Which of them is looked at: none of the turns at first.
    source: usize,
    mark: ListMark,
    is_open: bool,
    scroll: Scroll,
}

impl DiffPanel {
    /// Returns what is asked for when it is opened.
    pub(crate) fn begin() -> Vec<Action> {
        vec![
            Action::Effect(Effect::AskPanel(PanelRequest::Diff)),
            Action::Effect(Effect::AskPanel(PanelRequest::TurnChanges)),
        ]
    }

    /// Returns the files of the source that is looked at.
    fn visible_files(&self) -> &[ChangedFile] {
        match self.source.checked_sub(1) {
            None => self.files.as_deref().unwrap_or_default(),
            Some(idx) => self.turns.get(idx).map(|turn| turn.files.as_slice()).unwrap_or_default(),
        }
    }

    fn file(&self) -> Option<&ChangedFile> {
        self.visible_files().get(self.mark.at)
    }

    fn go(&mut self, is_next: bool) {
        let last = self.visible_files().len().saturating_sub(1);
        self.mark.at = match is_next {
            true if self.mark.at >= last => 0,
            true => self.mark.at + 1,
            false => self.mark.at.checked_sub(1).unwrap_or(last),
        };
        self.scroll = Scroll::default();
    }

    fn go_to_source(&mut self, is_next: bool) {
        self.source = match is_next {
            true => (self.source + 1).min(self.turns.len()),
            false => self.source.saturating_sub(1),
        };
        self.mark.at = 0;
    }

    fn title(&self) -> String {
        match self.source.checked_sub(1).and_then(|idx| self.turns.get(idx)) {
            None => "Changes since the last commit".to_owned(),
            Some(turn) => format!("Changed by the turn of {}: {}", turn.time, turn.line),
        }
    }
}

impl Panel for DiffPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() || ctx.action == Some(KeyAction::DiffBack) {
            return match std::mem::take(&mut self.is_open) {
                true => PanelStep::Stay,
                false => PanelStep::Close,
            };
        }
        let InputEvent::Key(key) = event else { return PanelStep::Stay };
        let n_files = self.visible_files().len();
        match (self.is_open, ctx.action) {
            (true, Some(KeyAction::DiffPreviousSource)) => self.go(false),
            (true, Some(KeyAction::DiffNextSource)) => self.go(true),
            (true, Some(KeyAction::DiffNextFile)) => {
                self.scroll.handle_action(Some(KeyAction::ScrollLineDown));
            }
            (true, Some(KeyAction::DiffPreviousFile)) => {
                self.scroll.handle_action(Some(KeyAction::ScrollLineUp));
            }
            (true, action) if self.scroll.handle_action(action) || self.scroll.handle(event) => {}
            (false, Some(KeyAction::DiffPreviousSource)) => self.go_to_source(false),
            (false, Some(KeyAction::DiffNextSource)) => self.go_to_source(true),
            (false, Some(KeyAction::DiffNextFile)) => self.go(true),
            (false, Some(KeyAction::DiffPreviousFile)) => self.go(false),
            (false, Some(KeyAction::DiffViewDetails)) => {
                self.is_open = self.file().is_some();
                self.scroll = Scroll::default();
            }
            (false, action) if self.mark.handle_scroll(n_files, action) => {}
            (false, _) if self.mark.handle(n_files, *key, None) => {}
            _ if key.code == KeyCode::Char('r') => return PanelStep::Act(Self::begin()),
            _ => {}
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Diff(Ok(files)) => self.files = Some(files),
            PanelData::TurnChanges(turns) => self.turns = turns,
            PanelData::Diff(Err(why)) | PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        self.source = self.source.min(self.turns.len());
        self.mark.at = self.mark.at.min(self.visible_files().len().saturating_sub(1));
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
        let hint = match (self.visible_files().is_empty(), self.turns.is_empty()) {
            (true, true) => "r read again · Esc close",
            (true, false) => "←→ by turn · r read again · Esc close",
            (false, true) => "Enter look · r read again · Esc close",
            (false, false) => "Enter look · ←→ by turn · r read again · Esc close",
        };
        let mut view = PanelView::new(&self.title(), hint);
        let room = view.room(size);
        let files = self.visible_files();
        view.body = self.mark.rows(files.len(), room, |idx, is_marked| {
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
        &[Context::DiffDialog, Context::Global]
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
            shown.action(KeyAction::DiffViewDetails);
            shown.assert_clean();
            assert!(shown.text().contains("@@ -1 +1 @@"), "{}", shown.text());
            shown.action(KeyAction::DiffNextSource);
            assert!(shown.text().contains("b.rs"), "{}", shown.text());
            assert_eq!(shown.action(KeyAction::DiffDismiss), PanelStep::Stay, "back to the list");
            assert_eq!(shown.action(KeyAction::DiffDismiss), PanelStep::Close);
        }
    }

    #[test]
    fn why_nothing_can_be_compared_is_told() {
        let mut shown = Shown::new(DiffPanel::default(), 60, 8);
        shown.receive(PanelData::Diff(Err("no repository".into())));
        assert!(shown.text().contains("no repository"), "{}", shown.text());
    }

    #[test]
    fn turns_are_gone_through_with_the_arrows() {
        let turn = |n: usize| TurnChanges {
            line: format!("do {n}\u{1b}[2J"),
            time: "2026-01-01 10:00".into(),
            files: vec![file(&format!("t{n}.rs"), &["@@ -1 +1 @@", "+x"])],
        };
        for (width, height) in [(20, 5), (60, 12), (120, 30)] {
            let mut shown = Shown::new(DiffPanel::default(), width, height);
            shown.receive(PanelData::Diff(Ok(vec![file("now.rs", &[])])));
            shown.receive(PanelData::TurnChanges(vec![turn(2), turn(1)]));
            assert!(shown.text().contains("now.rs"), "{}", shown.text());
            for expected in ["t2.rs", "t1.rs", "t1.rs"] {
                shown.action(KeyAction::DiffNextSource);
                shown.assert_clean();
                assert!(shown.text().contains(expected), "{}", shown.text());
            }
            shown.action(KeyAction::DiffViewDetails);
            assert!(shown.text().contains("@@ -1 +1 @@"), "{}", shown.text());
            shown.action(KeyAction::DiffDismiss);
            for expected in ["t2.rs", "now.rs", "now.rs"] {
                shown.action(KeyAction::DiffPreviousSource);
                assert!(shown.text().contains(expected), "{}", shown.text());
            }
        }
    }

    #[test]
    fn keys_of_the_table_scroll_the_list_and_the_file() {
        let lines: Vec<String> = (0..60).map(|idx| format!("+l{idx:02}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut shown = Shown::new(DiffPanel::default(), 60, 12);
        let files = (0..30).map(|idx| file(&format!("f{idx:02}"), &lines)).collect();
        shown.receive(PanelData::Diff(Ok(files)));
        for (action, expected) in [
            (KeyAction::ScrollFullPageDown, "❯ f10"),
            (KeyAction::ScrollPageDown, "❯ f20"),
            (KeyAction::ScrollFullPageUp, "❯ f10"),
            (KeyAction::ScrollBottom, "❯ f29"),
            (KeyAction::ScrollTop, "❯ f00"),
            (KeyAction::DiffViewDetails, "\n+l00"),
            (KeyAction::DiffNextFile, "\n+l01"),
            (KeyAction::ScrollFullPageDown, "\n+l09"),
            (KeyAction::DiffPreviousFile, "\n+l08"),
            (KeyAction::ScrollFullPageUp, "\n+l00"),
            (KeyAction::ScrollBottom, "\n+l59"),
            (KeyAction::ScrollTop, "\n+l00"),
        ] {
            shown.action(action);
            assert!(shown.text().contains(expected), "{action:?}: {}", shown.text());
        }
    }

    #[test]
    fn arrows_and_letters_are_those_of_the_keymap() {
        let mut keymap = crate::keymap::Keymap::default();
        let contexts = DiffPanel::default().contexts();
        for (keys, expected) in [
            ("left", KeyAction::DiffPreviousSource),
            ("right", KeyAction::DiffNextSource),
            ("up", KeyAction::DiffPreviousFile),
            ("j", KeyAction::DiffNextFile),
            ("enter", KeyAction::DiffViewDetails),
            ("escape", KeyAction::DiffDismiss),
        ] {
            for key in crate::keymap::parse_chord(keys).unwrap() {
                let found = keymap.resolve(contexts, key);
                assert_eq!(found, crate::keymap::Resolution::Action(expected), "{keys}");
            }
        }
    }
}
