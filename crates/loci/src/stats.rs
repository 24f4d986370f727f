//! `loci stats`: sessions, turns, tokens and cost by model, project and day.

mod csv;

use std::path::PathBuf;

use jiff::tz::TimeZone;
use loci_app::UserError;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_storage::project::Project;
use loci_storage::sessions::{StatisticsQuery, session_statistics};

use crate::parse_time::{DayEdge, parse_time};
use crate::sessions::output;
use loci_app::reports::stats::{Report, own_catalog};

/// The arguments of `loci stats`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatsArgs {
    /// Count the sessions of the project in this directory only.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Nothing before this day (`2026-01-31`) or moment, or within so long (`12h`, `7d`, `3w`).
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Nothing after this day or moment, or within so long.
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    /// Print a JSON object.
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print a line of comma-separated values for each day, project and model.
    #[arg(long)]
    csv: bool,
}

/// Counts and prints.
pub(crate) fn run(env: &Env, args: &StatsArgs) -> Result<u8, UserError> {
    let home = ConfigHome::from_env(env);
    let statistics = session_statistics(&home, &statistics_query(env, args)?)
        .map_err(|error| UserError::from_error(&error))?;
    for file in &statistics.unread {
        output::print_message(&format!("Could not be read and was not counted: `{}`", file.display()));
    }
    let report = Report::of(&statistics);
    match (args.json, args.csv) {
        (true, _) => output::print_json(&report.json()),
        (false, true) => output::print(&csv::lines(&report)),
        (false, false) if report.is_empty() => {
            output::print_message("There is nothing to count");
            Ok(())
        }
        (false, false) => output::print(&report.text(&env.home)),
    }?;
    Ok(0)
}

fn statistics_query(env: &Env, args: &StatsArgs) -> Result<StatisticsQuery, UserError> {
    let project = args.project.as_ref().map(|dir| {
        let dir = env.cwd.join(dir);
        // A directory that is gone may still have sessions.
        Project::repository(&dir.canonicalize().unwrap_or(dir))
    });
    let now = env.clock.now();
    let moment = |text: &Option<String>, edge| match text {
        Some(text) => parse_time(text, now, edge).map(Some),
        None => Ok(None),
    };
    Ok(StatisticsQuery {
        project,
        since_ms: moment(&args.since, DayEdge::Start)?,
        until_ms: moment(&args.until, DayEdge::End)?,
        models: own_catalog(env),
        ..StatisticsQuery::new(TimeZone::system())
    })
}
