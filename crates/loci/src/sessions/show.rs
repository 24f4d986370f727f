//! `loci sessions show`: the facts and the conversation, as text.

mod before;

use std::sync::Arc;

use loci_app::UserError;
use loci_app::sessions::transcript::{self, Call, PartKind};
use loci_core::conversation::history;
use loci_core::entry::Entry;
use loci_stdx::{counted, single_line};
use loci_storage::foreign::rollout_text;
use loci_storage::layout::{Dialect, SessionPlace};
use loci_storage::sessions::SessionSummary;
use serde_json::{Value, json};

use super::{SessionsContext, format, output, summary, target};

/// How much of a call is shown; an export has all of it.
const INPUT_CHARS: usize = 200;
const RESULT_LINES: usize = 12;

/// The arguments of `loci sessions show`.
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The session: id, title or path.
    session: String,

    /// Show the session as it was before a compaction: `last`, the number of the compaction counted from one, or
    /// the id of its boundary.
    #[arg(long, value_name = "BOUNDARY")]
    before: Option<String>,

    /// Print the entries as they are stored, one a line.
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    /// Print a JSON object with the messages.
    #[arg(long)]
    json: bool,
}

/// Prints what was said.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &ShowArgs) -> Result<(), UserError> {
    let place = target::find_to_read(ctx, "show", &args.session)?;
    if args.raw && place.dialect() == Dialect::Codex {
        return stored_lines(&place);
    }
    let entries = target::entries_to_read(ctx, &place)?;
    let history = match &args.before {
        Some(name) => before::history(&entries, name)?,
        None => history(&entries),
    };
    if args.raw {
        let lines: String = history.iter().map(|entry| format!("{}\n", entry.line())).collect();
        return output::print(&lines);
    }
    let session = target::summary(&place)?;
    if args.json {
        return output::print_json(&whole_json(&session, &history));
    }
    output::print(&format!("{}\n{}", facts(ctx, &session), conversation(&history)))
}

/// Prints a rollout as Codex wrote it.
fn stored_lines(place: &SessionPlace) -> Result<(), UserError> {
    output::print(&rollout_text(place).map_err(|error| target::to_user_error(&error))?)
}

/// Returns the facts and the messages that the official SDK shows, and those before compactions.
pub(super) fn whole_json(session: &SessionSummary, history: &[Arc<Entry>]) -> Value {
    let message = |entry: &Arc<Entry>| {
        let fields = entry.fields();
        let head = entry.head();
        json!({
            "type": head.type_name,
            "uuid": head.uuid.as_ref().map(|uuid| uuid.as_str()),
            "parentUuid": head.parent.as_ref().map(|uuid| uuid.as_str()),
            "timestamp": head.timestamp,
            "sessionId": fields.read::<Value>("sessionId"),
            "message": fields.read::<Value>("message"),
        })
    };
    let mut value = summary::json(session);
    let visible = history.iter().filter(|entry| transcript::is_visible(entry));
    value["messages"] = visible.map(message).collect();
    if let Some(object) = value.as_object_mut() {
        object.remove("messagesAreExact");
    }
    value
}

/// Returns what is known of a session, a line a fact.
fn facts(ctx: &SessionsContext<'_>, session: &SessionSummary) -> String {
    let facts = &session.facts;
    let labels = &facts.labels;
    let about = if facts.messages.is_exact() { "" } else { "about " };
    let rows = [
        ("Title", labels.title().map(str::to_owned)),
        ("Session", Some(session.place.id().to_string())),
        ("Of", summary::origin(session.place.dialect()).map(|_| "Codex".to_owned())),
        ("Tag", labels.tag.clone()),
        ("Directory", facts.cwd.as_deref().map(|cwd| format::path(&ctx.env.home, cwd))),
        ("Branch", facts.git_branch.clone()),
        ("Begun", facts.created.map(format::minute)),
        ("Last activity", Some(format::minute_of_ms(facts.newest_ms()))),
        ("Messages", Some(format!("{about}{}", facts.messages.number()))),
        ("Cost", facts.cost_usd.map(format::dollars)),
        ("File", Some(format!("{} ({})", session.place.file().display(), format::size(facts.size)))),
    ];
    let line = |(name, value): (&str, Option<String>)| {
        value.map(|value| format!("{name}: {}\n", single_line(&value, 500)))
    };
    rows.into_iter().filter_map(line).collect()
}

fn conversation(history: &[Arc<Entry>]) -> String {
    let mut text = String::new();
    for part in transcript::parts(history) {
        let time = format::written(part.time.as_deref());
        match &part.kind {
            PartKind::Prompt(words) => {
                let uuid = part.uuid.as_deref().unwrap_or_default();
                text.push_str(&format!("\n## You, {time} ({uuid})\n\n{}\n", format::plain(words)));
            }
            PartKind::Answer(words) => text.push_str(&format!("\n{}\n", format::plain(words))),
            PartKind::Thinking(words) => {
                text.push_str(&format!("\n  (thinking) {}\n", single_line(words, INPUT_CHARS)));
            }
            PartKind::Call(call) => text.push_str(&format_call(call)),
            PartKind::Image { media_type, .. } => {
                text.push_str(&format!("\n  [{}]\n", single_line(media_type, 40)));
            }
            PartKind::Compaction(words) => text.push_str(&format!("\n---- {words}, {time} ----\n")),
            PartKind::Summary(words) => {
                text.push_str(&format!("\n{}\n", format::indented(&format::plain(words), "  | ")));
            }
            PartKind::Command(words) | PartKind::CommandOutput(words) | PartKind::Note(words) => {
                text.push_str(&format!("\n  ({})\n", single_line(words, INPUT_CHARS)));
            }
            PartKind::Failure(words) => {
                text.push_str(&format!("\n  ! {}\n", single_line(words, INPUT_CHARS)));
            }
        }
    }
    text
}

fn format_call(call: &Call) -> String {
    let mut text = format!(
        "\n  > {} {}\n",
        single_line(&call.name, 60),
        single_line(&call.input.to_string(), INPUT_CHARS)
    );
    match &call.result {
        Some(result) => {
            let (lines, n_more) = format::first_lines(&format::plain(&result.text), RESULT_LINES);
            let mark = if result.is_error { "  ! " } else { "    " };
            if !lines.is_empty() {
                text.push_str(&format!("{}\n", format::indented(&lines, mark)));
            }
            if n_more > 0 {
                text.push_str(&format!("    ... {}\n", counted(n_more as u64, "more line", "more lines")));
            }
        }
        None => text.push_str("    (no result was recorded)\n"),
    }
    text
}
