//! The session that a verb is about, and what is in it.

use std::sync::Arc;

use loci_app::Complaint;
use loci_app::resume::way_back;
use loci_core::entry::Entry;
use loci_stdx::counted;
use loci_storage::foreign::{RolloutError, find_rollout, load_rollout};
use loci_storage::layout::{Dialect, SessionPlace};
use loci_storage::sessions::{FindError, Loaded, SessionSummary, load, resolve, summary_of};

use super::{Desk, output};

/// Finds the session a person named; `verb` is what they typed before the name.
pub(super) fn find(desk: &Desk<'_>, verb: &str, name: &str) -> Result<SessionPlace, Complaint> {
    resolve(&desk.home, &desk.env.cwd, name).map_err(|error| {
        let complaint = Complaint::from_error(&error);
        let back = match &error {
            FindError::NoSuchId { id } => way_back(&desk.home, id),
            _ => None,
        };
        match back.or_else(|| error.hint_for(&format!("loci sessions {verb}"))) {
            Some(hint) => complaint.hint(hint),
            None => complaint,
        }
    })
}

/// Finds the session a person named, of Codex too, for verbs that only read.
pub(super) fn find_to_read(desk: &Desk<'_>, verb: &str, name: &str) -> Result<SessionPlace, Complaint> {
    let own = resolve(&desk.home, &desk.env.cwd, name);
    let is_other_file = matches!(own, Err(FindError::NotASession { .. })) || name.ends_with(".zst");
    if !is_other_file && !matches!(own, Err(FindError::NoSuchId { .. } | FindError::NoSuchName { .. })) {
        return find(desk, verb, name);
    }
    match find_rollout(&desk.home, &desk.env.cwd, name) {
        Ok(Some(place)) => Ok(place),
        Ok(None) => find(desk, verb, name),
        Err(error) => Err(complain(&error)),
    }
}

/// Says why a session of Codex cannot be read.
pub(super) fn complain(error: &RolloutError) -> Complaint {
    let complaint = Complaint::from_error(error);
    match error {
        RolloutError::NotARollout { .. } => {
            complaint.hint("A rollout begins with a line of type `session_meta` that has an id.")
        }
        RolloutError::NoBase { .. } => {
            complaint.hint("Bring the other rollout back to the sessions of Codex.")
        }
        RolloutError::Translate { .. } | RolloutError::Read { .. } => complaint,
    }
}

/// Reads the facts about a session.
pub(super) fn summary(place: &SessionPlace) -> Result<SessionSummary, Complaint> {
    let summary = summary_of(place).map_err(|error| Complaint::from_error(&error))?;
    summary.ok_or_else(|| Complaint::new(format!("The session file is empty: `{}`", place.file().display())))
}

/// Reads all entries of a session, of Codex too.
pub(super) fn entries_to_read(desk: &Desk<'_>, place: &SessionPlace) -> Result<Vec<Arc<Entry>>, Complaint> {
    if place.dialect() == Dialect::Own {
        return entries(place);
    }
    let (entries, n_skipped) = load_rollout(&desk.home, place).map_err(|error| complain(&error))?;
    if n_skipped > 0 {
        let lines = counted(n_skipped as u64, "line", "lines");
        output::say(&format!("{lines} of `{}` could not be read", place.file().display()));
    }
    Ok(entries)
}

/// Reads all entries of one of our own sessions, and tells people what could not be read.
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
