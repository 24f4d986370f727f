//! The tabs of a panel: one of a few views is shown.

use crate::keymap::Action as KeyAction;
use crate::layout::{faint, marked};
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

    /// Returns the row of titles; the one that is shown stands in brackets, whatever the colours.
    pub(crate) fn row(&self) -> Row {
        let span = |(idx, title): (usize, &&str)| match idx == self.shown {
            true => Span::styled(format!("[{title}] "), marked()),
            false => Span::styled(format!(" {title}  "), faint()),
        };
        Row::new(self.titles.iter().enumerate().map(span).collect())
    }
}
