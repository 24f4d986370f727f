//! Going back: files as they were at a prompt, whoever of the session's tools and commands changed them.
//!
//! A rewind is planned first ([`plan_rewind`]): what would change, and what someone else changed meanwhile. Then
//! ([`apply_rewind`]) everything that will be overwritten is kept, the plan is written down and synced, and done step
//! by step; each step is all or nothing. A process that dies in the middle leaves a journal, and the next start of
//! loci finishes it ([`recover_rewinds`]). A rewind that is done can itself be undone ([`plan_undo`]).
//!
//! 1. Nothing is overwritten or removed that is not kept first.
//! 2. What someone else changed is left alone unless the user says otherwise.
//! 3. No symlink is followed, and nothing below `.git` is touched.
//! 4. After a crash at any moment a rewind is finished at the next start, or was never begun.

pub(crate) mod contents;
mod conversation;
mod disk;
mod ignored;
mod journal;
mod shared;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::conversation::millis;
use loci_core::diff::{LineChange, line_changes};
use loci_core::entry::Entry;
use loci_core::file_history::{
    ChangeSet, Conflict, FileContent, HistoryLine, PathChange, PathState, PathText, RewindStep, Wanted,
    in_order, wanted,
};
use loci_core::ids::{EntryId, SessionId};
use loci_stdx::{AppendError, Env, LockError, read_regular, rfc3339_millis};

use crate::history::tree_history::{append, has_call, log_path, read_log_since};
use crate::layout::ConfigHome;
use contents::Contents;
use disk::Done;
use ignored::ignored_changes;
use journal::{Journal, Phase};

pub(crate) use journal::journaled_steps;

/// Files that are written before any is put in place.
const BATCH: usize = 1000;
/// Files beyond this are not counted line by line.
const MOST_TO_COUNT: u64 = 1024 * 1024;

/// Whose files go back, and where everything lies.
#[derive(Debug, Clone, Copy)]
pub struct RewindContext<'a> {
    /// The config home.
    pub home: &'a ConfigHome,
    /// The ambient world.
    pub env: &'a Env,
    /// The session.
    pub session: &'a SessionId,
    /// The directory the session works in.
    pub cwd: &'a Path,
}

/// What a rewind would do.
#[derive(Debug, Default)]
pub struct RewindPlan {
    /// The prompt it goes back to; `None` for an undo.
    pub prompt: Option<EntryId>,
    /// What would be done, in order.
    pub steps: Vec<RewindStep>,
    /// What is not simply done, and why; with what would be done if the user insists.
    pub conflicts: Vec<(RewindStep, Conflict)>,
    /// Lines that would come back.
    pub insertions: usize,
    /// Lines that would go.
    pub deletions: usize,
    /// What git ignores and what has changed since: a rewind does not touch it.
    pub ignored: Vec<PathBuf>,
    undoes: Option<Journal>,
}

/// What to do about conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// Do nothing at all.
    Refuse,
    /// Leave those paths as they are.
    Keep,
    /// Bring them back all the same, where that can be done.
    Overwrite,
}

/// What a rewind did.
#[derive(Debug, Default)]
pub struct RewindReport {
    /// Paths that are as they were.
    pub changed: Vec<PathBuf>,
    /// Paths that were left as they are, and why.
    pub left: Vec<(PathBuf, String)>,
}

