//! `loci sessions rewind` and `undo-rewind`: back to a prompt, and forth again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_app::UserError;
use loci_core::conversation::{Conversation, Outline};
use loci_core::entry::Entry;
use loci_core::file_history::{PathState, PromptPoint, RewindStep, prompts_of};
use loci_core::ids::EntryId;
use loci_core::path::{is_inside, normalise};
use loci_stdx::counted;
use loci_storage::history::{
    ConversationRewind, OnConflict, RewindContext, RewindError, RewindPlan, RewindReport, apply_rewind,
    plan_rewind, plan_undo, recover_rewinds,
};
use loci_storage::layout::SessionPlace;
use loci_storage::sessions::{Lease, LeaseError};
use serde_json::{Value, json};

use super::{SessionsContext, format, output, target};

/// The arguments of `loci sessions rewind`.
#[derive(Debug, clap::Args)]
pub(super) struct RewindArgs {
    /// The session: id, title or path.
    session: String,

    /// The prompt to go back to: its uuid, the beginning of it, or `last`. What it led to is taken back. Any other message
    /// stands for the prompt it belongs to.
    #[arg(long, value_name = "MESSAGE")]
    to: String,

    /// Take back files only.
    #[arg(long, conflicts_with_all = ["conversation", "both"])]
    files: bool,

    /// Take back the conversation only.
    #[arg(long, conflicts_with = "both")]
    conversation: bool,

    /// Take back both; this is what happens unless something else is asked for.
    #[arg(long)]
    both: bool,

    #[command(flatten)]
    how: How,
}

/// The arguments of `loci sessions undo-rewind`.
#[derive(Debug, clap::Args)]
pub(super) struct UndoArgs {
    /// The session: id, title or path.
    session: String,

    #[command(flatten)]
    how: How,
}

#[derive(Debug, clap::Args)]
struct How {
    /// What to do about files that someone else changed since.
    #[arg(long, value_enum, default_value = "refuse", value_name = "WHAT")]
    conflicts: Conflicts,

    /// With `--conflicts overwrite`, bring files back outside the directory of the session, too.
    #[arg(long)]
    outside: bool,

