//! `loci sessions restore`: bringing an archived session back.

use loci_app::UserError;
use loci_app::sessions::resume::restore_hint;
use loci_core::ids::SessionId;
use loci_storage::sessions::{ArchiveError, unarchive_session};
use serde_json::json;

use super::{SessionsContext, archive, output};

/// The arguments of `loci sessions restore`.
#[derive(Debug, clap::Args)]
pub(super) struct RestoreArgs {
    /// The session's id.
    session: String,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Brings a session back to where it was.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &RestoreArgs) -> Result<(), UserError> {
    let id = SessionId::parse(&args.session).map_err(|error| {
        UserError::from_error(&error).hint("`loci sessions archive` lists what is archived, with ids.")
    })?;
    let place =
        unarchive_session(&ctx.home, &id, ctx.env.clock.now()).map_err(|error| to_user_error(ctx, &error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": id.as_str(), "file": place.file()}));
    }
    output::print_message(&format!("Brought back: `{}`", place.file().display()));
    Ok(())
}

fn to_user_error(ctx: &SessionsContext<'_>, error: &ArchiveError) -> UserError {
    let user_error = archive::to_user_error(error);
    match error {
        ArchiveError::NotArchived { id } => match restore_hint(&ctx.home, id.as_str()) {
            Some(back) => user_error.hint(back),
            None => user_error,
        },
        _ => user_error,
    }
}
