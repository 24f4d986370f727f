//! Where a conversation lies that was compacted and then forked: the fork has the summary, its source has the words.
//!
//! A fork begins behind the last compaction, with that boundary and its summary. The summary names the file that the
//! conversation was in; what lies there before the same boundary is this conversation's, and what lies behind it, said
//! after the fork, is not. The source may be a fork itself. Only files beside the session's own are believed, whatever a
//! summary says.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use loci_core::ids::EntryId;
use memchr::memmem;

use super::stretch::Stretch;

/// How many forks of forks are followed.
const MOST_ANCESTORS: usize = 16;

/// Returns the files that a conversation was in before, the nearest first. One that is gone or unreadable ends the line: what
/// it held cannot be had.
pub(super) fn ancestors(own: &Path, stop: &AtomicBool) -> Vec<Stretch> {
    let mut known = HashSet::from([own.to_owned()]);
    let mut found = Vec::new();
    let mut at = own.to_owned();
    while found.len() < MOST_ANCESTORS
        && let Ok(Some(origin)) = origin(&at, stop)
        && known.insert(origin.file.clone())
        && let Ok(Some(stretch)) = before(&origin, stop)
    {
        found.push(stretch);
        at = origin.file;
    }
    found
}

/// What the first summary of a file says about where its words are.
struct SummaryOrigin {
    file: PathBuf,
    boundary: EntryId,
}

fn origin(path: &Path, stop: &AtomicBool) -> io::Result<Option<SummaryOrigin>> {
    let (mut boundary, mut found) = (None, None);
    let marks = [b"compact_boundary".as_slice(), b"isCompactSummary"].map(memmem::Finder::new);
    Stretch::whole(path)?.each_entry_with(&marks, stop, |line, entry| {
        if entry.is_compact_boundary() {
            boundary = entry.head().uuid.clone();
        } else if entry.head().is_compact_summary {
            let file = named_beside(path, line.bytes);
            found = file.zip(boundary.take()).map(|(file, boundary)| SummaryOrigin { file, boundary });
            return false;
        }
        true
    })?;
    Ok(found)
}

/// Opens the file a conversation was in, and finds the boundary behind which it was forked.
fn before(origin: &SummaryOrigin, stop: &AtomicBool) -> io::Result<Option<Stretch>> {
    let whole = Stretch::whole(&origin.file)?;
    let mut end = None;
    let marks = [memmem::Finder::new(origin.boundary.as_str())];
    whole.each_entry_with(&marks, stop, |line, entry| {
        let is_it = entry.is_compact_boundary() && entry.head().uuid.as_ref() == Some(&origin.boundary);
        end = is_it.then_some(line.offset);
        !is_it
    })?;
    Ok(end.map(|end| Stretch { end, ..whole }))
}

/// Returns the session file that a line names last, where it lies beside this one and is another.
fn named_beside(path: &Path, line: &[u8]) -> Option<PathBuf> {
    const ENDING: &[u8] = b".jsonl";
    let is_of_id = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let names = memmem::find_iter(line, ENDING).filter_map(|end| {
        let start = line[..end].iter().rposition(|byte| !is_of_id(byte)).map_or(0, |at| at + 1);
        std::str::from_utf8(&line[start..end + ENDING.len()]).ok().filter(|name| name.len() > ENDING.len())
    });
    names.last().map(|name| path.with_file_name(name)).filter(|file| file != path && file.is_file())
}
