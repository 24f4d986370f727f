//! Tests of the conversation, feature by feature.
//!
//! A session is written as a small table, one entry a line:
//!
//! ```text
//! user u1 -
//! assistant a1 u1 msg=m1 call=t1
//! user r1 a1 result=t1
//! pointer a1
//! ```
//!
//! The words are kind, uuid and parent (`-` for none), then options: `msg=` the response, `call=` and `result=` a
//! tool call's id, `at=` seconds of the timestamp, `segment=head,tail` and `logical=` of a boundary, and the flags
//! `summary`, `side`, `error`, `thinking`.

mod branches;
mod cases;
mod end;
mod fixtures;
mod properties;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::entry::EntryKind;
use crate::entry::draft::Stamp;
use crate::ids::SessionId;

/// Shows the path as uuids, and the repairs behind a bar.
fn show(conversation: &Conversation) -> String {
    let ids: Vec<&str> = conversation.path().iter().map(|entry| id(entry)).collect();
    let repairs: Vec<String> = conversation.repairs().iter().map(show_repair).collect();
    let bar = if repairs.is_empty() { "" } else { " | " };
    format!("{}{bar}{}", ids.join(" "), repairs.join(" "))
}

fn show_repair(repair: &Repair) -> String {
    let under = |under: &Under| match under {
        Under::Entry(id) => format!("({id})"),
        Under::Previous => String::new(),
    };
    match repair {
        Repair::CloseCall { call, source, .. } => format!("close {call}({source})"),
        Repair::Continue { under: place } => format!("continue{}", under(place)),
        Repair::Filler { under: place } => format!("filler{}", under(place)),
    }
}

fn id(entry: &Entry) -> &str {
    entry.head().uuid.as_ref().map_or("?", |uuid| uuid.as_str())
}

fn session(table: &str) -> Vec<Arc<Entry>> {
    table.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| Arc::new(entry(line))).collect()
}

fn entry(line: &str) -> Entry {
    let words: Vec<&str> = line.split_whitespace().collect();
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let flag = |name: &str| words.contains(&name);
    if words[0] == "pointer" {
        return parse(&json!({"type": "last-prompt", "leafUuid": words[1], "sessionId": "s"}));
    }
    let (kind, uuid, parent) = (words[0], words[1], words[2]);
    let mut value = json!({
        "parentUuid": if parent == "-" { Value::Null } else { json!(parent) },
        "isSidechain": flag("side"),
        "type": if kind == "boundary" { "system" } else { kind },
        "uuid": uuid,
        "timestamp": option("at").map(|seconds| format!("2026-01-01T00:00:{seconds}Z")),
    });
    let block = match (option("call"), option("result")) {
        (Some(call), _) => json!({"type": "tool_use", "id": call, "name": "Bash", "input": {}}),
        (_, Some(call)) => json!({"type": "tool_result", "tool_use_id": call, "content": "ok"}),
        _ if flag("thinking") => json!({"type": "thinking", "thinking": "Hm.", "signature": "c"}),
        _ => json!({"type": "text", "text": uuid}),
    };
    match kind {
        "user" => value["message"] = json!({"role": "user", "content": [block]}),
        "assistant" => {
            value["message"] = json!({"role": "assistant", "content": [block], "model": "m"});
            value["message"]["id"] = json!(option("msg").unwrap_or(uuid));
        }
        "attachment" => value["attachment"] = json!({"type": "file"}),
        "boundary" => {
            value["subtype"] = json!("compact_boundary");
            value["logicalParentUuid"] = json!(option("logical"));
            if let Some((head, tail)) = option("segment").and_then(|segment| segment.split_once(',')) {
                value["compactMetadata"] = json!({"preservedSegment": {"headUuid": head, "tailUuid": tail}});
            }
            if let Some(uuids) = option("listed") {
                let uuids: Vec<&str> = uuids.split(',').collect();
                value["compactMetadata"]["preservedMessages"] = json!({"uuids": uuids});
            }
        }
        _ => {}
    }
    value["isCompactSummary"] = json!(flag("summary"));
    value["isApiErrorMessage"] = json!(flag("error"));
    parse(&value)
}

fn parse(value: &Value) -> Entry {
    Entry::parse(value.to_string()).unwrap()
}

/// Appends the repairs of a conversation to its entries, as the engine does.
fn repaired(mut entries: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
    let stamp = Stamp {
        session_id: SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap(),
        cwd: "/p".to_owned(),
        version: "2.1.197".to_owned(),
        git_branch: "HEAD".to_owned(),
        entrypoint: "cli".to_owned(),
        slug: None,
        agent: None,
        agent_type: None,
    };
    let conversation = Conversation::build(entries.clone());
    let mut previous: Option<EntryId> = None;
    let under = conversation.repairs().first().and_then(|repair| repair.parent(None));
    if let Some(under) = under.filter(|under| Some(*under) != conversation.leaf()) {
        entries.push(Arc::new(entry(&format!("pointer {under}"))));
    }
    for (idx, repair) in conversation.repairs().iter().enumerate() {
        let id = EntryId::new(format!("repair{idx}"));
        let parent = repair.parent(previous.as_ref()).cloned();
        let draft = repair.draft("message", RESUME_PROMPT);
        entries.push(Arc::new(draft.seal(&stamp, &id, parent.as_ref(), "2026-01-01T00:01:00.000Z").unwrap()));
        previous = Some(id);
    }
    entries
}
