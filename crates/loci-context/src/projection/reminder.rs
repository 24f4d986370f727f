//! Attachments as the model reads them.
//!
//! Kinds that only steer other programs' listings, and kinds we do not know, say nothing.

use loci_core::message::Block;
use serde_json::Value;

use crate::compaction::{RESTORED, restored_text};

/// Returns what an attachment adds to the user message it belongs to.
pub(crate) fn blocks(attachment: &Value) -> Vec<Block> {
    let text = |key: &str| attachment.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "queued_command" => match attachment.get("prompt") {
            Some(Value::String(prompt)) => vec![reminder(&format!(
                "While you were working the user sent this message. Take it into account:\n{prompt}"
            ))],
            Some(Value::Array(blocks)) => blocks.iter().filter_map(|b| Block::from_value(b).ok()).collect(),
            _ => Vec::new(),
        },
        "file" => file(attachment),
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
        RESTORED => vec![reminder(&restored_text(text("name"), text("content")))],
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

/// Returns the same as text.
pub(crate) fn text(attachment: &Value) -> String {
    blocks(attachment).iter().filter_map(Block::text).collect::<Vec<_>>().join("\n")
}

fn file(attachment: &Value) -> Vec<Block> {
    let name = attachment["filename"].as_str().unwrap_or_default();
    let content = attachment["content"]["file"]["content"].as_str().unwrap_or_default();
    if content.is_empty() {
        return Vec::new();
    }
    vec![reminder(&format!("The file {name} was read for you. Its contents:\n{content}"))]
}

fn reminder(text: &str) -> Block {
    Block::new_text(&format!("<system-reminder>\n{}\n</system-reminder>", text.trim_end()))
}
