//! The end of a session file, read backwards and grown as needed.
//!
//! The natural places to stop are the starts of conversations: a compaction boundary whose summary has been seen,
//! or an entry without a parent. A few lines more are read each time, because lines that belong together are
//! sometimes written out of order.

use std::collections::HashSet;
use std::io::{self, Read, Seek};
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_stdx::ReverseLines;

use super::{LoadedTranscript, SkippedLine, line};

/// How much is read at a time, and how much more than seems needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes a read.
    pub(super) chunk: usize,
    /// Lines beyond the place to stop at.
    pub(super) margin: usize,
    /// The most bytes that these lines may have.
    pub(super) margin_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { chunk: 256 * 1024, margin: 32, margin_bytes: 256 * 1024 }
    }
}

/// The lines of a file from some line to its end.
pub(super) struct Window<R> {
    lines: ReverseLines<R>,
    sizes: Sizes,
    /// The last one first; sidechains are left out.
    entries: Vec<Arc<Entry>>,
    /// Where the lines of the entries start.
    offsets: Vec<u64>,
    skipped: Vec<SkippedLine>,
    /// The boundaries whose summaries have been seen.
    summarised: HashSet<EntryId>,
    start: u64,
    end: u64,
    is_whole: bool,
}

impl<R: Read + Seek> Window<R> {
    /// Opens a window at the end the file has now; nothing is read yet.
    pub(super) fn new(mut reader: R, sizes: Sizes) -> io::Result<Self> {
        let end = reader.seek(io::SeekFrom::End(0))?;
        Ok(Self {
            lines: ReverseLines::ending_at(reader, end).with_chunk_size(sizes.chunk),
            sizes,
            entries: Vec::new(),
            offsets: Vec::new(),
            skipped: Vec::new(),
            summarised: HashSet::new(),
            start: end,
            end,
            is_whole: end == 0,
        })
    }

    /// Returns where the first line that was read starts.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Returns true when every line has been read.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the entries in file order.
    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        self.entries.iter().rev().cloned().collect()
    }

    /// Gives away the entries and what was skipped, both in file order.
    pub(super) fn into_loaded(self) -> LoadedTranscript {
        let Self { mut entries, mut skipped, .. } = self;
        entries.reverse();
        skipped.reverse();
        LoadedTranscript { entries, skipped }
    }

    /// Reads back to the next start of a conversation.
    pub(super) fn extend_to_a_start(&mut self) -> io::Result<()> {
        while !self.is_whole {
            let n_known = self.entries.len();
            self.read_line()?;
            let is_start = self.entries[n_known..].iter().any(|entry| self.is_start(entry));
            if is_start {
                return self.read_margin();
            }
        }
        Ok(())
    }

    /// Reads back until there are so many entries, or so many bytes were read.
    pub(super) fn extend_by(&mut self, n_entries: usize, n_bytes: u64) -> io::Result<()> {
        while !self.is_whole && self.entries.len() < n_entries && self.end - self.start < n_bytes {
            self.read_line()?;
        }
        Ok(())
    }

    /// Reads back to the line that holds the byte at `offset`.
    pub(super) fn extend_to(&mut self, offset: u64) -> io::Result<()> {
        while !self.is_whole && self.start > offset {
            self.read_line()?;
        }
        self.read_margin()
    }

    /// Reads back until there is twice as much, so that growing step by step costs no more than reading once.
    pub(super) fn double(&mut self) -> io::Result<()> {
        let n_bytes = self.end - self.start;
        self.extend_to(self.start.saturating_sub(n_bytes))
    }

    /// Returns true when enough lies before the `idx`th entry in file order.
    pub(super) fn has_margin_before(&self, idx: usize) -> bool {
        let n_bytes = self.offsets.iter().rev().nth(idx).map_or(0, |offset| offset - self.start);
        self.is_whole || idx >= self.sizes.margin || n_bytes > self.sizes.margin_bytes
    }

    /// Reads a few lines more.
    pub(super) fn read_margin(&mut self) -> io::Result<()> {
        let limit = self.start.saturating_sub(self.sizes.margin_bytes);
        for _ in 0..self.sizes.margin {
            if self.is_whole || self.start < limit {
                break;
            }
            self.read_line()?;
        }
        Ok(())
    }

    fn read_line(&mut self) -> io::Result<()> {
        let Some(line) = self.lines.next_line()? else {
            self.is_whole = true;
            self.start = 0;
            return Ok(());
        };
        self.start = line.offset;
        let mut of_line = LoadedTranscript::default();
        line::read(line, &mut of_line);
        self.skipped.extend(of_line.skipped.into_iter().rev());
        for entry in of_line.entries.into_iter().rev().filter(|entry| !entry.head().is_sidechain) {
            if entry.head().is_compact_summary {
                self.summarised.extend(entry.head().parent.clone());
            }
            self.entries.push(entry);
            self.offsets.push(self.start);
        }
        Ok(())
    }

    fn is_start(&self, entry: &Entry) -> bool {
        let head = entry.head();
        if entry.is_compact_boundary() {
            head.uuid.as_ref().is_some_and(|uuid| self.summarised.contains(uuid))
        } else {
            head.kind.is_chain() && head.parent.is_none()
        }
    }
}