/// Why nothing was rewound.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// Nothing is known of files at this message.
    #[error("No file checkpoint found for this message.")]
    NoCheckpoint,
    /// There is no rewind to undo.
    #[error("The session has no rewind that could be undone")]
    NothingToUndo,
    /// Someone else changed what would go back.
    #[error("{} would go back that someone else has changed", n_paths(*n))]
    Conflicts {
        /// How many.
        n: usize,
    },
    /// A path changed between the plan and now.
    #[error("A file changed while the rewind was planned: `{}`", path.display())]
    Moved {
        /// The path.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("Failed to {action}: `{}`", path.display())]
    Disk {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another rewind is under way.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The log could not be appended to.
    #[error(transparent)]
    Append(#[from] AppendError),
}

fn n_paths(n: usize) -> String {
    if n == 1 { "One path".to_owned() } else { format!("{n} paths") }
}

fn disk(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RewindError {
    let path = path.to_owned();
    move |source| RewindError::Disk { action, path, source }
}

/// Plans to bring files back to what they were before a prompt. `entries` is the session's transcript.
pub fn plan_rewind(
    ctx: &RewindContext<'_>,
    entries: &[Arc<Entry>],
    prompt: &EntryId,
) -> Result<RewindPlan, RewindError> {
    let log = log_path(ctx.home, ctx.session);
    let lines = read_log_since(&log, prompt).map_err(disk("read the log of changes", &log))?;
    let mut contents = Contents::new(ctx.home, ctx.session, ctx.env);
    let wanted = match lines {
        Some(since) => wanted(&since, |root, a, b| contents.is_same(root, a, b)),
        None => shared::wanted(ctx, entries, prompt, &mut contents).ok_or(RewindError::NoCheckpoint)?,
    };
    let plan = assess(wanted, &mut contents)?;
    let asked = entries.iter().find(|entry| entry.head().uuid.as_ref() == Some(prompt));
    let since_ms = asked.and_then(|entry| millis(entry.head().timestamp.as_deref()?));
    let ignored = since_ms.map(|since_ms| ignored_changes(ctx.cwd, since_ms, ctx.env)).unwrap_or_default();
    Ok(RewindPlan { prompt: Some(prompt.clone()), ignored, ..plan })
}

/// Plans to undo the last rewind of a session that was not undone.
pub fn plan_undo(ctx: &RewindContext<'_>) -> Result<RewindPlan, RewindError> {
    let last = journal::last_of(ctx.home, Phase::Done, ctx.session).map_err(unread)?;
    let last = last.ok_or(RewindError::NothingToUndo)?;
    let back = last.steps.iter().map(|step| Wanted {
        path: step.path.as_path().to_owned(),
        target: step.from.clone(),
        expected: step.to.clone(),
        is_mixed: false,
        root: step.root.as_path().to_owned(),
    });
    let mut contents = Contents::new(ctx.home, ctx.session, ctx.env);
    let plan = assess(back.collect(), &mut contents)?;
    Ok(RewindPlan { undoes: Some(last), ..plan })
}

/// Compares what is wanted with what is there.
fn assess(wanted: Vec<Wanted>, contents: &mut Contents) -> Result<RewindPlan, RewindError> {
    let mut plan = RewindPlan::default();
    let becomes_dir: Vec<PathBuf> = wanted
        .iter()
        .filter(|it| matches!(it.target, PathState::Dir { .. }))
        .map(|it| it.path.clone())
        .collect();
    for wanted in wanted {
        let now = disk::current_state(&wanted.path).map_err(disk("look at", &wanted.path))?;
        let is_done = contents.is_same(&wanted.root, &now.state, &wanted.target)
            || matches!((&now.state, &wanted.target), (PathState::Dir { .. }, PathState::Dir { .. }) if !contents.is_same(&wanted.root, &now.state, &wanted.expected));
        if is_done {
            continue;
        }
        let has_parent = || wanted.path.ancestors().skip(1).any(|dir| becomes_dir.iter().any(|it| it == dir));
        let conflict = if !wanted.target.is_kept() {
            Some(Conflict::NotKept)
        } else if now.is_barred && !has_parent() {
            Some(Conflict::LinkInTheWay)
        } else if now.has_other_names && matches!(wanted.target, PathState::File { .. }) {
            Some(Conflict::HasOtherNames)
        } else if !contents.is_same(&wanted.root, &now.state, &wanted.expected) {
            Some(Conflict::ChangedSince)
        } else {
            wanted.is_mixed.then_some(Conflict::ChangedBetween)
        };
        let step = RewindStep {
            path: PathText::from(wanted.path),
            from: now.state,
            to: wanted.target,
            root: PathText::from(wanted.root),
        };
        match conflict {
            Some(conflict) => plan.conflicts.push((step, conflict)),
            None => {
                let (insertions, deletions) = n_lines(&step, contents);
                plan.insertions += insertions;
                plan.deletions += deletions;
                plan.steps.push(step);
            }
        }
    }
    plan.steps = in_order(plan.steps);
    Ok(plan)
}

/// Counts the lines that a step brings back and takes away.
fn n_lines(step: &RewindStep, contents: &mut Contents) -> (usize, usize) {
    let mut text = |state: &PathState, is_now: bool| match state {
        PathState::File { size, .. } if *size > MOST_TO_COUNT => None,
        PathState::File { .. } if is_now => read_regular(step.path.as_path()).ok(),
        PathState::File { content, .. } => contents.read(step.root.as_path(), content).ok(),
        PathState::None | PathState::Link { .. } | PathState::Dir { .. } | PathState::Other => {
            Some(Vec::new())
        }
    };
    let (Some(now), Some(then)) = (text(&step.from, true), text(&step.to, false)) else { return (0, 0) };
    let (now, then) = (String::from_utf8_lossy(&now), String::from_utf8_lossy(&then));
    let changes = line_changes(&now, &then);
    let count = |kind| changes.iter().filter(|change| **change == kind).count();
    (count(LineChange::New), count(LineChange::Gone))
}

/// Does what was planned.
pub fn apply_rewind(
    ctx: &RewindContext<'_>,
    plan: RewindPlan,
    on_conflict: OnConflict,
    conversation: Option<ConversationRewind>,
) -> Result<RewindReport, RewindError> {
    let mut rewound = RewindReport::default();
    let mut steps = plan.steps;
    for (step, conflict) in plan.conflicts.iter().cloned() {
        match on_conflict {
            OnConflict::Refuse => return Err(RewindError::Conflicts { n: plan.conflicts.len() }),
            OnConflict::Overwrite if conflict.can_be_overridden() => steps.push(step),
            OnConflict::Keep | OnConflict::Overwrite => {
                rewound.left.push((step.path.as_path().to_owned(), conflict.reason().to_owned()));
            }
        }
    }
    if steps.is_empty() && conversation.is_none() {
        return Ok(rewound);
    }
    let _lock = journal::lock(ctx.home)?;
    let mut contents = Contents::new(ctx.home, ctx.session, ctx.env);
    back_up_removed(&steps, &contents)?;
    let now = ctx.env.clock.now();
    let journal = Journal {
        id: journal::next_id(ctx.home, ctx.session, now).map_err(disk("read", &journal::dir(ctx.home)))?,
        session: ctx.session.clone(),
        prompt: plan.prompt,
        at: rfc3339_millis(now),
        root: PathText::from(ctx.cwd.to_owned()),
        undoes: plan.undoes.as_ref().map(|undone| undone.id.clone()),
        steps: in_order(steps),
        conversation: conversation.map(|rewind| rewind.turnback(plan.undoes.as_ref())).unwrap_or_default(),
    };
    journal.begin(ctx.home).map_err(disk("write down the rewind in", &journal::dir(ctx.home)))?;
    finish(ctx.home, ctx.env, &journal, &mut contents, &mut rewound)?;
    Ok(rewound)
}

/// Keeps everything that will be overwritten or removed; whatever is not as planned stops the rewind.
fn back_up_removed(steps: &[RewindStep], contents: &Contents) -> Result<(), RewindError> {
    let mut synced = HashSet::new();
    for step in steps {
        let PathState::File { content: FileContent::Blob(digest), .. } = &step.from else { continue };
        let path = step.path.as_path();
        let bytes = read_regular(path).map_err(disk("read", path))?;
        let kept = contents.store.put(&bytes).map_err(disk("keep a copy of", path))?;
        if kept != *digest {
            return Err(RewindError::Moved { path: path.to_owned() });
        }
        if synced.insert(*digest) {
            contents.store.sync(digest).map_err(disk("keep a copy of", path))?;
        }
    }
    Ok(())
}

/// Does the steps of a journal that are not done yet, records them, and closes it.
fn finish(
    home: &ConfigHome,
    env: &Env,
    journal: &Journal,
    contents: &mut Contents,
    rewound: &mut RewindReport,
) -> Result<(), RewindError> {
    let mut changes = Vec::new();
    for (step, done) in finish_steps(journal, contents)? {
        let path = step.path.as_path();
        match done {
            Some(Done::Yes) => {
                rewound.changed.push(path.to_owned());
                changes.push(PathChange {
                    path: step.path.clone(),
                    before: step.from.clone(),
                    after: step.to.clone(),
                    from: None,
                });
            }
            Some(Done::StillUsed) => rewound.left.push((path.to_owned(), "not empty".to_owned())),
            None => rewound.left.push((path.to_owned(), Conflict::ChangedSince.reason().to_owned())),
        }
    }
    record(home, env, journal, changes)?;
    if let Some(turnback) = &journal.conversation {
        conversation::mark(turnback, &journal.session, env)
            .map_err(disk("append to the session", turnback.file.as_path()))?;
    }
    let closed = journal.turn(home, Phase::Pending, Phase::Done);
    closed.map_err(disk("close the rewind in", &journal::dir(home)))?;
    if let Some(undone) = &journal.undoes
        && let Some(undone) = journal::by_id(home, Phase::Done, undone).map_err(unread)?
    {
        let turned = undone.turn(home, Phase::Done, Phase::Undone);
        turned.map_err(disk("close the rewind in", &journal::dir(home)))?;
    }
    Ok(())
}

/// A step, and what became of it: `None` when the path is neither what it was nor what it should be.
type Finished<'a> = (&'a RewindStep, Option<Done>);

/// Does the steps that are not done. Files are written beside their places first, a batch at a time, synced, and then
/// put in place one by one.
fn finish_steps<'a>(journal: &'a Journal, contents: &mut Contents) -> Result<Vec<Finished<'a>>, RewindError> {
    let beside = |at: usize| format!(".tmp-rewind-{}-{at}", journal.id.get(..20).unwrap_or("0"));
    let mut finished: Vec<Finished<'a>> = Vec::new();
    let mut files: Vec<(usize, &RewindStep)> = Vec::new();
    for (at, step) in journal.steps.iter().enumerate() {
        let failed = || disk("bring back", step.path.as_path());
        disk::tidy(step, &beside(at));
        match (whether_to_do(step, contents).map_err(failed())?, &step.to) {
            (Some(true), PathState::File { .. }) => files.push((at, step)),
            (Some(true), _) => finished.push((step, Some(disk::perform(step).map_err(failed())?))),
            (Some(false), _) => finished.push((step, Some(Done::Yes))),
            (None, _) => finished.push((step, None)),
        }
    }
    for batch in files.chunks(BATCH) {
        let staged = batch.iter().map(|(at, step)| {
            disk::stage(step, &beside(*at), contents).map_err(disk("bring back", step.path.as_path()))
        });
        let staged: Vec<fs::File> = staged.collect::<Result<_, _>>()?;
        let steps: Vec<&RewindStep> = batch.iter().map(|(_, step)| *step).collect();
        disk::sync(&steps, &staged).map_err(disk("sync", journal.root.as_path()))?;
        for (at, step) in batch {
            disk::publish(step, &beside(*at)).map_err(disk("bring back", step.path.as_path()))?;
            finished.push((step, Some(Done::Yes)));
        }
    }
    Ok(finished)
}

