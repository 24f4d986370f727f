//! `loci sessions list`.

use std::io;
use std::path::PathBuf;

use clap::ValueEnum;
use jiff::tz::TimeZone;
use loci_app::UserError;
use loci_stdx::{in_parallel, single_line};
use loci_storage::layout::Dialect;
use loci_storage::project::Project;
use loci_storage::sessions::{SessionSummary, list_rollouts, list_sessions};

use super::summary::put_json;
use super::{SessionsContext, format, output};

/// The most characters of a title, and of a prompt.
const TITLE: usize = 60;
const BRANCH: usize = 20;
/// How many sessions are written at once, and on how many threads.
const PART: usize = 512;
const MOST_WRITERS: usize = 4;

/// The arguments of `loci sessions list`.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// List the sessions of all projects.
    #[arg(long, conflicts_with = "project")]
    all: bool,

    /// List the sessions of the project in this directory.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// List only sessions in the form of Claude Code, which is ours, or only those of Codex.
    #[arg(long, value_enum, value_name = "ORIGIN")]
    origin: Option<Origin>,

    /// List no more than the newest N.
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,

    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Origin {
    /// Sessions of loci and Claude Code.
    Own,
    /// Sessions of Codex that were not imported.
    Codex,
}

/// Lists sessions, the newest first.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &ListArgs) -> Result<(), UserError> {
    let dir = match &args.project {
        Some(dir) => {
            let dir = ctx.env.cwd.join(dir);
            // A directory that is gone may still have sessions.
            dir.canonicalize().unwrap_or(dir)
        }
        None => ctx.env.cwd.clone(),
    };
    let project = (!args.all).then(|| Project::repository(&dir));
    let mut sessions = Vec::new();
    let most = args.limit.unwrap_or(usize::MAX);
    if args.origin != Some(Origin::Codex) {
        let own = list_sessions(&ctx.home, project.as_ref(), most);
        let own = own.map_err(|error| UserError::from_error(&error))?;
        for path in &own.unread {
            output::print_message(&format!("Could not be read and is not listed: `{}`", path.display()));
        }
        sessions = own.sessions;
    }
    if args.origin != Some(Origin::Own) {
        let foreign = list_rollouts(&ctx.home, project.as_ref());
        sessions.extend(foreign.map_err(|error| UserError::from_error(&error))?);
        sessions.sort_by_key(|session| std::cmp::Reverse(session.facts.newest_ms()));
    }
    sessions.truncate(most);
    if args.json {
        let parts = json_parts(&sessions)?;
        output::print_parts(&parts)?;
        // The program ends here: what it knows of thousands of sessions need not be given back piece by piece.
        std::mem::forget((sessions, parts));
        return Ok(());
    }
    if sessions.is_empty() {
        output::print_message(&match args.all {
            _ if args.origin == Some(Origin::Codex) => format!(
                "There are no sessions of Codex in `{}` that were not imported",
                ctx.home.codex_home().display()
            ),
            true => format!("There are no sessions in `{}`", ctx.home.projects_dir().display()),
            false => format!(
                "There are no sessions of `{}`; `loci sessions list --all` shows those of other projects",
                dir.display()
            ),
        });
        return Ok(());
    }
    output::print_parts(&table(ctx, &sessions, args.all))?;
    std::mem::forget(sessions);
    Ok(())
}

/// Does the same with every session, a part of them at a time on a few threads.
fn by_part<T: Send, U: Sync>(items: &[U], each: impl Fn(usize, &[U]) -> T + Sync) -> Vec<T> {
    let parts: Vec<&[U]> = items.chunks(PART).collect();
    in_parallel(parts.len(), MOST_WRITERS, |idx| each(idx, parts[idx]))
}

/// Writes thousands of sessions as one JSON array, in parts that follow one another.
fn json_parts(sessions: &[SessionSummary]) -> Result<Vec<Vec<u8>>, UserError> {
    let written = by_part(sessions, |idx, part| -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(part.len() * 1024);
        for (n, session) in part.iter().enumerate() {
            out.push(if idx + n == 0 { b'[' } else { b',' });
            put_json(&mut out, session)?;
        }
        Ok(out)
    });
    let written: io::Result<Vec<Vec<u8>>> = written.into_iter().collect();
    let mut parts = written.map_err(|error| UserError::from_error(&error))?;
    parts.push(if sessions.is_empty() { b"[]\n".to_vec() } else { b"]\n".to_vec() });
    Ok(parts)
}

