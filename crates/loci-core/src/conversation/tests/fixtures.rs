//! The sessions of the reference client, and what it sent when it resumed them.
//!
//! The stored expectations are normalised: reminders, cache marks and filler removed, neighbours of one role
//! merged, results of a batch sorted by id, texts trimmed. Here the path is merged in the same plain way.

use super::*;
use crate::message::BlockKind;

macro_rules! fixtures {
    ($($name:ident),* $(,)?) => {
        [$((
            stringify!($name),
            include_str!(concat!("../../../../../fixtures/sessions/", stringify!($name), ".jsonl")),
            include_str!(concat!("../../../../../fixtures/sessions/expected/", stringify!($name), ".json")),
        )),*]
    };
}

const FIXTURES: [(&str, &str, &str); 22] = fixtures![
    api_error,
    branched,
    compacted_auto,
    compacted_manual,
    compacted_manual_continued,
    error_tool_result,
    file_history,
    forked,
    handed_back,
    hooks,
    image,
    interactive_interrupted,
    killed_mid_tool,
    parallel_tools,
    persisted_output,
    resumed_twice,
    simple,
    subagent,
    taken_over,
    tasks,
    thinking,
    truncated_tail,
];

fn load(file: &str) -> Vec<Arc<Entry>> {
    file.lines().filter_map(|line| Entry::parse(line).ok()).map(Arc::new).collect()
}

fn entries_of(name: &str) -> Vec<Arc<Entry>> {
    load(FIXTURES.iter().find(|fixture| fixture.0 == name).unwrap().1)
}

#[test]
fn fixture_messages_match_the_reference() {
    for (name, file, expected) in FIXTURES {
        let expected: Value = serde_json::from_str(expected).unwrap();
        let conversation = Conversation::build(load(file));
        // The reference leaves out a call at the end that has no result. We answer it instead; see below.
        let sent = messages(&without_open_calls(&conversation), Some("Please go on."));
        assert_eq!(json!(sent), expected["messages"], "{name}");
    }
}

#[test]
fn the_next_entry_hangs_where_the_reference_hangs_it() {
    for (name, file, expected) in FIXTURES {
        let expected: Value = serde_json::from_str(expected).unwrap();
        let conversation = Conversation::build(load(file));
        let under =
            conversation.repairs().first().and_then(|repair| repair.parent(None)).or(conversation.leaf());
        let under = under.unwrap().as_str();
        if name == "killed_mid_tool" {
            // One entry further down: the result of the open call hangs from the call.
            assert!(under.starts_with("de373a08"), "{under}");
            assert_eq!(
                conversation.path().iter().rev().nth(1).map(|entry| id(entry)),
                expected["appended_under"].as_str()
            );
        } else {
            assert_eq!(json!(under), expected["appended_under"], "{name}");
        }
    }
}

/// Our deviation from the reference: the model is told that the command may have run.
#[test]
fn killed_call_is_sent_with_an_error_result() {
    let mended = Conversation::build(repaired(entries_of("killed_mid_tool")));
    assert_eq!(mended.repairs(), []);
    let sent = messages(mended.path(), Some("Please go on."));
    let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(sent[1]["blocks"][1]["name"], "Bash");
    assert_eq!(sent[2]["blocks"][0]["error"], true);
    assert_eq!(sent[2]["blocks"][1]["text"], "Please go on.");
}

#[test]
fn conversation_facts_are_read_from_the_path() {
    let conversation = Conversation::build(entries_of("interactive_interrupted"));
    assert_eq!(conversation.last_model(), Some("claude-sonnet-4-5"));
    assert_eq!(conversation.last_mode(), Some("acceptEdits"));
    assert_eq!(conversation.titles().best(), Some("my title"));
    assert!(conversation.last_usage().is_some_and(|usage| usage.context_tokens() > 0));
    // The last answer was preserved: its usage counted what has since been compacted.
    assert_eq!(Conversation::build(entries_of("compacted_manual")).last_usage(), None);
    assert!(Conversation::build(entries_of("compacted_auto")).last_usage().is_some());
}

#[test]
fn every_fixture_is_mended_by_its_repairs() {
    for (name, file, _) in FIXTURES {
        assert_eq!(Conversation::build(repaired(load(file))).repairs(), [], "{name}");
    }
}

