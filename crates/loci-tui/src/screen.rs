//! What a frame is.

use crate::text::Row;

/// What the terminal is to show next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// Rows that are final: written once, into the terminal's scrollback, and never touched again.
    pub committed: Vec<Row>,
    /// The live region at the bottom, as it is now.
    pub live: Vec<Row>,
    /// Where the caret stands in the live region: row, and column in cells.
    pub caret: Option<(usize, u16)>,
    /// Whether the caret is to be seen.
    pub is_caret_visible: bool,
}
