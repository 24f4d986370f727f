//! `loci sessions archive`: packing sessions away.

use loci_app::Complaint;
use loci_app::RunOptions;
use loci_app::settings::Configured;
use loci_stdx::{counted, single_line};
use loci_storage::sessions::{ArchiveError, Swept, archive_older, archive_session, archived_sessions};
use serde_json::{Value, json};

use super::{Desk, format, output, target};

/// The arguments of `loci sessions archive`.
#[derive(Debug, clap::Args)]
pub(super) struct ArchiveArgs {
    /// The sessions: ids, titles or paths.
    #[arg(value_name = "SESSION", conflicts_with_all = ["due", "older_than"])]
    sessions: Vec<String>,

    /// Archive every session in which nothing was said for so many days.
    #[arg(long, value_name = "DAYS", conflicts_with = "due")]
    older_than: Option<u64>,

    /// The same with the days of the setting `cleanupPeriodDays`.
    #[arg(long)]
    due: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Archives what was named, or lists what was archived.
pub(super) fn run(desk: &Desk<'_>, args: &ArchiveArgs) -> Result<(), Complaint> {
    match (days(desk, args)?, args.sessions.is_empty()) {
        (Some(days), _) => older(desk, days, args.json),
        (None, true) => list(desk, args.json),
        (None, false) => named(desk, args),
    }
}

fn days(desk: &Desk<'_>, args: &ArchiveArgs) -> Result<Option<u64>, Complaint> {
    if !args.due {
        return Ok(args.older_than);
    }
    let settings = Configured::load(desk.env, &RunOptions::default())?.settings;
    let unset = || {
        Complaint::new("No setting says how many days sessions stay")
            .hint("Set it with `loci config set cleanupPeriodDays 90`, or give --older-than DAYS.")
    };
    settings.cleanup_period_days.map(Some).ok_or_else(unset)
}

fn named(desk: &Desk<'_>, args: &ArchiveArgs) -> Result<(), Complaint> {
    let mut values = Vec::new();
    for name in &args.sessions {
        let place = target::find(desk, "archive", name)?;
        let dir =
            archive_session(&desk.home, &place, desk.env.clock.now()).map_err(|error| complain(&error))?;
        values.push(json!({"sessionId": place.id().as_str(), "archive": dir}));
        if !args.json {
            output::say(&format!("Archived {}; `loci sessions restore {0}` brings it back", place.id()));
        }
    }
    if args.json { output::print_json(&Value::from(values)) } else { Ok(()) }
}

fn older(desk: &Desk<'_>, days: u64, is_json: bool) -> Result<(), Complaint> {
    let swept = archive_older(&desk.home, days, usize::MAX, desk.env.clock.now());
    let swept = swept.map_err(|error| Complaint::from_error(&error))?;
    let reason = |swept: &Swept| swept.result.as_ref().err().map(|error| error.to_string());
    if is_json {
        let value = |swept: &Swept| json!({"sessionId": swept.place.id().as_str(), "problem": reason(swept)});
        return output::print_json(&swept.iter().map(value).collect());
    }
    for stayed in swept.iter().filter(|swept| swept.result.is_err()) {
        output::say(&format!("Stays: {}: {}", stayed.place.id(), reason(stayed).unwrap_or_default()));
    }
    let n_archived = swept.iter().filter(|swept| swept.result.is_ok()).count() as u64;
    output::say(&format!(
        "Archived {} in which nothing was said for {}",
        counted(n_archived, "session", "sessions"),
        counted(days, "day", "days")
    ));
    Ok(())
}

fn list(desk: &Desk<'_>, is_json: bool) -> Result<(), Complaint> {
    let archived = archived_sessions(&desk.home).map_err(|error| complain(&error))?;
    if is_json {
        let values = archived.iter().map(|it| {
            json!({"sessionId": it.place.id().as_str(), "file": it.place.file(), "archivedAt": it.archived_at,
                "lastActivityMs": it.last_activity_ms, "title": it.headline, "size": it.size, "archive": it.dir})
        });
        return output::print_json(&values.collect());
    }
    if archived.is_empty() {
        output::say("Nothing is archived");
    }
    let line = |it: &loci_storage::sessions::Archived| {
        let about = single_line(it.headline.as_deref().unwrap_or("(no prompt)"), 60);
        let said = it.last_activity_ms.map_or_else(|| "-".to_owned(), format::minute_of_ms);
        format!("{}  {said:<16}  {:>7}  {about}\n", it.place.id(), format::size(it.size))
    };
    output::print(&archived.iter().map(line).collect::<String>())
}

pub(super) fn complain(error: &ArchiveError) -> Complaint {
    let complaint = Complaint::from_error(error);
    match error {
        ArchiveError::InUse { .. } | ArchiveError::Changed { .. } => {
            complaint.hint("Wait for the process that works on it to end, and try again.")
        }
        ArchiveError::Pinned { id } => complaint.hint(format!("`loci sessions pin --off {id}` lets it go.")),
        ArchiveError::NotArchived { .. } => complaint.hint("`loci sessions archive` lists what is archived."),
        ArchiveError::Exists { .. } => complaint.hint("Move the file away first; nothing is written over."),
        ArchiveError::Damaged { .. } | ArchiveError::Disk { .. } => complaint,
    }
}
