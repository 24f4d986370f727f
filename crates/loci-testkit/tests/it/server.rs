//! What the server puts on the wire when nothing goes wrong.

use crate::client::{Client, End, post, request};
use expect_test::{Expect, expect};
use loci_testkit::{Gate, Script, ScriptedModel, Step};
use serde_json::{Value, json};
use std::time::Duration;

async fn check_stream(step: Step, expected: Expect) {
    let model = ScriptedModel::start(step).await;
    let answer = post(model.base_url(), &request("hi")).await;
    assert_eq!((answer.status, &answer.end), (200, &End::Whole));
    expected.assert_eq(&answer.body);
}

#[tokio::test]
async fn streams_thinking_text_and_a_call() {
    let step = Step::text("Hello, world").thinking("hm", "c2ln").tool("Read", json!({"file_path": "/é"}));
    check_stream(
        step.chunk(8).usage(10, 20, 30, 40),
        expect![[r#"
            event: message_start
            data: {"type":"message_start","message":{"id":"msg_010000000000000000000001","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":40,"cache_read_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":40,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}

            event: ping
            data: {"type":"ping"}

            event: content_block_start
            data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

            event: content_block_delta
            data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

            event: content_block_delta
            data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

            event: content_block_stop
            data: {"type":"content_block_stop","index":0}

            event: content_block_start
            data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

            event: content_block_delta
            data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello, w"}}

            event: content_block_delta
            data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"orld"}}

            event: content_block_stop
            data: {"type":"content_block_stop","index":1}

            event: content_block_start
            data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_010000000000000000000001","name":"Read","input":{}}}

            event: content_block_delta
            data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

            event: content_block_delta
            data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"file_p"}}

            event: content_block_delta
            data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"ath\":\"/é"}}

            event: content_block_delta
            data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"}"}}

            event: content_block_stop
            data: {"type":"content_block_stop","index":2}

            event: message_delta
            data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":10,"cache_creation_input_tokens":40,"cache_read_input_tokens":30,"output_tokens":20}}

            event: message_stop
            data: {"type":"message_stop"}

        "#]],
    )
    .await;
}

#[tokio::test]
async fn other_blocks_come_whole() {
    let block = json!({"type": "redacted_thinking", "data": "abc"});
    let model = ScriptedModel::start(Step::new().raw_block(block.clone()).stop_reason("max_tokens")).await;
    let events = post(model.base_url(), &request("hi")).await.events();
    assert_eq!(events[2]["content_block"], block);
    assert_eq!(events[3]["type"], "content_block_stop");
    assert_eq!(events[4]["delta"]["stop_reason"], "max_tokens");
}

#[tokio::test]
async fn an_empty_input_is_one_empty_delta() {
    let model = ScriptedModel::start(Step::call("List", json!({}))).await;
    let events = post(model.base_url(), &request("hi")).await.events();
    let deltas: Vec<&Value> = events.iter().filter(|it| it["type"] == "content_block_delta").collect();
    assert_eq!(deltas.len(), 1);
    assert_eq!(deltas[0]["delta"]["partial_json"], "");
}

#[tokio::test]
async fn answers_whole_without_stream() {
    let model = ScriptedModel::start(Step::text("hi").tool("Read", json!({"a": 1}))).await;
    let mut body = request("hi");
    body["stream"] = false.into();
    let answer = post(model.base_url(), &body).await;
    assert_eq!(answer.header("request-id"), Some("req_010000000000000000000001"));
    expect![[r#"{"id":"msg_010000000000000000000001","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"toolu_010000000000000000000001","name":"Read","input":{"a":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":20,"service_tier":"standard"}}"#]]
        .assert_eq(&answer.body);
}

#[tokio::test]
async fn count_tokens_models_and_unknown_routes_answer() {
    let model = ScriptedModel::start([]).await;
    let mut client = Client::connect(model.base_url()).await;
    let cases = [
        ("POST", "/v1/messages/count_tokens?beta=true", 200, "/input_tokens", json!(10)),
        ("GET", "/v1/models?limit=5", 200, "/data/0/type", json!("model")),
        ("GET", "/nowhere", 404, "/error/type", json!("not_found_error")),
    ];
    for (method, path, status, pointer, expected) in cases {
        client.send(method, path, &"x".repeat(40)).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.json().pointer(pointer).cloned()), (status, Some(expected)));
    }
    let connections: Vec<usize> = model.requests().iter().map(|it| it.connection).collect();
    assert_eq!(connections, [0, 0, 0], "the connection is kept alive");
}

