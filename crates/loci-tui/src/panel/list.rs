//! A list of which one row is marked, with a filter above it: arrows, pages, Enter, and letters that narrow it down.
//!
//! The rows themselves are the panel's: the list knows their number and which are shown, so that what a key costs does not
//! depend on how a row looks, and only rows that are seen are made.

use crate::dialog::TextField;
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::Action as KeyAction;
use crate::layout::{mark_of, marked};
use crate::text::{Row, Span};

use super::PanelContext;

/// How far a page goes.
const PAGE: usize = 10;

/// A list with a filter.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilteredList {
    field: TextField,
    /// Places in the panel's own list that pass the filter, in order.
    shown: Vec<usize>,
    marked: usize,
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
        self.shown.get(self.marked).copied()
    }

    /// Returns how many are shown.
    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    /// Marks a place of the panel's own list, if it is shown.
    pub(crate) fn mark(&mut self, place: usize) {
        if let Some(idx) = self.shown.iter().position(|shown| *shown == place) {
            self.marked = idx;
        }
    }

    /// Marks the first of those that are shown.
    pub(crate) fn mark_first(&mut self) {
        self.marked = 0;
    }

    /// Returns which of those that are shown is marked.
    pub(crate) fn marked_idx(&self) -> usize {
        self.marked
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
        self.marked = kept.unwrap_or(0);
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
        let last = self.shown.len().saturating_sub(1);
        self.marked = match (action, key.code) {
            (Some(KeyAction::SelectNext), _) if self.marked == last => 0,
            (Some(KeyAction::SelectNext), _) => self.marked + 1,
            (Some(KeyAction::SelectPrevious), _) => self.marked.checked_sub(1).unwrap_or(last),
            (_, KeyCode::PageDown) => (self.marked + PAGE).min(last),
            (_, KeyCode::PageUp) => self.marked.saturating_sub(PAGE),
            (_, KeyCode::Home) if self.field.text().is_empty() => 0,
            (_, KeyCode::End) if self.field.text().is_empty() => last,
            (Some(KeyAction::SelectAccept), _) => {
                return self.marked().map_or(ListStep::Moved, ListStep::Chosen);
            }
            _ => return ListStep::Unknown,
        };
        ListStep::Moved
    }

    /// Returns the rows that are seen in so much room, around the marked one; `row` makes the row of a place.
    pub(crate) fn rows(&self, room: usize, row: impl Fn(usize) -> Row) -> Vec<Row> {
        self.rows_marked(room, true, row)
    }

    /// Returns the same, where the mark may stand elsewhere.
    pub(crate) fn rows_marked(&self, room: usize, has_mark: bool, row: impl Fn(usize) -> Row) -> Vec<Row> {
        list_rows(self.shown.len(), self.marked, room, |idx, is_marked| {
            let place = self.shown.get(idx).copied().unwrap_or(0);
            mark_row(row(place), is_marked && has_mark)
        })
    }
}

/// Returns the rows of a list that are seen in so much room: the marked one stands in the middle as far as possible.
pub(crate) fn list_rows(
    n_items: usize,
    marked: usize,
    room: usize,
    row: impl Fn(usize, bool) -> Row,
) -> Vec<Row> {
    let first = marked.saturating_sub(room / 2).min(n_items.saturating_sub(room));
    (first..n_items.min(first + room)).map(|idx| row(idx, idx == marked)).collect()
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
