//! Sessions that lie with another directory and were last used in this one.
//!
//! A file stays where it was begun. After its directory was moved, or once it was named from elsewhere, its last
//! entries say where it is at home now.

use std::fs::{self};
use std::path::Path;
use std::time::SystemTime;

use loci_core::entry::Entry;
use loci_stdx::{ReverseLines, open_regular};

use super::{FindError, places_of_all};
use crate::layout::{ConfigHome, SessionPlace};

/// How many files are looked at, those last changed first.
const MOST_FILES: usize = 200;
/// How many lines of each, from the end.
const MOST_LINES: usize = 50;

/// Returns the session last changed of those whose last entry was written in `real_cwd`.
pub(super) fn newest_used_in(home: &ConfigHome, real_cwd: &Path) -> Result<Option<SessionPlace>, FindError> {
    let (mut places, _) = places_of_all(home)?;
    places.sort_by_cached_key(|place| {
        let changed = fs::metadata(place.file()).and_then(|metadata| metadata.modified());
        std::cmp::Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH))
    });
    let is_used_here =
        |place: &SessionPlace| last_cwd(place.file()).is_some_and(|cwd| Path::new(&cwd) == real_cwd);
    Ok(places.into_iter().take(MOST_FILES).find(is_used_here))
}

/// Returns the working directory of the last entry that has one.
fn last_cwd(file: &Path) -> Option<String> {
    let mut lines = ReverseLines::new(open_regular(file).ok()?).ok()?;
    for _ in 0..MOST_LINES {
        let line = lines.next_line().ok()??;
        let entry = std::str::from_utf8(line.bytes).ok().and_then(|text| Entry::parse(text).ok());
        let cwd =
            entry.filter(|entry| entry.head().kind.is_chain()).and_then(|entry| entry.fields().read("cwd"));
        if cwd.is_some() {
            return cwd;
        }
    }
    None
}
