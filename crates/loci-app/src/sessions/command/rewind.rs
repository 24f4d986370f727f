//! `/rewind`: the prompts one can go back to, what that would change, and going there and back again.
//!
//! Files go back at any time between turns. The conversation goes back while no process writes the session: whoever runs
//! it ends it, has it rewound, and resumes it. Every rewind is written down first and can be undone.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::conversation::{Branches, Conversation, Leaf, history};
use loci_core::entry::Entry;
use loci_core::file_history::{PathState, PromptPoint, RewindStep, prompts_of};
use loci_core::ids::EntryId;
use loci_stdx::{counted, single_line};
use loci_storage::history::{
    ConversationRewind, OnConflict, RewindContext, RewindError, RewindPlan, RewindReport, TurnbackSummary,
    apply_rewind, plan_rewind, plan_undo,
};
use loci_storage::sessions::{Lease, LeaseError, load_transcript};

use serde_json::Value;

use super::CommandContext;
use super::turn_changes::changed_file;
use crate::reports::display::written;
use crate::user_error::UserError;

/// The longest prompt that is shown.
const MOST_TEXT: usize = 200;

/// What the model is told before a summary of what came after a point.
const SUMMARY_HEAD: &str = "What followed here was summarised because the user asked for that; the messages themselves are no \
longer part of the conversation, while changes of files remain. The summary:";

/// A prompt that one can go back to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindPoint {
    /// Its id.
    pub prompt: String,
    /// What was asked, whole.
    pub text: String,
    /// The same in a line.
    pub line: String,
    /// When, in local time.
    pub time: String,
    /// Files that its turn changed, as its calls tell it.
    pub n_files: usize,
    /// Lines that came.
    pub added: usize,
    /// Lines that went.
    pub removed: usize,
    /// How far it stands from the conversation at hand: zero for a prompt of it, more for those of branches that were left.
    pub depth: usize,
    /// Where its branch ends, for one that was left; going there goes on with it.
    pub leaf: Option<String>,
}

/// What there is to go back to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindPoints {
    /// The prompts of the conversation, the newest first, with those of branches that were left above where they began.
    pub points: Vec<RewindPoint>,
    /// Whether a rewind was made that can be undone.
    pub can_undo: bool,
}

/// What a rewind would do to files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindPreview {
    /// Paths, and what would become of them.
    pub files: Vec<(String, &'static str)>,
    /// Paths that someone else changed, and why they are left alone.
    pub conflicts: Vec<(String, &'static str)>,
    /// Paths that have changed and that git ignores: they are not touched.
    pub ignored: Vec<String>,
    /// Lines that would come back.
    pub insertions: usize,
    /// Lines that would go.
    pub deletions: usize,
    /// Why nothing is known of files, if nothing is.
    pub problem: Option<String>,
}

/// A wish to go back, or to take that back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindRequest {
    /// The prompt; none to undo the last rewind.
    pub prompt: Option<String>,
    /// Whether files go back.
    pub takes_files: bool,
    /// Whether files go back, too, that someone else changed since.
    pub overwrites: bool,
    /// What the model is told of what came after, where that is to be known and not to be read.
    pub summary: Option<String>,
}

/// Lists the prompts of the conversation at hand.
pub fn rewind_points(ctx: &CommandContext) -> Result<RewindPoints, UserError> {
    let place = ctx.place();
    if !place.file().exists() {
        return Ok(RewindPoints::default());
    }
    let entries = load_transcript(place.file()).map_err(|error| UserError::from_error(&error))?.entries;
    let path: HashSet<EntryId> =
        history(&entries).iter().filter_map(|entry| entry.head().uuid.clone()).collect();
    let points = tree(&entries, &path, &ctx.env.cwd);
    let identity = ctx.identity.get();
    let can_undo = plan_undo(&rewind_context(ctx, identity.original_cwd(), identity.id())).is_ok();
    Ok(RewindPoints { points, can_undo })
}

fn point(prompt: PromptPoint) -> RewindPoint {
    RewindPoint {
        prompt: prompt.id.to_string(),
        line: single_line(&prompt.text, MOST_TEXT),
        time: written(Some(&prompt.timestamp)),
        text: prompt.text,
        ..RewindPoint::default()
    }
}

