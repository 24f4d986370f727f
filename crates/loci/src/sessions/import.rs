//! `loci sessions import`: a session of Codex becomes one that can be continued.

use loci_app::COMPATIBLE_VERSION;
use loci_app::UserError;
use loci_storage::foreign::{
    ImportError, ImportId, ImportOptions, ImportedSession, find_rollout, import_rollout_observed,
};
use loci_storage::sessions::FindError;
use serde_json::json;

use super::{SessionsContext, output, target};
use crate::progress_bar::{ProgressBar, ProgressUnit};

/// The arguments of `loci sessions import`.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The Codex session: its id, its name in Codex, or the path of its rollout.
    session: String,

    /// Import it although it was imported before, under a new id.
    #[arg(long)]
    again: bool,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Imports the session and says how to go on with it.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &ImportArgs) -> Result<(), UserError> {
    let name = args.session.as_str();
    let found = find_rollout(&ctx.home, &ctx.env.cwd, name).map_err(|error| target::to_user_error(&error))?;
    let place = found.ok_or_else(|| {
        UserError::new(format!("No Codex session found with this id, name or path: `{name}`")).hint(format!(
            "They are looked for in `{}`; `loci sessions list --all --origin codex` shows them.",
            ctx.home.codex_home().display()
        ))
    })?;
    let under = if args.again { ImportId::New } else { ImportId::Same };
    let wish = ImportOptions { version: COMPATIBLE_VERSION, under };
    let bar = ProgressBar::new("Reading the session", ProgressUnit::Bytes);
    let progress = |n_done, n_total| bar.set(n_done, n_total);
    let imported = import_rollout_observed(&ctx.home, ctx.env, &place, wish, &progress);
    bar.finish();
    let imported = imported.map_err(|error| to_user_error(&error))?;
    let resume = resume(ctx, &imported);
    if args.json {
        return output::print_json(&json!({
            "sessionId": imported.place.id().as_str(),
            "path": imported.place.file(),
            "importedFrom": {"agent": "codex", "session": place.id().as_str(), "path": place.file()},
            "entries": imported.n_entries,
            "leftOut": imported.n_left_out,
            "resume": resume,
        }));
    }
    output::print(&format!("{}\n", imported.place.id()))?;
    if imported.n_left_out > 0 {
        output::print_message(&format!("{} of its lines could not be taken over", imported.n_left_out));
    }
    output::print_message(&format!("Continue it with `{resume}`"));
    Ok(())
}

fn resume(ctx: &SessionsContext<'_>, imported: &ImportedSession) -> String {
    let id = imported.place.id();
    // Where a directory is gone, a session goes on in the one that somebody is in.
    match imported.cwd == ctx.env.cwd || !imported.cwd.is_dir() {
        true => format!("loci -r {id}"),
        false => {
            let dir = imported.cwd.to_string_lossy();
            format!("cd '{}' && loci -r {id}", dir.replace('\'', r"'\''"))
        }
    }
}

fn to_user_error(error: &ImportError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        ImportError::Rollout(error) => target::to_user_error(error),
        ImportError::Again { place } => user_error.hint(format!(
            "Continue it with `loci -r {}`, or make a second copy of what Codex has now with --again.",
            place.id()
        )),
        ImportError::Lease(_) => user_error.hint("Wait for the other process to end."),
        ImportError::Find(FindError::Ambiguous { .. }) => user_error.hint("Remove one of them first."),
        ImportError::Find(_)
        | ImportError::Nothing { .. }
        | ImportError::Entry { .. }
        | ImportError::Write { .. } => user_error,
    }
}
