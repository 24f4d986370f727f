//! `loci sessions archive`: packing sessions away.

use loci_app::RunOptions;
use loci_app::UserError;
use loci_app::settings::RunSettings;
use loci_stdx::{counted, single_line};
use loci_storage::sessions::{
    ArchiveError, ArchiveSweep, archive_older_observed, archive_session, archived_sessions,
};
use serde_json::{Value, json};

use super::{SessionsContext, format, output, target};
use crate::progress_bar::{ProgressBar, ProgressUnit};

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
pub(super) fn run(ctx: &SessionsContext<'_>, args: &ArchiveArgs) -> Result<(), UserError> {
    match (days(ctx, args)?, args.sessions.is_empty()) {
        (Some(days), _) => older(ctx, days, args.json),
        (None, true) => list(ctx, args.json),
        (None, false) => named(ctx, args),
    }
}

fn days(ctx: &SessionsContext<'_>, args: &ArchiveArgs) -> Result<Option<u64>, UserError> {
    if !args.due {
        return Ok(args.older_than);
    }
    let settings = RunSettings::load(ctx.env, &RunOptions::default())?.settings;
    let unset = || {
        UserError::new("No setting says how many days sessions stay")
            .hint("Set it with `loci config set cleanupPeriodDays 90`, or give --older-than DAYS.")
    };
    settings.cleanup_period_days.map(Some).ok_or_else(unset)
}

fn named(ctx: &SessionsContext<'_>, args: &ArchiveArgs) -> Result<(), UserError> {
    let mut values = Vec::new();
    for name in &args.sessions {
        let place = target::find(ctx, "archive", name)?;
        let dir =
            archive_session(&ctx.home, &place, ctx.env.clock.now()).map_err(|error| to_user_error(&error))?;
        values.push(json!({"sessionId": place.id().as_str(), "archive": dir}));
        if !args.json {
            output::print_message(&format!(
                "Archived {}; `loci sessions restore {0}` brings it back",
                place.id()
            ));
        }
    }
    if args.json { output::print_json(&Value::from(values)) } else { Ok(()) }
}

fn older(ctx: &SessionsContext<'_>, days: u64, is_json: bool) -> Result<(), UserError> {
    let bar = ProgressBar::new("Archiving sessions", ProgressUnit::Sessions);
    let progress = |n_done, n_total| bar.set(n_done, n_total);
    let swept = archive_older_observed(&ctx.home, days, usize::MAX, ctx.env.clock.now(), &progress);
    bar.finish();
    let swept = swept.map_err(|error| UserError::from_error(&error))?;
    let reason = |swept: &ArchiveSweep| swept.result.as_ref().err().map(|error| error.to_string());
    if is_json {
        let value =
            |swept: &ArchiveSweep| json!({"sessionId": swept.place.id().as_str(), "problem": reason(swept)});
        return output::print_json(&swept.iter().map(value).collect());
    }
    for stayed in swept.iter().filter(|swept| swept.result.is_err()) {
        output::print_message(&format!(
            "Stays: {}: {}",
            stayed.place.id(),
            reason(stayed).unwrap_or_default()
        ));
    }
    let n_archived = swept.iter().filter(|swept| swept.result.is_ok()).count() as u64;
    output::print_message(&format!(
        "Archived {} in which nothing was said for {}",
        counted(n_archived, "session", "sessions"),
        counted(days, "day", "days")
    ));
    Ok(())
}

fn list(ctx: &SessionsContext<'_>, is_json: bool) -> Result<(), UserError> {
    let archived = archived_sessions(&ctx.home).map_err(|error| to_user_error(&error))?;
    if is_json {
        let values = archived.iter().map(|it| {
            json!({"sessionId": it.place.id().as_str(), "file": it.place.file(), "archivedAt": it.archived_at,
                "lastActivityMs": it.last_activity_ms, "title": it.headline, "size": it.size, "archive": it.dir})
        });
        return output::print_json(&values.collect());
    }
    if archived.is_empty() {
        output::print_message("Nothing is archived");
    }
    let line = |it: &loci_storage::sessions::ArchivedSession| {
        let about = single_line(it.headline.as_deref().unwrap_or("(no prompt)"), 60);
        let said = it.last_activity_ms.map_or_else(|| "-".to_owned(), format::minute_of_ms);
        format!("{}  {said:<16}  {:>7}  {about}\n", it.place.id(), format::size(it.size))
    };
    output::print(&archived.iter().map(line).collect::<String>())
}

pub(super) fn to_user_error(error: &ArchiveError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        ArchiveError::InUse { .. } | ArchiveError::Changed { .. } => {
            user_error.hint("Wait for the process that works on it to end, and try again.")
        }
        ArchiveError::Pinned { id } => user_error.hint(format!("`loci sessions pin --off {id}` lets it go.")),
        ArchiveError::NotArchived { .. } => {
            user_error.hint("`loci sessions archive` lists what is archived.")
        }
        ArchiveError::Exists { .. } => user_error.hint("Move the file away first; nothing is written over."),
        ArchiveError::Damaged { .. } | ArchiveError::Disk { .. } => user_error,
    }
}