/// Tells whether a step is yet to be done; `None` when someone else changed the path meanwhile.
fn whether_to_do(step: &RewindStep, contents: &mut Contents) -> io::Result<Option<bool>> {
    let (path, root) = (step.path.as_path(), step.root.as_path());
    let now = disk::current_state(path)?.state;
    if contents.is_same(root, &now, &step.to) {
        return Ok(Some(false));
    }
    // Between removing one kind of thing and making another there is nothing; a directory's mode is set last.
    let is_half_way =
        matches!(now, PathState::None) || (now.is_like(&step.to) && matches!(now, PathState::Dir { .. }));
    let is_ours = is_half_way || contents.is_same(root, &now, &step.from);
    Ok(is_ours.then_some(true))
}

/// Notes in the session's log what was done, once.
fn record(
    home: &ConfigHome,
    env: &Env,
    journal: &Journal,
    changes: Vec<PathChange>,
) -> Result<(), RewindError> {
    let log = log_path(home, &journal.session);
    let mark = loci_core::ids::ToolUseId::new(journal.id.as_str());
    if changes.is_empty() || has_call(&log, &mark).map_err(disk("read the log of changes", &log))? {
        return Ok(());
    }
    let set = ChangeSet {
        prompt: journal.prompt.clone(),
        call: Some(mark),
        by: "rewind".to_owned(),
        at: rfc3339_millis(env.clock.now()),
        root: journal.root.clone(),
        changes,
    };
    Ok(append(&log, &HistoryLine::Change(Box::new(set)))?)
}

