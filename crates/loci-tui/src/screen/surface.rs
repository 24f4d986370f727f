//! The one of the writers that a run draws with.

use super::{Frame, PlainWriter, Size, Writer, WriterOptions};

/// How frames reach the terminal.
#[derive(Debug)]
pub enum Surface {
    /// Inline, with a live region.
    Inline(Writer),
    /// As plain lines.
    Plain(PlainWriter),
}

impl Surface {
    /// Returns the bytes between what is shown and this frame.
    pub fn draw(&mut self, frame: &Frame, size: Size) -> Vec<u8> {
        match self {
            Self::Inline(writer) => writer.draw(frame, size),
            Self::Plain(writer) => writer.draw(frame, size.width),
        }
    }

    /// Returns the bytes that leave everything as it is, with the cursor below it.
    pub fn leave(&mut self) -> Vec<u8> {
        match self {
            Self::Inline(writer) => writer.leave(),
            Self::Plain(writer) => writer.leave(),
        }
    }

    /// Returns the bytes that begin below whatever the terminal shows.
    pub fn start_below(&mut self, size: Size) -> Vec<u8> {
        match self {
            Self::Inline(writer) => writer.start_below(size),
            Self::Plain(_) => Vec::new(),
        }
    }

    /// Returns the bytes that scroll everything into the scrollback.
    pub fn scroll_away(&mut self) -> Vec<u8> {
        match self {
            Self::Inline(writer) => writer.scroll_away(),
            Self::Plain(writer) => writer.leave(),
        }
    }

    /// Returns what is known of the terminal.
    pub fn options(&self) -> WriterOptions {
        match self {
            Self::Inline(writer) => writer.options(),
            Self::Plain(_) => WriterOptions::default(),
        }
    }

    /// Takes what the terminal says of synchronized output.
    pub fn set_synchronized(&mut self, is_synchronized: bool) {
        if let Self::Inline(writer) = self {
            writer.set_options(WriterOptions { is_synchronized, ..writer.options() });
        }
    }

    /// Has frames remembered until the terminal has answered for them.
    pub fn track_frames(&mut self, is_on: bool) {
        if let Self::Inline(writer) = self {
            writer.track_frames(is_on);
        }
    }

    /// Tells whether frames are remembered until the terminal has answered for them.
    pub fn tracks_frames(&self) -> bool {
        matches!(self, Self::Inline(writer) if writer.tracks_frames())
    }

    /// Takes the size for which the oldest frame was carried out; tells whether that is the one it was made for.
    pub fn answer_frame(&mut self, size: Size) -> bool {
        match self {
            Self::Inline(writer) => writer.answer_frame(size),
            Self::Plain(_) => true,
        }
    }

    /// Has the live region looked for as after a change of the size.
    pub fn expect_moved_rows(&mut self) {
        if let Self::Inline(writer) = self {
            writer.expect_moved_rows();
        }
    }

    /// Takes where the cursor went when the size changed.
    pub fn report_cursor(&mut self, row: u16, column: u16) {
        if let Self::Inline(writer) = self {
            writer.report_cursor(row, column);
        }
    }

    /// Tells whether it is plain lines.
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}
