//! The tabs of a panel: one of a few views is shown.

use crate::keymap::Action as KeyAction;
use crate::layout::{cells, faint, marked};
use crate::text::{Row, Span};

/// Tabs, one of which is shown.
#[derive(Debug, Clone)]
pub(crate) struct Tabs {
    titles: &'static [&'static str],
    shown: usize,
}

impl Tabs {
    /// Shows the first.
    pub(crate) fn new(titles: &'static [&'static str]) -> Self {
        Self { titles, shown: 0 }
    }

    /// Shows one of them.
    pub(crate) fn at(titles: &'static [&'static str], shown: usize) -> Self {
        Self { titles, shown }
    }

    /// Returns which is shown.
    pub(crate) fn shown(&self) -> usize {
        self.shown
    }

    /// Takes a key; tells whether another tab is shown now.
    pub(crate) fn handle(&mut self, action: Option<KeyAction>) -> bool {
        let n = self.titles.len().max(1);
        self.shown = match action {
            Some(KeyAction::TabsNext) => (self.shown + 1) % n,
            Some(KeyAction::TabsPrevious) => (self.shown + n - 1) % n,
            _ => return false,
        };
        true
    }

    /// Returns the row of titles; the one that is shown stands in brackets, whatever the colours. Where there is no room for
    /// all of them, those before it give way.
    pub(crate) fn row(&self, width: u16) -> Row {
        let first = (0..=self.shown).find(|first| self.fits(*first, width)).unwrap_or(self.shown);
        let span = |(idx, title): (usize, &&str)| match idx == self.shown {
            true => Span::styled(format!("[{title}] "), marked()),
            false => Span::styled(format!(" {title}  "), faint()),
        };
        let dots = Some(Span::styled("… ", faint())).filter(|_| first > 0);
        Row::new(dots.into_iter().chain(self.titles.iter().enumerate().skip(first).map(span)).collect())
    }

    /// Tells whether the one that is shown, and the dots for those left out around it, have room in a row that begins there.
    fn fits(&self, first: usize, width: u16) -> bool {
        let titles = self.titles.get(first..=self.shown).unwrap_or_default();
        let n_titles: usize = titles.iter().map(|title| usize::from(cells(title)) + 3).sum();
        let dots_before = if first > 0 { 2 } else { 0 };
        let dots_behind = usize::from(self.shown + 1 < self.titles.len());
        // No blank has to be seen behind the bracket.
        dots_before + n_titles - 1 + dots_behind <= usize::from(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::cut;

    #[test]
    fn tab_that_is_shown_is_seen_in_a_narrow_window() {
        let titles = &["Allow", "Ask", "Deny", "Workspace", "Recently denied"];
        for (width, shown, expected) in [
            (60, 4, " Allow   Ask   Deny   Workspace  [Recently denied]"),
            (40, 0, "[Allow]  Ask   Deny   Workspace   Recen…"),
            (40, 3, " Allow   Ask   Deny  [Workspace]  Recen…"),
            (40, 4, "…  Deny   Workspace  [Recently denied]"),
            (20, 4, "… [Recently denied]"),
            (20, 1, " Allow  [Ask]  Deny…"),
            (8, 4, "… [Rece…"),
        ] {
            let row = cut(&Tabs::at(titles, shown).row(width), width);
            assert_eq!(row.text().trim_end(), expected, "{width} {shown}");
        }
    }
}
