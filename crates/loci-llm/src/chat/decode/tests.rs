//! Streams of many servers, and what is made of them.

use expect_test::{Expect, expect};
use loci_core::message::Message;
use loci_core::stream::Delta;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::framing::FrameReader;
use loci_http::SseReader;

fn request() -> Arc<Request> {
    Arc::new(Request::new("p/m", 100, vec![Message::user_text("Hi")]))
}

/// Decodes a stream as an exchange does.
fn events_of(
    stream: &str,
    request: &Arc<Request>,
    splits_thinking: bool,
) -> Result<Vec<StreamEvent>, Failure> {
    let mut decoder = Decoder::new(request, None, "p", splits_thinking);
    let mut frames = SseReader::default();
    let mut out = VecDeque::new();
    frames.push(stream.as_bytes());
    while !decoder.has_ended() {
        let Some(frame) = frames.next_frame().unwrap() else { break };
        decoder.decode(&frame, &mut out)?;
    }
    if !decoder.has_ended()
        && let Some(frame) = frames.last_frame()
    {
        decoder.decode(&frame, &mut out)?;
    }
    decoder.end_of_stream(&mut out)?;
    if decoder.has_ended() { Ok(out.into()) } else { Err(decoder.cut("the stream ended early")) }
}

/// Shows the blocks and the end of an answer.
fn shown(events: &[StreamEvent]) -> String {
    let lines = events.iter().filter_map(|event| match event {
        StreamEvent::BlockDone { block, .. } => Some(block.json().as_str().to_owned()),
        StreamEvent::Ended(ended) => Some(format!(
            "{} in={} cached={} out={}{}",
            ended.stop_reason.as_deref().unwrap_or_default(),
            ended.usage.input_tokens,
            ended.usage.cache_read_input_tokens,
            ended.usage.output_tokens,
            if ended.usage.extra.contains_key("estimated") { " estimated" } else { "" }
        )),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn stream(chunks: &[Value]) -> String {
    let lines: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    lines.join("") + "data: [DONE]\n\n"
}

fn delta(delta: Value) -> Value {
    json!({"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(index: Value, id: Value, name: Value, arguments: &str) -> Value {
    delta(json!({"tool_calls": [{"index": index, "id": id, "type": "function",
        "function": {"name": name, "arguments": arguments}}]}))
}

fn check_stream(stream: &str, expected: Expect) {
    let text = match events_of(stream, &request(), false) {
        Ok(events) => {
            check_order(&events);
            shown(&events)
        }
        Err(failure) => format!("{:?}: {failure}", failure.kind),
    };
    expected.assert_eq(&text);
}

fn check(chunks: &[Value], expected: Expect) {
    check_stream(&stream(chunks), expected);
}

/// Blocks open and close one after the other, and their deltas say what they hold.
fn check_order(events: &[StreamEvent]) {
    let mut open = None;
    let mut grown = String::new();
    assert!(matches!(events.first(), Some(StreamEvent::Started(_))));
    assert!(matches!(events.last(), Some(StreamEvent::Ended(_))));
    for event in events {
        match event {
            StreamEvent::BlockStarted { index, .. } => {
                assert_eq!(open.replace(*index), None);
                grown.clear();
            }
            StreamEvent::Delta { index, delta } => {
                assert_eq!(open, Some(*index));
                let (Delta::Text(more) | Delta::Thinking(more) | Delta::InputJson(more)) = delta;
                grown.push_str(more);
            }
            StreamEvent::BlockDone { index, block } => {
                assert_eq!(open.take(), Some(*index));
                let value = block.to_value();
                let said = value["text"].as_str().or_else(|| value["thinking"].as_str());
                if let Some(said) = said {
                    assert_eq!(said, grown);
                }
            }
            StreamEvent::Wire(_) | StreamEvent::Started(_) | StreamEvent::Ended(_) => {}
        }
    }
}

#[test]
fn text_and_usage_are_read() {
    check(
        &[
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"content": "Hel"})),
            delta(json!({"content": "lo"})),
            finish("stop"),
            json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}}),
        ],
        expect![[r#"
            {"type":"text","text":"Hello"}
            end_turn in=6 cached=4 out=2"#]],
    );
}

#[test]
fn arguments_may_be_split_anywhere() {
    check(
        &[
            call(json!(0), json!("call_1"), json!("Read"), ""),
            call(json!(0), Value::Null, Value::Null, "{\"a\": \"x\\"),
            call(json!(0), Value::Null, Value::Null, "ny\", \"n\": 1.5"),
            call(json!(0), Value::Null, Value::Null, "0}"),
            finish("tool_calls"),
        ],
        expect![[r#"
            {"type":"tool_use","id":"call_1","name":"Read","input":{"a": "x\ny", "n": 1.50}}
            tool_use in=6 cached=0 out=6 estimated"#]],
    );
}

#[test]
fn calls_of_careless_servers_are_told_apart() {
    let expected = expect![[r#"
        {"type":"tool_use","id":"call_1","name":"Read","input":{"a":1}}
        {"type":"tool_use","id":"call_2","name":"Glob","input":{"b":2}}
        tool_use in=1 cached=0 out=1"#]];
    let end =
        [finish("tool_calls"), json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})];
    let cases: [Vec<Value>; 6] = [
        // Interleaved.
        vec![
            call(json!(0), json!("call_1"), json!("Read"), "{\"a\""),
            call(json!(1), json!("call_2"), json!("Glob"), "{\"b\""),
            call(json!(0), Value::Null, Value::Null, ":1}"),
            call(json!(1), Value::Null, Value::Null, ":2}"),
        ],
        // The index is always 0.
        vec![
            call(json!(0), json!("call_1"), json!("Read"), "{\"a\":1}"),
            call(json!(0), json!("call_2"), json!("Glob"), "{\"b\":"),
            call(json!(0), Value::Null, Value::Null, "2}"),
        ],
        // No index.
        vec![
            call(Value::Null, json!("call_1"), json!("Read"), "{\"a\":"),
            call(Value::Null, Value::Null, Value::Null, "1}"),
            call(Value::Null, json!("call_2"), json!("Glob"), "{\"b\":2}"),
        ],
        // Name and id each time.
        vec![
            call(json!(0), json!("call_1"), json!("Read"), "{\"a\":"),
            call(json!(0), json!("call_1"), json!("Read"), "1}"),
            call(json!(1), json!("call_2"), json!("Glob"), "{\"b\":2}"),
        ],
        // Both in one delta.
        vec![delta(json!({"content": null, "tool_calls": [
            {"index": 0, "id": "call_1", "function": {"name": "Read", "arguments": "{\"a\":1}"}},
            {"index": 1, "id": "call_2", "function": {"name": "Glob", "arguments": {"b": 2}}}]}))],
        // The end says `stop`.
        vec![
            call(json!(0), json!("call_1"), json!("Read"), "{\"a\":1}"),
            call(json!(1), json!("call_2"), json!("Glob"), "{\"b\":2}"),
            finish("stop"),
        ],
    ];
    for (n, case) in cases.into_iter().enumerate() {
        let chunks: Vec<Value> = case.into_iter().chain(end.clone()).collect();
        let events = events_of(&stream(&chunks), &request(), false).unwrap();
        check_order(&events);
        let text = shown(&events).replace("{\"b\": 2}", "{\"b\":2}");
        assert_eq!(text, expected.data().trim_indent(), "case {n}");
    }
}

/// Takes the indentation of a table off.
trait TrimIndent {
    fn trim_indent(&self) -> String;
}

impl TrimIndent for str {
    fn trim_indent(&self) -> String {
        self.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn ids_of_calls_are_unique_in_the_conversation() {
    let earlier = r#"{"type":"tool_use","id":"call_0","name":"Read","input":{}}"#;
    let earlier =
        Message::new(loci_core::message::Role::Assistant, vec![serde_json::from_str(earlier).unwrap()]);
    let request = Arc::new(Request::new("p/m", 100, vec![Message::user_text("Hi"), earlier]));
    let chunks = [
        call(json!(0), json!("call_0"), json!("Read"), "{}"),
        call(json!(1), json!("same"), json!("Read"), "{}"),
        call(json!(2), json!("same"), json!("Read"), "{}"),
        call(json!(3), Value::Null, json!("Read"), "{}"),
        call(json!(4), json!("bad id/with odd letters"), json!("Read"), "{}"),
        finish("tool_calls"),
    ];
    let events = events_of(&stream(&chunks), &request, false).unwrap();
    let ids: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::BlockDone { block, .. } => Some(block.tool_use()?.id.to_string()),
            _ => None,
        })
        .collect();
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (5, 5), "{ids:?}");
    assert!(!ids.contains(&"call_0".to_owned()) && ids.contains(&"same".to_owned()), "{ids:?}");
    assert!(ids.iter().all(|id| crate::wire_names::is_call_id(id)), "{ids:?}");
}

#[test]
fn endings_are_sorted() {
    let text = |reason: &str| [delta(json!({"content": "x"})), finish(reason)];
    check(
        &text("length"),
        expect![[r#"
        {"type":"text","text":"x"}
        max_tokens in=6 cached=0 out=1 estimated"#]],
    );
    check(
        &text("content_filter"),
        expect![[r#"
        {"type":"text","text":"x"}
        refusal in=6 cached=0 out=1 estimated"#]],
    );
    check(
        &[delta(json!({"refusal": "No."})), finish("stop")],
        expect![[r#"
        {"type":"text","text":"No."}
        refusal in=6 cached=0 out=1 estimated"#]],
    );
    check(
        &text("tool_calls"),
        expect![[r#"
        {"type":"text","text":"x"}
        end_turn in=6 cached=0 out=1 estimated"#]],
    );
}

#[test]
fn spellings_of_the_stream_are_survived() {
    let (a, end) = (delta(json!({"content": "a"})), finish("stop"));
    check_stream(
        &format!(": keep-alive\n\ndata:{a}\n\n: OPENROUTER PROCESSING\n\ndata:{end}\n\n"),
        expect![[r#"
        {"type":"text","text":"a"}
        end_turn in=6 cached=0 out=1 estimated"#]],
    );
    check_stream(
        &format!("data: {a}\r\n\r\ndata: {end}\r\n"),
        expect![[r#"
        {"type":"text","text":"a"}
        end_turn in=6 cached=0 out=1 estimated"#]],
    );
    check_stream(
        &format!("data: {a}\n\ndata: [DONE]\n\n"),
        expect![[r#"
        {"type":"text","text":"a"}
        end_turn in=6 cached=0 out=1 estimated"#]],
    );
    check_stream(
        &format!("data: {}\n\ndata: {end}\n\n", r#"{"choices":[{"delta":{"content":"a\u0000\ud83e"}}]}"#),
        expect![[r#"
            {"type":"text","text":"a�"}
            end_turn in=6 cached=0 out=1 estimated"#]],
    );
    check_stream(
        &format!(
            "data: {}\n\ndata: {end}\n\n",
            r#"{"object":"future","choices":[{"delta":{"content":[{"type":"text","text":"a"}],"new":1}}]}"#
        ),
        expect![[r#"
            {"type":"text","text":"a"}
            end_turn in=6 cached=0 out=1 estimated"#]],
    );
}

#[test]
fn faults_of_the_stream_are_failures() {
    let a = delta(json!({"content": "a"}));
    check_stream(
        &format!("data: {a}\n\n"),
        expect!["Cut: The connection broke in the middle of the answer: the stream ended early"],
    );
    check_stream("", expect!["Cut: The connection broke before the answer began: the stream ended early"]);
    check_stream("data: [DONE]\n\n", expect!["Malformed: The answer is empty"]);
    check_stream(
        &format!("data: {}\n\n", json!({"choices": []})),
        expect!["Cut: The connection broke before the answer began: the stream ended early"],
    );
    check_stream(
        "data: {\"choices\":\n\n",
        expect![
            "Malformed: The answer's stream is broken: a chunk is not the JSON we expect (EOF while parsing a value at line 1 column 11)"
        ],
    );
    check_stream(
        &format!(
            "data: {a}\n\ndata: {}\n\n",
            json!({"error": {"code": 502, "message": "Provider returned error"}})
        ),
        expect!["Server: The server failed: Provider returned error"],
    );
    check_stream(
        &format!(
            "data: {}\n\n",
            json!({"error": {"message": "maximum context length is 10 tokens, you requested 12 tokens", "type": "BadRequestError"}})
        ),
        expect![
            "PromptTooLong: The prompt does not fit the model's window: maximum context length is 10 tokens, you requested 12 tokens (prompt is too long: 12 tokens > 10 maximum)"
        ],
    );
    check(
        &[call(json!(0), json!("call_1"), Value::Null, "{}"), finish("tool_calls")],
        expect!["Malformed: The answer's stream is broken: a call names no tool"],
    );
}

#[test]
fn arguments_that_are_no_json_are_kept_as_text() {
    check(
        &[call(json!(0), json!("c"), json!("Read"), "{\"a\": "), finish("tool_calls")],
        expect![[r#"
            {"type":"tool_use","id":"c","name":"Read","input":{"__unparsed":"{\"a\": "}}
            tool_use in=6 cached=0 out=1 estimated"#]],
    );
}

#[test]
fn reasoning_is_shown_and_kept() {
    check(
        &[
            delta(json!({"reasoning_content": "Hm"})),
            delta(json!({"reasoning_content": "m", "content": ""})),
            delta(json!({"content": "a"})),
            finish("stop"),
        ],
        expect![[r#"
            {"type":"thinking","thinking":"Hmm","loci:wire":{"provider":"p","model":"p/m","raw":{"reasoning_content":"Hmm"}}}
            {"type":"text","text":"a"}
            end_turn in=6 cached=0 out=1 estimated"#]],
    );
    check(
        &[
            delta(
                json!({"reasoning": "Hm", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Hm"}]}),
            ),
            call(json!(0), json!("c"), json!("Read"), "{}"),
            delta(json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "xyz"}]})),
            finish("tool_calls"),
        ],
        expect![[r#"
            {"type":"thinking","thinking":"Hm","loci:wire":{"provider":"p","model":"p/m","raw":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"Hm"}]}}}
            {"type":"tool_use","id":"c","name":"Read","input":{}}
            {"type":"thinking","thinking":"","loci:wire":{"provider":"p","model":"p/m","raw":{"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"xyz"}]}}}
            tool_use in=6 cached=0 out=1 estimated"#]],
    );
}

/// Google's models refuse a call that comes back without its signature.
#[test]
fn signature_beside_a_call_is_kept_whenever_it_comes() {
    let signed = |index: u64, fields: Value| {
        let mut call = json!({"index": index});
        call.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        delta(json!({"tool_calls": [call]}))
    };
    let extra = |word: &str| json!({"google": {"thought_signature": word}});
    check(
        &[
            signed(
                0,
                json!({"id": "a", "function": {"name": "Read", "arguments": "{}"}, "extra_content": extra("one")}),
            ),
            signed(
                1,
                json!({"id": "b", "function": {"name": "Read", "arguments": "{"}, "extra_content": null}),
            ),
            signed(1, json!({"function": {"arguments": "}"}, "extra_content": extra("two")})),
            signed(2, json!({"id": "c", "function": {"name": "Read"}, "note": "not for us"})),
            finish("tool_calls"),
        ],
        expect![[r#"
            {"type":"tool_use","id":"a","name":"Read","input":{},"loci:wire":{"provider":"p","model":"p/m","raw":{"extra_content":{"google":{"thought_signature":"one"}}}}}
            {"type":"tool_use","id":"b","name":"Read","input":{},"loci:wire":{"provider":"p","model":"p/m","raw":{"extra_content":{"google":{"thought_signature":"two"}}}}}
            {"type":"tool_use","id":"c","name":"Read","input":{}}
            tool_use in=6 cached=0 out=1 estimated"#]],
    );
}

#[test]
fn think_tags_are_split_for_models_that_are_said_to_write_them() {
    let chunks = stream(&[
        delta(json!({"content": "<think>a</th"})),
        delta(json!({"content": "ink>b"})),
        finish("stop"),
    ]);
    let split = shown(&events_of(&chunks, &request(), true).unwrap());
    assert!(
        split.starts_with("{\"type\":\"thinking\",\"thinking\":\"a\"") && split.contains("\"text\":\"b\""),
        "{split}"
    );
    let whole = shown(&events_of(&chunks, &request(), false).unwrap());
    assert!(whole.starts_with("{\"type\":\"text\",\"text\":\"<think>a</think>b\"}"), "{whole}");
}

#[test]
fn whole_answer_gives_the_blocks_of_a_stream() {
    let body = json!({"id": "c1", "choices": [{"message": {"role": "assistant", "content": "x", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    let decoder = || Decoder::new(&request(), None, "p", false);
    let events = read_whole(decoder(), body.to_string().as_bytes()).unwrap();
    expect![[r#"
        {"type":"text","text":"x"}
        {"type":"tool_use","id":"c","name":"Read","input":{}}
        tool_use in=3 cached=0 out=4"#]]
    .assert_eq(&shown(&events));
    let refused = |body: &str| read_whole(decoder(), body.as_bytes()).unwrap_err().message;
    assert_eq!(refused("<html>"), "The answer is not JSON: `<html>`");
    assert_eq!(refused(r#"{"error": {"message": "no"}}"#), "The server failed: no");
}

#[test]
fn client_events_of_the_messages_api_are_made() {
    let request = Request { wants_wire_events: true, ..Request::clone(&request()) };
    let chunks = stream(&[delta(json!({"content": "a"})), finish("stop")]);
    let events = events_of(&chunks, &Arc::new(request), false).unwrap();
    let kinds: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::Wire(json) => {
                Some(json.read::<Value>().unwrap()["type"].as_str().unwrap().to_owned())
            }
            _ => None,
        })
        .collect();
    let expected =
        "message_start content_block_start content_block_delta content_block_stop message_delta message_stop";
    assert_eq!(kinds.join(" "), expected);
}

proptest! {
    /// However a server cuts text and arguments, nothing of them is lost, and the blocks come in order.
    #[test]
    fn stream_cut_anywhere_decodes_the_same(
        text in "\\PC{0,30}",
        arguments in proptest::collection::vec("[a-z\"\\\\é🦀\n]{0,20}", 0..4),
        cuts in proptest::collection::vec(1usize..5, 1..20),
        interleaves: bool,
    ) {
        let mut chunks: Vec<Value> = cut(&text, &cuts).into_iter().map(|piece| delta(json!({"content": piece}))).collect();
        let objects: Vec<String> = arguments.iter().map(|it| json!({"a": it}).to_string()).collect();
        let mut pieces: Vec<(usize, usize, Value)> = Vec::new();
        for (idx, object) in objects.iter().enumerate() {
            for (n, piece) in cut(object, &cuts).into_iter().enumerate() {
                let (id, name) = if n == 0 { (json!(format!("call_{idx}")), json!("Read")) } else { (Value::Null, Value::Null) };
                pieces.push((n, idx, call(json!(idx), id, name, &piece)));
            }
        }
        if interleaves {
            pieces.sort_by_key(|(n, idx, _)| (*n, *idx));
        }
        chunks.extend(pieces.into_iter().map(|(_, _, chunk)| chunk));
        chunks.push(finish("stop"));
        prop_assume!(!text.is_empty() || !objects.is_empty());
        let events = events_of(&stream(&chunks), &request(), false).unwrap();
        check_order(&events);
        let blocks: Vec<Value> = events.iter().filter_map(|event| match event {
            StreamEvent::BlockDone { block, .. } => Some(block.to_value()),
            _ => None,
        }).collect();
        let said: String = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        prop_assert_eq!(said, text.replace('\0', ""));
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        let inputs: Vec<String> = calls.map(|block| block["input"]["a"].as_str().unwrap().to_owned()).collect();
        prop_assert_eq!(inputs, arguments);
    }
}

/// An answer: reasoning in one of its spellings, text, and calls with what stands beside them.
fn answer() -> impl Strategy<Value = Value> {
    let reasoning = prop_oneof![
        Just(json!({})),
        "[a-z ]{1,12}".prop_map(|text| json!({"reasoning_content": text})),
        "[a-z ]{1,12}".prop_map(|text| json!({"reasoning": text})),
        ("[a-z ]{1,12}", "[A-Za-z0-9+/]{4,12}").prop_map(|(text, sealed)| json!({"reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": text, "signature": sealed},
            {"type": "reasoning.encrypted", "index": 1, "data": sealed},
        ]})),
    ];
    let call = ("[a-z]{1,8}", "[^\\x00]{0,12}", any::<i64>(), proptest::option::of("[A-Za-z0-9+/=]{4,16}"));
    (reasoning, "[^\\x00]{0,12}", proptest::collection::vec(call, 0..4)).prop_map(
        |(mut message, text, calls)| {
            let calls: Vec<Value> = calls
                .into_iter()
                .enumerate()
                .map(|(idx, (key, text, number, signature))| {
                    let mut call = json!({"id": format!("call_{idx}"), "type": "function", "function": {
                    "name": "Read", "arguments": json!({key: [text, number]}).to_string()}});
                    if let Some(signature) = signature {
                        call["extra_content"] = json!({"google": {"thought_signature": signature}});
                    }
                    call
                })
                .collect();
            message["content"] = if text.is_empty() { Value::Null } else { text.into() };
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            message
        },
    )
}

/// The chunks that tell of an answer, its texts in pieces.
fn chunks_of(answer: &Value, cuts: &[usize]) -> Vec<Value> {
    let mut chunks = Vec::new();
    for field in ["reasoning_content", "reasoning", "content"] {
        let pieces = cut(answer[field].as_str().unwrap_or_default(), cuts);
        chunks.extend(pieces.into_iter().map(|piece| delta(json!({field: piece}))));
        if field == "reasoning" && answer["reasoning_details"].is_array() {
            chunks.push(delta(json!({"reasoning_details": answer["reasoning_details"]})));
        }
    }
    for (idx, call) in answer["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        for (n, piece) in cut(arguments, cuts).into_iter().enumerate() {
            let mut part = json!({"index": idx, "function": {"arguments": piece}});
            if n == 0 {
                part["id"] = call["id"].clone();
                part["function"]["name"] = "Read".into();
                part["extra_content"] = call["extra_content"].clone();
            }
            chunks.push(delta(json!({"tool_calls": [part]})));
        }
    }
    chunks.push(finish("stop"));
    chunks
}

proptest! {
    /// What a server said goes back to it as it said it, and to another model without what is nobody else's business.
    #[test]
    fn what_was_decoded_is_encoded_again(
        answer in answer(),
        cuts in proptest::collection::vec(1_usize..6, 1..10),
    ) {
        prop_assume!(!answer["content"].is_null() || answer["tool_calls"].is_array());
        let events = events_of(&stream(&chunks_of(&answer, &cuts)), &request(), false).unwrap();
        let blocks: Vec<_> = events.into_iter().filter_map(|event| match event {
            StreamEvent::BlockDone { block, .. } => Some(block),
            _ => None,
        }).collect();
        let sent = |model: &str, server: crate::chat::ChatServer| -> Value {
            let said = Message::new(loci_core::message::Role::Assistant, blocks.clone());
            let body = crate::chat::encode::body(
                &Request::new(model, 1, vec![said]),
                "p",
                server,
                &crate::chat::pdf_text::PdfTextCache::default(),
            );
            serde_json::from_slice::<Value>(&body).unwrap()["messages"][0].clone()
        };
        let mut expected = answer;
        expected["role"] = "assistant".into();
        prop_assert_eq!(&sent("p/m", crate::chat::ChatServer::Other), &expected);
        for field in ["reasoning_content", "reasoning", "reasoning_details"] {
            expected.as_object_mut().unwrap().shift_remove(field);
        }
        for call in expected["tool_calls"].as_array_mut().into_iter().flatten() {
            call.as_object_mut().unwrap().shift_remove("extra_content");
        }
        if expected["tool_calls"].is_null() {
            expected.as_object_mut().unwrap().shift_remove("tool_calls");
        }
        prop_assert_eq!(&sent("p/other", crate::chat::ChatServer::Other), &expected);
        // Google's models want a signature with every call, and take a word for those that others made.
        for call in sent("p/other", crate::chat::ChatServer::Google)["tool_calls"].as_array().into_iter().flatten() {
            let signature = &call["extra_content"]["google"]["thought_signature"];
            prop_assert_eq!(signature, "skip_thought_signature_validator");
        }
    }
}

fn cut(text: &str, cuts: &[usize]) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut rest = chars.as_slice();
    let mut pieces = Vec::new();
    for n in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, tail) = rest.split_at((*n).min(rest.len()));
        pieces.push(piece.iter().collect());
        rest = tail;
    }
    pieces
}

/// Streams of which a chunk is no JSON for a strict reader: text was cut by its UTF-16 units.
#[test]
fn character_that_is_cut_in_two_is_joined() {
    check_stream(
        concat!(
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\ude00b\\ud83d\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n",
            "data: [DONE]\n\n",
        ),
        expect![[r#"
            {"type":"text","text":"a😀b�"}
            end_turn in=1 cached=0 out=1"#]],
    );
}
