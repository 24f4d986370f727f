//! How an answer's bytes are cut into frames: the part of a provider between the connection and its protocol.
//!
//! Anthropic's API streams server-sent events (`loci_http::SseReader`), and so do most; Bedrock has binary event streams
//! (`clouds::event_stream`). A framing is a reader in a file of its own, named where its provider is put together.

use std::borrow::Cow;
use std::fmt::Debug;

use loci_http::{SseError, SseEvent, SseReader};

/// Makes a reader for one answer.
pub(crate) type Framing = fn() -> Box<dyn FrameReader>;

/// Cuts the bytes of one answer into frames.
pub(crate) trait FrameReader: Debug + Send + Sync {
    /// Takes in more bytes; ask for frames until there are none before taking in the next.
    fn push(&mut self, bytes: &[u8]);
    /// Returns the next whole frame, or `None` until more bytes come.
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError>;
    /// Returns what is left when the bytes have ended.
    fn last_frame(&mut self) -> Option<Frame<'_>>;
}

/// One event of an answer, lent until the next is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// The event's name; empty when the stream did not give one.
    pub(crate) event: Cow<'a, str>,
    /// The event's data.
    pub(crate) data: &'a [u8],
}

/// Why there is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// One event grew past the cap.
    #[error("One event of the stream has more than {cap} bytes")]
    TooLarge {
        /// The cap that was met.
        cap: usize,
    },
    /// The bytes are no frame.
    #[error("The answer's stream is broken: {0}")]
    Corrupt(&'static str),
}

impl From<SseError> for FrameError {
    fn from(SseError::TooLarge { cap }: SseError) -> Self {
        Self::TooLarge { cap }
    }
}

impl<'a> From<SseEvent<'a>> for Frame<'a> {
    fn from(event: SseEvent<'a>) -> Self {
        Self { event: event.name, data: event.data }
    }
}

/// Events without a word in them say nothing here.
impl FrameReader for SseReader {
    fn push(&mut self, bytes: &[u8]) {
        Self::push(self, bytes);
    }

    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        while self.advance()? {
            if !self.event().data.is_empty() {
                return Ok(Some(self.event().into()));
            }
        }
        Ok(None)
    }

    fn last_frame(&mut self) -> Option<Frame<'_>> {
        (self.advance_to_last() && !self.event().data.is_empty()).then(|| self.event().into())
    }
}
