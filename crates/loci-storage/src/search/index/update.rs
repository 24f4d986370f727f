//! Bringing the index up to date: what it does not know is read and written as further segments.
//!
//! One process does this at a time; another does not wait but scans. A segment is written whenever enough has been
//! read, so whoever is interrupted loses little and the next one goes on from there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use loci_stdx::{FileLock, create_private_dir_all};

use super::builder::Builder;
use super::coverage::{Coverage, IndexableFile, UnindexedTail, stretch_sum, tail_of};
use super::passage_reader::{Body, LastLine, each_passage};
use super::segment::open_all;
use super::source::SegmentSource;
use super::{SearchObserver, merge};

/// How much of a file is read before somebody who no longer waits is noticed.
const STRETCH: u64 = 8 * 1024 * 1024;
/// More segments than this are made fewer.
const MOST_SEGMENTS: usize = 16;
/// How many read at once.
const MOST_READERS: usize = 4;

/// What an update goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateBase {
    /// The index as it is.
    Index,
    /// Nothing: what there is, is thrown away first.
    Nothing,
}

/// Reads what the index does not know; false when another process is at it.
pub(super) fn update(
    dir: &Path,
    files: &[IndexableFile],
    base: UpdateBase,
    unique: &str,
    observer: &dyn SearchObserver,
) -> io::Result<bool> {
    create_private_dir_all(dir)?;
    let Ok(Some(_lock)) = FileLock::try_acquire(&dir.join("lock")) else { return Ok(false) };
    if base == UpdateBase::Nothing {
        for path in with_extension(dir, "seg") {
            fs::remove_file(path)?;
        }
    }
    let (segments, useless) = open_all(dir);
    for path in useless.iter().chain(&leftovers(dir)) {
        fs::remove_file(path)?;
    }
    let coverage = Coverage::from_segments(files, &segments);
    drop(segments);
    let work = Work {
        dir,
        files,
        rest: &coverage.rest,
        unique,
        observer,
        n_total: coverage.n_unknown(files),
        next: AtomicUsize::new(0),
        n_read: AtomicU64::new(0),
        n_written: AtomicUsize::new(0),
    };
    work.run()?;
    merge::merge_if_many(dir, files, MOST_SEGMENTS, unique, observer)?;
    Ok(true)
}

/// Files that an interrupted writer left.
pub(super) fn leftovers(dir: &Path) -> Vec<PathBuf> {
    with_extension(dir, "new")
}

fn with_extension(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|it| it == extension)).collect()
}

struct Work<'a> {
    dir: &'a Path,
    files: &'a [IndexableFile],
    rest: &'a [UnindexedTail],
    unique: &'a str,
    observer: &'a dyn SearchObserver,
    n_total: u64,
    next: AtomicUsize,
    n_read: AtomicU64,
    n_written: AtomicUsize,
}

impl Work<'_> {
    fn run(&self) -> io::Result<()> {
        if self.n_total > 0 {
            self.observer.progress(0, self.n_total);
        }
        let n_readers = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            let read = || {
                if let Err(error) = self.read_some() {
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            };
            let another = |_| std::thread::Builder::new().spawn_scoped(scope, read).is_ok();
            // Without another thread this one does all the work.
            if !(0..n_readers.min(self.rest.len())).map(another).fold(false, |any, is_there| any | is_there) {
                read();
            }
        });
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }

    fn read_some(&self) -> io::Result<()> {
        let mut builder = Builder::default();
        while let Some(rest) = self.rest.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.read_file(rest, &mut builder)?;
            if self.observer.is_stopped() {
                break;
            }
        }
        self.write(builder)
    }

    /// Reads a file stretch by stretch. One that cannot be opened stays unknown; whoever searches says so.
    fn read_file(&self, rest: &UnindexedTail, builder: &mut Builder) -> io::Result<()> {
        let on_disk = &self.files[rest.file];
        let Ok(body) = Body::open(on_disk) else { return Ok(()) };
        if on_disk.is_compressed() {
            return self.read_compressed(&body, rest, builder);
        }
        let mut rest = rest.clone();
        let mut limit = STRETCH;
        while rest.start < on_disk.size && !self.observer.is_stopped() {
            let end = on_disk.size.min(rest.start + limit);
            let next = read_stretch(&body, on_disk, &rest, (end, LastLine::Leave), builder)?;
            match (next.start == rest.start, end == on_disk.size) {
                // Its last line has no end yet.
                (true, true) => break,
                // A line longer than a stretch.
                (true, false) => limit *= 2,
                (false, _) => self.report_progress(next.start - rest.start),
            }
            rest = next;
            self.write_if_full(builder)?;
        }
        Ok(())
    }

    /// Reads what was unpacked in one stretch, since nobody could tell later whether it was all.
    fn read_compressed(&self, body: &Body, rest: &UnindexedTail, builder: &mut Builder) -> io::Result<()> {
        let on_disk = &self.files[rest.file];
        read_stretch(body, on_disk, rest, (body.end(on_disk), LastLine::Read), builder)?;
        self.report_progress(on_disk.size);
        self.write_if_full(builder)
    }

    fn write_if_full(&self, builder: &mut Builder) -> io::Result<()> {
        if builder.is_full(self.observer.max_unsaved_bytes()) {
            self.write(std::mem::take(builder))?;
        }
        Ok(())
    }

    fn report_progress(&self, n_bytes: u64) {
        let n_read = self.n_read.fetch_add(n_bytes, Ordering::Relaxed) + n_bytes;
        self.observer.progress(n_read, self.n_total);
    }

    fn write(&self, builder: Builder) -> io::Result<()> {
        if builder.is_empty() {
            return Ok(());
        }
        let number = self.n_written.fetch_add(1, Ordering::Relaxed);
        builder.write(self.dir, &format!("{}-{number}", self.unique))
    }
}

/// Reads one stretch into the builder and returns what comes after it.
fn read_stretch(
    body: &Body,
    on_disk: &IndexableFile,
    rest: &UnindexedTail,
    (end, last): (u64, LastLine),
    builder: &mut Builder,
) -> io::Result<UnindexedTail> {
    let (mut n_passages, mut n_words) = (0, 0);
    let ending = each_passage(body, rest.start, end, last, rest.calls.clone(), |located| {
        n_words += u64::from(builder.add(&located));
        n_passages += 1;
        true
    })?;
    let next = UnindexedTail { file: rest.file, start: ending.end, calls: ending.calls };
    if next.start == rest.start {
        return Ok(next);
    }
    let owned = |(call, tool): (&str, &str)| (call.to_owned(), tool.to_owned());
    let mut calls: Vec<(String, String)> = next.calls.open().map(owned).collect();
    calls.sort();
    builder.end_source(SegmentSource {
        path: on_disk.path.clone(),
        start: rest.start,
        end: next.start,
        size: on_disk.size,
        modified_ns: on_disk.modified_ns,
        tail: tail_of(body, next.start)?,
        sum: stretch_sum(body, rest.start, next.start)?,
        n_passages,
        n_words,
        calls,
    });
    Ok(next)
}
