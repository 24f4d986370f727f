//! Attachments as the model reads them.
//!
//! One that carries the text it was sent as (`rendered`) is sent as that text again. Of the others, kinds that only
//! steer other programs' listings, and kinds we do not know, say nothing.

use loci_core::entry::{Attachment, AttachmentKind, BlockingError, Entry, EntryKind};
use loci_core::message::Block;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::plan_reminder::{self, PlanMode};
use crate::compaction::restored_text;

/// How an attachment was sent. What else it says, which may be long, is not read for that.
#[derive(Default, serde::Deserialize)]
struct SentAs {
    #[serde(rename = "type", default)]
    kind: Value,
    #[serde(default, deserialize_with = "present")]
    rendered: Option<Value>,
    #[serde(rename = "renderedRole", default)]
    role: Value,
}

/// Reads a field that is there, whatever it says.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Returns what an attachment entry adds to the user message it belongs to.
pub(crate) fn entry_blocks(entry: &Entry) -> Vec<Block> {
    if entry.head().kind != EntryKind::Attachment {
        return Vec::new();
    }
    let fields = entry.fields();
    let sent: SentAs = fields.read("attachment").unwrap_or_default();
    // The record of the system prompt behind an answer is no part of the conversation.
    if sent.kind == AttachmentKind::PromptSnapshot.name() {
        return Vec::new();
    }
    let beside = || {
        Some((fields.read::<Value>("rendered")?, fields.read::<Value>("renderedRole").unwrap_or_default()))
    };
    match sent.rendered.map(|rendered| (rendered, sent.role)).or_else(beside) {
        Some((rendered, role)) => rendered_blocks(&rendered, &role),
        None => entry.attachment().map(|attachment| blocks(&attachment)).unwrap_or_default(),
    }
}

/// Tells whether an attachment is words that somebody sent while the model worked, and not news of a task or of the machine.
pub(super) fn is_said_to_the_model(entry: &Entry) -> bool {
    let Some(Attachment::QueuedCommand { command_mode, .. }) =
        entry.attachment_of_kind(AttachmentKind::QueuedCommand)
    else {
        return false;
    };
    command_mode.as_deref() != Some(TASK_NEWS)
}

/// The mode of words that tell of a task.
const TASK_NEWS: &str = "task-notification";

/// Returns the same as text.
pub(crate) fn entry_text(entry: &Entry) -> String {
    entry_blocks(entry).iter().filter_map(Block::text).collect::<Vec<_>>().join("\n")
}

