//! Streams of Responses, and what is made of them.

use expect_test::{Expect, expect};
use loci_core::message::{Block, Message, Role};
use proptest::prelude::*;

use super::*;

fn request() -> Arc<Request> {
    Arc::new(Request::new("p/m", 100, vec![Message::user_text("Hi")]))
}

fn shown(events: &[StreamEvent]) -> String {
    let lines = events.iter().filter_map(|event| match event {
        StreamEvent::BlockDone { block, .. } => Some(block.json().as_str().to_owned()),
        StreamEvent::Ended(ended) => Some(format!(
            "{} in={} cached={} out={}",
            ended.stop_reason.as_deref().unwrap_or_default(),
            ended.usage.input_tokens,
            ended.usage.cache_read_input_tokens,
            ended.usage.output_tokens
        )),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn check(events: &[Value], expected: Expect) {
    let mut decoder = Decoder::new(&request(), None, "p");
    let mut out = VecDeque::new();
    let decoded = events.iter().try_for_each(|event| {
        let data = event.to_string();
        let name = event["type"].as_str().unwrap_or_default().into();
        decoder.decode(&Frame { event: name, data: data.as_bytes() }, &mut out).map(drop)
    });
    let text = match (decoded, decoder.has_ended()) {
        (Err(failure), _) => format!("{:?}: {failure}", failure.kind),
        (Ok(()), false) => decoder.cut("the stream ended early").message,
        (Ok(()), true) => shown(&Vec::from(out)),
    };
    expected.assert_eq(&text);
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "r", "status": "completed",
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3}}})
}

