//! The session that a verb is about, and what is in it.

use std::sync::Arc;

use loci_core::entry::Entry;
use loci_storage::{Loaded, SessionPlace, SessionSummary, load, resolve, summary_of};

use super::{Desk, output};
use crate::complaint::Complaint;

/// Finds the session a person named; `verb` is what they typed before the name.
pub(super) fn find(desk: &Desk<'_>, verb: &str, name: &str) -> Result<SessionPlace, Complaint> {
    resolve(&desk.home, &desk.env.cwd, name).map_err(|error| {
        let complaint = Complaint::from_error(&error);
        match error.hint_for(&format!("loci sessions {verb}")) {
            Some(hint) => complaint.hint(hint),
            None => complaint,
        }
    })
}

/// Reads the facts about a session.
pub(super) fn summary(place: &SessionPlace) -> Result<SessionSummary, Complaint> {
    let summary = summary_of(place).map_err(|error| Complaint::from_error(&error))?;
    summary.ok_or_else(|| Complaint::new(format!("The session file is empty: `{}`", place.file().display())))
}

/// Reads all entries, and tells people what could not be read.
pub(super) fn entries(place: &SessionPlace) -> Result<Vec<Arc<Entry>>, Complaint> {
    let Loaded { entries, skipped } = load(place.file()).map_err(|error| Complaint::from_error(&error))?;
    if let Some(first) = skipped.first() {
        output::say(&format!(
            "{} of `{}` could not be read, first at byte {}",
            match skipped.len() {
                1 => "One line".to_owned(),
                n => format!("{n} lines"),
            },
            place.file().display(),
            first.offset
        ));
    }
    Ok(entries)
}