    /// Only say what would happen.
    #[arg(long)]
    dry_run: bool,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Conflicts {
    /// Do nothing at all.
    Refuse,
    /// Leave those files as they are.
    Keep,
    /// Bring them back all the same; what they hold now is kept.
    Overwrite,
}

/// Goes back to a prompt.
pub(super) fn rewind(ctx: &SessionsContext<'_>, args: &RewindArgs) -> Result<(), UserError> {
    let place = target::find(ctx, "rewind", &args.session)?;
    let (_lease, entries) = open(ctx, &place, args.how.dry_run)?;
    let prompt = prompt(&place, &entries, &args.to)?;
    let cwd = cwd(&entries)?;
    let scene = RewindContext { home: &ctx.home, env: ctx.env, session: place.id(), cwd: &cwd };
    let plan = match args.conversation {
        true => None,
        false => {
            Some(plan_rewind(&scene, &entries, &prompt.id).map_err(|error| to_user_error(&place, &error))?)
        }
    };
    let conversation = (!args.files).then(|| ConversationRewind {
        file: place.file().to_owned(),
        from: Conversation::build(entries.clone()).leaf().cloned(),
        to: prompt.parent.clone(),
        mark: EntryId::new(ctx.env.random.uuid_v4().to_string()),
        summary: None,
    });
    let to = Some(prompt.id.as_str());
    perform(ctx, &place, &scene, plan.unwrap_or_default(), conversation, &args.how, to)
}

/// Takes files back as other programs' flag does: what someone else changed stays, and is named.
pub(super) fn files(ctx: &SessionsContext<'_>, session: &str, to: &str) -> Result<(), UserError> {
    let how = How { conflicts: Conflicts::Keep, outside: false, dry_run: false, json: false };
    let (session, to) = (session.to_owned(), to.to_owned());
    rewind(ctx, &RewindArgs { session, to, files: true, conversation: false, both: false, how })
}

/// Undoes the last rewind.
pub(super) fn undo(ctx: &SessionsContext<'_>, args: &UndoArgs) -> Result<(), UserError> {
    let place = target::find(ctx, "undo-rewind", &args.session)?;
    let (_lease, entries) = open(ctx, &place, args.how.dry_run)?;
    let cwd = cwd(&entries)?;
    let scene = RewindContext { home: &ctx.home, env: ctx.env, session: place.id(), cwd: &cwd };
    let plan = plan_undo(&scene).map_err(|error| to_user_error(&place, &error))?;
    let conversation = ConversationRewind {
        file: place.file().to_owned(),
        from: Conversation::build(entries).leaf().cloned(),
        to: None,
        mark: EntryId::new(ctx.env.random.uuid_v4().to_string()),
        summary: None,
    };
    perform(ctx, &place, &scene, plan, Some(conversation), &args.how, None)
}

/// Takes the right to change the session, finishes what was cut short, and reads the transcript.
fn open(
    ctx: &SessionsContext<'_>,
    place: &SessionPlace,
    is_trial: bool,
) -> Result<(Option<Lease>, Vec<Arc<Entry>>), UserError> {
    let lease = match is_trial {
        true => None,
        false => Some(Lease::acquire(&ctx.home, place.id(), ctx.env).map_err(|error| in_use(&error))?),
    };
    recover_rewinds(&ctx.home, ctx.env).iter().for_each(|note| output::print_message(note));
    Ok((lease, target::entries(place)?))
}

fn in_use(error: &LeaseError) -> UserError {
    UserError::from_error(error).hint("End that process first, or ask it to rewind (`rewind_files`).")
}

fn perform(
    ctx: &SessionsContext<'_>,
    place: &SessionPlace,
    scene: &RewindContext<'_>,
    plan: RewindPlan,
    conversation: Option<ConversationRewind>,
    how: &How,
    to: Option<&str>,
) -> Result<(), UserError> {
    let on_conflict = match how.conflicts {
        Conflicts::Refuse => OnConflict::Refuse,
        Conflicts::Keep => OnConflict::Keep,
        Conflicts::Overwrite => OnConflict::Overwrite,
    };
    if on_conflict == OnConflict::Overwrite && !how.outside && !how.dry_run {
        refuse_outside(&plan, scene, &ctx.env.home)?;
    }
    let report = Report::new(ctx, &plan, conversation.is_some(), to);
    let is_refused = on_conflict == OnConflict::Refuse && !plan.conflicts.is_empty();
    if how.dry_run || is_refused {
        match how.json {
            true => output::print_json(&report.json(place, None))?,
            false => output::print(&report.text("Would change"))?,
        }
        return match is_refused && !how.dry_run {
            true => Err(to_user_error(place, &RewindError::Conflicts { n: plan.conflicts.len() })),
            false => Ok(()),
        };
    }
    let turns_back = conversation.is_some();
    let rewound =
        apply_rewind(scene, plan, on_conflict, conversation).map_err(|error| to_user_error(place, &error))?;
    match how.json {
        true => output::print_json(&report.json(place, Some(&rewound))),
        false => {
            output::print(&report.text("Changed"))?;
            // What changed nothing leaves nothing to take back.
            if turns_back || !rewound.changed.is_empty() {
                output::print_message(&format!("`loci sessions undo-rewind {}` takes this back", place.id()));
            }
            Ok(())
        }
    }
}

/// Refuses to overwrite what lies outside the session's directory: a transcript may be somebody else's, and says which files
/// it is about. A home is no directory of a project.
fn refuse_outside(plan: &RewindPlan, scene: &RewindContext<'_>, home: &Path) -> Result<(), UserError> {
    let is_project = !is_inside(home, scene.cwd);
    let is_outside = |path: &Path| !is_project || !is_inside(&normalise(scene.cwd, path), scene.cwd);
    let found = plan.conflicts.iter().map(|(step, _)| step.path.as_path()).find(|path| is_outside(path));
    match found {
        None => Ok(()),
        Some(path) => {
            let path = format::plain(&normalise(scene.cwd, path).to_string_lossy());
            Err(UserError::new(format!("`{path}` lies outside the directory of the session")).hint(
                "Nothing was changed. --outside overwrites files there, too; --dry-run names all of them.",
            ))
        }
    }
}

/// How many paths that git ignores people are shown.
const MOST_IGNORED: usize = 20;

/// What is shown of a plan.
struct Report<'a> {
    ctx: &'a SessionsContext<'a>,
    files: Vec<(PathBuf, &'static str)>,
    conflicts: Vec<(PathBuf, &'static str)>,
    ignored: Vec<PathBuf>,
    lines: (usize, usize),
    has_conversation: bool,
    to: Option<String>,
}

impl<'a> Report<'a> {
    fn new(
        ctx: &'a SessionsContext<'a>,
        plan: &RewindPlan,
        has_conversation: bool,
        to: Option<&str>,
    ) -> Self {
        let path = |step: &RewindStep| step.path.as_path().to_owned();
        Self {
            ctx,
            files: plan.steps.iter().map(|step| (path(step), action(step))).collect(),
            conflicts: plan.conflicts.iter().map(|(step, why)| (path(step), why.reason())).collect(),
            ignored: plan.ignored.clone(),
            lines: (plan.insertions, plan.deletions),
            has_conversation,
            to: to.map(str::to_owned),
        }
    }

    fn display_path(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.ctx.env.cwd).unwrap_or(path);
        format::plain(&inside.to_string_lossy())
    }

    fn text(&self, verb: &str) -> String {
        let (insertions, deletions) = self.lines;
        let n_files = counted(self.files.len() as u64, "path", "paths");
        let mut text = format!("{verb} {n_files} (+{insertions} -{deletions} lines)\n");
        for (path, action) in &self.files {
            text.push_str(&format!("  {action:<7} {}\n", self.display_path(path)));
        }
        for (path, reason) in &self.conflicts {
            text.push_str(&format!("  conflict {}: {reason}\n", self.display_path(path)));
        }
        for path in self.ignored.iter().take(MOST_IGNORED) {
            text.push_str(&format!("  not touched, git ignores it: {}\n", self.display_path(path)));
        }
        if let Some(n_more @ 1..) = self.ignored.len().checked_sub(MOST_IGNORED) {
            let more = counted(n_more as u64, "more path", "more paths");
            text.push_str(&format!("  not touched, git ignores them: {more} (--json has all)\n"));
        }
        text
    }

    fn json(&self, place: &SessionPlace, rewound: Option<&RewindReport>) -> Value {
        let files = self.files.iter().map(|(path, action)| json!({"path": path, "action": action}));
        let conflicts = self.conflicts.iter().map(|(path, reason)| json!({"path": path, "reason": reason}));
        json!({
            "sessionId": place.id().as_str(),
            "to": self.to,
            "isApplied": rewound.is_some(),
            "files": files.collect::<Vec<_>>(),
            "conflicts": conflicts.collect::<Vec<_>>(),
            "ignored": self.ignored,
            "insertions": self.lines.0,
            "deletions": self.lines.1,
            "conversation": self.has_conversation,
            "changed": rewound.map(|rewound| &rewound.changed),
            "left": rewound.map(|rewound| {
                rewound.left.iter().map(|(path, reason)| json!({"path": path, "reason": reason})).collect::<Vec<_>>()
            }),
        })
    }
}

fn action(step: &RewindStep) -> &'static str {
    match (&step.from, &step.to) {
        (PathState::None, _) => "create",
        (_, PathState::None) => "remove",
        _ => "restore",
    }
}

