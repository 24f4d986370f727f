//! Weighing entries: what each adds to what is sent, and what the server counted, once for every entry.
//!
//! Everything that looks at the size of a conversation goes through here, so that a request costs a sum over figures and
//! not another reading of the words.

use std::sync::Arc;

use loci_core::entry::{CalledTool, Entry, EntryKind, ResultWeight, Weight};
use loci_core::ids::EntryId;
use loci_core::message::{Block, BlockKind};
use loci_core::usage::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::projection::attachment_blocks;
use crate::replaced::Replaced;
use crate::tokens::{MeasuredBlock, estimate_block, estimate_json, estimate_text, json_text, prose_tokens};

/// Returns what an entry weighs.
pub(crate) fn weight(entry: &Entry) -> &Weight {
    entry.weight(measure)
}

/// Weighs an attachment whose blocks somebody has read anyway.
pub(crate) fn weigh_attachment(entry: &Entry, blocks: &[Block]) {
    entry.weight(|_| attachment_weight(blocks));
}

fn attachment_weight(blocks: &[Block]) -> Weight {
    Weight { tokens: blocks.iter().map(estimate_block).sum(), ..Weight::default() }
}

/// Estimates the tokens of what an entry adds to what is sent.
pub(crate) fn entry_tokens(entry: &Entry, replaced: &Replaced) -> u64 {
    let weight = weight(entry);
    if replaced.is_empty() {
        return weight.tokens;
    }
    weight.results.iter().fold(weight.tokens, |tokens, result| match replaced.content(&result.call) {
        Some(content) => tokens - result.tokens + estimate_text(content),
        None => tokens,
    })
}

/// Estimates the tokens of a path.
pub fn estimate_path(path: &[Arc<Entry>], replaced: &Replaced) -> u64 {
    path.iter().map(|entry| entry_tokens(entry, replaced)).sum()
}

fn measure(entry: &Entry) -> Weight {
    let head = entry.head();
    match head.kind {
        EntryKind::User => measure_message(entry),
        EntryKind::Assistant if !head.is_api_error => measure_message(entry),
        EntryKind::Attachment => attachment_weight(&attachment_blocks(entry)),
        EntryKind::System => Weight {
            tokens: entry.fields().read::<String>("content").as_deref().map_or(0, prose_tokens),
            preserved: if entry.is_compact_boundary() { preserved(entry) } else { Box::default() },
            ..Weight::default()
        },
        EntryKind::Assistant | EntryKind::Progress | EntryKind::Metadata => Weight::default(),
    }
}

fn measure_message(entry: &Entry) -> Weight {
    let parts = entry.message_parts();
    let is_said = entry.head().kind == EntryKind::Assistant;
    let counted = if is_said { parts.usage.and_then(counted) } else { None };
    let changed = if is_said { None } else { parts.tool_use_result.and_then(changed) };
    let content = parts.content.map_or("", RawValue::get);
    if let Some(text) = json_text(content) {
        let has_words = !text.trim().is_empty();
        return Weight { tokens: estimate_text(&text), counted, has_words, changed, ..Weight::default() };
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content).unwrap_or_default();
    let (mut results, mut calls) = (Vec::new(), Vec::new());
    let (mut tokens, mut has_words) = (0, false);
    for json in blocks.into_iter().map(RawValue::get) {
        let Some(block) = MeasuredBlock::read(json) else {
            tokens += estimate_json(json);
            continue;
        };
        let size = block.tokens(json);
        tokens += size;
        has_words |= block.has_words();
        match (block.kind(), &block.tool_use_id, &block.id, &block.name) {
            (BlockKind::ToolResult, Some(call), ..) => {
                results.push(ResultWeight { call: call.as_ref().into(), tokens: size });
            }
            (BlockKind::ToolUse, _, Some(call), Some(tool)) => {
                calls.push(CalledTool { call: call.as_ref().into(), tool: tool.as_ref().into() });
            }
            _ => {}
        }
    }
    let (results, calls) = (results.into(), calls.into());
    Weight { tokens, results, calls, counted, has_words, changed, ..Weight::default() }
}

