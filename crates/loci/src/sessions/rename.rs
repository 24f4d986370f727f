//! `loci sessions rename`.

use loci_app::UserError;
use loci_storage::sessions::rename_session;
use serde_json::json;

use super::{SessionsContext, output, target};

/// The arguments of `loci sessions rename`.
#[derive(Debug, clap::Args)]
pub(super) struct RenameArgs {
    /// The session: id, title or path.
    session: String,

    /// Its new title.
    title: String,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Gives a session a title.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &RenameArgs) -> Result<(), UserError> {
    let place = target::find(ctx, "rename", &args.session)?;
    let title = rename_session(&place, &args.title).map_err(|error| UserError::from_error(&error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": place.id().as_str(), "title": title}));
    }
    output::print_message(&format!("Session {} is now called `{title}`", place.id()));
    Ok(())
}
