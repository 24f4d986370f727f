//! What a run continues: nothing, the newest session here, the one that was named, or a copy of it.

mod drops_turn;
mod fork;
mod restore_hint;

use std::sync::Arc;

use loci_context::Replaced;
use loci_core::conversation::Conversation;
use loci_core::entry::Entry;
use loci_core::entry::draft::GOAL_STATE;
use loci_core::file_history::{Snapshot, snapshots_of};
use loci_core::ids::{EntryId, SessionId};
use loci_core::permission::Mode;
use loci_engine::{EarlierTotals, LoadedHistory};
use loci_stdx::Env;
use loci_storage::foreign::find_rollout;
use loci_storage::history::recover_rewinds;
use loci_storage::layout::{ConfigHome, SessionPlace};
use loci_storage::sessions::{
    ConversationTail, FindError, LabelWatch, Lease, LeaseError, LiveLoad, SkippedLine, has_unsaved, load_at,
    load_live, load_tail, newest_session, recover_unsaved, resolve_session, session_agent, session_summary,
    session_totals,
};

use crate::options::{RunOptions, SessionSource};
use crate::user_error::UserError;
pub use restore_hint::restore_hint;

/// A session that begins or goes on.
pub struct Resume {
    /// Its id and file.
    pub place: SessionPlace,
    /// What came before.
    pub history: LoadedHistory,
    /// The model it used last.
    pub model: Option<String>,
    /// The permission mode it was in last, where that is one to go on in.
    pub mode: Option<Mode>,
    /// The agent that its main conversation ran as.
    pub agent: Option<String>,
    /// Its snapshots of files, as far as they were read, oldest first.
    pub snapshots: Vec<Snapshot>,
    /// What the user should know about the file.
    pub warnings: Vec<String>,
    /// The right to write it, unless nothing is written.
    pub lease: Option<Lease>,
}

/// How many entries of a session's end are shown before the rest of it is read, and the most bytes that are read for that.
const TAIL: (usize, u64) = (100, 1024 * 1024);

/// Reads the end of the session that the arguments ask for, with its id, before anything else of a start is done: it is the
/// person's own file, and needs no settings, no trust and no right to write. None where what is shown could not be all of
/// the end, or where there is none.
pub fn read_tail(
    env: &Env,
    home: &ConfigHome,
    options: &RunOptions,
) -> Option<(SessionId, ConversationTail)> {
    let is_branch = options.session.is_fork || options.session.at.is_some();
    if is_branch || options.is_persistent && has_unsaved(home) {
        return None;
    }
    let place = source(env, home, options).ok()??;
    // What is not read here is told by whoever reads all of it.
    let tail = load_tail(place.file(), TAIL.0, TAIL.1).ok()?;
    Some((place.id().clone(), tail))
}

/// Finds what the arguments ask for.
pub fn find(env: &Env, home: &ConfigHome, options: &RunOptions) -> Result<Resume, UserError> {
    // What an earlier run could not save belongs to what is looked for now.
    let completed = match options.is_persistent {
        true => recover_unsaved(home, env),
        false => Vec::new(),
    };
    let finished = match options.is_persistent {
        true => recover_rewinds(home, env),
        false => Vec::new(),
    };
    let source = source(env, home, options)?;
    if let (Some(place), Some(at), Some(prompt)) = (&source, &options.session.at, &options.session.drops_turn)
    {
        drops_turn::check_dropped_turn(place, at, prompt)?;
    }
    let mut start = match (source, options.session.is_fork) {
        (Some(source), true) => fork::start(env, home, options, &source)?,
        // The lease comes first: what is loaded must not grow behind our back.
        (Some(place), false) => {
            let lease = lease(env, home, options, place.id())?;
            Resume { lease, ..open(env, home, place, options)? }
        }
        (None, _) => begin(env, home, options, fresh(env, home, options)?)?,
    };
    name_history(&mut start.history, options);
    start.warnings.extend(finished);
    start.warnings.extend(completed.iter().map(|place| {
        format!(
            "Entries that an earlier run could not save are in the session now: `{}`",
            place.file().display()
        )
    }));
    Ok(start)
}

/// Gives a session the name that the options have for it.
pub(crate) fn name_history(history: &mut LoadedHistory, options: &RunOptions) {
    if let Some(name) = options.session.title.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        history.title = Some(name.to_owned());
    }
}

