//! `loci sessions search`: every message of every session, found by its words.

mod interrupt;
mod progress;
mod show;

use std::path::PathBuf;

use loci_app::UserError;
use loci_core::passage::Voice;
use loci_storage::project::Project;
use loci_storage::search::{
    IndexUse, SearchError, SearchFilter, SearchObserver, SearchQuery, rebuild_index, search_sessions,
};
use loci_storage::sessions::{list_project, list_rollouts};
use serde_json::json;

use super::{SessionsContext, output};
use crate::parse_time::{DayEdge, parse_time};
use progress::Progress;

/// The exit code of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// What is said then.
const INTERRUPTION: &str =
    "Interrupted; what was indexed so far is kept, and the next search goes on from there";

/// How making the index anew ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rebuilt {
    Whole,
    Interrupted,
}

/// The arguments of `loci sessions search`.
#[derive(Debug, clap::Args)]
pub(super) struct SearchArgs {
    /// Words that must all occur; "words in quotes" together, a star for any ending.
    #[arg(required_unless_present = "rebuild", value_name = "QUERY")]
    query: Vec<String>,

    /// Search the sessions of the project in this directory only.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Nothing said before this day (`2026-01-31`) or moment, or within so long (`12h`, `7d`, `3w`).
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Nothing said after this day or moment, or within so long.
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    /// Who said it: user, assistant, thinking, call, result, summary or note. Can be given more than once.
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Vec<Voice>,

    /// Calls of this tool and their results only.
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,

    /// Sessions in which a call names this file, or one whose path ends so.
    #[arg(long, value_name = "PATH")]
    file: Option<String>,

    /// What was said on this git branch only.
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,

    /// The query is a regular expression; the newest matches come first.
    #[arg(long)]
    regex: bool,

    /// Show so many.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    limit: usize,

    /// Pass over so many of the best.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,

    /// Read every file instead of asking the index.
    #[arg(long)]
    no_index: bool,

    /// Throw the index away and make it anew first; then search, if there is something to search for.
    #[arg(long, conflicts_with = "no_index")]
    rebuild: bool,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

fn role(name: &str) -> Result<Voice, String> {
    Voice::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Voice::ALL.iter().map(|voice| voice.name()).collect();
        format!("the roles are {}", names.join(", "))
    })
}

/// Searches and prints what was found.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &SearchArgs) -> Result<u8, UserError> {
    if args.rebuild {
        match rebuild(ctx)? {
            Rebuilt::Interrupted => return Ok(INTERRUPTED),
            Rebuilt::Whole if args.query.is_empty() => return Ok(0),
            Rebuilt::Whole => {}
        }
    }
    let query = search_query(ctx, args)?;
    let how = if args.no_index { IndexUse::None } else { IndexUse::Normal };
    let progress = Progress::default();
    let found = search_sessions(&ctx.home, &query, how, &unique_name(ctx), &progress);
    progress.finish();
    let found = found.map_err(|error| to_user_error(&error))?;
    if !found.is_whole {
        output::print_message(INTERRUPTION);
        return Ok(INTERRUPTED);
    }
    for file in &found.unread {
        output::print_message(&format!("Could not be read and was not searched: `{}`", file.display()));
    }
    let shown = show::HitRenderer::new(ctx, &query);
    if args.json {
        let hits: Vec<_> = found.hits.iter().map(|hit| shown.json(hit)).collect();
        let count = json!({"number": found.n_found, "isExact": found.is_exact});
        output::print_json(&json!({"found": count, "hits": hits, "unread": found.unread}))?;
    } else if found.hits.is_empty() {
        output::print_message(nothing_to_show(found.n_found, &query.filter));
    } else {
        output::print_styled(&shown.text(&found))?;
    }
    Ok(0)
}

/// Makes the index anew.
fn rebuild(ctx: &SessionsContext<'_>) -> Result<Rebuilt, UserError> {
    let progress = Progress::default();
    let is_done = rebuild_index(&ctx.home, &unique_name(ctx), &progress);
    progress.finish();
    if !is_done.map_err(|error| to_user_error(&error))? {
        return Err(UserError::new("Another process is writing the index of sessions; it was left as it is")
            .hint("Run it again when that one is done."));
    }
    if progress.is_stopped() {
        output::print_message(INTERRUPTION);
        return Ok(Rebuilt::Interrupted);
    }
    output::print_message("The index of sessions was made anew");
    Ok(Rebuilt::Whole)
}

/// Names what is written: no other process uses the same.
fn unique_name(ctx: &SessionsContext<'_>) -> String {
    format!("{:020}-{}", ctx.env.clock.now().as_millisecond(), ctx.env.random.uuid_v4())
}

/// Says why nothing is shown.
fn nothing_to_show(n_found: usize, filter: &SearchFilter) -> &'static str {
    match n_found {
        0 if *filter == SearchFilter::default() => "Nothing was found",
        0 => "Nothing was found; with fewer filters there may be more",
        _ => "Nothing is left to show; --skip and --limit leave out what was found",
    }
}

fn search_query(ctx: &SessionsContext<'_>, args: &SearchArgs) -> Result<SearchQuery, UserError> {
    let text = args.query.join(" ");
    if text.trim().is_empty() {
        return Err(UserError::new("There is nothing to search for")
            .hint("`loci sessions search error port` finds messages that have both words."));
    }
    let sessions = match &args.project {
        Some(dir) => {
            let dir = ctx.env.cwd.join(dir);
            let dir = dir.canonicalize().unwrap_or(dir);
            let project = Project::repository(&dir);
            let own = list_project(&ctx.home, &project).map_err(|error| UserError::from_error(&error))?;
            let foreign = list_rollouts(&ctx.home, Some(&project));
            let sessions = [own, foreign.map_err(|error| UserError::from_error(&error))?].concat();
            Some(sessions.iter().map(|session| session.place.file().to_owned()).collect())
        }
        None => None,
    };
    let now = ctx.env.clock.now();
    let moment = |text: &Option<String>, edge| match text {
        Some(text) => parse_time(text, now, edge).map(Some),
        None => Ok(None),
    };
    Ok(SearchQuery {
        text,
        is_regex: args.regex,
        filter: SearchFilter {
            sessions,
            since_ms: moment(&args.since, DayEdge::Start)?,
            until_ms: moment(&args.until, DayEdge::End)?,
            voices: args.role.clone(),
            tool: args.tool.clone(),
            branch: args.branch.clone(),
            file: args.file.clone(),
        },
        skip: args.skip,
        limit: args.limit,
    })
}

fn to_user_error(error: &SearchError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        SearchError::Empty { .. } => user_error.hint("Use --regex to search for signs."),
        SearchError::Expression { .. } => {
            user_error.hint("Leave --regex out to search for the words as they are.")
        }
        SearchError::Find(_) | SearchError::Index { .. } => user_error,
    }
}
