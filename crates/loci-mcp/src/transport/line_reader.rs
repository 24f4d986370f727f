//! Messages that travel as lines: split, and none kept that is too long.

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest line that is read; what is longer is no message and is skipped.
const LINE_LIMIT: usize = 64 << 20;
/// How much is read at once, and how much of a buffer is kept between messages.
const BUFFER: usize = 8 << 10;

/// Lines of an output, of which none is kept that is too long.
pub(crate) struct LineReader<R> {
    reader: Option<R>,
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no end of a line.
    searched: usize,
    /// Whether the line at hand is too long and is being skipped.
    is_skipping: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: Option<R>) -> Self {
        Self { reader, buffer: Vec::new(), searched: 0, is_skipping: false }
    }

    pub(super) fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Returns the next line; none at the end. Nothing is lost when this is dropped.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = self.take_line() {
                return Some(line);
            }
            let Some(reader) = &mut self.reader else {
                let rest = std::mem::take(&mut self.buffer);
                self.searched = 0;
                return (!rest.is_empty() && !self.is_skipping).then_some(rest);
            };
            self.buffer.reserve(BUFFER);
            if reader.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                self.reader = None;
            }
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                if self.buffer.len() > LINE_LIMIT {
                    self.is_skipping = true;
                }
                if self.is_skipping {
                    (self.buffer, self.searched) = (Vec::new(), 0);
                }
                return None;
            };
            let end = self.searched + at + 1;
            let rest = self.buffer.split_off(end);
            let mut line = std::mem::replace(&mut self.buffer, rest);
            self.searched = 0;
            line.pop();
            if !std::mem::take(&mut self.is_skipping) && line.len() <= LINE_LIMIT {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(input: &[u8]) -> Vec<String> {
        let mut reader = LineReader::new(Some(input));
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await {
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
        lines
    }

    #[tokio::test]
    async fn lines_are_split_and_the_last_needs_no_end() {
        assert_eq!(lines_of(b"a\nbc\n\nd").await, ["a", "bc", "", "d"]);
        assert_eq!(lines_of(b"").await, [""; 0]);
    }

    #[tokio::test]
    async fn line_without_end_is_skipped_and_the_next_is_read() {
        let mut input = vec![b'x'; LINE_LIMIT + 3 * BUFFER];
        input.extend_from_slice(b"\ngood\n");
        assert!(lines_of(&input).await == ["good"], "the long line is skipped");
    }
}
