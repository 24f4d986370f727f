//! A list of which one row is marked, with a filter above it: arrows, pages, Enter, and letters that narrow it down.
//!
//! The rows themselves are the panel's: the list knows their number and which are shown, so that what a key costs does not
//! depend on how a row looks, and only rows that are seen are made.

use std::cell::Cell;

use crate::dialog::TextField;
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::Action as KeyAction;
use crate::layout::{MORE_ABOVE, MORE_BELOW, NO_MARK, faint, mark_of, marked};
use crate::text::{Row, Span};

use super::PanelContext;

/// How far a page goes before it is known how many rows are seen.
const PAGE: usize = 10;

/// Which row of a list is marked.
#[derive(Debug, Clone)]
pub(crate) struct ListMark {
    /// The row, from the first of the list.
    pub(crate) at: usize,
    /// How many rows were seen last: as far goes a page.
    n_seen: Cell<usize>,
}

impl Default for ListMark {
    fn default() -> Self {
        Self { at: 0, n_seen: Cell::new(PAGE) }
    }
}

impl ListMark {
    /// Marks a row.
    pub(crate) fn new(at: usize) -> Self {
        Self { at, ..Self::default() }
    }

    /// Takes a key that marks another of so many rows; tells whether it is one.
    pub(crate) fn handle(&mut self, n_items: usize, key: Key, action: Option<KeyAction>) -> bool {
        let last = n_items.saturating_sub(1);
        let page = self.n_seen.get().max(1);
        self.at = match (action, key.code) {
            (Some(KeyAction::SelectNext), _) if self.at >= last => 0,
            (Some(KeyAction::SelectNext), _) => self.at + 1,
            (Some(KeyAction::SelectPrevious), _) => self.at.checked_sub(1).unwrap_or(last),
            (_, KeyCode::PageDown) => (self.at + page).min(last),
            (_, KeyCode::PageUp) => self.at.saturating_sub(page),
            (_, KeyCode::Home) => 0,
            (_, KeyCode::End) => last,
            _ => return false,
        };
        true
    }

    /// Takes a key that is bound to a way of scrolling; tells whether it is.
    pub(crate) fn handle_scroll(&mut self, n_items: usize, action: Option<KeyAction>) -> bool {
        let code = match action {
            Some(KeyAction::ScrollPageUp | KeyAction::ScrollFullPageUp) => KeyCode::PageUp,
            Some(KeyAction::ScrollPageDown | KeyAction::ScrollFullPageDown) => KeyCode::PageDown,
            Some(KeyAction::ScrollTop) => KeyCode::Home,
            Some(KeyAction::ScrollBottom) => KeyCode::End,
            _ => return false,
        };
        self.handle(n_items, Key::plain(code), None)
    }

    /// The same for whatever may be typed into a panel.
    pub(crate) fn handle_event(
        &mut self,
        n_items: usize,
        event: &InputEvent,
        action: Option<KeyAction>,
    ) -> bool {
        matches!(event, InputEvent::Key(key) if self.handle(n_items, *key, action))
    }

    /// Takes how many are seen.
    pub(crate) fn see(&self, n_items: usize, room: usize) {
        self.n_seen.set(room.min(n_items));
    }

    /// Returns the rows that are seen of so many in so much room, around the marked one.
    pub(crate) fn rows(&self, n_items: usize, room: usize, row: impl Fn(usize, bool) -> Row) -> Vec<Row> {
        self.see(n_items, room);
        list_rows(n_items, self.at, room, row)
    }
}

/// A list with a filter.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilteredList {
    field: TextField,
    /// Places in the panel's own list that pass the filter, in order.
    shown: Vec<usize>,
    mark: ListMark,
}

/// What came of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListStep {
    /// Another row is marked, or nothing changed that needs more work.
    Moved,
    /// The filter is another one: call [`FilteredList::refilter`].
    Filtered,
    /// This place of the panel's own list was chosen.
    Chosen(usize),
    /// It was no key of lists.
    Unknown,
}

impl FilteredList {
    /// Lists so many things, all of which are shown.
    pub(crate) fn new(n_items: usize) -> Self {
        Self { shown: (0..n_items).collect(), ..Self::default() }
    }