/// Says who uses the session that the arguments name, if another process does.
pub fn holder(env: &Env, home: &ConfigHome, options: &RunOptions) -> Option<String> {
    if options.session.is_fork || options.session.takes_over || !options.is_persistent {
        return None;
    }
    let place = source(env, home, options).ok()??;
    match Lease::acquire(home, place.id(), env) {
        Err(LeaseError::Held { owner: Some(owner), .. }) => {
            let since = crate::reports::display::written(Some(&owner.since));
            Some(format!("Process {} on {} writes it, since {since}", owner.pid, owner.host))
        }
        Err(LeaseError::Held { owner: None, .. }) => Some("Another process writes it".to_owned()),
        Ok(_) | Err(LeaseError::Lock { .. }) => None,
    }
}

/// Reads the session that the arguments name, if they name one, without any right to write it.
pub fn read_named(env: &Env, home: &ConfigHome, options: &RunOptions) -> Result<Option<Resume>, UserError> {
    source(env, home, options)?.map(|place| open(env, home, place, options)).transpose()
}

/// Begins with nothing, whatever session the arguments name.
pub fn begin_new(env: &Env, home: &ConfigHome, options: &RunOptions) -> Result<Resume, UserError> {
    let place = home.session(&env.cwd, &random_id(env)?);
    begin(env, home, options, place)
}

fn begin(
    env: &Env,
    home: &ConfigHome,
    options: &RunOptions,
    place: SessionPlace,
) -> Result<Resume, UserError> {
    let lease = lease(env, home, options, place.id())?;
    Ok(Resume {
        place,
        history: LoadedHistory::default(),
        model: None,
        mode: None,
        agent: None,
        snapshots: Vec::new(),
        warnings: Vec::new(),
        lease,
    })
}

fn random_id(env: &Env) -> Result<SessionId, UserError> {
    SessionId::parse(&env.random.uuid_v4().to_string()).map_err(|error| UserError::from_error(&error))
}

/// Finds the session to continue, if the arguments ask for one.
fn source(env: &Env, home: &ConfigHome, options: &RunOptions) -> Result<Option<SessionPlace>, UserError> {
    match &options.session.source {
        SessionSource::Named(name) => resolve_session(home, &env.cwd, name)
            .map(Some)
            .map_err(|error| unknown_session_error(env, home, name, &error)),
        SessionSource::Newest => match newest_session(home, &env.cwd) {
            Ok(place) => Ok(Some(place)),
            Err(FindError::NoneHere { .. }) => Ok(None),
            Err(error) => Err(to_user_error(&error)),
        },
        SessionSource::New => Ok(None),
    }
}

/// Asks for the right to write a session; a config home that cannot be written is no obstacle, since the session
/// cannot be written either and says so.
fn lease(
    env: &Env,
    home: &ConfigHome,
    options: &RunOptions,
    id: &SessionId,
) -> Result<Option<Lease>, UserError> {
    if !options.is_persistent {
        return Ok(None);
    }
    let lease = match options.session.takes_over {
        true => Lease::take_over(home, id, env),
        false => Lease::acquire(home, id, env),
    };
    match lease {
        Ok(lease) => Ok(Some(lease)),
        Err(LeaseError::Lock { .. }) => Ok(None),
        Err(error @ LeaseError::Held { .. }) => Err(UserError::from_error(&error).hint(
            "Wait for it to end, continue a copy with --fork-session, read along with `loci sessions show`, or take \
             it over with --take-over.",
        )),
    }
}

/// Returns the place of a session that does not exist yet.
fn fresh(env: &Env, home: &ConfigHome, options: &RunOptions) -> Result<SessionPlace, UserError> {
    let id = match &options.session.id {
        Some(text) => SessionId::parse(text).map_err(|error| UserError::from_error(&error))?,
        None => random_id(env)?,
    };
    let place = home.session(&env.cwd, &id);
    if options.session.id.is_some() && place.file().exists() {
        return Err(UserError::new(format!("Session ID {id} is already in use"))
            .hint(format!("Continue it with `loci -r {id}`, or choose another id.")));
    }
    Ok(place)
}

