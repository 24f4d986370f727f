//! Facts that were read before, kept so that a list need not read ten thousand files again.
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
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use loci_stdx::{WriteOptions, create_private_dir_all, write_atomic};
use rustc_hash::FxHashSet;

use super::{Facts, SessionSummary};
use crate::find::Stamp;
use crate::index::checksum;
use crate::layout::{ConfigHome, SessionPlace};
use record::Record;

/// Changes when what is kept changes.
const FORM: &[u8; 16] = b"loci listing 02\n";
/// How many bytes lie before the ends of the records.
const HEAD: usize = FORM.len() + 8 + 4;
/// How much older than this file a session must be: file systems count time in steps.
const STEP_NS: i128 = 50_000_000;
/// So many files are read again rather than kept.
const FEW: usize = 16;

/// What is known from before.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The whole file, checked; or nothing.
    bytes: Vec<u8>,
    written_ns: i128,
}

impl Kept {
    /// Reads what was kept; nothing when that cannot be done.
    pub(super) fn read(home: &ConfigHome) -> Self {
        let read = || -> io::Result<Self> {
            let mut file = File::open(file(home))?;
            let metadata = file.metadata()?;
            let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
            file.read_to_end(&mut bytes)?;
            Ok(Self { bytes, written_ns: Stamp::of(&metadata).time_ns() })
        };
        read().ok().filter(Self::is_whole).unwrap_or_default()
    }

    fn is_whole(&self) -> bool {
        let sum = self.bytes.get(FORM.len()..).and_then(|rest| rest.split_first_chunk::<8>());
        self.bytes.starts_with(FORM)
            && sum.is_some_and(|(sum, rest)| u64::from_le_bytes(*sum) == checksum(rest))
    }

    /// Returns the facts of a file that is as it was.
    pub(super) fn facts(&self, place: &SessionPlace, stamp: Stamp) -> Option<Facts> {
        let record = self.find(place.file())?;
        (record.stamp()? == stamp && self.is_settled(stamp)).then(|| record.facts())?
    }

    /// Keeps the facts for the next time, where enough of them are new.
    pub(super) fn write(&self, home: &ConfigHome, all: &[(SessionSummary, Stamp)], n_read: usize) {
        if n_read < FEW {
            return;
        }
        let listed: FxHashSet<&[u8]> =
            all.iter().map(|(session, _)| bytes_of(session.place.file())).collect();
        let mut records: Vec<(&[u8], Cow<'_, [u8]>)> = all
            .iter()
            .map(|(session, stamp)| (bytes_of(session.place.file()), record::of(session, *stamp).into()))
            .collect();
        // Those of other projects stay known.
        let others = (0..self.n_records()).filter_map(|idx| self.record(idx));
        records.extend(others.filter_map(|record| {
            let path = record.path()?;
            let stays = !listed.contains(path) && self.is_settled(record.stamp()?) && exists(path);
            stays.then_some((path, record.0.into()))
        }));
        records.sort_unstable_by_key(|(path, _)| *path);
        if let Some(bytes) = file_of(&records) {
            // A list that cannot be kept is read again next time.
            drop(create_private_dir_all(&home.loci_dir()));
            drop(write_atomic(&file(home), &bytes, &WriteOptions::private()));
        }
    }

    fn is_settled(&self, stamp: Stamp) -> bool {
        stamp.time_ns() + STEP_NS < self.written_ns
    }

    /// Looks a file up; records are in the order of their files.
    fn find(&self, file: &Path) -> Option<Record<'_>> {
        let path = bytes_of(file);
        let (mut low, mut high) = (0, self.n_records());
        while low < high {
            let middle = low + (high - low) / 2;
            let record = self.record(middle)?;
            match record.path()?.cmp(path) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(record),
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

fn exists(path: &[u8]) -> bool {
    Path::new(std::ffi::OsStr::from_bytes(path)).exists()
}
