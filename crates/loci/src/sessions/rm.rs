//! `loci sessions rm`: nothing is deleted, it moves to the trash and can be brought back.

use loci_app::UserError;
use loci_core::ids::SessionId;
use loci_storage::sessions::{RemoveError, remove_session, removed_sessions, restore_session};
use serde_json::json;

use super::{SessionsContext, output, target};

/// The arguments of `loci sessions rm`.
#[derive(Debug, clap::Args)]
pub(super) struct RmArgs {
    /// The session to remove: id, title or path.
    #[arg(required_unless_present = "restore", conflicts_with = "restore")]
    session: Option<String>,

    /// Bring the removed session with this id back.
    #[arg(long, value_name = "ID")]
    restore: Option<String>,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Removes a session or brings one back.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &RmArgs) -> Result<(), UserError> {
    match (&args.restore, &args.session) {
        (Some(id), _) => restore(ctx, args, id),
        (None, Some(session)) => remove(ctx, args, session),
        (None, None) => Err(UserError::new("There is no session to remove")),
    }
}

fn remove(ctx: &SessionsContext<'_>, args: &RmArgs, session: &str) -> Result<(), UserError> {
    let place = target::find(ctx, "rm", session)?;
    let id = place.id();
    let trash =
        remove_session(&ctx.home, &place, ctx.env.clock.now()).map_err(|error| to_user_error(ctx, &error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": id.as_str(), "path": place.file(), "trash": trash}));
    }
    output::print_message(&format!(
        "Session {id} was moved to the trash; `loci sessions rm --restore {id}` brings it back"
    ));
    Ok(())
}

fn restore(ctx: &SessionsContext<'_>, args: &RmArgs, id: &str) -> Result<(), UserError> {
    let id = SessionId::parse(id).map_err(|error| UserError::from_error(&error).hint(trash_hint(ctx)))?;
    let place =
        restore_session(&ctx.home, &id, ctx.env.clock.now()).map_err(|error| to_user_error(ctx, &error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": id.as_str(), "path": place.file()}));
    }
    output::print_message(&format!("Session {id} is back: `{}`", place.file().display()));
    Ok(())
}

fn to_user_error(ctx: &SessionsContext<'_>, error: &RemoveError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        RemoveError::InUse { .. } => {
            user_error.hint("End that process first; a session at work is not removed.")
        }
        RemoveError::NotInTrash { .. } => user_error.hint(trash_hint(ctx)),
        RemoveError::Exists { .. } => user_error.hint("Move that file out of the way and try again."),
        RemoveError::Disk { .. } => user_error,
    }
}

fn trash_hint(ctx: &SessionsContext<'_>) -> String {
    let removed = removed_sessions(&ctx.home).unwrap_or_default();
    if removed.is_empty() {
        return "The trash is empty.".to_owned();
    }
    let lines: Vec<String> =
        removed.iter().take(10).map(|id| format!("  loci sessions rm --restore {id}")).collect();
    format!("In the trash:\n{}", lines.join("\n"))
}