    /// Returns what is typed into the filter.
    pub(crate) fn field(&self) -> &TextField {
        &self.field
    }

    /// Returns the place of what is marked.
    pub(crate) fn marked(&self) -> Option<usize> {
        self.shown.get(self.mark.at).copied()
    }

    /// Returns how many are shown.
    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    /// Marks a place of the panel's own list, if it is shown.
    pub(crate) fn mark(&mut self, place: usize) {
        if let Some(idx) = self.shown.iter().position(|shown| *shown == place) {
            self.mark.at = idx;
        }
    }

    /// Marks the first of those that are shown.
    pub(crate) fn mark_first(&mut self) {
        self.mark.at = 0;
    }

    /// Returns which of those that are shown is marked.
    pub(crate) fn marked_idx(&self) -> usize {
        self.mark.at
    }

    /// Returns the places that are shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = usize> {
        self.shown.iter().copied()
    }

    /// Shows what has all words of the filter, whatever the case; what was marked stays marked where it is still shown.
    pub(crate) fn refilter<'a>(&mut self, texts: impl Iterator<Item = &'a str>) {
        let before = self.marked();
        let wanted = self.field.text().to_lowercase();
        let words: Vec<&str> = wanted.split_whitespace().collect();
        let fits = |text: &str| {
            let text = text.to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        self.shown = texts
            .enumerate()
            .filter(|(_, text)| words.is_empty() || fits(text))
            .map(|(idx, _)| idx)
            .collect();
        let kept = before.and_then(|place| self.shown.iter().position(|shown| *shown == place));
        self.mark.at = kept.unwrap_or(0);
    }

    /// Takes what was typed; characters go to the filter.
    pub(crate) fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> ListStep {
        match event {
            InputEvent::Key(key) => match self.handle_key(*key, ctx.action) {
                ListStep::Unknown if self.field.handle(*key) => ListStep::Filtered,
                step => step,
            },
            InputEvent::Paste(text) => {
                self.field.insert(text);
                ListStep::Filtered
            }
            _ => ListStep::Unknown,
        }
    }

    /// Takes a key of lists.
    pub(crate) fn handle_key(&mut self, key: Key, action: Option<KeyAction>) -> ListStep {
        let is_of_field = matches!(key.code, KeyCode::Home | KeyCode::End) && !self.field.text().is_empty();
        if !is_of_field && self.mark.handle(self.shown.len(), key, action) {
            return ListStep::Moved;
        }
        match action {
            Some(KeyAction::SelectAccept) => self.marked().map_or(ListStep::Moved, ListStep::Chosen),
            _ => ListStep::Unknown,
        }
    }

    /// Returns the rows that are seen in so much room, around the marked one; `row` makes the row of a place.
    pub(crate) fn rows(&self, room: usize, row: impl Fn(usize) -> Row) -> Vec<Row> {
        self.rows_marked(room, true, row)
    }

    /// Returns the same, where the mark may stand elsewhere.
    pub(crate) fn rows_marked(&self, room: usize, has_mark: bool, row: impl Fn(usize) -> Row) -> Vec<Row> {
        self.mark.rows(self.shown.len(), room, |idx, is_marked| {
            let place = self.shown.get(idx).copied().unwrap_or(0);
            mark_row(row(place), is_marked && has_mark)
        })
    }
}

/// Returns the rows of a list that are seen in so much room: the marked one stands in the middle as far as possible. Where
/// more are above or below, an arrow at the edge says so.
pub(crate) fn list_rows(
    n_items: usize,
    marked: usize,
    room: usize,
    row: impl Fn(usize, bool) -> Row,
) -> Vec<Row> {
    let first = marked.saturating_sub(room / 2).min(n_items.saturating_sub(room));
    let behind = n_items.min(first + room);
    let with_edge = |idx: usize| {
        let edge = match idx {
            _ if idx == first && first > 0 => MORE_ABOVE,
            _ if idx + 1 == behind && behind < n_items => MORE_BELOW,
            _ => return row(idx, idx == marked),
        };
        edge_row(row(idx, idx == marked), edge)
    };
    (first..behind).map(with_edge).collect()
}

