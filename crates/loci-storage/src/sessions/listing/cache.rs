//! Cache of the session list: metadata that was read before, kept so that a list need not read ten thousand files again.
//!
//! They lie in `<config home>/loci/listing.bin`:
//!
//! ```text
//! the form, 16 bytes
//! checksum of all that follows, 8 bytes
//! number of records, 4 bytes
//! end of each record, counted from the first one, 4 bytes each
//! records (see `record`), in the order of their files
//! ```
//!
//! A record counts only while its file has the size, the time and the number on disk that it had when the facts were read,
//! and only if that time lies before this file was written: what changed in the very moment could have kept all three. The
//! file may be deleted at any time, and one that is damaged, or cannot be read or written, is no obstacle.

mod record;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use loci_stdx::{WriteOptions, checksum, create_private_dir_all, open_regular, write_atomic};
use rustc_hash::FxHashSet;

use super::{SessionMetadata, SessionSummary};
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::find::FileStamp;
use record::Record;

/// Changes when what is kept changes, or how it is read.
const FORM: &[u8; 16] = b"loci listing 04\n";
/// How many bytes lie before the ends of the records.
const HEAD: usize = FORM.len() + 8 + 4;
/// How much older than this file a session must be: file systems count time in steps.
const STEP_NS: i128 = 50_000_000;
/// So many files are read again rather than kept.
const FEW: usize = 16;

/// What is known from before.
#[derive(Debug, Default)]
pub(super) struct ListingCache {
    /// The whole file, checked; or nothing.
    bytes: Vec<u8>,
    written_ns: i128,
}

/// A file of which something is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedRecord {
    /// The number of its record.
    pub(super) record: usize,
    /// What its facts are sorted by.
    pub(super) newest_ms: i64,
}

impl ListingCache {
    /// Reads what was kept; nothing when that cannot be done.
    pub(super) fn read(home: &ConfigHome) -> Self {
        let read = || -> io::Result<Self> {
            let mut file = open_regular(file(home))?;
            let metadata = file.metadata()?;
            let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
            file.read_to_end(&mut bytes)?;
            Ok(Self { bytes, written_ns: FileStamp::from_metadata(&metadata).time_ns() })
        };
        read().ok().filter(Self::is_whole).unwrap_or_default()
    }

    fn is_whole(&self) -> bool {
        let sum = self.bytes.get(FORM.len()..).and_then(|rest| rest.split_first_chunk::<8>());
        self.bytes.starts_with(FORM)
            && sum.is_some_and(|(sum, rest)| u64::from_le_bytes(*sum) == checksum(rest))
    }

    /// Looks up files; those that are not as they were are unknown. What comes in the order of paths is found at once.
    pub(super) fn look_up(&self, files: &[(SessionPlace, FileStamp)]) -> Vec<Option<CachedRecord>> {
        let mut near = 0;
        let mut look_up = |place: &SessionPlace, stamp: FileStamp| {
            let record = self.find(place.file(), near)?;
            near = record + 1;
            let head = self.record(record)?.head()?;
            let is_as_it_was = head.stamp == stamp && self.is_settled(stamp);
            is_as_it_was.then_some(CachedRecord { record, newest_ms: head.newest_ms })
        };
        files.iter().map(|(place, stamp)| look_up(place, *stamp)).collect()
    }

    /// Returns when files were used last as far as is known; whether they have changed since is not looked at.
    pub(super) fn newest_of(&self, files: &[SessionPlace]) -> Vec<Option<i64>> {
        let mut near = 0;
        let mut newest_of = |place: &SessionPlace| {
            let record = self.find(place.file(), near)?;
            near = record + 1;
            Some(self.record(record)?.head()?.newest_ms)
        };
        files.iter().map(&mut newest_of).collect()
    }

    /// Unpacks the facts of a record.
    pub(super) fn metadata_at(&self, record: usize) -> Option<SessionMetadata> {
        self.record(record)?.facts()
    }

    /// Returns the facts of a file that is as it was.
    pub(super) fn facts(&self, place: &SessionPlace, stamp: FileStamp) -> Option<SessionMetadata> {
        let known = self.look_up(&[(place.clone(), stamp)]).pop().flatten()?;
        self.metadata_at(known.record)
    }

    /// Keeps the facts for the next time, where enough of them are new: what was read now, with the stamps that all had
    /// that were not known, and the records that are true still.
    pub(super) fn write(
        &self,
        home: &ConfigHome,
        unchanged: &FxHashSet<usize>,
        stamps: &HashMap<&Path, FileStamp>,
        read: &[SessionSummary],
    ) {
        if stamps.len() < FEW {
            return;
        }
        let mut records: Vec<(&[u8], Cow<'_, [u8]>)> = Vec::with_capacity(unchanged.len() + read.len());
        for session in read {
            let Some(stamp) = stamps.get(session.place.file()) else { continue };
            records.push((bytes_of(session.place.file()), record::encode(session, *stamp).into()));
        }
        // Those of other projects stay known.
        let others = (0..self.n_records()).filter_map(|idx| Some((idx, self.record(idx)?)));
        records.extend(others.filter_map(|(idx, record)| {
            let path = record.path()?;
            let is_other = || {
                !stamps.contains_key(path_of(path))
                    && record.head().is_some_and(|head| self.is_settled(head.stamp))
                    && path_of(path).exists()
            };
            (unchanged.contains(&idx) || is_other()).then_some((path, record.0.into()))
        }));
        records.sort_unstable_by_key(|(path, _)| *path);
        if let Some(bytes) = file_of(&records) {
            // A list that cannot be kept is read again next time.
            drop(create_private_dir_all(&home.loci_dir()));
            drop(write_atomic(&file(home), &bytes, &WriteOptions::private()));
        }
    }

    fn is_settled(&self, stamp: FileStamp) -> bool {
        stamp.time_ns() + STEP_NS < self.written_ns
    }

    /// Returns the number of a file's record, which may be `near`; records are in the order of their files.
    fn find(&self, file: &Path, near: usize) -> Option<usize> {
        let path = bytes_of(file);
        let is_it = |idx: usize| self.record(idx).and_then(Record::path) == Some(path);
        if near < self.n_records() && is_it(near) {
            return Some(near);
        }
        let (mut low, mut high) = (0, self.n_records());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.record(middle)?.path()?.cmp(path) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    fn n_records(&self) -> usize {
        self.number(HEAD - 4).unwrap_or_default()
    }

    fn record(&self, idx: usize) -> Option<Record<'_>> {
        let first = HEAD + 4 * self.n_records();
        let end = |idx: usize| self.number(HEAD + 4 * idx);
        let start = if idx == 0 { 0 } else { end(idx - 1)? };
        self.bytes.get(first + start..first + end(idx)?).map(Record)
    }

    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    }
}

/// Puts records together; `None` when they are too many.
fn file_of(records: &[(&[u8], Cow<'_, [u8]>)]) -> Option<Vec<u8>> {
    let mut rest = u32::try_from(records.len()).ok()?.to_le_bytes().to_vec();
    let mut end = 0_usize;
    for (_, record) in records {
        end += record.len();
        rest.extend(u32::try_from(end).ok()?.to_le_bytes());
    }
    records.iter().for_each(|(_, record)| rest.extend_from_slice(record));
    let mut bytes = FORM.to_vec();
    bytes.extend(checksum(&rest).to_le_bytes());
    bytes.append(&mut rest);
    Some(bytes)
}

pub(super) fn file(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("listing.bin")
}

fn bytes_of(file: &Path) -> &[u8] {
    file.as_os_str().as_bytes()
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
