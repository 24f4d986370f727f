//! Reading a session file: every line that can be understood, and the place of every line that cannot.
//!
//! One JSON object a line, UTF-8. Files come from crashes, from other programs and from editors, so a line
//! may be torn, glued to the next one, full of NUL bytes, or hold half a surrogate pair; [`line`] says what is
//! done about each. A file is read in one pass, a block at a time: no more than its longest line is held
//! besides the entries. [`load_live`] reads only as much of the end as a resume needs.

mod line;
mod live;
mod mentions;
mod window;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_stdx::open_regular;

use loci_core::entry::Entry;

pub(crate) use line::read as read_line;
pub use live::{ConversationTail, ForkSource, LiveLoad, load_at, load_fork_source, load_live, load_tail};

/// How much is read at once.
const BLOCK: usize = 256 * 1024;

/// What a session file holds.
#[derive(Debug, Default)]
pub struct LoadedTranscript {
    /// The entries in file order.
    pub entries: Vec<Arc<Entry>>,
    /// What could not be read.
    pub skipped: Vec<SkippedLine>,
}

/// A part of a file that is no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLine {
    /// Where it starts.
    pub offset: u64,
    /// How many bytes it has.
    pub len: u64,
    /// What is wrong with it.
    pub reason: SkipReason,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// The last line has no end: a crash while it was written, or it is being written now.
    Torn,
    /// It is not JSON.
    NotJson,
    /// It is JSON, but not an object with a `type`.
    NotAnEntry,
    /// It is nothing but NUL bytes, which some file systems leave after a crash.
    Nul,
}

/// Why a session file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("Failed to read session: `{}`", path.display())]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Reads the session file at `path`.
pub fn load_transcript(path: &Path) -> Result<LoadedTranscript, LoadError> {
    let failed = |source| LoadError { path: path.to_owned(), source };
    let mut file = open_regular(path).map_err(failed)?;
    read(&mut file).map_err(failed)
}

fn read(reader: &mut impl Read) -> io::Result<LoadedTranscript> {
    let mut loaded = LoadedTranscript::default();
    each_line(reader, |line| {
        line::read(line, &mut loaded);
        true
    })?;
    Ok(loaded)
}

/// Hands out the lines of a file in order until `take` returns false.
pub(crate) fn each_line(
    reader: &mut impl Read,
    take: impl FnMut(loci_stdx::Line<'_>) -> bool,
) -> io::Result<()> {
    each_line_from(reader, 0, take)
}

/// Hands out the lines of the rest of a file, which begins at `offset`, in order until `take` returns false.
pub(crate) fn each_line_from(
    reader: &mut impl Read,
    mut offset: u64,
    mut take: impl FnMut(loci_stdx::Line<'_>) -> bool,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut is_end = false;
    while !is_end {
        let searched = buffer.len();
        is_end = reader.by_ref().take(BLOCK as u64).read_to_end(&mut buffer)? == 0;
        let complete = match memchr::memrchr(b'\n', &buffer[searched..]) {
            _ if is_end => buffer.len(),
            Some(newline) => searched + newline + 1,
            None => continue,
        };
        for line in loci_stdx::lines_at(offset, &buffer[..complete]) {
            if !take(line) {
                return Ok(());
            }
        }
        buffer.drain(..complete);
        offset += complete as u64;
    }
    Ok(())
}