/// Finishes rewinds that were cut short; returns what people should know. One that is under way is left alone, and one
/// whose journal says nothing is set aside, so that it is told of once and no other waits for it.
pub fn recover_rewinds(home: &ConfigHome, env: &Env) -> Vec<String> {
    // Most starts end here: nothing was ever cut short.
    if journal::pending(home).is_empty() {
        return Vec::new();
    }
    let Ok(Some(_lock)) = journal::try_lock(home) else { return Vec::new() };
    let recover = |(path, journal): (PathBuf, io::Result<Journal>)| match journal {
        Ok(journal) => recover(home, env, &journal),
        Err(error) => give_up(&path, &error),
    };
    journal::pending(home).into_iter().map(recover).collect()
}

/// Finishes those that can be read, and leaves the others where they are.
pub(crate) fn finish_rewinds(home: &ConfigHome, env: &Env) -> Vec<String> {
    let Ok(Some(_lock)) = journal::try_lock(home) else { return Vec::new() };
    let pending = journal::pending(home).into_iter().filter_map(|(_, journal)| journal.ok());
    pending.map(|journal| recover(home, env, &journal)).collect()
}

fn recover(home: &ConfigHome, env: &Env, journal: &Journal) -> String {
    let mut contents = Contents::new(home, &journal.session, env);
    let mut rewound = RewindReport::default();
    match finish(home, env, journal, &mut contents, &mut rewound) {
        Ok(()) if rewound.left.is_empty() => {
            format!("A rewind of session {} that was cut short is finished", journal.session)
        }
        Ok(()) => format!(
            "A rewind of session {} that was cut short is finished; {} changed meanwhile and stayed",
            journal.session,
            n_paths(rewound.left.len())
        ),
        Err(error) => format!(
            "A rewind of session {} was cut short and cannot be finished: {error}{}",
            journal.session,
            std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default()
        ),
    }
}

