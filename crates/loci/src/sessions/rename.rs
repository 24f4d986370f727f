//! `loci sessions rename`.

use loci_app::Complaint;
use loci_storage::sessions::rename_session;
use serde_json::json;

use super::{Desk, output, target};

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
pub(super) fn run(desk: &Desk<'_>, args: &RenameArgs) -> Result<(), Complaint> {
    let place = target::find(desk, "rename", &args.session)?;
    let title = rename_session(&place, &args.title).map_err(|error| Complaint::from_error(&error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": place.id().as_str(), "title": title}));
    }
    output::say(&format!("Session {} is now called `{title}`", place.id()));
    Ok(())
}
