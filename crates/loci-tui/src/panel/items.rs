//! A list of things of which one can be looked at: typing narrows it down, Enter looks, Esc goes back.
//!
//! The panel says what a thing looks like in the list ([`ListItem`]) and what is seen of it when it is looked at; the list keeps
//! its place when what it shows is read anew.

use super::{FilteredList, ListStep, PanelContext, PanelStep, PanelView, Scroll};
use crate::key::InputEvent;
use crate::layout::{cells, faint, line, warning};
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line};

/// A thing in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListItem {
    /// What it is called; the list finds it again by this.
    pub(crate) title: String,
    /// How it is doing, in a word.
    pub(crate) state: String,
    /// Whether that should be looked after.
    pub(crate) is_bad: bool,
    /// What else is said of it.
    pub(crate) note: String,
}

/// The list.
#[derive(Debug, Default)]
pub(crate) struct ItemList {
    /// None until they are known.
    items: Option<Vec<ListItem>>,
    /// What the filter looks into.
    texts: Vec<String>,
    /// How wide titles and states are, in order.
    title_widths: Vec<u16>,
    state_widths: Vec<u16>,
    list: FilteredList,
    /// The one that is looked at, by title.
    open: Option<String>,
    scroll: Scroll,
}

/// What came of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemStep {
    /// It was for the list.
    Stay,
    /// The panel is to be closed.
    Close,
    /// It was no key of lists.
    Unknown,
}

impl ItemList {
    /// Shows these; the mark stays where it was as far as possible.
    pub(crate) fn set(&mut self, items: Vec<ListItem>) {
        let marked =
            self.marked().and_then(|idx| self.items.as_ref()?.get(idx)).map(|item| item.title.clone());
        self.texts =
            items.iter().map(|item| format!("{} {} {}", item.title, item.state, item.note)).collect();
        self.title_widths = items.iter().map(|item| cells(&sanitize_line(&item.title))).collect();
        self.state_widths = items.iter().map(|item| cells(&sanitize_line(&item.state))).collect();
        self.list.refilter(self.texts.iter().map(String::as_str));
        if let Some(at) = marked.and_then(|title| items.iter().position(|item| item.title == title)) {
            self.list.mark(at);
        }
        // What is gone is not looked at any more, else keys would be for something that nobody sees.
        self.open = self.open.take().filter(|title| items.iter().any(|item| item.title == *title));
        self.items = Some(items);
    }

    /// Returns the place of the one that is looked at, or marked.
    pub(crate) fn marked(&self) -> Option<usize> {
        let items = self.items.as_ref()?;
        match &self.open {
            Some(title) => items.iter().position(|item| item.title == *title),
            None => self.list.marked().filter(|idx| *idx < items.len()),
        }
    }

    /// Returns the place of the one that is looked at.
    pub(crate) fn opened(&self) -> Option<usize> {
        self.open.as_ref().and_then(|_| self.marked())
    }

    /// Takes what was typed into a panel that is this list and nothing else.
    pub(crate) fn handle_panel(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        match self.handle(event, ctx) {
            ItemStep::Close => PanelStep::Close,
            ItemStep::Stay | ItemStep::Unknown => PanelStep::Stay,
        }
    }

    /// Takes what was typed.
    pub(crate) fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> ItemStep {
        if ctx.is_cancel() {
            return match self.open.take() {
                Some(_) => ItemStep::Stay,
                None => ItemStep::Close,
            };
        }
        if self.open.is_some() {
            return if self.scroll.handle(event) { ItemStep::Stay } else { ItemStep::Unknown };
        }
        match self.list.handle(event, ctx) {
            ListStep::Moved => ItemStep::Stay,
            ListStep::Filtered => {
                self.list.refilter(self.texts.iter().map(String::as_str));
                ItemStep::Stay
            }
            ListStep::Chosen(at) => {
                self.open =
                    self.items.as_ref().and_then(|items| items.get(at)).map(|item| item.title.clone());
                self.scroll = Scroll::default();
                ItemStep::Stay
            }
            ListStep::Unknown => ItemStep::Unknown,
        }
    }

