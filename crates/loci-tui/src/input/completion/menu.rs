//! The menu under the input: what can be chosen, what is, and the rows of that.

use crate::layout::NO_MARK;
use crate::text::{Row, Span, Style, sanitize_line, truncate, truncate_text, width};

/// What stands before the item that is chosen.
pub(crate) const MENU_MARK: &str = "> ";

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuItem {
    /// What is shown first.
    pub label: String,
    /// What is said about it.
    pub detail: String,
    /// What is chosen.
    pub value: String,
}

/// How a menu looks. What is chosen is marked with a sign too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MenuStyles {
    /// Labels.
    pub label: Style,
    /// What is said about them.
    pub detail: Style,
    /// The label that is chosen.
    pub selected: Style,
}

/// A menu. None of its items is chosen while `selected` is none: Enter means the text then, not the menu.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Menu {
    items: Vec<MenuItem>,
    selected: Option<usize>,
    /// The first item that is seen.
    top: usize,
}

impl Menu {
    /// Makes a menu; the first item is chosen already if `selects_first`.
    pub fn new(items: Vec<MenuItem>, selects_first: bool) -> Self {
        let selected = (selects_first && !items.is_empty()).then_some(0);
        Self { items, selected, top: 0 }
    }

    /// Puts other items in. What was chosen by hand stays chosen, if it is still there.
    pub fn replace_items(&mut self, items: Vec<MenuItem>) {
        let chosen = self
            .selected
            .filter(|at| *at > 0)
            .and_then(|at| self.items.get(at))
            .map(|item| item.value.clone());
        let place = chosen.and_then(|value| items.iter().position(|item| item.value == value));
        let first = self.selected.and_then(|_| (!items.is_empty()).then_some(0));
        *self = Self { selected: place.or(first), items, top: self.top };
    }

    /// Tells whether there is nothing to choose.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the item that is chosen.
    pub fn selected(&self) -> Option<&MenuItem> {
        self.selected.and_then(|at| self.items.get(at))
    }

    /// Returns the item that Tab takes: the one that is chosen, or the first.
    pub fn accepted(&self) -> Option<&MenuItem> {
        self.selected().or_else(|| self.items.first())
    }

    /// Chooses the next item, the first behind the last.
    pub fn next(&mut self) {
        if !self.items.is_empty() {
            self.selected = Some(self.selected.map_or(0, |at| (at + 1) % self.items.len()));
        }
    }

    /// Chooses the item before, the last before the first.
    pub fn previous(&mut self) {
        if let Some(last) = self.items.len().checked_sub(1) {
            self.selected = Some(self.selected.and_then(|at| at.checked_sub(1)).unwrap_or(last));
        }
    }

    /// Shows the items, at most so many, with the chosen one among them.
    pub fn rows(&mut self, row_width: usize, height: usize, styles: &MenuStyles) -> Vec<Row> {
        let height = height.min(self.items.len());
        if height == 0 {
            return Vec::new();
        }
        let chosen = self.selected.unwrap_or(self.top);
        self.top = self.top.clamp((chosen + 1).saturating_sub(height), chosen).min(self.items.len() - height);
        let seen = &self.items[self.top..self.top + height];
        let labels: Vec<String> = seen.iter().map(|item| sanitize_line(&item.label)).collect();
        let widest = labels.iter().map(|label| width(label)).max().unwrap_or(0).min(row_width / 2);
        let has_details = seen.iter().any(|item| !item.detail.is_empty());
        let row = |(place, (item, label)): (usize, (&MenuItem, String))| {
            let is_selected = self.selected == Some(self.top + place);
            let (mark, style) =
                if is_selected { (MENU_MARK, styles.selected) } else { (NO_MARK, styles.label) };
            let mut spans = vec![Span::styled(mark, style)];
            if has_details {
                let label = truncate_text(&label, widest);
                let gap = " ".repeat(widest - width(&label) + 2);
                spans.push(Span::styled(label, style));
                if !item.detail.is_empty() {
                    spans.push(Span::plain(gap));
                    spans.push(Span::styled(sanitize_line(&item.detail), styles.detail));
                }
            } else {
                spans.push(Span::styled(label, style));
            }
            truncate(&Row::new(spans), row_width)
        };
        seen.iter().zip(labels).enumerate().map(row).collect()
    }
}
