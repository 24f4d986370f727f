//! Answers that arrive whole.

use expect_test::expect;
use loci_core::message::{Message, Role};
use loci_core::stream::StreamEvent;
use loci_testkit::Step;
use serde_json::json;

use crate::support::{client, model, request, rich_step, run, run_steps};

#[tokio::test]
async fn text_answer_streams_its_events() {
    let outcome = run_steps(Step::text("Hello, you.").chunk(4)).await;
    expect![[r#"
        started msg_010000000000000000000001 claude-sonnet-4-5 in=100 req_010000000000000000000001
        0 text | Hello, you.
        0 {"type":"text","text":"Hello, you."}
        ended end_turn out=20"#]]
    .assert_eq(&outcome.render());
}

#[tokio::test]
async fn thinking_and_parallel_tool_calls_stream_as_blocks() {
    let outcome = run_steps(rich_step()).await;
    expect![[r#"
        started msg_010000000000000000000001 claude-sonnet-4-5 in=123 req_010000000000000000000001
        0 thinking | The user greets me, so I look around.
        0 {"type":"thinking","thinking":"The user greets me, so I look around.","signature":"c2lnbmF0dXJl"}
        1 text | Let me look at both files.
        1 {"type":"text","text":"Let me look at both files."}
        2 tool_use Read| {"file_path":"/a","limit":3}
        2 {"type":"tool_use","id":"toolu_010000000000000000000001","name":"Read","input":{"file_path":"/a","limit":3}}
        3 tool_use Read| {"file_path":"/b"}
        3 {"type":"tool_use","id":"toolu_010000000000000000000002","name":"Read","input":{"file_path":"/b"}}
        ended tool_use out=45"#]].assert_eq(&outcome.render());
}

#[tokio::test]
async fn a_whole_answer_equals_a_streamed_one() {
    let model = model([rich_step(), rich_step()]).await;
    let client = client(&model);
    let streamed = run(&client, request()).await;
    let mut whole_request = request();
    whole_request.is_streaming = false;
    let whole = run(&client, whole_request).await;
    let values = |blocks: Vec<loci_core::message::Block>| {
        blocks
            .iter()
            .map(|block| block.to_value())
            .map(|mut value| {
                // The server numbers its calls.
                value["id"] = json!(null);
                value
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(values(whole.blocks()), values(streamed.blocks()));
    assert_eq!(whole.events.last(), streamed.events.last());
    assert!(!model.requests()[1].is_streaming());
}

#[tokio::test]
async fn unknown_events_change_nothing() {
    let plain = run_steps(rich_step()).await;
    let strewn = run_steps(rich_step().unknown_events()).await;
    assert_eq!(strewn.render(), plain.render());
}

#[tokio::test]
async fn blocks_of_the_server_pass_through() {
    let block =
        json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}});
    let outcome = run_steps(Step::new().raw_block(block.clone()).then_text("Found.")).await;
    assert_eq!(outcome.blocks()[0].to_value(), block);
    assert_eq!(outcome.blocks()[1].text().as_deref(), Some("Found."));
}

#[tokio::test]
async fn wire_events_come_only_when_asked_for() {
    let model = model([Step::text("Hi"), Step::text("Hi")]).await;
    let mut with_wire = request();
    with_wire.wants_wire_events = true;
    let outcome = run(&client(&model), with_wire).await;
    let kinds: Vec<String> = outcome
        .events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::Wire(json) => {
                json.read::<serde_json::Value>().unwrap()["type"].as_str().map(str::to_owned)
            }
            _ => None,
        })
        .collect();
    expect![
        "message_start content_block_start content_block_delta content_block_stop message_delta message_stop"
    ]
    .assert_eq(&kinds.join(" "));
    let without = run(&client(&model), request()).await;
    assert!(!without.events.iter().any(|event| matches!(event, StreamEvent::Wire(_))));
}

#[tokio::test]
async fn blocks_go_back_as_they_came_and_bodies_grow_at_their_end() {
    let model = model([rich_step(), Step::text("Done.")]).await;
    let client = client(&model);
    let mut conversation = request();
    conversation.thinking = loci_llm::Thinking::Budget(2000);
    let blocks = run(&client, conversation.clone()).await.blocks();
    let results: Vec<_> = blocks
        .iter()
        .filter_map(|block| block.tool_use())
        .map(|call| loci_core::message::Block::new_tool_result(&call.id, &json!("content"), None))
        .collect();
    conversation.messages.push(Message::new(Role::Assistant, blocks.clone()));
    conversation.messages.push(Message::new(Role::User, results));
    run(&client, conversation).await;

    model.requests_valid().unwrap();
    let bodies: Vec<String> = model
        .requests()
        .iter()
        .map(|request| {
            String::from_utf8_lossy(&request.body).replace(r#","cache_control":{"type":"ephemeral"}"#, "")
        })
        .collect();
    assert!(bodies[1].starts_with(bodies[0].strip_suffix("]}").unwrap()), "{bodies:?}");
    for block in blocks {
        assert!(bodies[1].contains(block.json().as_str()), "{}", block.json().as_str());
    }
}
