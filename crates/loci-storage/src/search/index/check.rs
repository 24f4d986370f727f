//! Holding the index against the files, byte for byte: what a search does not take the time for.

use std::path::PathBuf;

use loci_stdx::FileLock;

use super::coverage::{Coverage, IndexableFile, files_on_disk, stretch_sum};
use super::passage_reader::Body;
use super::segment::{Segment, open_all};
use super::update::leftovers;
use crate::layout::ConfigHome;

/// Something that is wrong with the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexFault {
    /// A segment whose writer did not live to finish it.
    Unfinished(PathBuf),
    /// A segment that is not what was written.
    Damaged(PathBuf),
    /// A segment that another has taken the place of.
    Replaced(PathBuf),
    /// A segment that knows a file otherwise than it is.
    Wrong {
        /// The segment.
        segment: PathBuf,
        /// The file.
        file: PathBuf,
    },
}

/// Returns what is wrong with the index; nothing while somebody brings it up to date.
pub(crate) fn index_faults(home: &ConfigHome) -> Vec<IndexFault> {
    let dir = home.loci_dir().join("index");
    if !dir.is_dir() {
        return Vec::new();
    }
    let Ok(Some(_lock)) = FileLock::try_acquire(&dir.join("lock")) else { return Vec::new() };
    let mut faults: Vec<IndexFault> = leftovers(&dir).into_iter().map(IndexFault::Unfinished).collect();
    let (segments, useless) = open_all(&dir);
    let useless = useless.into_iter().map(|path| match Segment::open(&path) {
        Ok(_) => IndexFault::Replaced(path),
        Err(_) => IndexFault::Damaged(path),
    });
    faults.extend(useless);
    let Ok((files, _)) = files_on_disk(home) else { return faults };
    let coverage = Coverage::from_segments(&files, &segments);
    for (segment, live) in segments.iter().zip(&coverage.live) {
        faults.extend(fault_of(segment, live, &files, dir.join(&segment.name)));
    }
    faults
}

fn fault_of(
    segment: &Segment,
    live: &[Option<u32>],
    files: &[IndexableFile],
    path: PathBuf,
) -> Option<IndexFault> {
    if segment.verify().is_err() {
        return Some(IndexFault::Damaged(path));
    }
    let known = segment.outline.sources.iter().zip(live);
    for (source, file) in known.filter_map(|(source, file)| Some((source, files.get((*file)? as usize)?))) {
        let now = Body::open(file).and_then(|body| stretch_sum(&body, source.start, source.end));
        // A file that cannot be read is no matter of the index.
        if now.is_ok_and(|now| now != source.sum) {
            return Some(IndexFault::Wrong { segment: path, file: file.file().to_owned() });
        }
    }
    None
}
