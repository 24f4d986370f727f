//! The middle of a dialog that is longer than its room: pages and the wheel move it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::key::{InputEvent, KeyCode, MouseAction};
use crate::layout::unseen_rows;
use crate::text::Row;

/// How far PgUp and PgDn scroll, where so much is seen.
const PAGE_ROWS: usize = 8;
/// How far a step of the wheel scrolls.
const WHEEL_ROWS: usize = 3;

/// How far the middle is scrolled. A clone shares it: the dialog has one, and what is seen of it the other.
///
/// Whoever draws takes it back to the last place that there is: only then the room is known, and a key that went further would
/// have to be undone before another is seen to do something.
#[derive(Debug, Clone, Default)]
pub(crate) struct DialogScroll(Arc<Place>);

#[derive(Debug, Default)]
struct Place {
    /// How far it is scrolled, in rows where there is room for a page.
    at: AtomicUsize,
    /// Whether there were rows below those that were drawn last.
    has_more: AtomicBool,
}

impl DialogScroll {
    /// Begins at a place, counted in rows where there is room for a page.
    #[cfg(test)]
    pub(crate) fn at(place: usize) -> Self {
        Self(Arc::new(Place { at: AtomicUsize::new(place), ..Place::default() }))
    }

    /// Takes what was typed; tells whether it scrolls.
    pub(crate) fn handle(&self, event: &InputEvent) -> bool {
        let place = self.0.at.load(Ordering::Relaxed);
        let next = match event {
            InputEvent::Key(key) if key.code == KeyCode::PageDown => place.saturating_add(PAGE_ROWS),
            InputEvent::Key(key) if key.code == KeyCode::PageUp => place.saturating_sub(PAGE_ROWS),
            InputEvent::Mouse(mouse) if mouse.action == MouseAction::WheelDown => {
                place.saturating_add(WHEEL_ROWS)
            }
            InputEvent::Mouse(mouse) if mouse.action == MouseAction::WheelUp => {
                place.saturating_sub(WHEEL_ROWS)
            }
            _ => return false,
        };
        self.0.at.store(next, Ordering::Relaxed);
        true
    }

    /// Takes Enter where there is more to see below: nobody says yes to what they have not read. Tells whether it does.
    pub(crate) fn pages(&self, event: &InputEvent) -> bool {
        let is_enter = matches!(event, InputEvent::Key(key) if key.code == KeyCode::Enter);
        let pages = is_enter && self.0.has_more.load(Ordering::Relaxed);
        if pages {
            self.0.at.fetch_add(PAGE_ROWS, Ordering::Relaxed);
        }
        pages
    }

    /// Returns so many rows of a text that may be longer, and says how much is left out.
    pub(crate) fn rows(&self, body: Vec<Row>, room: usize) -> Vec<Row> {
        if body.len() <= room {
            self.0.at.store(0, Ordering::Relaxed);
            self.0.has_more.store(false, Ordering::Relaxed);
            return body;
        }
        let Some(room) = room.checked_sub(1) else { return Vec::new() };
        // A page is never more than what is seen: no row is passed over.
        let (page, last) = (room.min(PAGE_ROWS), body.len() - room);
        let end = last.saturating_mul(PAGE_ROWS).div_ceil(page.max(1));
        let place = self.0.at.load(Ordering::Relaxed).min(end);
        self.0.at.store(place, Ordering::Relaxed);
        let first = (place * page / PAGE_ROWS).min(last);
        self.0.has_more.store(first < last, Ordering::Relaxed);
        let note = unseen_rows(first, body.len() - room - first);
        body.into_iter().skip(first).take(room).chain([note]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn enter_pages_until_all_was_seen_and_answers_then() {
        let body = || (0..12).map(|n| Row::plain(format!("{n}"))).collect::<Vec<_>>();
        let scroll = DialogScroll::default();
        let enter = InputEvent::Key(Key::plain(KeyCode::Enter));
        assert!(!scroll.pages(&enter), "nothing was drawn yet");
        let mut seen = scroll.rows(body(), 5);
        let mut n_pages = 0;
        while scroll.pages(&enter) {
            seen.extend(scroll.rows(body(), 5));
            n_pages += 1;
        }
        assert_eq!(n_pages, 2);
        for row in body() {
            assert!(seen.contains(&row), "{row:?}");
        }
        scroll.rows(body(), 12);
        assert!(!scroll.pages(&enter), "a window that is large enough");
    }

    #[test]
    fn page_up_is_seen_at_once_however_often_page_down_was_pressed() {
        for (n_rows, room) in [(10, 4), (10, 9), (40, 12), (30, 3), (9, 2)] {
            let body = || (0..n_rows).map(|n| Row::plain(format!("{n}"))).collect::<Vec<_>>();
            let scroll = DialogScroll::default();
            let press = |code| {
                scroll.handle(&InputEvent::Key(Key::plain(code)));
                scroll.rows(body(), room)[0].text()
            };
            for _ in 0..50 {
                press(KeyCode::PageDown);
            }
            let end = press(KeyCode::PageDown);
            assert_ne!(press(KeyCode::PageUp), end, "{n_rows} rows in {room}");
        }
    }
}
