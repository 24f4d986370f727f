//! `loci sessions branch`: a new session from any message of another.

use std::sync::Arc;

use loci_app::UserError;
use loci_core::conversation::Conversation;
use loci_core::entry::Entry;
use loci_core::entry::draft::Metadata;
use loci_core::ids::{EntryId, SessionId};
use loci_stdx::rfc3339_millis;
use loci_storage::layout::SessionPlace;
use loci_storage::sessions::{
    ForkOrigin, SessionSummary, copy_notes, copy_tasks, fork_entries, last_prompt_text, link_backups,
    write_fork,
};
use serde_json::json;

use super::{SessionsContext, output, target};

/// The arguments of `loci sessions branch`.
#[derive(Debug, clap::Args)]
pub(super) struct BranchArgs {
    /// The session: id, title or path.
    session: String,

    /// The last message to take over; without it, all of the conversation.
    #[arg(long, value_name = "UUID")]
    at: Option<String>,

    /// What to call the new session.
    #[arg(short, long, value_name = "TITLE")]
    name: Option<String>,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Writes the new session beside the old one.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &BranchArgs) -> Result<(), UserError> {
    let source = target::find(ctx, "branch", &args.session)?;
    let session = target::summary(&source)?;
    let entries = target::entries(&source)?;
    let conversation = conversation(args, &source, entries.clone())?;
    let id = SessionId::parse(&ctx.env.random.uuid_v4().to_string())
        .map_err(|error| UserError::from_error(&error))?;
    let place = SessionPlace::new(source.file().with_file_name(format!("{id}.jsonl")), id.clone());
    let failed = |error| UserError::from_error(&error);
    let copied =
        fork_entries(&entries, &conversation, source.id(), &id, ForkOrigin::Recorded).map_err(failed)?;
    let n_messages = conversation.path().len();
    let lines = with_labels(ctx, args, &session, &conversation, &id, copied)?;
    write_fork(&place, &lines).map_err(failed)?;
    if let Err(error) = link_backups(&ctx.home, source.id(), &id) {
        output::print_message(&format!("File checkpoints could not be taken over: {error}"));
    }
    if let Err(error) = copy_tasks(&ctx.home, source.id(), &id) {
        output::print_message(&format!("The task list could not be taken over: {error}"));
    }
    if let Err(error) = copy_notes(&source, &place, &lines) {
        output::print_message(&format!("The session's notes could not be taken over: {error}"));
    }
    let resume = format!("loci -r {id}");
    if args.json {
        return output::print_json(&json!({
            "sessionId": id.as_str(),
            "path": place.file(),
            "forkedFrom": {"sessionId": source.id().as_str(), "messageUuid": conversation.leaf().map(|leaf| leaf.as_str())},
            "entries": n_messages,
            "resume": resume,
        }));
    }
    output::print(&format!("{id}\n"))?;
    output::print_message(&format!("Continue it with `{resume}`"));
    Ok(())
}

fn conversation(
    args: &BranchArgs,
    source: &SessionPlace,
    entries: Vec<Arc<Entry>>,
) -> Result<Conversation, UserError> {
    let Some(at) = &args.at else { return Ok(Conversation::build(entries)) };
    Conversation::build_at(entries, &EntryId::new(at.as_str())).ok_or_else(|| {
        UserError::new(format!("The session has no message with this uuid: `{at}`"))
            .hint(format!("`loci sessions tree {}` shows the messages there are.", source.id()))
    })
}

/// Puts the lines around the copied ones: the mode first, then at the end the title and where the session stands.
fn with_labels(
    ctx: &SessionsContext<'_>,
    args: &BranchArgs,
    source: &SessionSummary,
    conversation: &Conversation,
    id: &SessionId,
    copied: Vec<Arc<Entry>>,
) -> Result<Vec<Arc<Entry>>, UserError> {
    let time = rfc3339_millis(ctx.env.clock.now());
    let seal =
        |line: Metadata| line.seal(id, &time).map(Arc::new).map_err(|error| UserError::from_error(&error));
    let given = args.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let title = given.map_or_else(|| derived_title(source), str::to_owned);
    let prompt = source.facts.labels.last_prompt.as_deref().or(source.facts.first_prompt.as_deref());
    let mut lines = vec![seal(Metadata::Mode)?];
    lines.extend(copied);
    lines.push(seal(Metadata::CustomTitle { title })?);
    if let Some(leaf) = conversation.leaf() {
        let prompt = prompt.filter(|_| args.at.is_none()).map(last_prompt_text);
        lines.push(seal(Metadata::LastPrompt { prompt, leaf: leaf.clone() })?);
    }
    Ok(lines)
}

/// The name a branch has when it is given none, as the official SDK makes it.
fn derived_title(source: &SessionSummary) -> String {
    let facts = &source.facts;
    let name = facts.labels.title().or(facts.first_prompt.as_deref()).unwrap_or("Forked session");
    format!("{name} (fork)")
}
