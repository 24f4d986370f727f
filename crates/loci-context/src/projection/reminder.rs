//! Attachments as the model reads them.
//!
//! One that carries the text it was sent as (`rendered`) is sent as that text again. Of the others, kinds that only
//! steer other programs' listings, and kinds we do not know, say nothing.

use loci_core::entry::{Entry, EntryKind};
use loci_core::message::Block;
use serde_json::Value;

use super::plan_reminder;
use crate::compaction::{RESTORED, restored_text};

/// The record of the system prompt behind an answer; it is no part of the conversation.
const PROMPT_SNAPSHOT: &str = "prompt_snapshot";

/// How an attachment was sent. What else it says, which may be long, is not read for that.
#[derive(serde::Deserialize)]
struct SentAs {
    #[serde(rename = "type", default)]
    kind: Value,
    #[serde(default)]
    rendered: Option<Value>,
    #[serde(rename = "renderedRole", default)]
    role: Value,
}

/// Returns what an attachment entry adds to the user message it belongs to.
pub(crate) fn entry_blocks(entry: &Entry) -> Vec<Block> {
    if entry.head().kind != EntryKind::Attachment {
        return Vec::new();
    }
    let fields = entry.fields();
    if let Some(SentAs { kind, rendered: Some(rendered), role }) = fields.read("attachment")
        && kind != PROMPT_SNAPSHOT
    {
        return rendered_blocks(&rendered, &role);
    }
    let Some(attachment) = fields.read::<Value>("attachment") else { return Vec::new() };
    if attachment["type"] == PROMPT_SNAPSHOT {
        return Vec::new();
    }
    let beside = || {
        Some((fields.read::<Value>("rendered")?, fields.read::<Value>("renderedRole").unwrap_or_default()))
    };
    let within = attachment.get("rendered").map(|it| (it.clone(), attachment["renderedRole"].clone()));
    match within.or_else(beside) {
        Some((rendered, role)) => rendered_blocks(&rendered, &role),
        None => blocks(&attachment),
    }
}

/// Tells whether an attachment is words that somebody sent while the model worked, and not news of a task or of the machine.
pub(super) fn is_said_to_the_model(entry: &Entry) -> bool {
    #[derive(serde::Deserialize)]
    struct Sent {
        #[serde(rename = "type", default)]
        kind: Value,
        #[serde(rename = "commandMode", default)]
        mode: Value,
    }
    let sent = entry.fields().read("attachment");
    sent.is_some_and(|sent: Sent| sent.kind == "queued_command" && sent.mode != "task-notification")
}

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