    /// Lays the list out; `nothing` is said where it is empty.
    pub(crate) fn list_view(&self, view: &mut PanelView, size: Size, nothing: &str) {
        view.push_field("Search: ", self.list.field());
        let room = view.room(size);
        view.body = match &self.items {
            None => vec![line("Reading…", faint())],
            Some(items) if items.is_empty() => vec![line(nothing, faint())],
            Some(_) if self.list.len() == 0 => vec![line("Nothing is called so", faint())],
            Some(items) => {
                let columns = self.columns(size.width);
                self.list.rows(room, |idx| {
                    items.get(idx).map_or_else(Row::default, |item| item_row(item, columns))
                })
            }
        };
    }

    /// Returns how wide titles and states are; those that are wider than a share of the window stand out of line.
    fn columns(&self, width: u16) -> (usize, usize) {
        let widest = |most: u16, widths: &[u16]| {
            widths.iter().copied().filter(|width| *width <= most).max().map_or(0, usize::from)
        };
        (widest(width / 3, &self.title_widths), widest(width / 4, &self.state_widths))
    }

    /// Lays out what is seen of the one that is looked at.
    pub(crate) fn detail_view(&self, view: &mut PanelView, size: Size, rows: Vec<Row>) {
        let room = view.room(size);
        view.body = self.scroll.rows(rows, room);
    }

    /// Tells whether characters go to the filter.
    pub(crate) fn is_typing(&self) -> bool {
        self.open.is_none()
    }
}

fn item_row(item: &ListItem, (title_width, state_width): (usize, usize)) -> Row {
    let state_style = if item.is_bad { warning() } else { faint() };
    let has_more = !item.state.is_empty() || !item.note.is_empty();
    let title_width = if has_more { title_width } else { 0 };
    let mut spans = vec![Span::plain(padded(&item.title, title_width))];
    if state_width > 0 || !item.state.is_empty() {
        let state_width = if item.note.is_empty() { 0 } else { state_width };
        spans.push(Span::styled(format!("  {}", padded(&item.state, state_width)), state_style));
    }
    if !item.note.is_empty() {
        spans.push(Span::styled(format!("  {}", sanitize_line(&item.note)), faint()));
    }
    Row::new(spans)
}

/// Makes a text as wide as its column, where it is not wider.
pub(super) fn padded(text: &str, width: usize) -> String {
    let text = sanitize_line(text);
    let n_blanks = width.saturating_sub(usize::from(cells(&text)));
    text + &" ".repeat(n_blanks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_states_stand_in_columns_and_long_ones_move_nobody() {
        let item = |title: &str, state: &str, note: &str| ListItem {
            title: title.to_owned(),
            state: state.to_owned(),
            note: note.to_owned(),
            is_bad: false,
        };
        let mut list = ItemList::default();
        let long = "l".repeat(30);
        list.set(vec![item("a", "on", "first"), item("日本", "off", "second"), item(&long, "", "third")]);
        let mut view = PanelView::new("t", "");
        list.list_view(&mut view, Size { width: 60, height: 9 }, "");
        let rows: Vec<String> = view.body.iter().map(Row::text).collect();
        assert_eq!(rows, ["❯ a     on   first", "  日本  off  second", &format!("  {long}       third")]);
    }

    #[test]
    fn panel_goes_back_to_the_list_when_the_item_is_gone() {
        let items = |titles: &[&str]| -> Vec<ListItem> {
            titles
                .iter()
                .map(|title| ListItem { title: (*title).to_owned(), ..ListItem::default() })
                .collect()
        };
        let mut list = ItemList::default();
        list.set(items(&["a", "b"]));
        list.open = Some("a".to_owned());
        list.set(items(&["b", "a"]));
        assert_eq!((list.opened(), list.is_typing()), (Some(1), false), "it is found by its title");
        list.set(items(&["b"]));
        assert_eq!((list.opened(), list.is_typing()), (None, true));
    }
}
