//! What the mouse does in the conversation: the wheel scrolls, a click expands, a drag selects and copies.

use std::time::Duration;

use super::super::transcript_view::{TranscriptView, ViewContext};
use super::super::virtual_list::Position;
use super::selection::{Point, Selection, word_at};
use super::wheel::WheelSettings;
use crate::key::{Mouse, MouseAction};
use crate::text::{Row, width};

/// Presses at one place within this time are one gesture: of a word, of a row.
const MULTIPLE_TIME: Duration = Duration::from_millis(400);

/// A button that went down.
#[derive(Debug, Clone, Copy)]
pub(super) struct Press {
    point: Point,
    at: Duration,
    /// Which one in a row it is.
    n: u8,
}

/// What a press, a drag or a click asks for.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::app) enum Clicked {
    /// A page is opened.
    Page(String),
    /// What was selected is copied.
    Selected(String),
}

impl TranscriptView {
    /// Takes what a button did in the conversation.
    pub(in crate::app) fn clicked(
        &mut self,
        mouse: Mouse,
        now: Duration,
        view: &ViewContext<'_>,
    ) -> Option<Clicked> {
        match mouse.action {
            MouseAction::Press(0) if mouse.has_control => {
                return self.link_clicked(mouse, view).map(Clicked::Page);
            }
            MouseAction::Press(0) => self.press(mouse, now, view),
            MouseAction::Drag(0) => self.drag(mouse, view),
            MouseAction::Release(0) => return self.release(mouse, view).map(Clicked::Selected),
            MouseAction::Press(_)
            | MouseAction::Drag(_)
            | MouseAction::Release(_)
            | MouseAction::WheelUp
            | MouseAction::WheelDown => {}
        }
        None
    }

    /// Returns the page that what was clicked on leads to; only pages, since a file could be a program.
    fn link_clicked(&mut self, mouse: Mouse, view: &ViewContext<'_>) -> Option<String> {
        let screen = self.fullscreen.as_mut()?;
        screen.press = None;
        let is_in_list = usize::from(mouse.row) < screen.list.height();
        let point = screen.point(mouse.column, mouse.row).filter(|_| is_in_list)?;
        let found = self.with_list(view, |list, source, ctx| {
            let rows = list.rows(point.at.block, source, ctx);
            link_at(rows.get(point.at.row)?, point.column)
        });
        found.flatten().filter(|page| page.starts_with("https://") || page.starts_with("http://"))
    }

    /// Scrolls by a step of the wheel: the pager, where it is open, or the conversation.
    pub(in crate::app) fn turn_wheel(
        &mut self,
        way: MouseAction,
        settings: WheelSettings,
        now: Duration,
        view: &ViewContext<'_>,
    ) {
        let Some(screen) = &mut self.fullscreen else { return };
        let n = screen.wheel.step(now, settings);
        if self.pager.is_some() {
            return self.scroll_pager(way, n, &view.render);
        }
        self.with_list(view, |list, source, ctx| match way {
            MouseAction::WheelUp => list.up(n, source, ctx),
            _ => list.down(n, source, ctx),
        });
    }

    fn press(&mut self, mouse: Mouse, now: Duration, view: &ViewContext<'_>) {
        let Some(screen) = &mut self.fullscreen else { return };
        let is_last_row = usize::from(mouse.row) + 1 == screen.list.height();
        let is_pill = screen.pill.as_ref().is_some_and(|pill| pill.contains(&usize::from(mouse.column)));
        if is_last_row && is_pill {
            (screen.list.is_at_end, screen.press) = (true, None);
            return;
        }
        let is_in_list = usize::from(mouse.row) < screen.list.height();
        let Some(point) = screen.point(mouse.column, mouse.row).filter(|_| is_in_list) else {
            screen.press = None;
            return;
        };
        let n = match screen.press {
            Some(last) if last.point == point && now.saturating_sub(last.at) <= MULTIPLE_TIME => {
                last.n % 3 + 1
            }
            _ => 1,
        };
        screen.press = Some(Press { point, at: now, n });
        screen.selection = None;
        if n == 1 {
            return;
        }
        let selected = self.with_list(view, |list, source, ctx| {
            let rows = list.rows(point.at.block, source, ctx);
            let row = rows.get(point.at.row)?;
            match n {
                2 => word_at(row, point.column),
                _ => Some((0, row.width().saturating_sub(1))),
            }
        });
        if let (Some(screen), Some(Some((first, last)))) = (&mut self.fullscreen, selected) {
            let at = |column| Point { column, ..point };
            screen.selection = Some(Selection { anchor: at(first), head: at(last) });
        }
    }

    fn drag(&mut self, mouse: Mouse, view: &ViewContext<'_>) {
        let Some(screen) = &mut self.fullscreen else { return };
        let Some(press) = screen.press else { return };
        let Some(head) = screen.point(mouse.column, mouse.row) else { return };
        let is_above = mouse.row == 0;
        let is_below = usize::from(mouse.row) + 1 >= screen.list.height();
        if head == press.point && screen.selection.is_none() {
            return;
        }
        screen.selection = Some(Selection { anchor: press.point, head });
        // At its edges more comes into sight.
        if is_above {
            self.with_list(view, |list, source, ctx| list.up(1, source, ctx));
        } else if is_below {
            self.with_list(view, |list, source, ctx| list.down(1, source, ctx));
        }
    }

    /// Returns what was selected by a drag that ends here; a click shows a block whole, or in part again.
    fn release(&mut self, mouse: Mouse, view: &ViewContext<'_>) -> Option<String> {
        let screen = self.fullscreen.as_ref()?;
        if screen.selection.is_some() && screen.press.is_some() {
            return self.selected_text(view);
        }
        if screen.press.is_some_and(|press| press.n == 1)
            && let Some(at) = screen.seen.get(usize::from(mouse.row)).copied()
        {
            self.toggle_block(at, view);
        }
        None
    }

    /// Shows a block whole, or in part again; its first row stays where it is.
    fn toggle_block(&mut self, at: Position, view: &ViewContext<'_>) {
        let found = self.with_list(view, |list, source, ctx| {
            let number = source.expandable(at.block, ctx);
            if number.is_some() {
                list.hold(source, ctx);
            }
            number
        });
        let (Some(screen), Some(Some(number))) = (&mut self.fullscreen, found) else { return };
        if !screen.expanded.remove(&number) {
            screen.expanded.insert(number);
        }
        screen.list.forget(number);
        // Whoever saw the end sees it still, where there is room.
        self.with_list(view, |list, source, ctx| {
            list.is_at_end = list.settled(source, ctx) >= list.end(source, ctx);
        });
    }
}

/// Returns where what stands in a column leads.
fn link_at(row: &Row, column: usize) -> Option<String> {
    let mut end = 0;
    let span = row.spans.iter().find(|span| {
        end += width(&span.text);
        column < end
    })?;
    span.link.as_deref().map(str::to_owned)
}
