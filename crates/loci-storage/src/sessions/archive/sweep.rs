//! Putting away what is old: by the last thing said, never by the time of the file.

use loci_stdx::Timestamp;

use super::{ArchiveError, archive_session, pinned_sessions};
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::find::FindError;
use crate::sessions::listing::list_all;
use crate::sessions::remove::process_on;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What came of one session.
#[derive(Debug)]
pub struct ArchiveSweep {
    /// The session.
    pub place: SessionPlace,
    /// Why it stayed, if it did.
    pub result: Result<(), ArchiveError>,
}

/// Puts away sessions in which nothing was said for so many days, the oldest first and `most` at a time. Pinned ones stay,
/// those that a process still has open, and those that do not say when they were used. One that cannot be put away does not keep the others.
pub fn archive_older(
    home: &ConfigHome,
    days: u64,
    most: usize,
    now: Timestamp,
) -> Result<Vec<ArchiveSweep>, FindError> {
    archive_older_observed(home, days, most, now, &|_, _| {})
}

/// Does the same, and tells how many of how many it has come by.
pub fn archive_older_observed(
    home: &ConfigHome,
    days: u64,
    most: usize,
    now: Timestamp,
    progress: &dyn Fn(u64, u64),
) -> Result<Vec<ArchiveSweep>, FindError> {
    let days = i64::try_from(days).unwrap_or(i64::MAX);
    let edge = now.as_millisecond().saturating_sub(days.saturating_mul(DAY_MS));
    // A list of pins that cannot be read pins everything.
    let Ok(pinned) = pinned_sessions(home) else { return Ok(Vec::new()) };
    let mut due: Vec<(i64, SessionPlace)> = list_all(home)?
        .into_iter()
        .filter_map(|session| Some((session.facts.last_activity?.as_millisecond(), session.place)))
        .filter(|(activity, _)| *activity < edge)
        .filter(|(_, place)| !pinned.iter().any(|id| id == place.id().as_str()))
        .collect();
    due.sort_by(|left, right| left.0.cmp(&right.0).then_with(|| left.1.file().cmp(right.1.file())));
    let n_due = due.len() as u64;
    let swept = due
        .into_iter()
        .zip(1..)
        .inspect(|(_, n_done)| progress(*n_done, n_due))
        .map(|(due, _)| due)
        .filter(|(_, place)| process_on(home, place.id()).is_none())
        .take(most)
        .map(|(_, place)| ArchiveSweep { result: archive_session(home, &place, now).map(|_| ()), place });
    Ok(swept.collect())
}
