//! `loci sessions list`.

use std::path::PathBuf;

use clap::ValueEnum;
use loci_stdx::{in_parallel, single_line};
use loci_storage::{Dialect, Project, SessionSummary, list_all, list_project, list_rollouts};

use super::{Desk, format, output, summary};
use crate::complaint::Complaint;

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
pub(super) fn run(desk: &Desk<'_>, args: &ListArgs) -> Result<(), Complaint> {
    let dir = match &args.project {
        Some(dir) => {
            let dir = desk.env.cwd.join(dir);
            // A directory that is gone may still have sessions.
            dir.canonicalize().unwrap_or(dir)
        }
        None => desk.env.cwd.clone(),
    };
    let project = (!args.all).then(|| Project::repository(&dir));
    let mut sessions = Vec::new();
    if args.origin != Some(Origin::Codex) {
        let own = project.as_ref().map_or_else(|| list_all(&desk.home), |it| list_project(&desk.home, it));
        sessions = own.map_err(|error| Complaint::from_error(&error))?;
    }
    if args.origin != Some(Origin::Own) {
        let foreign = list_rollouts(&desk.home, project.as_ref());
        sessions.extend(foreign.map_err(|error| Complaint::from_error(&error))?);
        sessions.sort_by_key(|session| std::cmp::Reverse(session.facts.newest_ms()));
    }
    sessions.truncate(args.limit.unwrap_or(usize::MAX));
    if args.json {
        return output::print(&json_array(&sessions));
    }
    if sessions.is_empty() {
        output::say(&match args.all {
            true => format!("There are no sessions in `{}`", desk.home.projects_dir().display()),
            false => format!(
                "There are no sessions of `{}`; `loci sessions list --all` shows those of other projects",
                dir.display()
            ),
        });
        return Ok(());
    }
    let rows: Vec<Row> = sessions.iter().map(|session| Row::of(desk, session, args.all)).collect();
    output::print(&table(&rows))
}

/// Writes thousands of sessions as one JSON array, a part at a time on a few threads.
fn json_array(sessions: &[SessionSummary]) -> String {
    let parts: Vec<&[SessionSummary]> = sessions.chunks(PART).collect();
    let written = in_parallel(parts.len(), MOST_WRITERS, |idx| {
        let values: Vec<String> =
            parts[idx].iter().map(|session| summary::json(session).to_string()).collect();
        values.join(",")
    });
    format!("[{}]\n", written.join(","))
}

/// What is shown of one session.
struct Row {
    cells: [String; 6],
    about: String,
}

const HEADER: [&str; 6] = ["SESSION", "LAST ACTIVITY", "SIZE", "MESSAGES", "COST", "BRANCH"];

impl Row {
    fn of(desk: &Desk<'_>, session: &SessionSummary, shows_dir: bool) -> Self {
        let facts = &session.facts;
        let count = facts.messages;
        let cells = [
            session.place.id().to_string(),
            format::minute_of_ms(facts.newest_ms()),
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
                format::plain(&format::path(&desk.env.home, cwd)).replace('\n', " ")
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

fn table(rows: &[Row]) -> String {
    let mut widths = HEADER.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; 6], about: &str| {
        let mut line = String::new();
        for (idx, (cell, width)) in cells.iter().zip(widths).enumerate() {
            // Numbers read from the right.
            match idx {
                2..=4 => line.push_str(&format!("{cell:>width$}  ")),
                _ => line.push_str(&format!("{cell:<width$}  ")),
            }
        }
        format!("{line}{about}").trim_end().to_owned() + "\n"
    };
    let mut text = line(HEADER, "ABOUT");
    for row in rows {
        text.push_str(&line(row.cells.each_ref().map(String::as_str), &row.about));
    }
    text
}