/// Returns the file that a result says was changed. What else it holds, a file's text perhaps, is passed over.
fn changed(result: &RawValue) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct FileToolResult<'a> {
        #[serde(borrow, rename = "filePath")]
        file: Option<&'a RawValue>,
        #[serde(borrow)]
        notebook_path: Option<&'a RawValue>,
    }
    let result: FileToolResult<'_> = serde_json::from_str(result.get()).ok()?;
    json_text(result.file.or(result.notebook_path)?.get()).map(Into::into)
}

/// A response that was cut, and words that no model wrote, were not counted.
fn counted(usage: &RawValue) -> Option<u64> {
    let usage: Usage = serde_json::from_str(usage.get()).ok()?;
    Some(usage.context_tokens()).filter(|tokens| *tokens > 0)
}

fn preserved(boundary: &Entry) -> Box<[EntryId]> {
    let metadata: Value = boundary.fields().read("compactMetadata").unwrap_or_default();
    let ids = metadata["preservedMessages"]["uuids"].as_array().into_iter().flatten();
    ids.filter_map(Value::as_str).map(EntryId::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::Projection;
    use crate::replaced::{Clearing, Replacement};
    use crate::tokens::estimate_messages;
    use serde_json::json;

    fn entry(value: Value) -> Entry {
        Entry::parse(value.to_string()).unwrap()
    }

    fn results(content: Value) -> Entry {
        entry(json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": content},
            {"type": "tool_result", "tool_use_id": "t2", "content": "short"}]}}))
    }

    /// What an entry weighs is what its messages are estimated at, whatever it holds.
    /// Invariant 16 of `docs/design/compaction.md`.
    #[test]
    fn an_entry_weighs_what_its_messages_do() {
        let words = "some \"words\" and\nlines ".repeat(40);
        for value in [
            json!({"type": "user", "message": {"content": words}}),
            json!({"type": "user", "message": {"content": [{"type": "text", "text": words}, {"type": "image"}]}}),
            json!({"type": "assistant", "message": {"id": "m", "content": [
                {"type": "thinking", "thinking": words, "signature": "s"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/p/ü"}}]}}),
            json!({"type": "attachment", "attachment": {"type": "date_change", "newDate": "2026-01-02"}}),
            json!({"type": "system", "subtype": "local_command", "content": words}),
            json!({"type": "user", "message": {"content": [{"type": "from the future", "text": {"deep": words}}]}}),
        ] {
            let entry = entry(value.clone());
            let sent = estimate_messages(&Projection::from_path([&entry]).messages(None));
            // A block more or less is all that they differ by.
            let weighed = estimate_path(&[Arc::new(entry)], &Replaced::default());
            assert!(weighed.abs_diff(sent) <= 4, "{weighed} {sent}: {value}");
        }
        let said = results(json!([{"type": "text", "text": words}, {"type": "image", "source": {}}]));
        let sent = estimate_messages(&Projection::from_path([&said]).messages(None));
        assert_eq!(weight(&said).tokens, sent);
    }

    #[test]
    fn a_replaced_result_weighs_what_replaces_it() {
        let entry = results(json!("long ".repeat(4_000)));
        let found = weight(&entry).clone();
        assert_eq!((found.tokens, found.results[0].tokens), (5_000 + 2 + 8, 5_004));
        let mut replaced = Replaced::default();
        let replacements = vec![Replacement { call: "t1".into(), content: "gone".to_owned() }];
        replaced.add(&Clearing { replacements, freed: 5_000 }, None);
        assert_eq!(entry_tokens(&entry, &replaced), 1 + 2 + 8);
        let sent = Projection::with_replaced([&entry], &replaced).messages(None);
        assert_eq!(entry_tokens(&entry, &replaced), estimate_messages(&sent));
    }

    /// Measuring is the costly part: it is done once, and a measured entry is still the same entry.
    /// Invariant 16 of `docs/design/compaction.md`.
    #[test]
    fn an_entry_is_measured_once() {
        let measured = results(json!("x"));
        let tokens = weight(&measured).tokens;
        assert_eq!(measured.weight(|_| Weight::default()).tokens, tokens, "the second measure is not asked");
        assert_eq!(measured, results(json!("x")));
    }
}
