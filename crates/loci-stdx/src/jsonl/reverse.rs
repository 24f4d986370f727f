//! Lines from the end of a file backwards.
//!
//! The buffer holds the bytes just before those already handed out, packed against its right end, with
//! room on the left for the chunk before them:
//!
//! ```text
//!     0          start     searched        end
//!     |   room   |  unsearched  | no newline |  handed out  |
//! ```
//!
//! Each byte of the file is read once and searched once. The buffer is rebuilt only when the room is
//! used up, and then with at least as much room as there are bytes to move, so a line of any length
//! costs time and memory in proportion to its length.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::Line;

const DEFAULT_CHUNK: usize = 64 * 1024;

/// Reads a file's lines last to first.
#[derive(Debug)]
pub struct ReverseLines<R> {
    reader: R,
    chunk: usize,
    buffer: Vec<u8>,
    /// Place in the file of `buffer[start]`: everything before it is still unread.
    offset: u64,
    start: usize,
    searched: usize,
    end: usize,
    /// Whether a `\n` follows `end`.
    terminated: bool,
    is_done: bool,
}

impl<R: Read + Seek> ReverseLines<R> {
    /// Starts at the end the file has now.
    pub fn new(mut reader: R) -> io::Result<Self> {
        let end = reader.seek(SeekFrom::End(0))?;
        Ok(Self::ending_at(reader, end))
    }

    /// Starts at `end`, as if the file were that long.
    pub fn ending_at(reader: R, end: u64) -> Self {
        Self {
            reader,
            chunk: DEFAULT_CHUNK,
            buffer: Vec::new(),
            offset: end,
            start: 0,
            searched: 0,
            end: 0,
            terminated: false,
            is_done: false,
        }
    }

    /// Sets how many bytes to read at a time; 64 KiB unless told.
    #[must_use]
    pub fn with_chunk_size(mut self, n_bytes: usize) -> Self {
        self.chunk = n_bytes.max(1);
        self
    }

    /// Returns the line before the last one returned, or `None` at the start of the file.
    ///
    /// After an error, as when the file was cut short meanwhile, there are no more lines.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        while let Some((segment, terminated)) = self.next_segment()? {
            let offset = self.offset + (segment.start - self.start) as u64;
            if Line::from_segment(offset, &self.buffer[segment.clone()], terminated).is_some() {
                // Made again: the borrow checker does not let a loop return what it looked at.
                return Ok(Line::from_segment(offset, &self.buffer[segment], terminated));
            }
        }
        Ok(None)
    }

    /// Returns the bounds in the buffer of what lies before the last `\n` handed out.
    fn next_segment(&mut self) -> io::Result<Option<(Range<usize>, bool)>> {
        while !self.is_done {
            if let Some(position) = memchr::memrchr(b'\n', &self.buffer[self.start..self.searched]) {
                let newline = self.start + position;
                let segment = newline + 1..self.end;
                let terminated = std::mem::replace(&mut self.terminated, true);
                (self.searched, self.end) = (newline, newline);
                return Ok(Some((segment, terminated)));
            }
            self.searched = self.start;
            if self.offset == 0 {
                self.is_done = true;
                return Ok(Some((self.start..self.end, self.terminated)));
            }
            self.read_chunk_before()?;
        }
        Ok(None)
    }

    fn read_chunk_before(&mut self) -> io::Result<()> {
        let n_bytes = usize::try_from(self.offset).unwrap_or(usize::MAX).min(self.chunk);
        let is_oversized = self.buffer.len() > 4 * self.wanted_size();
        if self.start < n_bytes || is_oversized {
            self.make_room();
        }
        let (new_offset, new_start) = (self.offset - n_bytes as u64, self.start - n_bytes);
        let target = &mut self.buffer[new_start..self.start];
        let read = self.reader.seek(SeekFrom::Start(new_offset)).and_then(|_| self.reader.read_exact(target));
        self.is_done = read.is_err();
        read?;
        (self.offset, self.start) = (new_offset, new_start);
        Ok(())
    }

    /// Returns the size of a buffer with room for what is pending, and for as much again or a chunk.
    fn wanted_size(&self) -> usize {
        let pending = self.end - self.start;
        pending + pending.max(self.chunk)
    }

    /// Moves what is pending to the right end of the buffer, or of a new one where that is too small, or
    /// far too large since the long line it was made for is done.
    fn make_room(&mut self) {
        let (pending, wanted) = (self.end - self.start, self.wanted_size());
        if (wanted..=4 * wanted).contains(&self.buffer.len()) {
            let right = self.buffer.len() - pending;
            self.buffer.copy_within(self.start..self.end, right);
        } else {
            let mut buffer = vec![0; wanted];
            buffer[wanted - pending..].copy_from_slice(&self.buffer[self.start..self.end]);
            self.buffer = buffer;
        }
        self.end = self.buffer.len();
        self.start = self.end - pending;
        self.searched = self.start;
    }

    #[cfg(test)]
    pub(super) fn buffer_size(&self) -> usize {
        self.buffer.len()
    }
}
