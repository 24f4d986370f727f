//! `loci sessions restore`: bringing an archived session back.

use loci_app::Complaint;
use loci_app::resume::way_back;
use loci_core::ids::SessionId;
use loci_storage::sessions::{ArchiveError, unarchive_session};
use serde_json::json;

use super::{Desk, archive, output};

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
pub(super) fn run(desk: &Desk<'_>, args: &RestoreArgs) -> Result<(), Complaint> {
    let id = SessionId::parse(&args.session).map_err(|error| {
        Complaint::from_error(&error).hint("`loci sessions archive` lists what is archived, with ids.")
    })?;
    let place =
        unarchive_session(&desk.home, &id, desk.env.clock.now()).map_err(|error| complain(desk, &error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": id.as_str(), "file": place.file()}));
    }
    output::say(&format!("Brought back: `{}`", place.file().display()));
    Ok(())
}

fn complain(desk: &Desk<'_>, error: &ArchiveError) -> Complaint {
    let complaint = archive::complain(error);
    match error {
        ArchiveError::NotArchived { id } => match way_back(&desk.home, id.as_str()) {
            Some(back) => complaint.hint(back),
            None => complaint,
        },
        _ => complaint,
    }
}