fn blocks(attachment: &Value) -> Vec<Block> {
    let text = |key: &str| attachment.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "queued_command" => match attachment.get("prompt") {
            Some(Value::String(news)) if text("commandMode") == "task-notification" => vec![reminder(news)],
            Some(Value::String(message)) if text("commandMode") == "agent-message" => {
                vec![reminder(&format!(
                    "While you were working this message came from the conversation that sent you out:\n{message}"
                ))]
            }
            Some(Value::String(prompt)) => vec![reminder(&format!(
                "While you were working the user sent this message. Take it into account:\n{prompt}"
            ))],
            Some(Value::Array(blocks)) => blocks.iter().filter_map(|b| Block::from_value(b).ok()).collect(),
            _ => Vec::new(),
        },
        "file" => file(attachment),
        "directory" => vec![reminder(&format!(
            "The directory {} was listed for you:\n{}",
            text("path"),
            text("content")
        ))],
        "agent_mention" => vec![reminder(&format!(
            "The user names the agent type {0}: send an agent of that type out for what is asked, with all that it \
             needs to know.",
            text("agentType")
        ))],
        "session_mention" => vec![reminder(&format!(
            "The user names the earlier session {}. This was said in it; it is what happened then, not what is asked now:\n{}",
            text("sessionId"),
            text("text")
        ))],
        "unknown_command_fallback" => {
            let names = attachment["availableCommandNames"].as_array().into_iter().flatten();
            let names: Vec<String> = names.filter_map(Value::as_str).map(|it| format!("/{it}")).collect();
            let rest = attachment["availableCommandCount"].as_u64().unwrap_or_default();
            let rest = match rest.saturating_sub(names.len() as u64) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            vec![reminder(&format!(
                "The user's message begins with /{}, which is no command of this session, so nothing was run. There are {}{rest}. \
                 Take the message for what it says; where it cannot be done without the command, say that there is none.",
                text("commandName"),
                names.join(", ")
            ))]
        }
        "agent_roster" => {
            let names = attachment["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let names = names.collect::<Vec<_>>().join(", ");
            vec![reminder(&format!(
                "SendMessage reaches these conversations of the session by name: {names}."
            ))]
        }
        "ultrathink" => vec![reminder(
            "The user asks for your deepest thought this time: think the matter through thoroughly, weigh other ways and \
             check your conclusions before you act or answer.",
        )],
        "edited_text_file" => vec![reminder(&format!(
            "{} has changed on disk since you read it, by the user or a tool. The changed part now reads:\n{}",
            text("filename"),
            text("snippet")
        ))],
        "nested_memory" => {
            let content = &attachment["content"];
            let part = |key: &str| content.get(key).and_then(Value::as_str).unwrap_or_default();
            vec![reminder(&format!("Contents of {}:\n\n{}", part("path"), part("content")))]
        }
        "plan_mode" => vec![reminder(&plan_reminder::plan_mode(attachment))],
        "plan_mode_exit" => vec![reminder(&plan_reminder::plan_mode_exit(attachment))],
        RESTORED => vec![reminder(&restored_text(text("name"), text("content")))],
        "agent_listing_delta" => agent_changes(attachment),
        "mcp_instructions_delta" => {
            let blocks = attachment["addedBlocks"].as_array().into_iter().flatten();
            let joined = blocks.filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n");
            match joined.is_empty() {
                true => Vec::new(),
                false => vec![reminder(&format!(
                    "MCP servers were connected. They say of their tools:\n\n{joined}"
                ))],
            }
        }
        "mcp_resource" => {
            let (server, uri) = (text("server"), text("uri"));
            vec![reminder(&format!(
                "The resource {uri} of the MCP server {server} was read for you:\n{}",
                text("text")
            ))]
        }
        "date_change" => vec![reminder(&format!("The date is now {}.", text("newDate")))],
        "hook_additional_context" => {
            let lines = attachment["content"].as_array().into_iter().flatten();
            let joined = lines.filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
            vec![reminder(&format!("{} hook added context: {joined}", text("hookName")))]
        }
        "hook_blocking_error" => {
            let error = &attachment["blockingError"];
            let part = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, command, said) = (text("hookName"), part("command"), part("blockingError"));
            vec![reminder(&format!("{name} hook objected (`{command}`): {said}"))]
        }
        "hook_success" if !text("content").is_empty() => {
            vec![reminder(&format!("{} hook succeeded: {}", text("hookName"), text("content")))]
        }
        _ => Vec::new(),
    }
}

/// Says which agents came, changed or went. Those that were there at the start stand in the description of the tool.
fn agent_changes(attachment: &Value) -> Vec<Block> {
    if attachment["isInitial"] == true {
        return Vec::new();
    }
    let list = |key: &str, between: &str| {
        let items = attachment[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        items.collect::<Vec<_>>().join(between)
    };
    let (added, removed) = (list("addedLines", "\n"), list("removedTypes", ", "));
    let mut parts = Vec::new();
    if !added.is_empty() {
        parts.push(format!("These types of agents can be sent out, too, or have changed:\n{added}"));
    }
    if !removed.is_empty() {
        parts.push(format!("These types of agents are gone: {removed}"));
    }
    if parts.is_empty() { Vec::new() } else { vec![reminder(&parts.join("\n"))] }
}

fn file(attachment: &Value) -> Vec<Block> {
    let name = attachment["filename"].as_str().unwrap_or_default();
    let found = &attachment["content"]["file"];
    if attachment["content"]["type"] == "image"
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