#[tokio::test]
async fn answers_head_without_a_body() {
    let model = ScriptedModel::start([]).await;
    let mut client = Client::connect(model.base_url()).await;
    client.send_raw(b"HEAD / HTTP/1.1\r\n\r\nGET /v1/models HTTP/1.1\r\n\r\n").await;
    client.read_until("HTTP/1.1 200 OK\r\ncontent-type: application/json").await;
    client.read_until("claude-").await;
    assert_eq!(model.wait_for_requests(2).await[0].method, "HEAD");
}

#[tokio::test]
async fn takes_a_chunked_body_and_expect_continue() {
    let model = ScriptedModel::start(Step::text("hi")).await;
    let mut client = Client::connect(model.base_url()).await;
    let body = request("hi").to_string();
    let (first, second) = body.split_at(7);
    let head = "POST /v1/messages HTTP/1.1\r\nExpect: 100-continue\r\nAnthropic-Version: 2023-06-01\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    client.send_raw(head.as_bytes()).await;
    client.read_until("100 Continue").await;
    let rest = format!("7\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", second.len());
    client.send_raw(rest.as_bytes()).await;
    client.read_until("message_stop").await;
    let recorded = model.requests().remove(0);
    assert_eq!(recorded.body, body.as_bytes());
    assert_eq!(recorded.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(recorded.tool_names(), ["Read"]);
    assert_eq!(recorded.last_user_text(), "hi");
}

#[tokio::test]
async fn a_gate_holds_the_stream_while_the_block_is_open() {
    let gate = Gate::new();
    let step = Step::text("so far").wait_for(gate.clone()).tool("Read", json!({}));
    let model = ScriptedModel::start(step).await;
    let mut client = Client::connect(model.base_url()).await;
    client.send("POST", "/v1/messages", &request("hi").to_string()).await;
    gate.reached().await;
    client.read_until("so far").await;
    gate.release();
    let answer = client.answer().await;
    assert_eq!(answer.end, End::Whole);
    assert_eq!(answer.event_names().last(), Some(&"message_stop"));
}

#[tokio::test]
async fn a_client_that_leaves_at_a_gate_is_noticed() {
    let (early, late) = (Gate::new(), Gate::new());
    let steps = [
        Step::text("a").wait_before_headers(early.clone()),
        Step::text("a").wait_after_events(2, late.clone()),
    ];
    let model = ScriptedModel::start(steps).await;
    for (n, gate) in [early, late].iter().enumerate() {
        let mut client = Client::connect(model.base_url()).await;
        client.send("POST", "/v1/messages", &request("hi").to_string()).await;
        gate.reached().await;
        drop(client);
        model.wait_for_hang_ups(n + 1).await;
    }
}

#[tokio::test]
async fn scripted_server_pauses_before_and_between_events() {
    let short = Duration::from_millis(5);
    let step = Step::text("abc").chunk(1).delay(short).chunk_delay(short);
    let model = ScriptedModel::start(step).await;
    let begun = std::time::Instant::now();
    let answer = post(model.base_url(), &request("hi")).await;
    assert_eq!(answer.end, End::Whole);
    assert!(begun.elapsed() >= short * 4);
}

#[tokio::test]
async fn dropping_the_server_closes_connections() {
    let model = ScriptedModel::start(Step::text("a").stall_after_events(1)).await;
    let mut client = Client::connect(model.base_url()).await;
    client.send("POST", "/v1/messages", &request("hi").to_string()).await;
    client.read_until("message_start").await;
    drop(model);
    assert_ne!(client.answer().await.end, End::Whole);
}

#[tokio::test]
async fn ids_go_on_where_the_conversation_left_off() {
    let mut body = request("hi");
    let id = "toolu_010000000000000000000001";
    body["messages"] = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]},
    ]);
    let script = Script::from(Step::call("Read", json!({}))).first_id(1);
    let model = ScriptedModel::start(script).await;
    let events = post(model.base_url(), &body).await.events();
    assert_eq!(events[2]["content_block"]["id"], "toolu_010000000000000000000002");
}
