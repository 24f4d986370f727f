//! The rows of the prompts to go back to, and of what that would change.

use loci_app::sessions::command::{RewindPoint, RewindPreview};

use super::super::{PanelView, mark_row};
use super::RewindPanel;
use crate::layout::{faint, line, paragraph, warning};
use crate::screen::Size;
use crate::text::{Color, Row, Span, Style, sanitize_line};

/// The most paths of a kind that are shown.
const MOST_PATHS: usize = 30;

impl RewindPanel {
    pub(super) fn list_view(&self, size: Size) -> PanelView {
        let hint = if self.n_rows() > 0 { "Enter choose what goes back · Esc close" } else { "Esc close" };
        let mut view = PanelView::new("Rewind: go back to before a prompt", hint);
        let marked = self.key_of(self.mark.at);
        let about = match self.point(self.mark.at).is_some_and(|point| point.leaf.is_some()) {
            true => "A branch that was left: Enter goes on with it; files stay as they are".to_owned(),
            false => self.summary(marked.as_deref()),
        };
        view.head.push(line(&about, faint()));
        let room = view.room(size);
        view.body = self.mark.rows(self.n_rows(), room, |idx, is_marked| {
            let row = match self.point(idx) {
                Some(point) => point_row(point, size.width),
                None => line("Undo the last rewind", Style::default()),
            };
            mark_row(row, is_marked)
        });
        if let Some(problem) = &self.problem {
            view.body = vec![line(problem, warning())];
        } else if self.points.is_none() {
            view.body = vec![line("Reading the session…", faint())];
        } else if self.n_rows() == 0 {
            view.body = vec![line("Nothing was asked yet", faint())];
        }
        view
    }

    /// Says what would change, in a line.
    pub(super) fn summary(&self, key: Option<&str>) -> String {
        match self.preview(key) {
            None if self.n_rows() == 0 => String::new(),
            None => "Looking at files…".to_owned(),
            Some(RewindPreview { problem: Some(_), .. }) => {
                "Files were not kept there; the conversation can go back".to_owned()
            }
            Some(preview) if preview.files.is_empty() && preview.conflicts.is_empty() => {
                "No file would change".to_owned()
            }
            Some(preview) => {
                let files = loci_stdx::counted(preview.files.len() as u64, "file", "files");
                let conflicts = match preview.conflicts.len() {
                    0 => String::new(),
                    n => format!(" · {n} changed by someone else"),
                };
                format!(
                    "{files} would change: +{} -{} lines{conflicts}",
                    preview.insertions, preview.deletions
                )
            }
        }
    }

    pub(super) fn preview_rows(&self, key: Option<&str>, overwrites: bool, width: u16) -> Vec<Row> {
        let Some(preview) = self.preview(key) else { return vec![line("Looking at files…", faint())] };
        let mut rows = vec![line(&self.summary(key), Style::default())];
        if let Some(problem) = &preview.problem {
            rows.extend(paragraph("  ", problem, faint(), width));
        }
        for (path, action) in preview.files.iter().take(MOST_PATHS) {
            rows.push(line(&format!("  {action:<8}{path}"), Style::default()));
        }
        push_more(&mut rows, preview.files.len());
        let what = if overwrites { "brought back" } else { "left" };
        for (path, why) in preview.conflicts.iter().take(MOST_PATHS) {
            rows.push(line(&format!("  {what}: {path} ({why})"), warning()));
        }
        push_more(&mut rows, preview.conflicts.len());
        for path in preview.ignored.iter().take(MOST_PATHS) {
            rows.push(line(&format!("  not touched, git ignores it: {path}"), faint()));
        }
        push_more(&mut rows, preview.ignored.len());
        rows
    }
}

fn push_more(rows: &mut Vec<Row>, n: usize) {
    if let Some(n @ 1..) = n.checked_sub(MOST_PATHS) {
        rows.push(line(&format!("  … {n} more"), faint()));
    }
}

/// A prompt in a row: when, where in the tree, what, and what its turn changed.
fn point_row(point: &RewindPoint, columns: u16) -> Row {
    let mut spans = Vec::new();
    if columns >= 40 {
        spans.push(Span::styled(format!("{}  ", sanitize_line(&point.time)), faint()));
    }
    if point.depth > 0 {
        spans.push(Span::styled("├ ", faint()));
    }
    let style = if point.depth > 0 { faint() } else { Style::default() };
    if point.n_files > 0 {
        let colored = |n: u8| Style { fg: Color::Ansi(n), ..Style::default() };
        spans.push(Span::styled(format!("+{}", point.added), colored(2)));
        spans.push(Span::styled(format!(" -{} ", point.removed), colored(1)));
    }
    spans.push(Span::styled(sanitize_line(&point.line), style));
    if point.n_files > 0 {
        let files = if point.n_files == 1 { "file" } else { "files" };
        spans.push(Span::styled(format!("  {} {files}", point.n_files), faint()));
    }
    Row::new(spans)
}
