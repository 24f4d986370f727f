//! Streams as data: wire events in, one line an event out.

use expect_test::{Expect, expect};
use loci_core::stream::Delta;
use serde_json::json;

use super::*;
use crate::framing::FrameReader;
use loci_http::SseReader;

/// Renders an event as one line.
pub(in crate::anthropic) fn show(event: &StreamEvent) -> String {
    let tokens = |usage: &Usage| format!("in={} out={}", usage.input_tokens, usage.output_tokens);
    let line = match event {
        StreamEvent::Wire(json) => format!("wire {json:?}"),
        StreamEvent::Started(started) => {
            let request_id = started.request_id.as_ref().map_or("", RequestId::as_str);
            format!(
                "started {} {} {} {request_id}",
                started.message_id,
                started.model,
                tokens(&started.usage)
            )
        }
        StreamEvent::BlockStarted { index, kind, name } => {
            format!("{index} start {kind} {}", name.as_deref().unwrap_or_default())
        }
        StreamEvent::Delta { index, delta } => match delta {
            Delta::Text(text) => format!("{index} + text {text}"),
            Delta::Thinking(text) => format!("{index} + thinking {text}"),
            Delta::InputJson(text) => format!("{index} + input {text}"),
        },
        StreamEvent::BlockDone { index, block } => format!("{index} = {}", block.json().as_str()),
        StreamEvent::Ended(ended) => {
            let stop = ended.stop_reason.as_deref().unwrap_or("-");
            format!(
                "ended {stop} {} {}",
                tokens(&ended.usage),
                ended.stop_sequence.as_deref().unwrap_or_default()
            )
        }
    };
    line.trim_end().to_owned()
}

fn decode(wants_wire_events: bool, stream: &str) -> String {
    let mut reader = SseReader::default();
    reader.push(stream.as_bytes());
    let mut decoder = Decoder::new(wants_wire_events, Some("req_1".into()));
    let (mut events, mut lines) = (VecDeque::new(), Vec::new());
    let mut failure = None;
    while let Some(frame) = reader.next_frame().unwrap() {
        match decoder.decode(&frame, &mut events) {
            Ok(Pulse::Progress) => {}
            Ok(Pulse::Ping) => lines.push("ping".to_owned()),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        lines.extend(events.drain(..).map(|event| show(&event)));
    }
    if failure.is_none() && !decoder.has_ended() {
        failure = Some(decoder.cut("eof"));
    }
    lines.extend(failure.map(|failure| format!("{:?}: {failure}", failure.kind)));
    lines.join("\n")
}

fn stream_of(events: &[Value]) -> String {
    let frame =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("x"));
    events.iter().map(frame).collect()
}

fn check(events: &[Value], expected: Expect) {
    expected.assert_eq(&decode(false, &stream_of(events)));
}

fn message_start() -> Value {
    json!({"type":"message_start","message":{"id":"msg_1","model":"m","content":[],"usage":{"input_tokens":10,"output_tokens":1}}})
}

fn block_start(index: usize, block: Value) -> Value {
    json!({"type":"content_block_start","index":index,"content_block":block})
}

fn delta(index: usize, delta: Value) -> Value {
    json!({"type":"content_block_delta","index":index,"delta":delta})
}

fn block_stop(index: usize) -> Value {
    json!({"type":"content_block_stop","index":index})
}

fn message_end(stop_reason: &str) -> [Value; 2] {
    [
        json!({"type":"message_delta","delta":{"stop_reason":stop_reason,"stop_sequence":null},"usage":{"output_tokens":9,"input_tokens":null}}),
        json!({"type":"message_stop"}),
    ]
}

fn whole_stream(middle: &[Value]) -> Vec<Value> {
    [&[message_start()][..], middle, &message_end("end_turn")[..]].concat()
}

