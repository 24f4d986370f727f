//! `loci sessions diff`: what changed between two prompts of a session.

use std::path::Path;

use loci_app::UserError;
use loci_core::file_history::{PathState, prompts_of};
use loci_core::ids::EntryId;
use loci_storage::history::{PathDiff, RewindContext, diff_points};
use serde_json::{Value, json};

use super::{SessionsContext, format, output, rewind, target};

/// The arguments of `loci sessions diff`.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The session: id, title or path.
    session: String,

    /// The prompt to begin before: its uuid or the beginning of it; without it, the first.
    from: Option<String>,

    /// The prompt to end before; without it, the end of the session.
    to: Option<String>,

    /// Print JSON, one object a path.
    #[arg(long)]
    json: bool,
}

/// Prints the changes.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &DiffArgs) -> Result<(), UserError> {
    let place = target::find(ctx, "diff", &args.session)?;
    let entries = target::entries(&place)?;
    let prompts = prompts_of(&entries);
    let resolve = |name: &String| {
        let found = prompts.iter().find(|prompt| prompt.id.as_str().starts_with(name.as_str()));
        found.map_or_else(|| EntryId::new(name.as_str()), |prompt| prompt.id.clone())
    };
    let (from, to) = (args.from.as_ref().map(resolve), args.to.as_ref().map(resolve));
    let cwd = rewind::cwd(&entries)?;
    let scene = RewindContext { home: &ctx.home, env: ctx.env, session: place.id(), cwd: &cwd };
    let diffs = diff_points(&scene, from.as_ref(), to.as_ref()).map_err(|error| {
        UserError::from_error(&error).hint(
            "Changes are recorded when a session runs with --checkpoint-files, or with \
             CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1.",
        )
    })?;
    let text: String = match args.json {
        true => diffs.iter().map(|diff| format!("{}\n", as_json(diff))).collect(),
        false => diffs.iter().map(|diff| as_text(diff, &cwd)).collect(),
    };
    output::print(&text)
}

fn as_json(diff: &PathDiff) -> Value {
    json!({"path": diff.path, "before": diff.before, "after": diff.after, "diff": unified(diff)})
}

fn as_text(diff: &PathDiff, cwd: &Path) -> String {
    let shown = diff.path.strip_prefix(cwd).unwrap_or(&diff.path).to_string_lossy();
    let head = format!("{}: {} -> {}\n", format::plain(&shown), about(&diff.before), about(&diff.after));
    head + &unified(diff).map(|text| format::plain(&text)).unwrap_or_default()
}

/// Returns the lines that changed, where both sides are text or nothing.
fn unified(diff: &PathDiff) -> Option<String> {
    let is_text = |bytes: &Option<Vec<u8>>| bytes.as_ref().is_none_or(|bytes| !bytes.contains(&0));
    let (old, new) = &diff.contents;
    if (old.is_none() && new.is_none()) || !is_text(old) || !is_text(new) {
        return None;
    }
    let text =
        |bytes: &Option<Vec<u8>>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
    let (old, new) = (text(old), text(new));
    Some(loci_core::diff::unified(&old, &new))
}

fn about(state: &PathState) -> String {
    match state {
        PathState::None => "nothing".to_owned(),
        PathState::File { mode, size, .. } => format!("file {mode:o}, {}", format::size(*size)),
        PathState::Link { to } => format!("link to {}", format::plain(&to.as_path().to_string_lossy())),
        PathState::Dir { mode } => format!("directory {mode:o}"),
        PathState::Other => "something special".to_owned(),
    }
}
