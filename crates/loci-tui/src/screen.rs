//! What a frame is, and the writers that show it.
//!
//! [`Writer`] draws inline: final rows go to the terminal's own scrollback, a live region stays at the bottom.
//! [`FullScreen`] draws a whole screen, for the fullscreen renderer, pagers and pickers; [`PlainWriter`] prints lines, for screen readers and terminals
//! that know no escape sequences. Both write only what differs from the last frame, and
//! neither does any input or output: they return the bytes, which the caller writes in one write.
//! `docs/design/terminal.md` has the invariants, and says why `ratatui` does not do this.

mod fullscreen;
mod in_flight;
mod pen;
mod plain;
mod row_diff;
mod sketch;
mod surface;
mod writer;

pub use fullscreen::FullScreen;
pub use plain::PlainWriter;
pub(crate) use row_diff::split as split_row;
pub use surface::Surface;
pub use writer::{Writer, WriterOptions, live_limit};
pub(crate) use writer::{cut_to_caret, split_live};

use crate::text::Row;

/// The size of a terminal, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

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
    /// Whether the live region may take the whole screen, as a dialog may; else it is cut to [`live_limit`] at its top.
    pub is_tall: bool,
    /// Whether the live region keeps the height it had, as it does within a turn: blank rows above it fill the gap.
    pub keeps_height: bool,
}