/// Says what is wrong with a journal, and sets it aside unless it may be read another time.
fn give_up(path: &Path, error: &io::Error) -> String {
    let aside = match error.kind() {
        io::ErrorKind::InvalidData => journal::set_aside(path),
        _ => Err(io::Error::other("it stays in its place")),
    };
    match aside {
        Ok(aside) => format!(
            "A rewind was cut short, and what it was about to do cannot be read ({error}); it is set aside as `{}`, and files stay as they are",
            aside.display()
        ),
        Err(why) => format!(
            "A rewind was cut short, and what it was about to do cannot be read ({error}; {why}): `{}`",
            path.display()
        ),
    }
}

/// Returns the rewinds that were cut short, each with its session if that can be read; none while one is under way.
pub(crate) fn cut_short(home: &ConfigHome) -> Vec<(PathBuf, Option<SessionId>)> {
    let pending = journal::pending(home);
    if pending.is_empty() {
        return Vec::new();
    }
    let session =
        |(path, journal): (PathBuf, io::Result<Journal>)| (path, journal.ok().map(|journal| journal.session));
    match journal::try_lock(home) {
        Ok(Some(_lock)) => pending.into_iter().map(session).collect(),
        Ok(None) | Err(_) => Vec::new(),
    }
}

fn unread((path, source): (PathBuf, io::Error)) -> RewindError {
    RewindError::Disk { action: "read the rewind", path, source }
}

pub use conversation::ConversationRewind;
pub use journal::TurnbackSummary;