/// Says in the place of the mark, where that stands elsewhere, that there are more rows.
fn edge_row(mut row: Row, edge: &str) -> Row {
    if let Some(span) = row.spans.first_mut().filter(|span| span.text == NO_MARK) {
        *span = Span::styled(edge, faint());
    }
    row
}

/// Puts the mark before a row.
pub(crate) fn mark_row(row: Row, is_marked: bool) -> Row {
    let mut spans = vec![Span::styled(mark_of(is_marked), marked())];
    spans.extend(row.spans.into_iter().map(|span| match is_marked {
        true => Span { style: marked(), ..span },
        false => span,
    }));
    Row::new(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode, action: Option<KeyAction>) -> (InputEvent, PanelContext) {
        (InputEvent::Key(Key::plain(code)), PanelContext { action })
    }

    #[test]
    fn filter_narrows_and_keeps_the_mark() {
        let items = ["Alpha one", "beta ONE", "gamma two"];
        let mut list = FilteredList::new(items.len());
        let (event, ctx) = key(KeyCode::Down, Some(KeyAction::SelectNext));
        assert_eq!(list.handle(&event, &ctx), ListStep::Moved);
        for c in "one".chars() {
            let (event, ctx) = key(KeyCode::Char(c), None);
            assert_eq!(list.handle(&event, &ctx), ListStep::Filtered);
            list.refilter(items.into_iter());
        }
        assert_eq!((list.len(), list.marked()), (2, Some(1)));
        let (event, ctx) = key(KeyCode::Enter, Some(KeyAction::SelectAccept));
        assert_eq!(list.handle(&event, &ctx), ListStep::Chosen(1));
    }

    #[test]
    fn page_is_what_is_seen_and_the_edges_say_that_there_is_more() {
        let list = |mark: &ListMark, room| -> Vec<String> {
            let row = |idx: usize, is_marked| mark_row(Row::plain(format!("b{idx}")), is_marked);
            mark.rows(9, room, row).iter().map(Row::text).collect()
        };
        let mut mark = ListMark::default();
        for (key, room, expected) in [
            (KeyCode::Home, 4, ["❯ b0", "  b1", "  b2", "↓ b3"]),
            (KeyCode::PageDown, 4, ["↑ b2", "  b3", "❯ b4", "↓ b5"]),
            (KeyCode::PageDown, 4, ["↑ b5", "  b6", "  b7", "❯ b8"]),
            (KeyCode::PageUp, 4, ["↑ b2", "  b3", "❯ b4", "↓ b5"]),
            (KeyCode::End, 4, ["↑ b5", "  b6", "  b7", "❯ b8"]),
        ] {
            assert!(mark.handle(9, Key::plain(key), None), "{key:?}");
            assert_eq!(list(&mark, room), expected, "{key:?}");
        }
        assert_eq!(list(&mark, 1), ["❯ b8"], "the mark is more than the edge");
        assert_eq!(list(&mark, 9).concat().matches(['↑', '↓']).count(), 0, "all of it is seen");
        assert!(!mark.handle(9, Key::plain(KeyCode::Tab), None));
    }

    #[test]
    fn home_and_end_are_the_fields_once_something_is_typed() {
        let mut list = FilteredList::new(3);
        assert_eq!(list.handle_key(Key::plain(KeyCode::End), None), ListStep::Moved);
        assert_eq!(list.marked(), Some(2));
        let (event, ctx) = key(KeyCode::Char('x'), None);
        list.handle(&event, &ctx);
        assert_eq!(list.handle_key(Key::plain(KeyCode::Home), None), ListStep::Unknown);
    }

    #[test]
    fn only_rows_around_the_mark_are_made() {
        let made = std::cell::RefCell::new(Vec::new());
        let rows = list_rows(10_000, 5_000, 4, |idx, _| {
            made.borrow_mut().push(idx);
            Row::default()
        });
        assert_eq!((rows.len(), made.into_inner()), (4, vec![4_998, 4_999, 5_000, 5_001]));
        assert_eq!(list_rows(3, 2, 10, |_, _| Row::default()).len(), 3);
        assert_eq!(list_rows(0, 0, 10, |_, _| Row::default()).len(), 0);
    }
}
