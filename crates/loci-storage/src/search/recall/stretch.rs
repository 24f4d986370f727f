//! A session file, or its first part.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use loci_core::entry::Entry;
use loci_stdx::{Line, open_regular};
use memchr::memmem;

use super::scan::ReadFrom;
use crate::sessions::session_file::{LoadedTranscript, each_line, read_line};

/// The lines of a file that begin before a place.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) file: File,
    pub(super) end: u64,
}

impl Stretch {
    pub(super) fn whole(path: &Path) -> io::Result<Self> {
        Ok(Self { file: open_regular(path)?, end: u64::MAX })
    }

    /// Returns how many bytes there are.
    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len().min(self.end))
    }

    /// Hands out the entries of a conversation in whose lines one of the marks stands, until `take` or `stop` says so.
    pub(super) fn each_entry_with(
        &self,
        marks: &[memmem::Finder<'_>],
        stop: &AtomicBool,
        mut take: impl FnMut(Line<'_>, &Entry) -> bool,
    ) -> io::Result<()> {
        each_line(&mut ReadFrom { file: &self.file, offset: 0 }, |line| {
            if line.offset >= self.end || stop.load(Ordering::Relaxed) {
                return false;
            }
            if !marks.iter().any(|mark| mark.find(line.bytes).is_some()) {
                return true;
            }
            let mut loaded = LoadedTranscript::default();
            read_line(line, &mut loaded);
            let mut entries = loaded.entries.iter().filter(|entry| !entry.head().is_sidechain);
            entries.all(|entry| take(line, entry))
        })
    }
}