/// Lists all prompts of a session as a tree, the newest first: branches that were left stand above the prompt behind which
/// they began.
fn tree(entries: &[Arc<Entry>], path: &HashSet<EntryId>, cwd: &Path) -> Vec<RewindPoint> {
    // Whose turn an entry belongs to, and behind whose turn a prompt was asked.
    let mut turn_of: HashMap<EntryId, EntryId> = HashMap::new();
    let mut children: HashMap<Option<EntryId>, Vec<PromptPoint>> = HashMap::new();
    let mut changes: HashMap<EntryId, (HashSet<String>, usize, usize)> = HashMap::new();
    for entry in entries {
        let head = entry.head();
        let Some(id) = head.uuid.clone() else { continue };
        let before = head.parent.as_ref().and_then(|parent| turn_of.get(parent).cloned());
        if let Some(prompt) = prompts_of(std::slice::from_ref(entry)).pop() {
            turn_of.insert(id.clone(), id);
            children.entry(before).or_default().push(prompt);
            continue;
        }
        let Some(turn) = before else { continue };
        if let Some(file) =
            entry.fields().read::<Value>("toolUseResult").and_then(|it| changed_file(&it, cwd))
        {
            let (files, added, removed) = changes.entry(turn.clone()).or_default();
            files.insert(file.path);
            *added += file.added;
            *removed += file.removed;
        }
        turn_of.insert(id, turn);
    }
    let leaves = leaves_of(entries);
    let mut points = Vec::new();
    // A prompt is listed once those behind it are; a stack, so that a long conversation costs no more than a short one.
    let mut steps: Vec<Step> = vec![Step::Enter(None, 0)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(turn, depth) => {
                let mut behind = children.remove(&turn).unwrap_or_default();
                // Those of the conversation at hand are listed first, as they are the newest.
                behind.sort_by_key(|prompt| path.contains(&prompt.id));
                for prompt in behind {
                    let is_left = !path.contains(&prompt.id);
                    let depth = depth + usize::from(is_left && depth == 0);
                    let id = prompt.id.clone();
                    steps.push(Step::List(Box::new(prompt), depth));
                    steps.push(Step::Enter(Some(id), depth));
                }
            }
            Step::List(prompt, depth) => {
                let (files, added, removed) = changes.remove(&prompt.id).unwrap_or_default();
                let leaf = (depth > 0).then(|| leaves.get(&prompt.id).map(ToString::to_string)).flatten();
                points.push(RewindPoint {
                    n_files: files.len(),
                    added,
                    removed,
                    depth,
                    leaf,
                    ..point(*prompt)
                });
            }
        }
    }
    points
}

/// What is done next when a tree is listed.
enum Step {
    /// List what was asked behind a turn.
    Enter(Option<EntryId>, usize),
    /// List a prompt.
    List(Box<PromptPoint>, usize),
}

/// Returns the newest end of a branch for each entry that leads to it.
fn leaves_of(entries: &[Arc<Entry>]) -> HashMap<EntryId, EntryId> {
    let branches = Branches::from_entries(entries);
    let mut leaves: Vec<&Leaf> = branches.leaves().iter().collect();
    leaves.sort_by(|left, right| left.timestamp.cmp(&right.timestamp));
    let mut all = HashMap::new();
    for leaf in leaves {
        for entry in branches.lineage(&leaf.id) {
            all.extend(entry.head().uuid.clone().map(|id| (id, leaf.id.clone())));
        }
    }
    all
}

fn rewind_context<'a>(
    ctx: &'a CommandContext,
    cwd: &'a Path,
    session: &'a loci_core::ids::SessionId,
) -> RewindContext<'a> {
    RewindContext { home: &ctx.home, env: &ctx.env, session, cwd }
}

/// Says what a rewind would do to files; what is not known is said, too.
pub fn preview_rewind(ctx: &CommandContext, prompt: Option<&str>) -> Result<RewindPreview, UserError> {
    let identity = ctx.identity.get();
    let cwd = identity.original_cwd();
    match plan(ctx, &rewind_context(ctx, cwd, identity.id()), prompt) {
        Ok(plan) => Ok(preview(&plan, cwd)),
        Err(error @ RewindError::NoCheckpoint) => {
            Ok(RewindPreview { problem: Some(error.to_string()), ..RewindPreview::default() })
        }
        Err(error) => Err(UserError::from_error(&error)),
    }
}

fn plan(
    ctx: &CommandContext,
    scene: &RewindContext<'_>,
    prompt: Option<&str>,
) -> Result<RewindPlan, RewindError> {
    let Some(prompt) = prompt else { return plan_undo(scene) };
    let entries = load_transcript(ctx.place().file()).map(|loaded| loaded.entries).unwrap_or_default();
    plan_rewind(scene, &entries, &EntryId::new(prompt))
}

