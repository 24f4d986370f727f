//! The output of a command, kept within bounds.
//!
//! Of each stream the beginning and the end stay in memory. The whole, both streams in the order they arrived,
//! stays in memory only as long as it is short; then it moves to a file that grows up to its own limit. What
//! must stay true: however much a command writes, memory use does not depend on it.

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// Which of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Tells where the whole output goes when it gets long.
pub(crate) type SpillPath<'a> = &'a (dyn Fn() -> io::Result<PathBuf> + Send + Sync);

/// Bounds of a [`Capture`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaptureLimits {
    /// Characters at the beginning of a stream that are kept.
    pub(crate) head_chars: usize,
    /// Characters at its end.
    pub(crate) tail_chars: usize,
    /// Bytes of the whole that stay in memory.
    pub(crate) log_bytes: usize,
    /// Bytes of the whole that go to a file.
    pub(crate) file_bytes: u64,
}

/// What a command has written so far.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) stdout: HeadAndTail,
    pub(crate) stderr: HeadAndTail,
    log: Log,
    limits: CaptureLimits,
}

#[derive(Debug)]
enum Log {
    Memory(Vec<u8>),
    File {
        file: File,
        path: PathBuf,
        written: u64,
    },
    /// The file could not be written; the reason was reported to nobody yet.
    Lost(io::Error),
}

impl Capture {
    pub(crate) fn new(limits: CaptureLimits) -> Self {
        let kept = || HeadAndTail::new(limits.head_chars, limits.tail_chars);
        Self { stdout: kept(), stderr: kept(), log: Log::Memory(Vec::new()), limits }
    }

    /// Bytes written by the command, kept or not.
    pub(crate) fn total(&self) -> u64 {
        self.stdout.total + self.stderr.total
    }

    /// Returns true when a stream was too long to be kept in memory.
    pub(crate) fn has_gap(&self) -> bool {
        self.stdout.has_gap() || self.stderr.has_gap()
    }

    /// Takes a piece of output in.
    pub(crate) async fn push(&mut self, stream: Stream, chunk: &[u8], spill: SpillPath<'_>) {
        match stream {
            Stream::Stdout => self.stdout.push(chunk),
            Stream::Stderr => self.stderr.push(chunk),
        }
        if let Log::Memory(log) = &mut self.log {
            if log.len() + chunk.len() <= self.limits.log_bytes {
                log.extend_from_slice(chunk);
                return;
            }
            self.save(spill).await;
        }
        self.append(chunk).await;
    }

    /// Moves the whole output from memory to its file.
    pub(crate) async fn save(&mut self, spill: SpillPath<'_>) {
        let Log::Memory(log) = &mut self.log else { return };
        let log = std::mem::take(log);
        let opened = match spill() {
            Ok(path) => create(&path).await.map(|file| (file, path)),
            Err(error) => Err(error),
        };
        match opened {
            Ok((file, path)) => {
                self.log = Log::File { file, path, written: 0 };
                self.append(&log).await;
            }
            Err(error) => self.log = Log::Lost(error),
        }
    }

    /// Goes on in another file, which gets everything so far, without a limit.
    pub(crate) async fn move_to(&mut self, path: &Path) -> io::Result<()> {
        let mut file = create(path).await?;
        let mut written = 0;
        match &mut self.log {
            Log::Memory(log) => {
                file.write_all(log).await?;
                written = log.len() as u64;
            }
            Log::File { file: old, path: old_path, .. } => {
                old.flush().await?;
                written = tokio::io::copy(&mut File::open(&old_path).await?, &mut file).await?;
                tokio::fs::remove_file(old_path).await?;
            }
            Log::Lost(_) => {}
        }
        file.flush().await?;
        self.log = Log::File { file, path: path.to_path_buf(), written };
        self.limits.file_bytes = u64::MAX;
        Ok(())
    }

    /// Finishes the file. Returns where the whole output is, if it is in a file.
    pub(crate) async fn finish(&mut self) -> Option<io::Result<Saved>> {
        match &mut self.log {
            Log::Memory(_) => None,
            Log::File { file, path, written } => match file.flush().await {
                Ok(()) => Some(Ok(Saved { path: path.clone(), bytes: *written })),
                Err(error) => Some(Err(error)),
            },
            Log::Lost(error) => Some(Err(io::Error::new(error.kind(), error.to_string()))),
        }
    }

    async fn append(&mut self, chunk: &[u8]) {
        let Log::File { file, written, .. } = &mut self.log else { return };
        let room = usize::try_from(self.limits.file_bytes.saturating_sub(*written)).unwrap_or(usize::MAX);
        let chunk = &chunk[..chunk.len().min(room)];
        let result = async {
            file.write_all(chunk).await?;
            file.flush().await
        };
        match result.await {
            Ok(()) => *written += chunk.len() as u64,
            Err(error) => self.log = Log::Lost(error),
        }
    }
}