/// Invariant 7 of `docs/design/session-log.md`.
#[test]
fn a_fixture_cut_after_any_line_keeps_its_last_message() {
    for (name, file, _) in FIXTURES {
        let entries = load(file);
        for end in 1..=entries.len() {
            let Some(last) = entries[..end].iter().rev().find(|entry| entry.head().kind.is_chain()) else {
                continue;
            };
            let conversation = Conversation::build(entries[..end].to_vec());
            let is_there = conversation.path().iter().any(|entry| entry.head().uuid == last.head().uuid);
            // A program that leaves a branch without a word comes back to it.
            let pointer =
                entries[..end].iter().rfind(|entry| entry.head().type_name.as_ref() == "last-prompt");
            let pointer = pointer.and_then(|pointer| pointer.fields().read::<String>("leafUuid"));
            let is_pointed_at = pointer.as_deref() == conversation.leaf().map(EntryId::as_str);
            assert!(
                is_there || last.is_compact_boundary() || (name == "branched" && is_pointed_at),
                "{name} cut after {end} lines: {}",
                show(&conversation)
            );
        }
    }
}

fn without_open_calls(conversation: &Conversation) -> Vec<Arc<Entry>> {
    let is_open = |entry: &Entry| {
        conversation.repairs().iter().any(|repair| matches!(repair, Repair::CloseCall { source, .. } if Some(source) == entry.head().uuid.as_ref()))
    };
    conversation.path().iter().filter(|entry| !is_open(entry)).cloned().collect()
}

fn messages(path: &[Arc<Entry>], prompt: Option<&str>) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for entry in path {
        let head = entry.head();
        let (role, blocks) = match head.kind {
            EntryKind::User => ("user", entry.blocks().iter().filter_map(plain).collect()),
            EntryKind::Assistant if !head.is_api_error => {
                ("assistant", entry.blocks().iter().filter_map(plain).collect())
            }
            EntryKind::System if head.subtype.as_deref() == Some("local_command") => {
                let content: String = entry.fields().read("content").unwrap();
                ("user", vec![json!({"text": content.trim()})])
            }
            _ => continue,
        };
        push(&mut messages, role, blocks);
    }
    push(&mut messages, "user", prompt.map(|prompt| json!({"text": prompt})).into_iter().collect());
    messages.into_iter().map(|(role, blocks)| json!({"role": role, "blocks": in_order(blocks)})).collect()
}

fn push<'a>(messages: &mut Vec<(&'a str, Vec<Value>)>, role: &'a str, blocks: Vec<Value>) {
    if blocks.is_empty() {
        return;
    }
    match messages.last_mut() {
        Some((last, held)) if *last == role => held.extend(blocks),
        _ => messages.push((role, blocks)),
    }
}

fn plain(block: &crate::message::Block) -> Option<Value> {
    let value = block.to_value();
    Some(match block.kind() {
        BlockKind::Text => {
            let text = block.text()?.trim().to_owned();
            let is_filler = [repair::FILLER, repair::RESUME_PROMPT].contains(&text.as_str());
            let is_reminder = text.starts_with("<system-reminder>");
            if is_filler || is_reminder {
                return None;
            }
            json!({"text": text})
        }
        BlockKind::Thinking => json!({"thinking": value["thinking"], "signature": value["signature"]}),
        BlockKind::ToolUse => {
            json!({"tool_use": value["id"], "name": value["name"], "input": value["input"]})
        }
        BlockKind::ToolResult => json!({
            "tool_result": value["tool_use_id"],
            "content": result_text(&value["content"]),
            "error": value["is_error"] == true,
        }),
        BlockKind::Image => {
            json!({"image": value["source"]["data"].as_str()?.chars().take(40).collect::<String>()})
        }
        BlockKind::RedactedThinking | BlockKind::Document | BlockKind::Other => value,
    })
}

fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned(),
        _ => String::new(),
    }
}

/// Puts results first, sorted by id.
fn in_order(mut blocks: Vec<Value>) -> Vec<Value> {
    blocks.sort_by_key(|block| match block["tool_result"].as_str() {
        Some(id) => (0, id.to_owned()),
        None => (1, String::new()),
    });
    blocks
}