/// Finds the prompt that a person named, or that the message belongs to which they named; that is said.
fn prompt(place: &SessionPlace, entries: &[Arc<Entry>], name: &str) -> Result<PromptPoint, UserError> {
    let prompts = prompts_of(entries);
    let found: Vec<&PromptPoint> = match name {
        "last" => prompts.last().into_iter().collect(),
        _ => prompts.iter().filter(|prompt| prompt.id.as_str().starts_with(name)).collect(),
    };
    match found.as_slice() {
        [prompt] => Ok((*prompt).clone()),
        [] => prompt_of_message(place, entries, &prompts, name),
        _ => Err(UserError::new(format!("{} prompts begin with `{name}`", found.len()))
            .hint(listed(place, &prompts))),
    }
}

/// Finds the nearest prompt at or above a message.
fn prompt_of_message(
    place: &SessionPlace,
    entries: &[Arc<Entry>],
    prompts: &[PromptPoint],
    name: &str,
) -> Result<PromptPoint, UserError> {
    let outline = Outline::build(entries);
    let id_of = |node: usize| outline.nodes()[node].entry.head().uuid.clone();
    let is_named = |node: &usize| id_of(*node).is_some_and(|id| id.as_str().starts_with(name));
    let found: Vec<usize> = (0..outline.nodes().len()).filter(is_named).collect();
    let [message] = found[..] else {
        let what = match found.len() {
            0 => format!("The session has no message with this uuid: `{name}`"),
            n => format!("{n} messages begin with `{name}`"),
        };
        return Err(UserError::new(what).hint(listed(place, prompts)));
    };
    let above = outline.ancestors(message).find_map(|node| {
        let id = id_of(node)?;
        prompts.iter().find(|prompt| prompt.id == id)
    });
    let prompt = above.ok_or_else(|| {
        UserError::new(format!("There is no prompt at or before this message: `{name}`"))
            .hint(listed(place, prompts))
    })?;
    let text = format::first_lines(&format::plain(&prompt.text), 1).0;
    output::print_message(&format!(
        "The message belongs to the prompt {}, which is gone back to: {text}",
        prompt.id
    ));
    Ok(prompt.clone())
}

