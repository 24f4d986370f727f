//! Reading recordings: small ones, each with one thing to notice.

use loci_core::entry::Attachment;
use serde_json::json;

use super::*;

fn entry(value: Value) -> Arc<Entry> {
    Arc::new(Entry::parse(value.to_string()).unwrap())
}

fn user(content: Value) -> Arc<Entry> {
    entry(json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": content}}))
}

fn meta(text: &str) -> Arc<Entry> {
    entry(json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": text}}))
}

fn assistant_entry(id: &str, block: Value, stop: Value) -> Arc<Entry> {
    entry(json!({"type": "assistant", "uuid": "a", "message": {"id": id, "model": "m", "role": "assistant",
        "content": [block], "stop_reason": stop, "usage": {"input_tokens": 3, "output_tokens": 4}}}))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}})
}

fn result(id: &str) -> Value {
    json!({"tool_use_id": id, "type": "tool_result", "content": format!("of {id}")})
}

fn note(kind: &str) -> Arc<Entry> {
    entry(json!({"type": "attachment", "attachment": {"type": kind}}))
}

fn failure() -> Arc<Entry> {
    entry(json!({"type": "assistant", "isApiErrorMessage": true, "message": {"model": "<synthetic>",
        "content": [text("API Error: 400 no")]}}))
}

fn parts(path: &[Arc<Entry>]) -> Vec<Part> {
    path.iter().map(|entry| Part::of(entry)).collect()
}

#[test]
fn entries_have_their_parts() {
    let system = |subtype: &str| entry(json!({"type": "system", "subtype": subtype, "content": "x"}));
    let synthetic = entry(json!({"type": "assistant", "message": {"model": "<synthetic>", "content": []}}));
    let summary = entry(json!({"type": "user", "isCompactSummary": true, "message": {"content": "s"}}));
    for (entry, expected) in [
        (user(json!("hi")), Part::Words),
        (meta("go on"), Part::Nudge),
        (user(json!([result("t")])), Part::Results),
        (user(json!([result("t"), text("and words")])), Part::Foreign),
        (summary, Part::Foreign),
        (assistant_entry("m1", text("yes"), json!(null)), Part::Answer),
        (synthetic, Part::Foreign),
        (failure(), Part::Failure),
        (note("date_change"), Part::Note),
        (system("local_command"), Part::Foreign),
        (system("compact_boundary"), Part::Foreign),
        (system("turn_duration"), Part::Unsent),
    ] {
        assert_eq!(Part::of(&entry), expected, "{}", entry.line());
    }
}

#[test]
fn an_answer_is_read_with_its_results_in_their_order() {
    let path = [
        assistant_entry("m1", text("both"), json!(null)),
        assistant_entry("m1", call("t1"), json!(null)),
        assistant_entry("m1", call("t2"), json!("tool_use")),
        user(json!([result("t2")])),
        note("nested_memory"),
        user(json!([result("t1")])),
        assistant_entry("m2", text("done"), json!("end_turn")),
    ];
    let answer = Answer::read(&path, &parts(&path)).unwrap();
    let order: Vec<&str> = answer.results.iter().map(|result| result.call.as_str()).collect();
    assert_eq!(order, ["t2", "t1"]);
    assert_eq!(answer.results[0].outcome.attachments.len(), 1);
    assert_eq!((answer.n_entries, answer.is_open, answer.leads_to_nudge), (6, false, false));
    let Played::Response(response) = answer.played else { panic!("no response") };
    let PlayedResponse { started, blocks, ended } = *response;
    assert_eq!((started.message_id.as_str(), started.model.as_str(), blocks.len()), ("m1", "m", 3));
    assert_eq!((ended.stop_reason.as_deref(), ended.usage.output_tokens), (Some("tool_use"), 4));
}

#[test]
fn how_an_answer_ends_is_noticed() {
    for (path, expected) in [
        // Entries taken, a call left open, a word of the engine's own to follow.
        (vec![assistant_entry("m", text("x"), json!("end_turn")), user(json!("next"))], (1, false, false)),
        (vec![assistant_entry("m", text("x"), json!("max_tokens")), meta("go on")], (1, false, true)),
        (vec![assistant_entry("m", text(" "), json!("end_turn"))], (1, false, true)),
        (vec![assistant_entry("m", call("t"), json!("tool_use"))], (1, true, false)),
        (
            vec![assistant_entry("m", call("t"), json!(null)), failure(), user(json!([result("t")]))],
            (3, false, false),
        ),
        (
            vec![assistant_entry("m", call("t"), json!(null)), user(json!([result("t")])), failure()],
            (2, false, false),
        ),
        (vec![failure(), user(json!("again"))], (1, false, false)),
    ] {
        let answer = Answer::read(&path, &parts(&path)).unwrap();
        assert_eq!((answer.n_entries, answer.is_open, answer.leads_to_nudge), expected, "{path:?}");
    }
    assert_eq!(Answer::read(&[], &[]), None);
}

#[test]
fn a_turn_begins_with_what_gives_the_same_message() {
    let opening = |path: &[Arc<Entry>]| Opening::read(path, &parts(path));
    assert_eq!(opening(&[]), Opening::GoOn);
    assert_eq!(opening(&[user(json!("hi"))]), Opening::Prompt(Prompt::text("hi")));
    let Opening::Prompt(prompt) = opening(&[note("a"), user(json!("one")), note("b"), meta("two")]) else {
        panic!("no prompt");
    };
    assert_eq!(prompt.content, Content::Blocks(vec![Block::new_text("one"), Block::new_text("two")]));
    assert_eq!(prompt.attachments, [r#"{"type":"a"}"#, r#"{"type":"b"}"#].map(Attachment::recorded));
    let synthetic = entry(json!({"type": "assistant", "message": {"model": "<synthetic>", "content": []}}));
    for path in [
        vec![note("alone")],
        vec![user(json!("/compact now"))],
        vec![user(json!(" "))],
        vec![meta("x"), synthetic, user(json!("hi"))],
        vec![user(json!([result("t")])), user(json!("hi"))],
    ] {
        assert_eq!(opening(&path), Opening::TakeOver, "{path:?}");
    }
}

#[test]
fn only_the_order_of_keys_is_changed() {
    let theirs = user(json!([{"type": "tool_result", "content": "c", "is_error": true, "tool_use_id": "t"}]));
    let ours = in_our_order(&theirs).unwrap();
    assert_eq!(
        ours.blocks()[0].json().as_str(),
        r#"{"tool_use_id":"t","type":"tool_result","content":"c","is_error":true}"#
    );
    assert_eq!(ours.head().uuid, theirs.head().uuid);
    assert_eq!(in_our_order(&user(json!([result("t")]))), None);
    let more = json!({"type": "tool_result", "content": "c", "tool_use_id": "t", "cache_control": {}});
    assert_eq!(in_our_order(&user(json!([more]))), None);
}
