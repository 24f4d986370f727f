//! Searching the files that were found, newest first, a few at a time.
//!
//! Files are taken in chunks; within a chunk threads pick the next file, and the chunk's results are sent in the
//! order of its files. So the result does not depend on the threads, and whoever takes the results can stop as
//! soon as there are enough.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use loci_stdx::{RealDir, is_symlink_error, open_real};
use tokio::sync::mpsc;

use super::request::{Mode, Request};
use super::sink::FileSink;
use crate::files::walk::{self, Ending, Limit, WalkEntry};

/// How many files are searched before their results are handed on.
const CHUNK: usize = 256;
/// The most memory one file's lines (or the whole file, when matches may span lines) may take in a thread.
const FILE_MEMORY: usize = 32 << 20;

/// A search to run.
#[derive(Clone)]
pub(super) struct Search {
    pub(super) request: Arc<Request>,
    pub(super) limit: Limit,
    /// The directory that shown paths are relative to.
    pub(super) cwd: PathBuf,
    /// Where its files are opened.
    pub(super) root: Root,
    /// How many threads may work.
    pub(super) n_threads: usize,
}

/// What was judged, and is searched.
#[derive(Clone)]
pub(super) enum Root {
    /// One file that was named.
    File,
    /// A directory, open since before the walk: its files are opened inside it, wherever names lead by then.
    Dir(Arc<RealDir>),
}

/// What came of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileHits {
    /// The file's path as it is shown.
    pub(super) path: String,
    /// Matching lines, or matches when those are counted; one stands for all when only files are listed.
    pub(super) n_matches: u64,
    /// The lines to show, in content mode.
    pub(super) lines: Vec<String>,
    /// Why the file could not be searched.
    pub(super) problem: Option<String>,
}

impl Search {
    /// Searches the files and sends what came of each, in order.
    pub(super) fn run(&self, mut files: Vec<WalkEntry>, sender: &mpsc::Sender<FileHits>) -> Ending {
        files.sort_by(WalkEntry::cmp_newest);
        let total_bytes = AtomicUsize::new(0);
        for chunk in files.chunks(CHUNK) {
            let (hits, ending) = self.chunk(chunk, &total_bytes);
            for hits in hits {
                if sender.blocking_send(hits).is_err() {
                    return Ending::Complete;
                }
            }
            if ending != Ending::Complete {
                return ending;
            }
        }
        Ending::Complete
    }