#[test]
fn whole_stream_is_decoded_to_events() {
    check(
        &whole_stream(&[
            json!({"type":"ping"}),
            block_start(0, json!({"type":"thinking","thinking":"","signature":""})),
            delta(0, json!({"type":"thinking_delta","thinking":"Hm"})),
            delta(0, json!({"type":"signature_delta","signature":"sig"})),
            block_stop(0),
            block_start(1, json!({"type":"text","text":""})),
            delta(1, json!({"type":"text_delta","text":"He"})),
            delta(1, json!({"type":"text_delta","text":"llo"})),
            block_stop(1),
            block_start(2, json!({"type":"tool_use","id":"t1","name":"Read","input":{}})),
            delta(2, json!({"type":"input_json_delta","partial_json":""})),
            delta(2, json!({"type":"input_json_delta","partial_json":"{\"a\":"})),
            delta(2, json!({"type":"input_json_delta","partial_json":" 1}"})),
            block_stop(2),
            block_start(3, json!({"type":"redacted_thinking","data":"zzz"})),
            block_stop(3),
        ]),
        expect![[r#"
            started msg_1 m in=10 out=1 req_1
            ping
            0 start thinking
            0 + thinking Hm
            0 = {"type":"thinking","thinking":"Hm","signature":"sig"}
            1 start text
            1 + text He
            1 + text llo
            1 = {"type":"text","text":"Hello"}
            2 start tool_use Read
            2 + input
            2 + input {"a":
            2 + input  1}
            2 = {"type":"tool_use","id":"t1","name":"Read","input":{"a": 1}}
            3 start redacted_thinking
            3 = {"type":"redacted_thinking","data":"zzz"}
            ended end_turn in=10 out=9"#]],
    );
}

#[test]
fn unknown_events_are_skipped_and_unknown_blocks_are_kept() {
    check(
        &whole_stream(&[
            json!({"type":"from_the_future","delta":7,"index":"x","error":null}),
            block_start(0, json!({"type":"server_tool_use","id":"s","name":"web_search","input":{}})),
            delta(0, json!({"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"})),
            delta(0, json!({"type":"strange_delta","what":1})),
            block_stop(0),
            block_start(1, json!({"type":"web_search_tool_result","tool_use_id":"s","content":[{"n":1.5}]})),
            block_stop(1),
            block_stop(7),
        ]),
        expect![[r#"
            started msg_1 m in=10 out=1 req_1
            0 start server_tool_use web_search
            0 + input {"query":"x"}
            0 = {"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"}}
            1 start web_search_tool_result
            1 = {"type":"web_search_tool_result","tool_use_id":"s","content":[{"n":1.5}]}
            ended end_turn in=10 out=9"#]],
    );
}

#[test]
fn wire_events_come_first_and_on_one_line() {
    let stream = "data: {\"type\":\"message_start\",\ndata: \"message\":{\"id\":\"msg_1\"}}\n\n\
        event: ping\ndata: {\"type\":\"ping\"}\n\ndata: {\"type\":\"unknown\"}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    expect![[r#"
        wire {"type":"message_start", "message":{"id":"msg_1"}}
        started msg_1  in=0 out=0 req_1
        ping
        wire {"type":"message_stop"}
        ended - in=0 out=0"#]]
    .assert_eq(&decode(true, stream));
}

#[test]
fn a_delta_is_heard_before_it_is_shown() {
    let stream = [
        message_start(),
        block_start(0, json!({"type":"text","text":""})),
        json!({
        "type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "So far"}}),
    ];
    let stream: String = stream.iter().map(|event| format!("data: {event}\n\n")).collect();
    let events = decode(true, &stream);
    let (heard, shown) = (events.find("So far").unwrap(), events.rfind("wire").unwrap());
    assert!(heard < shown, "{events}");
}

#[test]
fn cut_stream_is_a_failure() {
    check(&[], expect!["Cut: The connection broke before the answer began: eof"]);
    check(
        &[message_start(), block_start(0, json!({"type":"text","text":"Hi"}))],
        expect![[r#"
            started msg_1 m in=10 out=1 req_1
            0 start text
            Cut: The connection broke in the middle of the answer: eof"#]],
    );
}

#[test]
fn an_open_block_is_closed_by_the_end() {
    check(
        &whole_stream(&[block_start(0, json!({"type":"text","text":"Hi"}))]),
        expect![[r#"
            started msg_1 m in=10 out=1 req_1
            0 start text
            0 = {"type":"text","text":"Hi"}
            ended end_turn in=10 out=9"#]],
    );
}

#[test]
fn broken_stream_is_a_failure() {
    for (stream, expected) in [
        (
            "data: nonsense\n\n",
            expect![
                "Malformed: The answer's stream is broken: an event is not the JSON we expect (expected ident at line 1 column 2)"
            ],
        ),
        (
            "data: {\"type\":\"message_stop\"}\n\n",
            expect!["Malformed: The answer's stream is broken: the answer ends before it began"],
        ),
        (
            "data: {\"type\":\"message_start\"}\n\n",
            expect!["Malformed: The answer's stream is broken: message_start has no message"],
        ),
        (
            "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{}}\n\n",
            expect!["Malformed: The answer's stream is broken: a delta belongs to no block (index 2)"],
        ),
        (
            "data: {\"type\":\"content_block_start\",\"content_block\":{}}\n\n",
            expect![
                "Malformed: The answer's stream is broken: an event is not the JSON we expect (missing field `type` at line 1 column 2)"
            ],
        ),
        ("data: [DONE]\n\n", expect!["Cut: The connection broke before the answer began: eof"]),
    ] {
        expected.assert_eq(&decode(false, stream));
    }
}

#[test]
fn errors_in_mid_stream_are_classified() {
    let error = |kind: &str, message: &str| json!({"type":"error","error":{"type":kind,"message":message},"request_id":"req_9"});
    check(
        &[error("overloaded_error", "Overloaded")],
        expect!["Overloaded: The model is overloaded: Overloaded"],
    );
    check(&[error("api_error", "Oops")], expect!["Server: The server failed: Oops"]);
    check(&[error("rate_limit_error", "Slow")], expect!["RateLimited: The rate limit is reached: Slow"]);
    check(
        &[error("invalid_request_error", "prompt is too long: 3 tokens > 2 maximum")],
        expect![
            "PromptTooLong: The prompt does not fit the model's window: prompt is too long: 3 tokens > 2 maximum"
        ],
    );
    expect!["Server: The server failed: bad gateway"]
        .assert_eq(&decode(false, "data: {\"error\":\"bad gateway\"}\n\n"));
}
