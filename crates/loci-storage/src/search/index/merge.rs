//! Making few segments of many: the small ones become one, without what no longer counts.

use std::fs;
use std::io;
use std::path::Path;

use super::SearchObserver;
use super::builder::Builder;
use super::coverage::{Coverage, IndexableFile};
use super::segment::{Segment, open_all};

/// A segment that covers more than this is left alone.
const SMALL: u64 = 48 * 1024 * 1024;

/// Merges small segments when there are more than `most`. Whoever calls holds the lock.
pub(super) fn merge_if_many(
    dir: &Path,
    files: &[IndexableFile],
    most: usize,
    unique: &str,
    observer: &dyn SearchObserver,
) -> io::Result<()> {
    let (segments, _) = open_all(dir);
    if segments.len() <= most || observer.is_stopped() {
        return Ok(());
    }
    let coverage = Coverage::from_segments(files, &segments);
    let mut builder = Builder::default();
    let mut replaced = Vec::new();
    let covered = |segment: &Segment| -> u64 {
        segment.outline.sources.iter().map(|source| source.end - source.start).sum()
    };
    for (segment, live) in segments.iter().zip(&coverage.live).filter(|(it, _)| covered(it) <= SMALL) {
        builder.absorb(segment, |source| live[source].is_some())?;
        replaced.push(segment.name.clone());
    }
    builder.replace(replaced.clone());
    builder.write(dir, &format!("{unique}-merged"))?;
    for name in replaced {
        fs::remove_file(dir.join(name))?;
    }
    Ok(())
}
