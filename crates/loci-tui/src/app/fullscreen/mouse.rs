//! What the mouse does in the conversation: the wheel scrolls, a click expands, a drag selects and copies.

use std::time::Duration;

use super::super::renderer::MouseCapture;
use super::super::virtual_list::Position;
use super::super::{App, Effect};
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

impl App {
    /// Takes what the mouse did; only the fullscreen renderer hears of it.
    pub(in crate::app) fn mouse_moved(&mut self, mouse: Mouse) -> Vec<Effect> {
        if self.fullscreen.is_none() {
            return Vec::new();
        }
        let hears_clicks = self.options.fullscreen.mouse == MouseCapture::All;
        let is_wheel = matches!(mouse.action, MouseAction::WheelUp | MouseAction::WheelDown);
        if self.transcript.is_none()
            && (hears_clicks || is_wheel)
            && let Some(actions) = self.mouse_below(mouse)
        {
            return actions;
        }
        match mouse.action {
            MouseAction::WheelUp | MouseAction::WheelDown => {
                self.turn_wheel(mouse.action);
                Vec::new()
            }
            _ if self.transcript.is_some() || !hears_clicks => Vec::new(),
            MouseAction::Press(0) if mouse.has_control => self.open_link(mouse),
            MouseAction::Press(0) => {
                self.press(mouse);
                Vec::new()
            }
            MouseAction::Drag(0) => {
                self.drag(mouse);
                Vec::new()
            }
            MouseAction::Release(0) => self.release(mouse),
            MouseAction::Press(_) | MouseAction::Drag(_) | MouseAction::Release(_) => Vec::new(),
        }
    }

    /// Opens the page that what was clicked on leads to; only pages, since a file could be a program.
    fn open_link(&mut self, mouse: Mouse) -> Vec<Effect> {
        let Some(screen) = &mut self.fullscreen else { return Vec::new() };
        screen.press = None;
        let is_in_list = usize::from(mouse.row) < screen.list.height();
        let Some(point) = screen.point(mouse.column, mouse.row).filter(|_| is_in_list) else {
            return Vec::new();
        };
        let found = self.with_list(|list, source, ctx| {
            let rows = list.rows(point.at.block, source, ctx);
            link_at(rows.get(point.at.row)?, point.column)
        });
        let page = found.flatten().filter(|page| page.starts_with("https://") || page.starts_with("http://"));
        page.map(Effect::OpenPage).into_iter().collect()
    }

    fn turn_wheel(&mut self, way: MouseAction) {
        let settings = WheelSettings {
            speed: self.interface.scroll_speed.or(self.options.fullscreen.scroll_speed),
            accelerates: self.interface.accelerates_wheel,
        };
        let now = self.now;
        let Some(screen) = &mut self.fullscreen else { return };
        let n = screen.wheel.step(now, settings);
        if self.transcript.is_some() {
            return self.scroll_transcript(way, n);
        }
        self.with_list(|list, source, ctx| match way {
            MouseAction::WheelUp => list.up(n, source, ctx),
            _ => list.down(n, source, ctx),
        });
    }

    fn press(&mut self, mouse: Mouse) {
        let now = self.now;
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
        let selected = self.with_list(|list, source, ctx| {
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

    fn drag(&mut self, mouse: Mouse) {
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
            self.with_list(|list, source, ctx| list.up(1, source, ctx));
        } else if is_below {
            self.with_list(|list, source, ctx| list.down(1, source, ctx));
        }
    }

    fn release(&mut self, mouse: Mouse) -> Vec<Effect> {
        let Some(screen) = &self.fullscreen else { return Vec::new() };
        if screen.selection.is_some() && screen.press.is_some() {
            return self.copy_selection().unwrap_or_default();
        }
        if screen.press.is_some_and(|press| press.n == 1)
            && let Some(at) = screen.seen.get(usize::from(mouse.row)).copied()
        {
            self.toggle_block(at);
        }
        Vec::new()
    }

    /// Shows a block whole, or in part again; its first row stays where it is.
    fn toggle_block(&mut self, at: Position) {
        let found = self.with_list(|list, source, ctx| {
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
        self.with_list(|list, source, ctx| {
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
