//! What changes in a file: numbered lines with + and -, and marks under the words that differ.

use std::time::Duration;

use similar::{ChangeTag, DiffOp, TextDiff, TextDiffConfig};

use super::{RenderContext, trim_row};
use crate::block::FileDiff;
use crate::text::{Row, expand_tabs, sanitize};
use crate::theme::Role;

/// Lines around a change that are shown.
const CONTEXT_LINES: usize = 3;
/// How long lines are compared at most; then the rest counts as changed.
const PATIENCE: Duration = Duration::from_millis(100);
const TAB_WIDTH: usize = 4;

/// How many lines a change adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffStat {
    /// Added.
    pub n_added: usize,
    /// Removed.
    pub n_removed: usize,
}

/// Counts the lines that a change adds and removes.
pub fn diff_stat(diff: &FileDiff) -> DiffStat {
    let lines =
        TextDiffConfig::default().timeout(PATIENCE).diff_lines(diff.before.as_str(), diff.after.as_str());
    let mut stat = DiffStat::default();
    for op in lines.ops() {
        match op {
            DiffOp::Equal { .. } => {}
            op => {
                stat.n_removed += op.old_range().len();
                stat.n_added += op.new_range().len();
            }
        }
    }
    stat
}

/// Returns the rows of a change: each with its number, a sign and the line. Lines are not wrapped.
pub fn render_diff(diff: &FileDiff, ctx: &RenderContext) -> Vec<Row> {
    let lines =
        TextDiffConfig::default().timeout(PATIENCE).diff_lines(diff.before.as_str(), diff.after.as_str());
    let n_lines = lines.old_len().max(lines.new_len());
    let layout =
        Layout { first: diff.first_line.max(1), digits: (diff.first_line + n_lines).to_string().len(), ctx };
    let mut rows = Vec::new();
    for (idx, group) in lines.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if idx > 0 {
            let dots = format!("{}…", " ".repeat(layout.digits + 1));
            rows.push(Row::new(vec![ctx.span(dots, Role::Faint)]));
        }
        for op in group {
            layout.op_rows(&lines, op, &mut rows);
        }
    }
    rows
}

struct Layout<'a> {
    first: usize,
    digits: usize,
    ctx: &'a RenderContext,
}

impl Layout<'_> {
    fn op_rows(&self, lines: &TextDiff<'_, '_, str>, op: &DiffOp, rows: &mut Vec<Row>) {
        if let DiffOp::Equal { .. } = op {
            for change in lines.iter_changes(op) {
                let number = change.new_index().unwrap_or_default();
                rows.push(self.row(number, ' ', vec![(change.value().to_owned(), false)]));
            }
            return;
        }
        let (old, new) = (op.old_range(), op.new_range());
        let old_line = |at: usize| lines.old_slice(at).unwrap_or_default();
        let new_line = |at: usize| lines.new_slice(at).unwrap_or_default();
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for at in old.clone() {
            let other = new.start + at - old.start;
            let words = new.contains(&other).then(|| word_diff(old_line(at), new_line(other))).flatten();
            let (before, after) = words.unzip();
            removed.push(before.unwrap_or_else(|| vec![(old_line(at).to_owned(), false)]));
            added.push(after);
        }
        rows.extend(old.zip(removed).map(|(at, parts)| self.row(at, '-', parts)));
        added.resize(new.len(), None);
        rows.extend(new.zip(added).map(|(at, parts)| {
            self.row(at, '+', parts.unwrap_or_else(|| vec![(new_line(at).to_owned(), false)]))
        }));
    }

    /// A row; parts that are marked differ from the other side's line.
    fn row(&self, index: usize, sign: char, parts: Words) -> Row {
        let (role, word_role) = match sign {
            '+' => (Role::Added, Role::AddedWord),
            '-' => (Role::Removed, Role::RemovedWord),
            _ => (Role::Text, Role::Text),
        };
        let digits = self.digits;
        let mut row = Row::new(vec![self.ctx.span(format!("{:>digits$} ", self.first + index), Role::Faint)]);
        row.push(self.ctx.span(format!("{sign} "), role));
        let mut column = 0;
        for (text, is_marked) in parts {
            let text = sanitize(text.trim_end_matches(['\n', '\r']));
            let text = expand_tabs(&text, column, TAB_WIDTH).into_owned();
            column += crate::text::width(&text);
            row.push(self.ctx.span(text, if is_marked { word_role } else { role }));
        }
        trim_row(&mut row);
        row.is_overlong = row.width() > self.ctx.width;
        row
    }
}

/// Parts of a line, and whether each differs.
type Words = Vec<(String, bool)>;

/// Returns which words of two lines differ, on the old side and on the new, if the lines are alike enough that it helps.
fn word_diff(old: &str, new: &str) -> Option<(Words, Words)> {
    const LONGEST: usize = 2_000;
    if old.len() > LONGEST || new.len() > LONGEST {
        return None;
    }
    let words = TextDiff::from_words(old, new);
    if words.ratio() < 0.5 {
        return None;
    }
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for change in words.iter_all_changes() {
        let word = || change.value().to_owned();
        match change.tag() {
            ChangeTag::Equal => {
                removed.push((word(), false));
                added.push((word(), false));
            }
            ChangeTag::Delete => removed.push((word(), true)),
            ChangeTag::Insert => added.push((word(), true)),
        }
    }
    Some((removed, added))
}
