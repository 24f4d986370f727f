use proptest::prelude::*;
use serde_json::{Value, json};

use super::draft::{ApiErrorFields, Draft, Metadata, Stamp};
use super::*;
use crate::ids::SessionId;

fn stamp() -> Stamp {
    Stamp {
        session_id: SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap(),
        cwd: "/home/dev/project".to_owned(),
        version: "2.1.197".to_owned(),
        git_branch: "main".to_owned(),
        slug: None,
        entrypoint: "sdk-cli".to_owned(),
        agent: None,
        agent_type: None,
    }
}

fn seal(draft: &Draft, parent: Option<&str>) -> Entry {
    draft
        .seal(&stamp(), &"u-1".into(), parent.map(EntryId::from).as_ref(), "2026-01-01T00:00:00.000Z")
        .unwrap()
}

/// Every line of the recorded sessions, and the session they came from.
fn fixture_lines() -> Vec<(String, String)> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/sessions");
    #[expect(clippy::disallowed_methods, reason = "tests read their fixtures")]
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let mut lines = Vec::new();
    for file in std::fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "jsonl") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            lines.extend(read(&path).lines().map(|line| (name.clone(), line.to_owned())));
        }
    }
    assert!(lines.len() > 200, "the fixtures are missing");
    lines
}

/// A line's keys, in order.
fn keys(line: &str) -> String {
    RawObject::parse(line).unwrap().iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>().join(" ")
}

#[test]
fn drafts_have_the_keys_of_the_format_in_its_order() {
    const TAIL: &str = "userType entrypoint cwd sessionId version gitBranch";
    for (draft, expected) in [
        (
            Draft::prompt("p-1".into(), json!("Fix it"), "default", "sdk"),
            "parentUuid isSidechain promptId type message uuid timestamp permissionMode promptSource",
        ),
        (
            Draft::tool_result("p-1".into(), json!({"type": "tool_result"}), json!({}), "a-1".into()),
            "parentUuid isSidechain promptId type message uuid timestamp toolUseResult sourceToolAssistantUUID",
        ),
        (
            Draft::assistant(json!({"id": "msg_1"}), Some("req_1".into())),
            "parentUuid isSidechain message requestId type uuid timestamp",
        ),
        (
            Draft::attachment(Attachment::Ultrathink {}),
            "parentUuid isSidechain attachment type uuid timestamp",
        ),
    ] {
        assert_eq!(keys(seal(&draft, None).line()), format!("{expected} {TAIL}"));
    }
}

