//! `loci sessions rm`: nothing is deleted, it moves to the trash and can be brought back.

use loci_app::Complaint;
use loci_core::ids::SessionId;
use loci_storage::sessions::{RemoveError, remove_session, removed_sessions, restore_session};
use serde_json::json;

use super::{Desk, output, target};

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
pub(super) fn run(desk: &Desk<'_>, args: &RmArgs) -> Result<(), Complaint> {
    match (&args.restore, &args.session) {
        (Some(id), _) => restore(desk, args, id),
        (None, Some(session)) => remove(desk, args, session),
        (None, None) => Err(Complaint::new("There is no session to remove")),
    }
}

fn remove(desk: &Desk<'_>, args: &RmArgs, session: &str) -> Result<(), Complaint> {
    let place = target::find(desk, "rm", session)?;
    let id = place.id();
    let trash =
        remove_session(&desk.home, &place, desk.env.clock.now()).map_err(|error| complain(desk, &error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": id.as_str(), "path": place.file(), "trash": trash}));
    }
    output::say(&format!(
        "Session {id} was moved to the trash; `loci sessions rm --restore {id}` brings it back"
    ));
    Ok(())
}

fn restore(desk: &Desk<'_>, args: &RmArgs, id: &str) -> Result<(), Complaint> {
    let id = SessionId::parse(id).map_err(|error| Complaint::from_error(&error).hint(trash_hint(desk)))?;
    let place =
        restore_session(&desk.home, &id, desk.env.clock.now()).map_err(|error| complain(desk, &error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": id.as_str(), "path": place.file()}));
    }
    output::say(&format!("Session {id} is back: `{}`", place.file().display()));
    Ok(())
}

fn complain(desk: &Desk<'_>, error: &RemoveError) -> Complaint {
    let complaint = Complaint::from_error(error);
    match error {
        RemoveError::InUse { .. } => {
            complaint.hint("End that process first; a session at work is not removed.")
        }
        RemoveError::NotInTrash { .. } => complaint.hint(trash_hint(desk)),
        RemoveError::Exists { .. } => complaint.hint("Move that file out of the way and try again."),
        RemoveError::Disk { .. } => complaint,
    }
}

fn trash_hint(desk: &Desk<'_>) -> String {
    let removed = removed_sessions(&desk.home).unwrap_or_default();
    if removed.is_empty() {
        return "The trash is empty.".to_owned();
    }
    let lines: Vec<String> =
        removed.iter().take(10).map(|id| format!("  loci sessions rm --restore {id}")).collect();
    format!("In the trash:\n{}", lines.join("\n"))
}
