//! A text that is longer than its room: arrows and pages move it.

use std::cell::Cell;

use super::{PanelContext, PanelStep, ask_snapshot};
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::Action as KeyAction;
use crate::layout::unseen_rows;
use crate::text::Row;

/// How far a page goes before it is known how many rows are seen.
const PAGE: usize = 10;

/// How far a text is scrolled.
#[derive(Debug, Clone)]
pub(crate) struct Scroll {
    /// The first row that is seen. Whoever draws takes it back to the last that can be: only then the room is known, and a
    /// key that went further would have to be undone before another is seen to do something.
    first: Cell<usize>,
    /// Whether the end is seen, also when there is more of it.
    follows: bool,
    /// How far a page goes: as far as rows were seen last, less one, so that no row is passed over.
    page: Cell<usize>,
}

impl Default for Scroll {
    fn default() -> Self {
        Self { first: Cell::default(), follows: false, page: Cell::new(PAGE) }
    }
}

impl Scroll {
    /// Begins at the end, and stays there as the text grows until somebody scrolls.
    pub(crate) fn at_end() -> Self {
        Self { follows: true, ..Self::default() }
    }

    /// Takes what was typed; tells whether it scrolls.
    pub(crate) fn handle(&mut self, event: &InputEvent) -> bool {
        let InputEvent::Key(key) = event else { return false };
        let first = self.first.get();
        let next = match key.code {
            KeyCode::Up => first.saturating_sub(1),
            KeyCode::Down => first + 1,
            KeyCode::PageUp => first.saturating_sub(self.page.get()),
            KeyCode::PageDown => first + self.page.get(),
            KeyCode::Home => 0,
            KeyCode::End => first,
            _ => return false,
        };
        self.first.set(next);
        let goes_up = matches!(key.code, KeyCode::Up | KeyCode::PageUp | KeyCode::Home);
        self.follows = key.code == KeyCode::End || self.follows && !goes_up;
        true
    }

    /// Takes a key that is bound to a way of scrolling; tells whether it is.
    pub(crate) fn handle_action(&mut self, action: Option<KeyAction>) -> bool {
        let code = match action {
            Some(KeyAction::ScrollLineUp) => KeyCode::Up,
            Some(KeyAction::ScrollLineDown) => KeyCode::Down,
            Some(KeyAction::ScrollPageUp | KeyAction::ScrollHalfPageUp | KeyAction::ScrollFullPageUp) => {
                KeyCode::PageUp
            }
            Some(
                KeyAction::ScrollPageDown | KeyAction::ScrollHalfPageDown | KeyAction::ScrollFullPageDown,
            ) => KeyCode::PageDown,
            Some(KeyAction::ScrollTop) => KeyCode::Home,
            Some(KeyAction::ScrollBottom) => KeyCode::End,
            _ => return false,
        };
        self.handle(&InputEvent::Key(Key::plain(code)))
    }

    /// Takes what was typed into a panel that is a text and nothing else: it scrolls, is read again, or is closed.
    pub(crate) fn handle_panel(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        match event {
            _ if self.handle(event) => PanelStep::Stay,
            InputEvent::Key(key) if key.code == KeyCode::Char('r') => PanelStep::Act(vec![ask_snapshot()]),
            _ => PanelStep::Stay,
        }
    }

    /// Returns the rows that are seen, and says how many are not; a scroll beyond the end shows the end.
    pub(crate) fn rows(&self, rows: Vec<Row>, room: usize) -> Vec<Row> {
        if rows.len() <= room {
            return rows;
        }
        let (room, has_note) = match room {
            0 | 1 => (1, false),
            room => (room - 1, true),
        };
        self.page.set(room.saturating_sub(1).max(1));
        let last = rows.len() - room;
        let first = if self.follows { last } else { self.first.get().min(last) };
        self.first.set(first);
        if !has_note {
            return rows.into_iter().skip(first).take(room).collect();
        }
        let note = unseen_rows(first, rows.len() - room - first);
        rows.into_iter().skip(first).take(room).chain([note]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_room_are_counted_and_reached() {
        let rows = || (0..9).map(|idx| Row::plain(idx.to_string())).collect::<Vec<_>>();
        let texts = |scroll: &Scroll| scroll.rows(rows(), 4).iter().map(Row::text).collect::<Vec<_>>();
        let mut scroll = Scroll::default();
        assert_eq!(texts(&scroll), ["0", "1", "2", "… 6 more rows (PgDn)"]);
        assert!(scroll.handle(&InputEvent::Key(Key::plain(KeyCode::Down))));
        assert_eq!(texts(&scroll), ["1", "2", "3", "… 1 row above, 5 below"]);
        scroll.handle(&InputEvent::Key(Key::plain(KeyCode::End)));
        assert_eq!(texts(&scroll), ["6", "7", "8", "… 6 rows above (PgUp)"]);
        assert_eq!(scroll.rows(rows(), 20).len(), 9);
    }

    #[test]
    fn one_key_undoes_another_also_where_the_end_was_passed() {
        let rows = |n: usize| (0..n).map(|idx| Row::plain(idx.to_string())).collect::<Vec<_>>();
        let first = |scroll: &Scroll, n| scroll.rows(rows(n), 4).first().map(Row::text).unwrap_or_default();
        let key = |code| InputEvent::Key(Key::plain(code));
        for (keys, expected) in [
            (vec![KeyCode::End, KeyCode::Up], "5"),
            (vec![KeyCode::PageDown, KeyCode::PageDown], "4"),
            (vec![KeyCode::PageDown, KeyCode::PageDown, KeyCode::PageUp], "2"),
            (vec![KeyCode::PageDown; 9], "6"),
            (vec![KeyCode::PageDown, KeyCode::PageDown, KeyCode::PageDown, KeyCode::Down, KeyCode::Up], "5"),
            (vec![KeyCode::PageUp, KeyCode::Down], "1"),
            (vec![KeyCode::End, KeyCode::Home], "0"),
        ] {
            let mut scroll = Scroll::default();
            for code in &keys {
                // It is drawn before each key.
                first(&scroll, 9);
                scroll.handle(&key(*code));
            }
            assert_eq!(first(&scroll, 9), expected, "{keys:?}");
        }
        let mut scroll = Scroll::at_end();
        assert_eq!((first(&scroll, 9), first(&scroll, 12)), ("6".into(), "9".into()), "it grows");
        scroll.handle(&key(KeyCode::Up));
        assert_eq!((first(&scroll, 12), first(&scroll, 20)), ("8".into(), "8".into()), "somebody reads");
        scroll.handle(&key(KeyCode::End));
        assert_eq!((first(&scroll, 20), first(&scroll, 21)), ("17".into(), "18".into()));
        assert_eq!(scroll.rows(rows(5), 1).len(), 1);
    }
}
