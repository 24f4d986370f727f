//! What was said before, told again as news: `session/load` replays a session from its first word.

use std::sync::Arc;

use loci_app::sessions::transcript::is_note;
use loci_core::entry::{Attachment, AttachmentKind, Entry, EntryKind};
use loci_core::message::{Block, BlockKind};
use serde_json::{Value, json};

use super::tool_call::image;
use super::updates::{Updates, message_chunk, thought_chunk, user_chunk};

/// Tells everything again, in order. What was said for the model's ears only, and summaries that stand for what is told
/// anyway, are left out.
pub(super) fn replay(history: &[Arc<Entry>], updates: &mut Updates) -> Vec<Value> {
    let shown = history.iter().filter(|entry| {
        let head = entry.head();
        !head.is_meta && !head.is_sidechain && !head.is_compact_summary
    });
    shown.flat_map(|entry| of_entry(entry, updates)).collect()
}

fn of_entry(entry: &Entry, updates: &mut Updates) -> Vec<Value> {
    let id = entry.head().uuid.as_ref().map(ToString::to_string);
    match entry.head().kind {
        EntryKind::User => {
            let structured: Option<Value> = entry.fields().read("toolUseResult");
            let of_block = |block: &Block| of_user_block(block, structured.as_ref(), id.as_deref(), updates);
            entry.blocks().iter().filter_map(of_block).collect()
        }
        EntryKind::Assistant => entry
            .blocks()
            .iter()
            .filter_map(|block| of_assistant_block(block, id.as_deref(), updates))
            .collect(),
        EntryKind::Attachment => queued_prompt(entry, id.as_deref()).into_iter().collect(),
        EntryKind::System | EntryKind::Progress | EntryKind::Metadata => Vec::new(),
    }
}

fn of_user_block(
    block: &Block,
    structured: Option<&Value>,
    id: Option<&str>,
    updates: &mut Updates,
) -> Option<Value> {
    match block.kind() {
        BlockKind::ToolResult => updates.finish(&block.to_value(), structured),
        BlockKind::Image => Some(user_chunk(image(&block.to_value()["source"])?, id)),
        BlockKind::Text => {
            let text = block.text().filter(|text| !text.is_empty() && !is_note(text))?;
            Some(user_chunk(json!({"type": "text", "text": text}), id))
        }
        _ => None,
    }
}

fn of_assistant_block(block: &Block, id: Option<&str>, updates: &mut Updates) -> Option<Value> {
    let value = block.to_value();
    match block.kind() {
        BlockKind::Text => block.text().filter(|text| !text.is_empty()).map(|text| message_chunk(&text, id)),
        BlockKind::Thinking => {
            value["thinking"].as_str().filter(|text| !text.is_empty()).map(|text| thought_chunk(text, id))
        }
        BlockKind::ToolUse => updates.announce(&value),
        _ => None,
    }
}

/// Returns a prompt that was said while a turn was under way.
fn queued_prompt(entry: &Entry, id: Option<&str>) -> Option<Value> {
    let queued = entry.attachment_of_kind(AttachmentKind::QueuedCommand)?;
    let Attachment::QueuedCommand { prompt, .. } = queued else { return None };
    let text = prompt.as_str()?;
    Some(user_chunk(json!({"type": "text", "text": text}), id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::capabilities::ClientCapabilities;

    #[test]
    fn replay_tells_prompts_answers_calls_and_results_in_order() {
        let lines = [
            json!({"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Hi"}}),
            json!({"type": "user", "uuid": "u2", "isMeta": true, "message": {"role": "user", "content": "hidden"}}),
            json!({"type": "user", "uuid": "u3", "isCompactSummary": true, "message": {"role": "user", "content": "sum"}}),
            json!({"type": "user", "uuid": "u4", "message": {"role": "user", "content": "[Request interrupted by user]"}}),
            json!({"type": "assistant", "uuid": "a1", "message": {"content": [{"type": "thinking", "thinking": "Hm."}]}}),
            json!({"type": "assistant", "uuid": "a2", "message": {"content": [{"type": "text", "text": "Let me see."}]}}),
            json!({"type": "assistant", "uuid": "a3", "message": {"content": [
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a"}}]}}),
            json!({"type": "user", "uuid": "u5", "toolUseResult": {"type": "text"}, "message": {"content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "text"}]}}),
            json!({"type": "user", "uuid": "u6", "message": {"content": [
                {"type": "tool_result", "tool_use_id": "unknown", "content": "text"}]}}),
        ];
        let entries: Vec<Arc<Entry>> =
            lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect();
        let mut updates = Updates::new(ClientCapabilities::default(), "/p".into());
        let told: Vec<String> = replay(&entries, &mut updates)
            .iter()
            .map(|it| {
                format!(
                    "{} {}",
                    it["sessionUpdate"].as_str().unwrap(),
                    it["messageId"].as_str().unwrap_or("-")
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "user_message_chunk u1",
                "agent_thought_chunk a1",
                "agent_message_chunk a2",
                "tool_call -",
                "tool_call_update -",
            ]
        );
    }
}
