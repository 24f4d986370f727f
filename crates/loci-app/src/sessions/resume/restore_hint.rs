//! Sessions that are on the disk but not in their places: how they come back.

use loci_storage::layout::ConfigHome;
use loci_storage::sessions::{archived_sessions, removed_sessions};

/// Returns what brings a session back that was archived or removed; none of one that was neither.
pub fn restore_hint(home: &ConfigHome, id: &str) -> Option<String> {
    // What cannot be listed is of no help to somebody who looks for something else.
    let archived = archived_sessions(home).unwrap_or_default();
    if archived.iter().any(|session| session.place.id().as_str() == id) {
        return Some(format!("It was archived: `loci sessions restore {id}` brings it back."));
    }
    let removed = removed_sessions(home).unwrap_or_default();
    let is_removed = removed.iter().any(|session| session.as_str() == id);
    is_removed.then(|| format!("It was removed: `loci sessions rm --restore {id}` brings it back."))
}
