//! Lines of standard input, as far as they can be read. A line that cannot is told as such, and the next one is read.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The longest line that is taken: a prompt with several pictures fits in.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// What came in place of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadLine {
    #[error("A line is longer than 64 MiB")]
    TooLong,
    #[error("A line is not UTF-8")]
    NotText,
}

/// Reads lines on a thread of its own: standard input cannot be waited for in any other way.
pub(super) fn read_stdin() -> UnboundedReceiver<Result<String, BadLine>> {
    let (sender, receiver) = unbounded_channel();
    tokio::spawn(async move {
        let mut reader = BufReader::new(tokio::io::stdin());
        while let Some(line) = next_line(&mut reader, MOST_BYTES).await {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Reads the next line; none at the end, or when nothing can be read any more.
async fn next_line(reader: &mut (impl AsyncBufRead + Unpin), most: usize) -> Option<Result<String, BadLine>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let chunk = reader.fill_buf().await.ok()?;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = &chunk[..end.unwrap_or(chunk.len())];
        let (n_taken, is_over) = (chunk.len(), chunk.is_empty());
        is_too_long |= line.len() + taken.len() > most;
        match is_too_long {
            true => line = Vec::new(),
            false => line.extend_from_slice(taken),
        }
        reader.consume(end.map_or(n_taken, |end| end + 1));
        match (end.is_some() || is_over, is_too_long) {
            (true, true) => return Some(Err(BadLine::TooLong)),
            (true, false) if is_over && line.is_empty() => return None,
            (true, false) => return Some(String::from_utf8(line).map_err(|_| BadLine::NotText)),
            (false, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_that_cannot_be_read_are_told_and_the_next_is_read() {
        let bytes = b"one\n\xff\xfe\n0123456789\ntwo\n\nlast";
        for capacity in [1, 3, 4096] {
            let mut reader = BufReader::with_capacity(capacity, bytes.as_slice());
            let mut lines = Vec::new();
            while let Some(line) = next_line(&mut reader, 8).await {
                lines.push(line.map_err(|bad| bad.to_string()));
            }
            let text = |text: &str| Ok(text.to_owned());
            let expected = [
                text("one"),
                Err(BadLine::NotText.to_string()),
                Err(BadLine::TooLong.to_string()),
                text("two"),
                text(""),
                text("last"),
            ];
            assert_eq!(lines, expected, "{capacity}");
        }
    }
}
