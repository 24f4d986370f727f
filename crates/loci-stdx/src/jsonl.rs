//! Lines of JSONL, found from either end without parsing them.
//!
//! A line is what lies between two `\n`, less a `\r` at its end and a byte order mark at the start of the
//! file. Blank lines (nothing but spaces, tabs and `\r`) are passed over. Everything else is handed out
//! as it is, runs of NUL bytes from a crashed file system and torn lines included: the caller judges.
//! [`lines()`] and [`ReverseLines`] agree on all of this; only the order differs.

mod reverse;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Seek, SeekFrom};

pub use reverse::ReverseLines;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Where `bytes` starts, counted from the start of the file.
    pub offset: u64,
    /// The line without its end.
    pub bytes: &'a [u8],
    /// Whether a `\n` follows; a last line without one may be torn or still being written.
    pub terminated: bool,
}

impl<'a> Line<'a> {
    /// Makes a line of what lies between two `\n`, unless it is blank.
    fn from_segment(offset: u64, segment: &'a [u8], terminated: bool) -> Option<Self> {
        let without_mark = if offset == 0 { segment.strip_prefix(BYTE_ORDER_MARK) } else { None };
        let start = without_mark.unwrap_or(segment);
        let bytes = start.strip_suffix(b"\r").unwrap_or(start);
        let is_blank = bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        let offset = offset + (segment.len() - start.len()) as u64;
        (!is_blank).then_some(Self { offset, bytes, terminated })
    }
}

/// Returns the lines of a whole file, first to last.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    lines_at(0, bytes)
}

/// Returns the lines of a part of a file that starts at `offset`, which should be the start of a line.
pub fn lines_at(offset: u64, bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    segments(bytes).filter_map(move |(start, end)| {
        Line::from_segment(offset + start as u64, &bytes[start..end], end < bytes.len())
    })
}

/// Splits at `\n`: the bounds of each piece, the one after the last `\n` included.
fn segments(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
    ends.scan(0, |start, end| Some((std::mem::replace(start, end + 1), end)))
}

/// Returns the first and the last `n_bytes` of a file; of a file shorter than both together they overlap.
///
/// The tail of a longer file most likely starts within a line.
pub fn head_and_tail<R: Read + Seek>(file: &mut R, n_bytes: usize) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let length = file.seek(SeekFrom::End(0))?;
    let head = read_at_most(file, 0, n_bytes)?;
    let tail_start = length.saturating_sub(n_bytes as u64);
    let tail = if tail_start == 0 { head.clone() } else { read_at_most(file, tail_start, n_bytes)? };
    Ok((head, tail))
}

fn read_at_most<R: Read + Seek>(file: &mut R, offset: u64, n_bytes: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(n_bytes as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