/// What is shown of one session.
struct Row {
    cells: [String; 6],
    about: String,
}

const HEADER: [&str; 6] = ["SESSION", "LAST ACTIVITY", "SIZE", "MESSAGES", "COST", "BRANCH"];

impl Row {
    fn of(ctx: &SessionsContext<'_>, zone: &TimeZone, session: &SessionSummary, shows_dir: bool) -> Self {
        let facts = &session.facts;
        let count = facts.messages;
        let cells = [
            session.place.id().to_string(),
            format::minute_of_ms_in(zone, facts.newest_ms()),
            format::size(facts.size),
            format!("{}{}", if count.is_exact() { "" } else { "~" }, count.number()),
            facts.cost_usd.map_or_else(|| "-".to_owned(), format::dollars),
            single_line(facts.git_branch.as_deref().unwrap_or("-"), BRANCH),
        ];
        let mut about = match session.place.dialect() {
            Dialect::Own => about(session),
            Dialect::Codex => format!("[codex] {}", about(session)),
        };
        if let Some(tag) = &facts.labels.tag {
            about.push_str(&format!("  #{}", single_line(tag, BRANCH)));
        }
        if let Some(cwd) = facts.cwd.as_deref().filter(|_| shows_dir) {
            about.push_str(&format!(
                "  in {}",
                format::plain(&format::path(&ctx.env.home, cwd)).replace('\n', " ")
            ));
        }
        Self { cells, about }
    }
}

/// Returns the title and the first prompt, whichever there are.
fn about(session: &SessionSummary) -> String {
    let facts = &session.facts;
    let title = facts.labels.title().map(|title| single_line(title, TITLE));
    let prompt = facts.first_prompt.as_deref().or(facts.labels.last_prompt.as_deref());
    match (title, prompt.map(|prompt| single_line(prompt, TITLE))) {
        (Some(title), Some(prompt)) if title != prompt => format!("{title} · {prompt}"),
        (Some(text), _) | (None, Some(text)) => text,
        (None, None) if facts.is_empty => "(nothing was said)".to_owned(),
        (None, None) => "(no prompt)".to_owned(),
    }
}

/// Writes a header and a line for each session, in parts that follow one another.
fn table(ctx: &SessionsContext<'_>, sessions: &[SessionSummary], shows_dir: bool) -> Vec<Vec<u8>> {
    let zone = TimeZone::system();
    let rows = by_part(sessions, |_, part| -> Vec<Row> {
        part.iter().map(|session| Row::of(ctx, &zone, session, shows_dir)).collect()
    });
    let rows: Vec<Row> = rows.into_iter().flatten().collect();
    let mut widths = HEADER.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut header = String::new();
    put_line(&mut header, HEADER, widths, "ABOUT");
    let lines = by_part(&rows, |_, part| {
        let mut text = String::with_capacity(part.len() * 160);
        for row in part {
            put_line(&mut text, row.cells.each_ref().map(String::as_str), widths, &row.about);
        }
        text.into_bytes()
    });
    std::iter::once(header.into_bytes()).chain(lines).collect()
}

fn put_line(text: &mut String, cells: [&str; 6], widths: [usize; 6], about: &str) {
    for (idx, (cell, width)) in cells.into_iter().zip(widths).enumerate() {
        let gap = width.saturating_sub(cell.chars().count());
        // Numbers read from the right.
        let (before, after) = if matches!(idx, 2..=4) { (gap, 2) } else { (0, gap + 2) };
        text.extend(std::iter::repeat_n(' ', before));
        text.push_str(cell);
        text.extend(std::iter::repeat_n(' ', after));
    }
    text.push_str(about);
    text.truncate(text.trim_end().len());
    text.push('\n');
}
