//! The session that a verb is about, and what is in it.

use std::sync::Arc;

use loci_app::UserError;
use loci_app::sessions::resume::restore_hint;
use loci_core::entry::Entry;
use loci_stdx::counted;
use loci_storage::foreign::{RolloutError, find_rollout, load_rollout};
use loci_storage::layout::{Dialect, SessionPlace};
use loci_storage::sessions::{
    FindError, LoadedTranscript, SessionSummary, load_transcript, resolve_session, session_summary,
};

use super::{SessionsContext, output};

/// Finds the session a person named; `verb` is what they typed before the name.
pub(super) fn find(ctx: &SessionsContext<'_>, verb: &str, name: &str) -> Result<SessionPlace, UserError> {
    resolve_session(&ctx.home, &ctx.env.cwd, name).map_err(|error| {
        let user_error = UserError::from_error(&error);
        let back = match &error {
            FindError::NoSuchId { id } => restore_hint(&ctx.home, id),
            _ => None,
        };
        match back.or_else(|| error.hint_for(&format!("loci sessions {verb}"))) {
            Some(hint) => user_error.hint(hint),
            None => user_error,
        }
    })
}

/// Finds the session a person named, of Codex too, for verbs that only read.
pub(super) fn find_to_read(
    ctx: &SessionsContext<'_>,
    verb: &str,
    name: &str,
) -> Result<SessionPlace, UserError> {
    let own = resolve_session(&ctx.home, &ctx.env.cwd, name);
    let is_other_file = matches!(own, Err(FindError::NotASession { .. })) || name.ends_with(".zst");
    if !is_other_file && !matches!(own, Err(FindError::NoSuchId { .. } | FindError::NoSuchName { .. })) {
        return find(ctx, verb, name);
    }
    match find_rollout(&ctx.home, &ctx.env.cwd, name) {
        Ok(Some(place)) => Ok(place),
        Ok(None) => find(ctx, verb, name),
        Err(error) => Err(to_user_error(&error)),
    }
}

/// Says why a session of Codex cannot be read.
pub(super) fn to_user_error(error: &RolloutError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        RolloutError::NotARollout { .. } => {
            user_error.hint("A rollout begins with a line of type `session_meta` that has an id.")
        }
        RolloutError::NoBase { .. } => {
            user_error.hint("Bring the other rollout back to the sessions of Codex.")
        }
        RolloutError::Translate { .. } | RolloutError::Read { .. } => user_error,
    }
}

/// Reads the facts about a session.
pub(super) fn summary(place: &SessionPlace) -> Result<SessionSummary, UserError> {
    let summary = session_summary(place).map_err(|error| UserError::from_error(&error))?;
    summary.ok_or_else(|| UserError::new(format!("The session file is empty: `{}`", place.file().display())))
}

/// Reads all entries of a session, of Codex too.
pub(super) fn entries_to_read(
    ctx: &SessionsContext<'_>,
    place: &SessionPlace,
) -> Result<Vec<Arc<Entry>>, UserError> {
    if place.dialect() == Dialect::Own {
        return entries(place);
    }
    let (entries, n_skipped) = load_rollout(&ctx.home, place).map_err(|error| to_user_error(&error))?;
    if n_skipped > 0 {
        let lines = counted(n_skipped as u64, "line", "lines");
        output::print_message(&format!("{lines} of `{}` could not be read", place.file().display()));
    }
    Ok(entries)
}

/// Reads all entries of one of our own sessions, and tells people what could not be read.
pub(super) fn entries(place: &SessionPlace) -> Result<Vec<Arc<Entry>>, UserError> {
    let LoadedTranscript { entries, skipped } =
        load_transcript(place.file()).map_err(|error| UserError::from_error(&error))?;
    if let Some(first) = skipped.first() {
        output::print_message(&format!(
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