fn preview(plan: &RewindPlan, cwd: &Path) -> RewindPreview {
    let shown = |path: &Path| path.strip_prefix(cwd).unwrap_or(path).display().to_string();
    RewindPreview {
        files: plan.steps.iter().map(|step| (shown(step.path.as_path()), action(step))).collect(),
        conflicts: plan
            .conflicts
            .iter()
            .map(|(step, why)| (shown(step.path.as_path()), why.reason()))
            .collect(),
        ignored: plan.ignored.iter().map(|path| shown(path)).collect(),
        insertions: plan.insertions,
        deletions: plan.deletions,
        problem: None,
    }
}

fn action(step: &RewindStep) -> &'static str {
    match (&step.from, &step.to) {
        (PathState::None, _) => "create",
        (_, PathState::None) => "remove",
        _ => "restore",
    }
}

/// Takes files back to what they were before a prompt; returns what was done, in words.
pub fn rewind_files(ctx: &CommandContext, request: &RewindRequest) -> Result<Vec<String>, UserError> {
    apply(ctx, request, None)
}

/// Takes the conversation back, and files where that is wanted. No process may write the session meanwhile: its lease is
/// held while this is done.
pub(crate) fn rewind_conversation(
    ctx: &CommandContext,
    request: &RewindRequest,
) -> Result<Vec<String>, UserError> {
    let place = ctx.place();
    let _lease = match Lease::acquire(&ctx.home, place.id(), &ctx.env) {
        Ok(lease) => Some(lease),
        Err(LeaseError::Lock { .. }) => None,
        Err(error @ LeaseError::Held { .. }) => return Err(UserError::from_error(&error)),
    };
    let entries = load_transcript(place.file()).map_err(|error| UserError::from_error(&error))?.entries;
    let to = match &request.prompt {
        Some(id) => {
            let prompts = prompts_of(&entries);
            let found = prompts.into_iter().find(|prompt| prompt.id.as_str() == id);
            found.ok_or_else(|| UserError::new("The prompt is not in the session any more"))?.parent
        }
        None => None,
    };
    let conversation = ConversationRewind {
        file: place.file().to_owned(),
        from: Conversation::build(entries).leaf().cloned(),
        to,
        mark: EntryId::new(ctx.env.random.uuid_v4().to_string()),
        summary: request.summary.as_deref().map(|text| TurnbackSummary {
            id: EntryId::new(ctx.env.random.uuid_v4().to_string()),
            text: format!("{SUMMARY_HEAD}\n\n{}", text.trim()),
        }),
    };
    apply(ctx, request, Some(conversation))
}

fn apply(
    ctx: &CommandContext,
    request: &RewindRequest,
    conversation: Option<ConversationRewind>,
) -> Result<Vec<String>, UserError> {
    let identity = ctx.identity.get();
    let scene = rewind_context(ctx, identity.original_cwd(), identity.id());
    let failed = |error: RewindError| UserError::from_error(&error);
    let plan = match request.takes_files || request.prompt.is_none() {
        true => plan(ctx, &scene, request.prompt.as_deref()).map_err(failed)?,
        false => RewindPlan::default(),
    };
    let on_conflict = if request.overwrites { OnConflict::Overwrite } else { OnConflict::Keep };
    let ignored = plan.ignored.clone();
    let report = apply_rewind(&scene, plan, on_conflict, conversation).map_err(failed)?;
    Ok(report_lines(&report, &ignored, identity.original_cwd()))
}

/// Says what a rewind did.
fn report_lines(report: &RewindReport, ignored: &[PathBuf], cwd: &Path) -> Vec<String> {
    let shown = |path: &Path| path.strip_prefix(cwd).unwrap_or(path).display().to_string();
    let mut lines = Vec::new();
    if !report.changed.is_empty() {
        let files = counted(report.changed.len() as u64, "file is", "files are");
        lines.push(format!("{files} as before; `/rewind` can undo it"));
    }
    lines.extend(report.left.iter().map(|(path, why)| format!("Left as it is: {} ({why})", shown(path))));
    if !ignored.is_empty() {
        let files = counted(ignored.len() as u64, "file", "files");
        lines.push(format!("Not touched, since git ignores them: {files}"));
    }
    lines
}