/// Returns the goal that a session worked towards when it was left.
fn last_goal(metadata: &[Arc<Entry>]) -> Option<String> {
    let last = metadata.iter().rev().find(|entry| entry.head().type_name.as_ref() == GOAL_STATE)?;
    last.fields().read::<Option<String>>("condition").flatten()
}

fn open(
    env: &Env,
    home: &ConfigHome,
    place: SessionPlace,
    options: &RunOptions,
) -> Result<Resume, UserError> {
    let failed = |error| UserError::from_error(&error);
    let LiveLoad { conversation, metadata, skipped, .. } = match &options.session.at {
        Some(uuid) => {
            let loaded = load_at(place.file(), &EntryId::new(uuid.as_str())).map_err(failed)?;
            loaded.ok_or_else(|| no_such_message(uuid, &place))?
        }
        None => load_live(place.file()).map_err(failed)?,
    };
    let labels =
        session_summary(&place).ok().flatten().map(|session| session.facts.labels).unwrap_or_default();
    let agent = session_agent(place.file());
    let model = conversation.last_model().map(str::to_owned);
    let mode = restored_mode(home, &place, &conversation);
    let history = LoadedHistory {
        leaf: conversation.leaf().cloned(),
        begins_branch: options.session.at.is_some(),
        repairs: conversation.repairs().to_vec(),
        path: conversation.into_path(),
        replaced: Replaced::from_metadata(metadata.iter().map(Arc::as_ref)),
        labels: LabelWatch::new(&labels).with_agent(agent.clone()),
        goal: last_goal(&metadata).filter(|_| options.session.at.is_none()),
        ..LoadedHistory::default()
    };
    let warnings = skipped_warning(&skipped, &place).into_iter().collect();
    let n_bytes = std::fs::metadata(place.file()).map_or(0, |metadata| metadata.len());
    let earlier = {
        let (place, now_ms) = (place.clone(), env.clock.now().as_millisecond());
        EarlierTotals::new(move || session_totals(&place, n_bytes, now_ms))
    };
    let history = LoadedHistory { earlier, ..history };
    let snapshots = snapshots_of(&metadata);
    Ok(Resume { model, mode, agent, snapshots, place, history, warnings, lease: None })
}

/// Returns the mode a session goes on in. Bypassing and planning are chosen anew each time, and a file from
/// elsewhere has no say in what runs unasked.
fn restored_mode(home: &ConfigHome, place: &SessionPlace, conversation: &Conversation) -> Option<Mode> {
    let mode = conversation.last_mode()?.parse().ok()?;
    let is_ours = place.file().starts_with(home.projects_dir());
    match mode {
        Mode::Default | Mode::AcceptEdits | Mode::DontAsk => is_ours.then_some(mode),
        Mode::Plan | Mode::Auto | Mode::BypassPermissions => None,
    }
}

fn no_such_message(uuid: &str, place: &SessionPlace) -> UserError {
    UserError::new(format!("No message found with message.uuid of: {uuid}"))
        .hint(format!("`loci sessions tree {}` shows the messages there are.", place.id()))
}

/// Says what could not be read of a file, if anything.
fn skipped_warning(skipped: &[SkippedLine], place: &SessionPlace) -> Option<String> {
    let first = skipped.first()?;
    Some(format!(
        "{} of `{}` could not be read and was skipped, first at byte {}; nothing was removed",
        match skipped.len() {
            1 => "One line".to_owned(),
            n => format!("{n} lines"),
        },
        place.file().display(),
        first.offset
    ))
}

/// Says what is wrong with the name of a session; one of Codex has to be imported first.
fn unknown_session_error(env: &Env, home: &ConfigHome, name: &str, error: &FindError) -> UserError {
    match find_rollout(home, &env.cwd, name) {
        Ok(Some(place)) => {
            UserError::new(format!("This is a session of Codex: `{}`", place.file().display()))
                .hint(format!("Make it one that can be continued: `loci sessions import {}`", place.id()))
        }
        Ok(None) | Err(_) => {
            let back = match error {
                FindError::NoSuchId { id } => restore_hint(home, id),
                _ => None,
            };
            let user_error = to_user_error(error);
            match back {
                Some(back) => user_error.hint(back),
                None => user_error,
            }
        }
    }
}

fn to_user_error(error: &FindError) -> UserError {
    let user_error = UserError::from_error(error);
    match error.hint() {
        Some(hint) => user_error.hint(hint),
        None => user_error,
    }
}