/// The file with a command's whole output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saved {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

async fn create(path: &Path) -> io::Result<File> {
    let mut options = tokio::fs::OpenOptions::from(loci_stdx::private_file());
    options.write(true).create(true).truncate(true).open(path).await
}

/// Beginning and end of one stream.
#[derive(Debug, Clone)]
pub(crate) struct HeadAndTail {
    head: Vec<u8>,
    tail: Vec<u8>,
    head_bytes: usize,
    tail_bytes: usize,
    total: u64,
}

impl HeadAndTail {
    /// A character takes at most four bytes.
    fn new(head_chars: usize, tail_chars: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            head_bytes: head_chars * 4,
            tail_bytes: tail_chars * 4,
            total: 0,
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let (head, rest) = chunk.split_at(chunk.len().min(self.head_bytes - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_bytes)..];
        self.tail.extend_from_slice(rest);
        if self.tail.len() > self.tail_bytes * 2 {
            self.tail.drain(..self.tail.len() - self.tail_bytes);
        }
    }

    /// Returns true when something between beginning and end was dropped.
    fn has_gap(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// Returns the text as the model sees it: blank lines at the start and white space at the end removed. Of a
    /// stream that was too long for memory it is the beginning.
    pub(crate) fn text(&self) -> String {
        if self.has_gap() {
            return tidy(&decode(&self.head));
        }
        tidy(&decode(&[self.head.as_slice(), self.tail.as_slice()].concat()))
    }

    /// Returns the text within `max_chars`: whole, or beginning and end with a word on what is left out.
    pub(crate) fn excerpt(&self, max_chars: usize) -> String {
        let text = self.text();
        let n_chars = text.chars().count();
        if !self.has_gap() && n_chars <= max_chars {
            return text;
        }
        let half = max_chars / 2;
        let head: String = text.chars().take(half).collect();
        let end = if self.has_gap() { decode(trim_partial(&self.tail)) } else { text };
        let end = end.trim_end();
        let tail: String = end.chars().skip(end.chars().count().saturating_sub(half)).collect();
        let left_out = self.total.saturating_sub((head.len() + tail.len()) as u64);
        format!("{head}\n\n... [{left_out} bytes left out] ...\n\n{tail}")
    }
}

/// Drops the end of a character that was cut in two.
fn trim_partial(bytes: &[u8]) -> &[u8] {
    let n_partial = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    &bytes[n_partial..]
}

/// Reads bytes as text; what is not UTF-8 is replaced, NUL is dropped.
pub(crate) fn decode(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') { text.replace('\0', "") } else { text.into_owned() }
}

fn tidy(text: &str) -> String {
    let mut text = text.trim_end();
    while let Some((line, rest)) = text.split_once('\n') {
        if !line.trim().is_empty() {
            break;
        }
        text = rest;
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_and_tail(chunks: &[&[u8]]) -> HeadAndTail {
        let mut kept = HeadAndTail::new(5, 5);
        for chunk in chunks {
            kept.push(chunk);
        }
        kept
    }

    #[test]
    fn text_is_tidied() {
        for (bytes, expected) in [
            (&b"\n  \n  a\n\n"[..], "  a"),
            (b"", ""),
            (b"\n\n", ""),
            (b"a\0b\xff", "ab\u{fffd}"),
            (b"\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m"),
            ("ünï\n".as_bytes(), "ünï"),
        ] {
            assert_eq!(head_and_tail(&[bytes]).text(), expected);
        }
    }

    #[test]
    fn excerpts_have_both_ends() {
        for (bytes, max, expected) in [
            (&b"0123456789"[..], 10, "0123456789"),
            (b"0123456789", 4, "01\n\n... [6 bytes left out] ...\n\n89"),
            (&[b'x'; 1000][..], 4, "xx\n\n... [996 bytes left out] ...\n\nxx"),
        ] {
            assert_eq!(head_and_tail(&[bytes]).excerpt(max), expected);
        }
        let long = "é".repeat(500);
        assert_eq!(
            head_and_tail(&[long.as_bytes(), b"z"]).excerpt(4),
            "éé\n\n... [994 bytes left out] ...\n\néz"
        );
    }

    #[test]
    fn memory_is_bounded() {
        let kept = head_and_tail(&[[b'x'; 1000].as_slice(); 1000]);
        assert!(kept.head.len() <= 20 && kept.tail.len() <= 40, "{} {}", kept.head.len(), kept.tail.len());
        assert_eq!(kept.total, 1_000_000);
    }
}
