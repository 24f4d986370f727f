//! Streams of Responses, and what is made of them.

use expect_test::{Expect, expect};
use loci_core::message::Message;

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