#[test]
fn items_become_blocks_in_their_order() {
    check(
        &[
            json!({"type": "response.created", "response": {"id": "r"}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
            json!({"type": "response.reasoning_summary_part.added", "output_index": 0}),
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm"}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}], "encrypted_content": "E", "status": null}}),
            json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}}),
            json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Look."}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "message", "content": [{"type": "output_text", "text": "Look."}]}}),
            json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call", "call_id": "call_1", "name": "Read", "arguments": ""}}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"a\": 1."}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "50}"}),
            json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"a\": 1.50}"}),
            json!({"type": "response.output_item.added", "output_index": 3, "item": {"type": "function_call", "call_id": "call_2", "name": "Glob", "arguments": ""}}),
            json!({"type": "response.output_item.done", "output_index": 3, "item": {"type": "function_call", "call_id": "call_2", "name": "Glob", "arguments": "{\"b\":2}"}}),
            completed(),
        ],
        expect![[r#"
            {"type":"thinking","thinking":"Hm","loci:wire":{"provider":"p","model":"p/m","raw":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":"E"}}}
            {"type":"text","text":"Look."}
            {"type":"tool_use","id":"call_1","name":"Read","input":{"a": 1.50}}
            {"type":"tool_use","id":"call_2","name":"Glob","input":{"b":2}}
            tool_use in=6 cached=4 out=3"#]],
    );
}

#[test]
fn endings_and_faults_are_sorted() {
    let text = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "x"});
    check(
        &[
            text.clone(),
            json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        ],
        expect![[r#"
            {"type":"text","text":"x"}
            max_tokens in=1 cached=0 out=1"#]],
    );
    check(
        &[json!({"type": "response.refusal.delta", "output_index": 0, "delta": "No."}), completed()],
        expect![[r#"
            {"type":"text","text":"No."}
            refusal in=6 cached=4 out=3"#]],
    );
    check(
        &[
            text.clone(),
            json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Sorry"}}}),
        ],
        expect!["Server: The server failed: Sorry"],
    );
    check(
        &[json!({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down"})],
        expect!["RateLimited: The rate limit is reached: Slow down"],
    );
    check(
        &[
            json!({"type": "error", "error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}}),
        ],
        expect![
            "PromptTooLong: The prompt does not fit the model's window: Your input exceeds the context window of this model. (prompt is too long)"
        ],
    );
    check(&[text], expect!["The connection broke in the middle of the answer: the stream ended early"]);
    check(
        &[json!({"type": "response.completed", "response": {"usage": null}})],
        expect!["Malformed: The answer is empty"],
    );
    check(
        &[
            json!({"type": "response.from_the_future"}),
            json!({"type": "response.output_text.delta", "delta": "x"}),
            completed(),
        ],
        expect![[r#"
        {"type":"text","text":"x"}
        end_turn in=6 cached=4 out=3"#]],
    );
}

#[test]
fn whole_answer_gives_the_blocks_of_a_stream() {
    let body = json!({"id": "r", "status": "completed", "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"},
        {"type": "message", "content": [{"type": "output_text", "text": "x"}]},
        {"type": "function_call", "call_id": "c", "name": "Read", "arguments": "{}"}],
        "usage": {"input_tokens": 3, "output_tokens": 4}});
    let events = read_whole(Decoder::new(&request(), None, "p"), body.to_string().as_bytes()).unwrap();
    expect![[r#"
        {"type":"thinking","thinking":"","loci:wire":{"provider":"p","model":"p/m","raw":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}}}
        {"type":"text","text":"x"}
        {"type":"tool_use","id":"c","name":"Read","input":{}}
        tool_use in=3 cached=0 out=4"#]]
    .assert_eq(&shown(&events));
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn arguments(index: u64, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta})
}

#[test]
fn items_that_come_crosswise_are_told_apart() {
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": arguments});
    // Two calls at once, the second done first.
    check(
        &[
            added(0, call("a", "")),
            added(1, call("b", "")),
            arguments(1, "{\"x\":"),
            arguments(0, "{\"y\":"),
            arguments(1, "1}"),
            done(1, call("b", "{\"x\":1}")),
            arguments(0, "2}"),
            done(0, call("a", "{\"y\":2}")),
            completed(),
        ],
        expect![[r#"
            {"type":"tool_use","id":"a","name":"Read","input":{"y":2}}
            {"type":"tool_use","id":"b","name":"Read","input":{"x":1}}
            tool_use in=6 cached=4 out=3"#]],
    );
    // Every item at the same place, as servers say it that do not count.
    check(
        &[
            added(0, call("a", "")),
            arguments(0, "{\"y\":2}"),
            done(0, call("a", "{\"y\":2}")),
            added(0, call("b", "")),
            done(0, call("b", "{\"x\":1}")),
            completed(),
        ],
        expect![[r#"
            {"type":"tool_use","id":"a","name":"Read","input":{"y":2}}
            {"type":"tool_use","id":"b","name":"Read","input":{"x":1}}
            tool_use in=6 cached=4 out=3"#]],
    );
    // The same id twice: each call gets a result of its own.
    check(
        &[done(0, call("a", "{}")), done(1, call("a", "{\"x\":1}")), completed()],
        expect![[r#"
            {"type":"tool_use","id":"a","name":"Read","input":{}}
            {"type":"tool_use","id":"call_161cb00a09459fdd","name":"Read","input":{"x":1}}
            tool_use in=6 cached=4 out=3"#]],
    );
    // Arguments of a call that nobody has begun.
    check(
        &[arguments(3, "{}"), json!({"type": "response.output_text.delta", "delta": "x"}), completed()],
        expect![[r#"
            {"type":"text","text":"x"}
            end_turn in=6 cached=4 out=3"#]],
    );
}

#[test]
fn unknown_items_are_kept_for_the_server() {
    let search =
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}});
    check(
        &[
            added(0, search.clone()),
            done(0, search),
            json!({"type": "response.output_text.delta", "output_index": 1, "delta": "x"}),
            completed(),
        ],
        expect![[r#"
            {"type":"thinking","thinking":"","loci:wire":{"provider":"p","model":"p/m","raw":{"type":"web_search_call","id":"ws_1","action":{"type":"search"}}}}
            {"type":"text","text":"x"}
            end_turn in=6 cached=4 out=3"#]],
    );
}

#[test]
fn event_that_is_no_json_is_a_failure() {
    let mut decoder = Decoder::new(&request(), None, "p");
    let mut out = VecDeque::new();
    for data in ["{\"type\": \"response.output_text.delta\", \"delta\":", "not json"] {
        let frame = Frame { event: "x".into(), data: data.as_bytes() };
        let failure = decoder.decode(&frame, &mut out).unwrap_err();
        assert_eq!(failure.kind, loci_core::stream::FailureKind::Malformed, "{data}: {failure}");
    }
    let failure = read_whole(Decoder::new(&request(), None, "p"), b"<html>").unwrap_err();
    assert_eq!(failure.kind, loci_core::stream::FailureKind::Malformed, "{failure}");
}

#[test]
fn tokens_of_reasoning_are_counted() {
    let mut decoder = Decoder::new(&request(), None, "p");
    let mut out = VecDeque::new();
    let response = json!({"usage": {"input_tokens": 1, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 7}}});
    decoder.text(0, "x", &mut out);
    decoder.end(&response, &mut out).unwrap();
    let Some(StreamEvent::Ended(ended)) = out.pop_back() else { panic!("{out:?}") };
    assert_eq!(ended.usage.extra["output_tokens_details"]["thinking_tokens"], 7);
}

/// An item of an answer.
fn item() -> impl Strategy<Value = Value> {
    let text = "[^\\x00]{1,20}";
    prop_oneof![
        text.prop_map(|text| json!({"type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}]})),
        ("[a-z]{0,8}", "[A-Za-z0-9+/]{1,20}").prop_map(|(summary, sealed)| {
            let summary = if summary.is_empty() {
                json!([])
            } else {
                json!([{"type": "summary_text", "text": summary}])
            };
            json!({"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": sealed})
        }),
        ("[a-z]{1,8}", text, any::<i64>()).prop_map(|(key, text, number)| {
            json!({"type": "function_call", "name": "Read",
                "arguments": json!({key: [text, number]}).to_string()})
        }),
        "[a-z]{1,8}".prop_map(|id| json!({"type": "custom_tool_call", "id": id})),
    ]
}

/// The events that tell of an item, its text in pieces of so many characters.
fn events_of(index: u64, item: &Value, size: usize) -> Vec<Value> {
    let (kind, text) = match item["type"].as_str() {
        Some("message") => ("response.output_text.delta", item["content"][0]["text"].as_str()),
        Some("function_call") => ("response.function_call_arguments.delta", item["arguments"].as_str()),
        Some("reasoning") => ("response.reasoning_summary_text.delta", item["summary"][0]["text"].as_str()),
        _ => ("", None),
    };
    let mut start = item.clone();
    if start["arguments"].is_string() {
        start["arguments"] = "".into();
    }
    let letters: Vec<char> = text.unwrap_or_default().chars().collect();
    let deltas = letters
        .chunks(size)
        .map(|piece| json!({"type": kind, "output_index": index, "delta": piece.iter().collect::<String>()}));
    std::iter::once(added(index, start)).chain(deltas).chain([done(index, item.clone())]).collect()
}

proptest! {
    /// What a server said goes back to it as it came, however it was cut on the way.
    #[test]
    fn decoded_response_encodes_to_the_same_items(items in proptest::collection::vec(item(), 1..6), size in 1_usize..9) {
        let mut items = items;
        for (idx, item) in items.iter_mut().enumerate().filter(|(_, item)| item["type"] == "function_call") {
            item["call_id"] = format!("call_{idx}").into();
        }
        let mut decoder = Decoder::new(&request(), None, "p");
        let mut out = VecDeque::new();
        let told = items.iter().enumerate().flat_map(|(idx, item)| events_of(idx as u64, item, size));
        for event in told.chain([completed()]) {
            let data = event.to_string();
            let frame = Frame { event: "".into(), data: data.as_bytes() };
            decoder.decode(&frame, &mut out).unwrap();
        }
        let blocks: Vec<Block> = out.into_iter().filter_map(|event| match event {
            StreamEvent::BlockDone { block, .. } => Some(block),
            _ => None,
        }).collect();
        let said = Request::new("p/m", 1, vec![Message::new(Role::Assistant, blocks)]);
        let mut body: Value = serde_json::from_slice(&crate::responses::encode::body(&said, "p")).unwrap();
        for item in body["input"].as_array_mut().unwrap().iter_mut().filter(|item| item["type"] == "message") {
            // Ids of messages are ours.
            prop_assert!(item.as_object_mut().unwrap().shift_remove("id").is_some());
        }
        // Messages that follow each other are one text to us.
        let mut expected: Vec<Value> = Vec::new();
        for item in items {
            match expected.last_mut().filter(|last| last["type"] == "message" && item["type"] == "message") {
                Some(last) => {
                    let text = format!("{}{}", last["content"][0]["text"].as_str().unwrap(), item["content"][0]["text"].as_str().unwrap());
                    last["content"][0]["text"] = text.into();
                }
                None => expected.push(item),
            }
        }
        prop_assert_eq!(&body["input"], &Value::Array(expected));
    }
}

/// Streams of which an event is no JSON for a strict reader: text was cut by its UTF-16 units.
#[test]
fn character_that_is_cut_in_two_is_joined() {
    let mut decoder = Decoder::new(&request(), None, "p");
    let mut out = VecDeque::new();
    for data in [
        r#"{"type":"response.created","response":{"id":"r"}}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"a\ud83d"}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"\ude00b"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"a\ud83d"}]}}"#,
        &completed().to_string(),
    ] {
        decoder.decode(&Frame { event: "".into(), data: data.as_bytes() }, &mut out).unwrap();
    }
    expect![[r#"
        {"type":"text","text":"a😀b"}
        end_turn in=6 cached=4 out=3"#]]
    .assert_eq(&shown(&Vec::from(out)));
}

#[test]
fn failure_of_the_request_is_final() {
    for (code, is_final) in [
        ("invalid_prompt", true),
        ("invalid_request_error", true),
        ("image_too_large", true),
        ("unsupported_image_media_type", true),
        ("context_length_exceeded", true),
        ("server_error", false),
        ("rate_limit_exceeded", false),
        ("vector_store_timeout", false),
    ] {
        let error = json!({"code": code, "message": "It went wrong."});
        for event in [
            json!({"type": "response.failed", "response": {"id": "r", "error": error}}),
            json!({"type": "error", "code": code, "message": "It went wrong."}),
        ] {
            let mut decoder = Decoder::new(&request(), None, "p");
            let data = event.to_string();
            let frame = Frame { event: "".into(), data: data.as_bytes() };
            let failure = decoder.decode(&frame, &mut VecDeque::new()).unwrap_err();
            assert_eq!(!failure.is_retryable(), is_final, "{code}: {failure:?}");
            assert!(failure.message.contains("It went wrong."), "{failure:?}");
        }
    }
}
