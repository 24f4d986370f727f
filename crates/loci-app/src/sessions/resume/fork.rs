//! `--fork-session`: a copy of a session under a new id, which begins on disk with its first prompt.

use std::sync::Arc;

use loci_context::Replaced;
use loci_core::file_history::snapshots_of;
use loci_core::ids::EntryId;
use loci_engine::LoadedHistory;
use loci_stdx::Env;
use loci_storage::layout::{ConfigHome, SessionPlace};
use loci_storage::sessions::{
    ForkOrigin, ForkSource, copy_notes, copy_tasks, fork_entries, link_backups, load_fork_source,
    session_agent, session_summary,
};

use super::{Resume, fresh, lease, no_such_message, restored_mode, skipped_warning};
use crate::options::RunOptions;
use crate::user_error::UserError;

/// Makes the copy ready; the source is only read, so somebody else may be working on it.
pub(super) fn start(
    env: &Env,
    home: &ConfigHome,
    options: &RunOptions,
    source: &SessionPlace,
) -> Result<Resume, UserError> {
    let place = fresh(env, home, options)?;
    let lease = lease(env, home, options, place.id())?;
    let at = options.session.at.as_ref();
    let leaf = at.map(|uuid| EntryId::new(uuid.as_str()));
    // What lies before the last compaction stays where it is.
    let loaded =
        load_fork_source(source.file(), leaf.as_ref()).map_err(|error| UserError::from_error(&error))?;
    let (conversation, entries, skipped) = match (loaded, at) {
        (Some(ForkSource { conversation, entries, skipped }), _) => (conversation, entries, skipped),
        (None, Some(uuid)) => return Err(no_such_message(uuid, source)),
        (None, None) => Default::default(),
    };
    let inherited = fork_entries(&entries, &conversation, source.id(), place.id(), ForkOrigin::None)
        .map_err(|error| UserError::from_error(&error))?;
    let mut warnings: Vec<String> = skipped_warning(&skipped, source).into_iter().collect();
    if options.is_persistent {
        let linked = link_backups(home, source.id(), place.id());
        warnings
            .extend(linked.err().map(|error| format!("File checkpoints could not be taken over: {error}")));
        let copied = copy_tasks(home, source.id(), place.id());
        warnings.extend(copied.err().map(|error| format!("The task list could not be taken over: {error}")));
        let noted = copy_notes(source, &place, &inherited);
        warnings
            .extend(noted.err().map(|error| format!("The session's notes could not be taken over: {error}")));
    }
    let history = LoadedHistory {
        leaf: conversation.leaf().cloned(),
        repairs: conversation.repairs().to_vec(),
        path: conversation.path().to_vec(),
        replaced: Replaced::from_metadata(entries.iter().map(Arc::as_ref)),
        title: title(source),
        inherited,
        ..LoadedHistory::default()
    };
    let snapshots = snapshots_of(&entries);
    let mode = restored_mode(home, source, &conversation);
    Ok(Resume {
        model: conversation.last_model().map(str::to_owned),
        mode,
        agent: session_agent(source.file()),
        snapshots,
        place,
        history,
        warnings,
        lease,
    })
}

/// A name that the user gave is carried over, told apart; two sessions of one name could not be called by it.
fn title(source: &SessionPlace) -> Option<String> {
    let session = session_summary(source).ok().flatten()?;
    session.facts.labels.custom.map(|title| format!("{title} (fork)"))
}
