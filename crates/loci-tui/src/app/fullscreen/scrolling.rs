//! Keys that scroll the conversation, and those that extend what is selected.

use super::super::transcript_view::{TranscriptView, ViewContext};
use super::super::virtual_list::{Position, RowSource, VirtualList};
use super::Fullscreen;
use super::selection::{Point, Selection, text_between};
use super::source::ScreenSource;
use crate::key::{Key, KeyCode};
use crate::keymap::Action as KeyAction;
use crate::render::RenderContext;

impl TranscriptView {
    /// Does what a key for scrolling is bound to; none where it is for somebody else.
    pub(in crate::app) fn scroll(&mut self, action: KeyAction, view: &ViewContext<'_>) -> Option<()> {
        let half = self.fullscreen.as_ref()?.list.height().div_ceil(2).max(1);
        let page = half * 2;
        match action {
            KeyAction::ScrollLineUp => self.with_list(view, |list, source, ctx| list.up(1, source, ctx)),
            KeyAction::ScrollLineDown => self.with_list(view, |list, source, ctx| list.down(1, source, ctx)),
            KeyAction::ScrollPageUp | KeyAction::ScrollHalfPageUp => {
                self.with_list(view, |list, source, ctx| list.up(half, source, ctx))
            }
            KeyAction::ScrollPageDown | KeyAction::ScrollHalfPageDown => {
                self.with_list(view, |list, source, ctx| list.down(half, source, ctx))
            }
            KeyAction::ScrollFullPageUp => {
                self.with_list(view, |list, source, ctx| list.up(page, source, ctx))
            }
            KeyAction::ScrollFullPageDown => {
                self.with_list(view, |list, source, ctx| list.down(page, source, ctx))
            }
            KeyAction::ScrollTop => self.with_list(view, |list, source, _| list.go_to_start(source)),
            KeyAction::ScrollBottom => self.with_list(view, |list, _, _| list.is_at_end = true),
            KeyAction::SelectionClear => self.fullscreen.as_mut()?.selection.take().map(|_| ()),
            KeyAction::SelectionExtendLeft => self.extend_selection(Step::Left, view),
            KeyAction::SelectionExtendRight => self.extend_selection(Step::Right, view),
            KeyAction::SelectionExtendUp => self.extend_selection(Step::Up, view),
            KeyAction::SelectionExtendDown => self.extend_selection(Step::Down, view),
            KeyAction::SelectionExtendLineStart => self.extend_selection(Step::LineStart, view),
            KeyAction::SelectionExtendLineEnd => self.extend_selection(Step::LineEnd, view),
            _ => None,
        }
    }

    /// Shows the end, since something was sent.
    pub(in crate::app) fn follow_output(&mut self) {
        if let Some(screen) = &mut self.fullscreen {
            screen.list.is_at_end = true;
        }
    }

    /// Forgets what is selected, unless a key is one that leaves it alone.
    pub(in crate::app) fn forget_selection(&mut self, key: Key, action: Option<KeyAction>) {
        let is_scrolling = action.is_some_and(|action| {
            action.name().starts_with("scroll:") || action.name().starts_with("selection:")
        });
        let is_move = matches!(
            key.code,
            KeyCode::Up | KeyCode::Down | KeyCode::Left | KeyCode::Right | KeyCode::Home | KeyCode::End
        );
        let is_left_alone = is_scrolling
            || key.code == KeyCode::Esc
            || action == Some(KeyAction::AppInterrupt)
            || is_move && (key.shift || key.alt || key.sup);
        if let Some(screen) = self.fullscreen.as_mut().filter(|_| !is_left_alone) {
            screen.selection = None;
        }
    }

    /// Returns what is selected, as text.
    pub(in crate::app) fn selected_text(&mut self, view: &ViewContext<'_>) -> Option<String> {
        let selection = self.fullscreen.as_ref()?.selection?;
        let text = self.with_list(view, |list, source, ctx| selected_text(&selection, list, source, ctx))?;
        (!text.is_empty()).then_some(text)
    }

    /// Forgets what is selected; false where nothing is.
    pub(in crate::app) fn clear_selection(&mut self) -> bool {
        self.fullscreen.as_mut().is_some_and(|screen| screen.selection.take().is_some())
    }

    /// Draws the end of what is selected a step further; none where nothing is selected.
    fn extend_selection(&mut self, step: Step, view: &ViewContext<'_>) -> Option<()> {
        let selection = self.fullscreen.as_ref()?.selection?;
        let head =
            self.with_list(view, |list, source, ctx| stepped(selection.head, step, list, source, ctx))?;
        let screen = self.fullscreen.as_mut()?;
        screen.selection = Some(Selection { head, ..selection });
        let (first, last) = (screen.seen.first().copied()?, screen.seen.last().copied()?);
        if head.at < first {
            self.with_list(view, |list, source, ctx| list.up(1, source, ctx));
        } else if head.at > last {
            self.with_list(view, |list, source, ctx| list.down(1, source, ctx));
        }
        Some(())
    }
}

/// A step of the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Left,
    Right,
    Up,
    Down,
    LineStart,
    LineEnd,
}

fn stepped(
    point: Point,
    step: Step,
    list: &VirtualList,
    source: &ScreenSource<'_>,
    ctx: &RenderContext,
) -> Point {
    let Point { at, column } = point;
    let n_rows = |block: usize| list.rows(block, source, ctx).len();
    let width = list.rows(at.block, source, ctx).get(at.row).map_or(0, |row| row.width());
    let numbers = source.numbers();
    match step {
        Step::Left => Point { at, column: column.saturating_sub(1) },
        Step::Right => Point { at, column: (column + 1).min(width.saturating_sub(1)) },
        Step::LineStart => Point { at, column: 0 },
        Step::LineEnd => Point { at, column: width.saturating_sub(1) },
        Step::Up if at.row > 0 => Point { at: Position { row: at.row - 1, ..at }, column },
        Step::Up => {
            let above = (numbers.start..at.block).rev().find(|block| n_rows(*block) > 0);
            above.map_or(point, |block| Point { at: Position { block, row: n_rows(block) - 1 }, column })
        }
        Step::Down if at.row + 1 < n_rows(at.block) => {
            Point { at: Position { row: at.row + 1, ..at }, column }
        }
        Step::Down => {
            let below = (at.block + 1..numbers.end).find(|block| n_rows(*block) > 0);
            below.map_or(point, |block| Point { at: Position { block, row: 0 }, column })
        }
    }
}

/// Returns what is selected, as text: rows that were broken are whole again.
fn selected_text(
    selection: &Selection,
    list: &VirtualList,
    source: &ScreenSource<'_>,
    ctx: &RenderContext,
) -> String {
    let (first, last) = selection.ends();
    let mut text = String::new();
    for block in first.at.block..=last.at.block {
        let rows = list.rows(block, source, ctx);
        for (row, it) in rows.iter().enumerate() {
            let Some(columns) = selection.columns(Position { block, row }) else { continue };
            let part = text_between(it, columns);
            if it.is_overlong {
                text.push_str(&part);
            } else {
                text.push_str(part.trim_end());
                text.push('\n');
            }
        }
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

impl Fullscreen {
    /// Returns the place of a cell of the screen in the conversation; of one below its last row the end of that.
    pub(super) fn point(&self, column: u16, row: u16) -> Option<Point> {
        match self.seen.get(usize::from(row)) {
            Some(at) => Some(Point { at: *at, column: usize::from(column) }),
            None => self.seen.last().map(|at| Point { at: *at, column: usize::MAX - 1 }),
        }
    }
}