/// As in the transcripts of subagents that the reference writes.
#[test]
fn entries_of_an_agent_are_sealed_as_a_sidechain_with_its_id() {
    let stamp = Stamp { agent: Some("a1".into()), ..stamp() };
    let seal = |draft: &Draft| draft.seal(&stamp, &"u-1".into(), None, "2026-01-01T00:00:00.000Z").unwrap();
    for (draft, expected) in [
        (
            Draft::meta(Some("p-1".into()), json!("Look")),
            "parentUuid isSidechain promptId agentId type message",
        ),
        (
            Draft::tool_result("p-1".into(), json!({"type": "tool_result"}), json!({}), "a-1".into()),
            "parentUuid isSidechain promptId agentId type message",
        ),
        (Draft::assistant(json!({"id": "msg_1"}), None), "parentUuid isSidechain agentId message type"),
        (Draft::attachment(Attachment::Ultrathink {}), "parentUuid isSidechain agentId attachment type"),
    ] {
        let entry = seal(&draft);
        assert!(keys(entry.line()).starts_with(expected), "{}", entry.line());
        assert!(entry.head().is_sidechain && entry.line().contains(r#""agentId":"a1""#), "{}", entry.line());
    }
}

#[test]
fn entry_head_matches_its_draft() {
    let error = ApiErrorFields { category: "rate_limit".to_owned(), status: Some(429) };
    let entry = seal(&Draft::api_error("x", "API Error: wait", error), Some("u-0"));
    assert!(entry.head().is_api_error);
    assert_eq!(entry.head().parent, Some("u-0".into()));
    assert_eq!(entry.head().kind, EntryKind::Assistant);
    assert_eq!(entry.content().unwrap().text(), "API Error: wait");
    assert!(!seal(&Draft::synthetic("x", "No response requested."), None).head().is_api_error);
    assert!(seal(&Draft::meta(None, json!("go on")), None).head().is_meta);
}

#[test]
fn metadata_begins_with_its_type() {
    let session = stamp().session_id;
    for (metadata, start) in [
        (Metadata::Tag { tag: "x".to_owned() }, r#"{"type":"tag","tag":"x","sessionId":"#),
        (Metadata::CustomTitle { title: "T".to_owned() }, r#"{"type":"custom-title","customTitle":"T","#),
        (
            Metadata::LastPrompt { prompt: Some("hi".to_owned()), leaf: "l".into() },
            r#"{"type":"last-prompt","lastPrompt":"hi","leafUuid":"l","#,
        ),
        (
            Metadata::Goal { condition: Some("c".to_owned()) },
            r#"{"type":"loci-goal","condition":"c","sessionId":"#,
        ),
        (Metadata::Goal { condition: None }, r#"{"type":"loci-goal","condition":null,"#),
        (Metadata::Dequeue, r#"{"type":"queue-operation","operation":"dequeue","timestamp":"t","#),
    ] {
        let entry = metadata.seal(&session, "t").unwrap();
        assert!(entry.line().starts_with(start), "{}", entry.line());
        assert_eq!(entry.head().kind, EntryKind::Metadata);
    }
}

/// Invariant 19 of `docs/design/session-log.md`.
#[test]
fn every_recorded_line_comes_back_byte_for_byte() {
    for (session, line) in fixture_lines() {
        let torn = session == "truncated_tail.jsonl" && serde_json::from_str::<Value>(&line).is_err();
        if torn {
            continue;
        }
        let entry = Entry::parse(line.as_str()).unwrap_or_else(|error| panic!("{session}: {error}: {line}"));
        assert_eq!(entry.line(), line);
        assert_eq!(entry.fields().to_json(), line, "{session}");
        let stored = serde_json::from_str::<Value>(&line).unwrap();
        let content = &stored["message"]["content"];
        assert_eq!(entry.content().is_some(), !content.is_null(), "{session}: {line}");
        if content.is_array() {
            assert_eq!(serde_json::to_value(entry.blocks()).unwrap(), *content, "{session}");
        }
    }
}

#[test]
fn odd_lines_are_entries_or_errors_but_never_panics() {
    for line in ["null", "[]", "3", "", "{", "{}", r#"{"type":null}"#, r#"{"type":5}"#] {
        assert!(Entry::parse(line).is_err(), "{line}");
    }
    for line in [
        r#"{"type":"user","uuid":5,"parentUuid":{},"isSidechain":"yes","message":"text"}"#,
        r#"{"type":"assistant","message":{"id":7},"timestamp":[]}"#,
        r#"{"type":"from-the-future","uuid":"u"}"#,
        r#"{"type":"user","message":null}"#,
    ] {
        let entry = Entry::parse(line).unwrap();
        assert_eq!(entry.line(), line);
        assert!(!entry.head().is_sidechain);
    }
}

#[test]
fn replacing_one_field_keeps_every_other_byte() {
    let line = r#"{"type":"x","n":1.0e3,"sessionId":"old","deep":{"a": [1, 2]}}"#;
    let entry = Entry::parse(line).unwrap().with_field("sessionId", &json!("new")).unwrap();
    assert_eq!(entry.line(), line.replace("old", "new"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|n| serde_json::Number::from_f64(n).map_or(Value::Null, Value::Number)),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any object with a type is an entry, whatever else it holds, and comes back byte for byte; so does
    /// every content block of its message.
    /// Invariant 19 of `docs/design/session-log.md`.
    #[test]
    fn entries_are_lossless(kind in "user|assistant|system|attachment|progress|[a-z-]{1,12}", extra in any_json(), content in any_json()) {
        let mut line = json!({"type": kind, "uuid": "u", "message": {"role": "user", "content": [content]}});
        if let Value::Object(fields) = extra {
            for (key, value) in fields {
                line.as_object_mut().unwrap().entry(key).or_insert(value);
            }
        }
        let text = line.to_string();
        let entry = Entry::parse(text.as_str()).unwrap();
        prop_assert_eq!(entry.line(), &text);
        prop_assert_eq!(entry.fields().to_json(), text);
        for block in entry.blocks() {
            prop_assert!(entry.line().contains(block.json().as_str()));
        }
    }
}
