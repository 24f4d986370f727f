//! Messages that travel as lines: split, and none kept that is too long.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::oversized::OversizedLine;

/// The longest line that is read; of what is longer only the ends are kept.
const LINE_LIMIT: usize = 64 << 20;
/// How much is read at once, and how much of a buffer is kept between messages.
const BUFFER: usize = 8 << 10;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it, without its end.
    Whole(Vec<u8>),
    /// It was too long.
    TooLong(OversizedLine),
}

/// Lines of an output, of which none is kept that is too long.
pub(crate) struct LineReader<R> {
    reader: Option<R>,
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no end of a line.
    searched: usize,
    /// The line at hand, where it is too long.
    oversized: Option<OversizedLine>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: Option<R>) -> Self {
        Self { reader, buffer: Vec::new(), searched: 0, oversized: None }
    }

    pub(super) fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Returns the next line; none at the end. Nothing is lost when this is dropped.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.take_line() {
                return Some(line);
            }
            let Some(reader) = &mut self.reader else {
                let rest = std::mem::take(&mut self.buffer);
                self.searched = 0;
                let oversized = self.oversized.take().map(Line::TooLong);
                return oversized.or_else(|| (!rest.is_empty()).then_some(Line::Whole(rest)));
            };
            self.buffer.reserve(BUFFER);
            if reader.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                self.reader = None;
            }
        }
    }

    fn take_line(&mut self) -> Option<Line> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            if self.buffer.len() > LINE_LIMIT || self.oversized.is_some() {
                self.oversized.get_or_insert_default().push(&self.buffer);
                (self.buffer, self.searched) = (Vec::new(), 0);
            }
            return None;
        };
        let end = self.searched + at + 1;
        let rest = self.buffer.split_off(end);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        self.searched = 0;
        line.pop();
        if self.oversized.is_none() && line.len() <= LINE_LIMIT {
            return Some(Line::Whole(line));
        }
        let mut oversized = self.oversized.take().unwrap_or_default();
        oversized.push(&line);
        Some(Line::TooLong(oversized))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(input: &[u8]) -> Vec<String> {
        let mut reader = LineReader::new(Some(input));
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await {
            lines.push(match line {
                Line::Whole(line) => String::from_utf8_lossy(&line).into_owned(),
                Line::TooLong(line) => format!("too long: {}", line.n_bytes),
            });
        }
        lines
    }

    #[tokio::test]
    async fn lines_are_split_and_the_last_needs_no_end() {
        assert_eq!(lines_of(b"a\nbc\n\nd").await, ["a", "bc", "", "d"]);
        assert_eq!(lines_of(b"").await, [""; 0]);
    }

    #[tokio::test]
    async fn line_that_is_too_long_is_told_and_the_next_is_read() {
        let long = vec![b'x'; LINE_LIMIT + 3 * BUFFER];
        let told = format!("too long: {}", long.len());
        let both = vec![told.clone(), "good".to_owned()];
        assert_eq!(lines_of(&[&long, b"\ngood\n".as_slice()].concat()).await, both);
        assert_eq!(lines_of(&long).await, vec![told], "one without an end");
    }
}
