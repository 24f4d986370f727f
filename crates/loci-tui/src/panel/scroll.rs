//! A text that is longer than its room: arrows and pages move it.

use super::{PanelContext, PanelStep, ask_snapshot};
use crate::key::{InputEvent, KeyCode};
use crate::layout::unseen_rows;
use crate::text::Row;

/// How far a page goes.
const PAGE: usize = 10;

/// How far a text is scrolled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scroll {
    first: usize,
}

impl Scroll {
    /// Takes what was typed; tells whether it scrolls.
    pub(crate) fn handle(&mut self, event: &InputEvent) -> bool {
        let InputEvent::Key(key) = event else { return false };
        self.first = match key.code {
            KeyCode::Up => self.first.saturating_sub(1),
            KeyCode::Down => self.first + 1,
            KeyCode::PageUp => self.first.saturating_sub(PAGE),
            KeyCode::PageDown => self.first + PAGE,
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX / 2,
            _ => return false,
        };
        true
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
        let Some(room) = room.checked_sub(1).filter(|room| *room > 0) else {
            return rows.into_iter().skip(self.first).take(1).collect();
        };
        let first = self.first.min(rows.len() - room);
        let note = unseen_rows(first, rows.len() - room - first);
        rows.into_iter().skip(first).take(room).chain([note]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn rows_beyond_the_room_are_counted_and_reached() {
        let rows = || (0..9).map(|idx| Row::plain(idx.to_string())).collect::<Vec<_>>();
        let texts = |scroll: &Scroll| scroll.rows(rows(), 4).iter().map(Row::text).collect::<Vec<_>>();
        let mut scroll = Scroll::default();
        assert_eq!(texts(&scroll), ["0", "1", "2", "… 6 more rows (PgDn)"]);
        assert!(scroll.handle(&InputEvent::Key(Key::plain(KeyCode::Down))));
        assert_eq!(texts(&scroll), ["1", "2", "3", "… 1 rows above, 5 below"]);
        scroll.handle(&InputEvent::Key(Key::plain(KeyCode::End)));
        assert_eq!(texts(&scroll), ["6", "7", "8", "… 6 rows above (PgUp)"]);
        assert_eq!(scroll.rows(rows(), 20).len(), 9);
    }
}