/// Returns a text as it was sent. What was said in the system's name, which not every model takes in the middle of a
/// conversation, is a reminder.
fn rendered_blocks(rendered: &Value, role: &Value) -> Vec<Block> {
    let block = |text: &str| match role.as_str() {
        Some("system") if !text.trim_start().starts_with(REMINDER) => reminder(text),
        _ => Block::new_text(text),
    };
    match rendered {
        Value::String(text) if text.trim().is_empty() => Vec::new(),
        Value::String(text) => vec![block(text)],
        Value::Array(parts) => parts.iter().flat_map(|part| rendered_blocks(part, role)).collect(),
        Value::Object(part) => match part.get("text") {
            Some(text @ Value::String(_)) => rendered_blocks(text, role),
            _ => Block::from_value(rendered).into_iter().collect(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Returns what the model reads of an attachment that does not carry the text it was sent as.
fn blocks(attachment: &Attachment) -> Vec<Block> {
    let text = match attachment {
        Attachment::QueuedCommand { prompt, command_mode } => {
            return queued_command(prompt, command_mode.as_deref());
        }
        Attachment::File { filename, content, .. } => return file(filename, content),
        Attachment::Directory { path, content, .. } => {
            format!("The directory {path} was listed for you:\n{content}")
        }
        Attachment::AgentMention { agent_type } => format!(
            "The user names the agent type {agent_type}: send an agent of that type out for what is asked, with all \
             that it needs to know."
        ),
        Attachment::SessionMention { session_id, text } => format!(
            "The user names the earlier session {session_id}. This was said in it; it is what happened then, not \
             what is asked now:\n{text}"
        ),
        Attachment::UnknownCommand { command_name, available_command_names, available_command_count } => {
            unknown_command(command_name, available_command_names, *available_command_count)
        }
        Attachment::AgentRoster { names } => {
            format!("SendMessage reaches these conversations of the session by name: {}.", names.join(", "))
        }
        Attachment::Ultrathink {} => {
            "The user asks for your deepest thought this time: think the matter through thoroughly, weigh other \
             ways and check your conclusions before you act or answer."
                .to_owned()
        }
        Attachment::EditedTextFile { filename, snippet } => format!(
            "{filename} has changed on disk since you read it, by the user or a tool. The changed part now \
             reads:\n{snippet}"
        ),
        Attachment::NestedMemory { content, .. } => {
            format!("Contents of {}:\n\n{}", content.path, content.content)
        }
        Attachment::PlanMode {
            reminder_type,
            is_sub_agent,
            plan_file_path,
            plan_exists,
            can_exit,
            instructions,
        } => plan_reminder::plan_mode(&PlanMode {
            kind: reminder_type,
            is_agents: *is_sub_agent,
            file: plan_file_path,
            exists: *plan_exists,
            can_exit: can_exit.unwrap_or(true),
            instructions: instructions.as_deref(),
        }),
        Attachment::PlanModeExit { plan_file_path, plan_exists } => {
            plan_reminder::plan_mode_exit(plan_file_path, *plan_exists)
        }
        Attachment::Restored { name, content } => restored_text(name, content),
        Attachment::AgentListingDelta { added_lines, removed_types, is_initial: false, .. } => {
            agent_changes(added_lines, removed_types)
        }
        Attachment::McpInstructionsDelta { added_blocks, .. } => match added_blocks.join("\n\n") {
            joined if joined.is_empty() => joined,
            joined => format!("MCP servers were connected. They say of their tools:\n\n{joined}"),
        },
        Attachment::McpResource { server, uri, text, .. } => {
            format!("The resource {uri} of the MCP server {server} was read for you:\n{text}")
        }
        Attachment::DateChange { new_date } => format!("The date is now {new_date}."),
        Attachment::HookAdditionalContext { content, hook_name, .. } => {
            format!("{hook_name} hook added context: {}", content.join("\n"))
        }
        Attachment::HookBlockingError { hook_name, blocking_error, .. } => {
            let BlockingError { blocking_error: said, command } = blocking_error;
            format!("{hook_name} hook objected (`{command}`): {said}")
        }
        Attachment::HookSuccess { content, hook_name, .. } if !content.is_empty() => {
            format!("{hook_name} hook succeeded: {content}")
        }
        // The agents of the beginning stand in the description of the tool; a hook that only went well says nothing.
        Attachment::AgentListingDelta { .. } | Attachment::HookSuccess { .. } => String::new(),
        // Records for programs and people; what of them the model is told is rendered in the entry.
        Attachment::HookNonBlockingError { .. }
        | Attachment::HookClassifierContext { .. }
        | Attachment::HookDeferredTool { .. }
        | Attachment::SkillListing { .. }
        | Attachment::DeferredToolsDelta { .. }
        | Attachment::OutputStyle { .. }
        | Attachment::CommandPermissions { .. }
        | Attachment::MaxTurnsReached { .. }
        | Attachment::StructuredOutput { .. }
        | Attachment::PromptSnapshot { .. } => String::new(),
        // A kind of another program: nobody here knows whether and how the model was told.
        Attachment::Other(_) => String::new(),
    };
    if text.is_empty() { Vec::new() } else { vec![reminder(&text)] }
}

/// Says what came while the model worked.
fn queued_command(prompt: &Value, mode: Option<&str>) -> Vec<Block> {
    match (prompt, mode) {
        (Value::String(news), Some(TASK_NEWS)) => vec![reminder(news)],
        (Value::String(message), Some("agent-message")) => vec![reminder(&format!(
            "While you were working this message came from the conversation that sent you out:\n{message}"
        ))],
        (Value::String(prompt), _) => vec![reminder(&format!(
            "While you were working the user sent this message. Take it into account:\n{prompt}"
        ))],
        (Value::Array(blocks), _) => blocks.iter().filter_map(|it| Block::from_value(it).ok()).collect(),
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_), _) => Vec::new(),
    }
}

/// Says that a prompt begins with a command that there is not.
fn unknown_command(name: &str, known: &[String], n_known: u64) -> String {
    let names: Vec<String> = known.iter().map(|it| format!("/{it}")).collect();
    let rest = match n_known.saturating_sub(names.len() as u64) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!(
        "The user's message begins with /{name}, which is no command of this session, so nothing was run. There are {}{rest}. \
         Take the message for what it says; where it cannot be done without the command, say that there is none.",
        names.join(", ")
    )
}

/// Says which agents came, changed or went. Those that were there at the start stand in the description of the tool.
fn agent_changes(added_lines: &[String], removed_types: &[String]) -> String {
    let mut parts = Vec::new();
    if !added_lines.is_empty() {
        let added = added_lines.join("\n");
        parts.push(format!("These types of agents can be sent out, too, or have changed:\n{added}"));
    }
    if !removed_types.is_empty() {
        parts.push(format!("These types of agents are gone: {}", removed_types.join(", ")));
    }
    parts.join("\n")
}

fn file(name: &str, content: &Value) -> Vec<Block> {
    let found = &content["file"];
    if content["type"] == "image"
        && let (Some(kind), Some(data)) = (found["type"].as_str(), found["base64"].as_str())
    {
        return vec![
            reminder(&format!("The picture {name} was read for you:")),
            Block::new_image(kind, data),
        ];
    }
    if let Some(cells) = found["cells"].as_array() {
        let cells: Vec<String> = cells.iter().map(Value::to_string).collect();
        let joined = cells.join("\n");
        return vec![reminder(&format!("The notebook {name} was read for you. Its cells:\n{joined}"))];
    }
    let content = found["content"].as_str().unwrap_or_default();
    if content.is_empty() {
        return Vec::new();
    }
    vec![reminder(&format!("The file {name} was read for you. Its contents:\n{content}"))]
}

const REMINDER: &str = "<system-reminder>";

fn reminder(text: &str) -> Block {
    Block::new_text(&format!("{REMINDER}\n{}\n</system-reminder>", text.trim_end()))
}