fn listed(place: &SessionPlace, prompts: &[PromptPoint]) -> String {
    let newest = prompts.iter().rev().take(10);
    let rows = newest
        .map(|prompt| format!("  {}  {}", prompt.id, format::first_lines(&format::plain(&prompt.text), 1).0));
    let rows: Vec<String> = rows.collect();
    format!(
        "Go back to one of these (the newest first), as in `loci sessions rewind {} --to ...`:\n{}",
        place.id(),
        rows.join("\n")
    )
}

/// Returns the directory a session works in, as its last entry says.
pub(super) fn cwd(entries: &[Arc<Entry>]) -> Result<PathBuf, UserError> {
    let cwd = entries.iter().rev().find_map(|entry| entry.fields().read::<String>("cwd"));
    cwd.map(PathBuf::from)
        .ok_or_else(|| UserError::new("The session does not say which directory it works in"))
}

fn to_user_error(place: &SessionPlace, error: &RewindError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        RewindError::NoCheckpoint => user_error.hint(
            "Files are kept when a session runs with --checkpoint-files, or with \
             CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1. `--conversation` needs no files.",
        ),
        RewindError::Conflicts { .. } => user_error.hint(
            "Nothing was changed. --conflicts=keep leaves those files as they are, --conflicts=overwrite brings them \
             back too (with --outside also those outside the session's directory).",
        ),
        RewindError::Moved { .. } => user_error.hint("Nothing was changed. Try again."),
        RewindError::NothingToUndo => {
            user_error.hint(format!("`loci sessions rewind {} --to ...` goes back to a prompt.", place.id()))
        }
        RewindError::Disk { .. } | RewindError::Lock(_) | RewindError::Append(_) => user_error,
    }
}
