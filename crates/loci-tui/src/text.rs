//! Styled text: what renderers make and the screen writes.
//!
//! Text in a [`Span`] is clean: no control characters, no escape sequences. `sanitize` makes it so, and whoever puts
//! text of others (a model, a tool, a file name, a setting) into a span has passed it through there.

mod ansi;
mod sanitize;
mod width;
mod wrap;

use std::borrow::Cow;
use std::sync::Arc;

use crate::theme::ThemeToken;

pub use ansi::{parse_output, parse_status};
pub use sanitize::{expand_tabs, sanitize, sanitize_line};
pub(crate) use sanitize::{is_harmful_in_row, without_controls};
pub(crate) use width::is_plain_ascii;
pub use width::{cells, clusters, is_uncertain, width};
pub use wrap::{truncate, truncate_path, truncate_text, wrap};

/// A colour. The terminal's own sixteen are the default everywhere, so that the user's theme decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    /// The terminal's own.
    #[default]
    Default,
    /// One of the sixteen.
    Ansi(u8),
    /// One of 256.
    Indexed(u8),
    /// True colour.
    Rgb(u8, u8, u8),
    /// That of the theme, once it is known which that is.
    Themed(ThemeToken),
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// The colour of the letters.
    pub fg: Color,
    /// The colour behind them.
    pub bg: Color,
    /// Bold.
    pub is_bold: bool,
    /// Faint.
    pub is_dim: bool,
    /// Italic.
    pub is_italic: bool,
    /// Underlined.
    pub is_underlined: bool,
    /// Struck through.
    pub is_struck: bool,
    /// Letters and background exchanged.
    pub is_reversed: bool,
}

/// A piece of text with one look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// The text, without control characters.
    pub text: String,
    /// How it looks.
    pub style: Style,
    /// Where it leads (OSC 8).
    pub link: Option<Arc<str>>,
}

impl Span {
    /// Makes a piece of text that looks like nothing special.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Makes a piece of text with a look.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, link: None }
    }

    /// Whether it ends in a blank that looks like a cell nobody wrote to.
    fn has_unseen_end(&self) -> bool {
        let Style { bg, is_underlined, is_struck, is_reversed, .. } = self.style;
        let is_seen =
            bg != Color::Default || is_underlined || is_struck || is_reversed || self.link.is_some();
        !is_seen && self.text.ends_with(' ')
    }
}

/// One row. It is not padded to the width: people copy it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// Its pieces, from left to right.
    pub spans: Vec<Span>,
    /// Whether it may be longer than the width and is left to the terminal to wrap, as a long address is.
    pub is_overlong: bool,
}

impl Row {
    /// Makes a row of plain text.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { spans: vec![Span::plain(text)], is_overlong: false }
    }

    /// Makes a row of pieces.
    pub fn new(spans: Vec<Span>) -> Self {
        Self { spans, is_overlong: false }
    }

    /// Returns its text without the looks.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns the row without the blanks at its end that nobody sees.
    pub(crate) fn without_end_blanks(&self) -> Cow<'_, Self> {
        let ends_blank =
            |row: &Self| row.spans.last().is_some_and(|span| span.text.is_empty() || span.has_unseen_end());
        if !ends_blank(self) {
            return Cow::Borrowed(self);
        }
        let mut row = self.clone();
        while ends_blank(&row) {
            let Some(span) = row.spans.last_mut() else { break };
            span.text.truncate(span.text.trim_end_matches(' ').len());
            if span.text.is_empty() {
                row.spans.pop();
            }
        }
        Cow::Owned(row)
    }
}
