//! Events and the news that they are.

use loci_core::stream::Started;
use loci_core::usage::Usage;

use super::*;

fn updates() -> Updates {
    Updates::new(ClientCapabilities { has_compactions: true, ..ClientCapabilities::default() }, "/p".into())
}

fn stream(event: StreamEvent) -> EngineEvent {
    EngineEvent::Stream { event, first_after: None }
}

fn started(id: &str) -> EngineEvent {
    stream(StreamEvent::Started(Started {
        message_id: id.into(),
        model: "m".to_owned(),
        usage: Usage::default(),
        request_id: None,
        rate_limits: None,
    }))
}

fn delta(index: usize, delta: Delta) -> EngineEvent {
    stream(StreamEvent::Delta { index, delta })
}

fn block(content: Value, error: Option<&'static str>) -> EngineEvent {
    let message = json!({"content": [content]});
    EngineEvent::Assistant(AssistantBlock {
        entry: "e".into(),
        message,
        request: None,
        error: error.map(Into::into),
        is_aborted: false,
    })
}

fn result(id: &str, structured: Option<Value>) -> EngineEvent {
    EngineEvent::User(UserMessage {
        entry: "e".into(),
        message: json!({"content": [{"type": "tool_result", "tool_use_id": id, "content": "done"}]}),
        tool_use_result: structured,
        is_synthetic: false,
        timestamp: String::new(),
    })
}

/// Renders news in a line each.
fn shown(updates: &mut Updates, events: &[EngineEvent]) -> Vec<String> {
    let told = events.iter().flat_map(|event| updates.of(event)).collect::<Vec<_>>();
    let line = |it: &Value| {
        let what =
            ["content", "status", "currentModeId", "toolCallId"].into_iter().find_map(|key| match &it[key] {
                Value::String(text) => Some(text.clone()),
                Value::Object(content) => content["text"].as_str().map(str::to_owned),
                _ => None,
            });
        format!("{} {}", it["sessionUpdate"].as_str().unwrap(), what.unwrap_or_default())
    };
    told.iter().map(line).collect()
}

#[test]
fn streamed_text_is_told_once_and_whole_blocks_whole() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let thinking = json!({"type": "thinking", "thinking": "Hm."});
    let told = shown(
        &mut updates(),
        &[
            started("m1"),
            delta(0, Delta::Thinking("Hm.".into())),
            block(thinking.clone(), None),
            delta(1, Delta::Text("He".into())),
            delta(1, Delta::Text("llo".into())),
            block(text("Hello"), None),
            block(text("whole"), None),
            started("m2"),
            delta(0, Delta::Text("lost".into())),
            started("m3"),
            block(thinking, None),
            block(text("API Error"), Some("server_error")),
        ],
    );
    assert_eq!(
        told,
        [
            "agent_thought_chunk Hm.",
            "agent_message_chunk He",
            "agent_message_chunk llo",
            "agent_message_chunk whole",
            "agent_message_chunk lost",
            "agent_thought_chunk Hm.",
        ]
    );
}

#[test]
fn call_is_told_with_its_progress_and_its_result() {
    let call = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}});
    let progress =
        |text: &str| EngineEvent::Progress { call: "t1".into(), progress: ToolProgress::Output(text.into()) };
    let mut updates = updates();
    assert!(updates.begun("t1").is_none(), "a call that was not told has not begun");
    assert_eq!(shown(&mut updates, &[block(call, None)]), ["tool_call pending"]);
    assert_eq!(updates.begun("t1").unwrap()["status"], "in_progress");
    assert_eq!(shown(&mut updates, &[progress("a"), progress("ä".repeat(MOST_OUTPUT).as_str())]).len(), 2);
    let long = updates.of(&progress("end"));
    let text = long[0]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.len() <= MOST_OUTPUT && text.ends_with("end"), "{}", text.len());
    let told = shown(&mut updates, &[result("t1", None), result("t1", None), result("other", None)]);
    assert_eq!(told, ["tool_call_update completed"]);
}

#[test]
fn agents_are_told_by_their_calls_alone() {
    let agent = |parent: Option<&str>| AgentRef {
        id: "a1".into(),
        kind: "explorer".to_owned(),
        parent: parent.map(Into::into),
        description: String::new(),
        depth: 1,
    };
    let wrap = |parent: Option<&str>, event: EngineEvent| EngineEvent::Agent {
        agent: agent(parent),
        event: Box::new(event),
    };
    let call = json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a"}});
    let mut updates = updates();
    assert!(
        updates.of(&wrap(None, block(call.clone(), None))).is_empty(),
        "what works for nobody is not told"
    );
    assert!(updates.of(&wrap(Some("p"), block(json!({"type": "text", "text": "x"}), None))).is_empty());
    let told = updates.of(&wrap(Some("p"), block(call, None)));
    assert_eq!(told[0]["_meta"]["loci"]["parentToolCallId"], "p");
    assert_eq!(updates.of(&wrap(Some("p"), result("t1", None)))[0]["status"], "completed");
}

#[test]
fn compactions_are_told_to_clients_that_show_them() {
    let events = [EngineEvent::Compacting, EngineEvent::CompactionEnded { failure: Some("no".to_owned()) }];
    assert_eq!(shown(&mut updates(), &events), ["compaction_update in_progress", "compaction_update failed"]);
    let mut plain = Updates::new(ClientCapabilities::default(), "/p".into());
    assert!(shown(&mut plain, &events).is_empty());
}

#[test]
fn task_list_is_a_plan() {
    let task = |subject: &str, status: &str| {
        serde_json::from_value(json!({"id": "1", "subject": subject, "status": status})).unwrap()
    };
    let told = updates()
        .of(&EngineEvent::TasksChanged(vec![task("Read", "completed"), task("Write", "in_progress")]));
    assert_eq!(
        told[0]["entries"],
        json!([
            {"content": "Read", "priority": "medium", "status": "completed"},
            {"content": "Write", "priority": "medium", "status": "in_progress"},
        ])
    );
}