    fn chunk(&self, files: &[WalkEntry], total_bytes: &AtomicUsize) -> (Vec<FileHits>, Ending) {
        let next = AtomicUsize::new(0);
        // Guards the results of all threads and the reason of the first that stopped.
        let done = Mutex::new((Vec::with_capacity(files.len()), Ending::Complete));
        let work = || {
            let mut searcher = self.searcher();
            while let Some((idx, found)) = pick(files, &next) {
                let (hits, ending) = self.file(&mut searcher, found, total_bytes);
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.0.extend(hits.map(|hits| (idx, hits)));
                if let Some(ending) = ending {
                    next.store(files.len(), Ordering::Relaxed);
                    done.1 = ending;
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.n_threads.min(files.len()) {
                // Without another thread, this one does all the work.
                if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        let (mut hits, ending) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        hits.sort_unstable_by_key(|(idx, _)| *idx);
        (hits.into_iter().map(|(_, hits)| hits).collect(), ending)
    }

    /// Searches one file; there are no hits when it matches nowhere or is gone.
    fn file(
        &self,
        searcher: &mut Searcher,
        found: &WalkEntry,
        total_bytes: &AtomicUsize,
    ) -> (Option<FileHits>, Option<Ending>) {
        if let Some(ending) = self.limit.reached() {
            return (None, Some(ending));
        }
        let path = walk::display_below(&self.cwd, &self.request.root, &found.path);
        let stopped = Cell::new(None);
        let mut sink = FileSink {
            request: &self.request,
            limit: &self.limit,
            path: &path,
            total_bytes,
            stopped: &stopped,
            lines: Vec::new(),
            n_matches: 0,
            binary: None,
        };
        let result = self.open(found).and_then(|file| {
            let reader = Guarded { file, limit: &self.limit, stopped: &stopped };
            searcher.search_reader(&self.request.matcher, reader, &mut sink)
        });
        let FileSink { lines, n_matches, binary, .. } = sink;
        let stopped = stopped.take();
        let mut hits = FileHits { path, n_matches, lines, problem: None };
        match (result, &stopped) {
            (Err(_), Some(_)) => drop_cut_end(&mut hits, self.request.mode),
            (Err(error), None) if is_gone(&error) && !self.is_one_file() => return (None, None),
            (Err(error), None) => hits.problem = Some(error.to_string()),
            (Ok(()), _) => self.note_binary(&mut hits, binary),
        }
        let is_hit = hits.n_matches > 0 || hits.problem.is_some();
        (is_hit.then_some(hits), stopped)
    }

    /// Opens a regular file for reading; never waits for a pipe or a device, and never follows a symlink that was put
    /// anywhere on the way since the file was judged (S-29).
    fn open(&self, found: &WalkEntry) -> io::Result<File> {
        let file = match &self.root {
            Root::File => open_real(&self.request.root.real)?,
            Root::Dir(dir) => dir.open_below(&found.path)?,
        };
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
    }

    fn is_one_file(&self) -> bool {
        matches!(self.root, Root::File)
    }

    fn note_binary(&self, hits: &mut FileHits, binary: Option<u64>) {
        let Some(offset) = binary else { return };
        match (self.request.mode, self.is_one_file()) {
            (Mode::Content, true) if hits.n_matches > 0 => {
                hits.lines
                    .push(format!("{}: binary file matches (NUL byte near offset {offset})", hits.path));
            }
            (Mode::Content, false) if hits.n_matches > 0 => hits.lines.push(format!(
                "{}: the search of this file stopped at binary data (NUL byte near offset {offset})",
                hits.path
            )),
            // A count that stops half-way would mislead, and a list has no room to say so.
            (Mode::Count | Mode::FilesWithMatches, false) => hits.n_matches = 0,
            (Mode::Content, _) | (Mode::Count | Mode::FilesWithMatches, true) => {}
        }
    }

    fn searcher(&self) -> Searcher {
        let request = &self.request;
        let binary = if self.is_one_file() { BinaryDetection::convert(0) } else { BinaryDetection::quit(0) };
        SearcherBuilder::new()
            .line_number(request.mode == Mode::Content && request.line_numbers)
            .multi_line(request.multiline)
            .before_context(request.before)
            .after_context(request.after)
            .binary_detection(binary)
            .heap_limit(Some(FILE_MEMORY))
            .build()
    }
}

fn pick<'a>(files: &'a [WalkEntry], next: &AtomicUsize) -> Option<(usize, &'a WalkEntry)> {
    let idx = next.fetch_add(1, Ordering::Relaxed);
    files.get(idx).map(|found| (idx, found))
}

/// Returns true when the file went away, or something else took its place, after it was found.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || is_symlink_error(error)
        || error.raw_os_error() == Some(rustix::io::Errno::NOTDIR.raw_os_error())
}

/// Takes back what may be incomplete in a file whose search was broken off: its last line, or its count.
fn drop_cut_end(hits: &mut FileHits, mode: Mode) {
    match mode {
        Mode::Content => {
            hits.lines.pop();
            if hits.lines.last().is_some_and(|line| line == "--") {
                hits.lines.pop();
            }
            if hits.lines.is_empty() {
                hits.n_matches = 0;
            }
        }
        Mode::Count => hits.n_matches = 0,
        Mode::FilesWithMatches => {}
    }
}

/// A file that stops giving when the search has to end.
struct Guarded<'a> {
    file: File,
    limit: &'a Limit,
    stopped: &'a Cell<Option<Ending>>,
}

impl Read for Guarded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(ending) = self.limit.reached() {
            self.stopped.set(Some(ending));
            return Err(io::Error::other("the search was stopped"));
        }
        self.file.read(buffer)
    }
}
