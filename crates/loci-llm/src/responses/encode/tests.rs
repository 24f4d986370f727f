//! Requests as Responses have them, as data.

use std::sync::Arc;

use expect_test::expect;
use loci_core::raw::RawJson;

use super::*;
use crate::request::SystemBlock;

fn block(value: Value) -> Block {
    Block::from_value(&value).unwrap()
}

#[test]
fn request_says_everything_and_keeps_nothing_at_the_server() {
    let tool = json!({"name": "Read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}});
    let thought = |model: &str, id: &str| {
        json!({"type": "thinking", "thinking": "x", "loci:wire": {"provider": "p", "model": model,
            "raw": {"type": "reasoning", "id": id, "summary": [], "encrypted_content": "E"}}})
    };
    let said = [
        thought("p/m", "rs_1"),
        json!({"type": "text", "text": "Look."}),
        thought("p/other", "rs_2"),
        json!({"type": "tool_use", "id": "call_1", "name": "Read", "input": {"a": 1.5}}),
    ];
    let results = [
        json!({"type": "tool_result", "tool_use_id": "call_1", "is_error": true, "content": [
            {"type": "text", "text": "broken"},
            {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}]}),
        json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}),
    ];
    let request = Request {
        system: vec![SystemBlock { text: "one".to_owned(), is_cached: true }],
        tools: Arc::from([ToolSpec {
            name: "Read".to_owned(),
            json: RawJson::from_value(&tool).unwrap(),
            uses_references: false,
        }]),
        effort: Some("high".to_owned()),
        session_id: Some("s".to_owned()),
        ..Request::new(
            "p/m",
            100,
            vec![
                Message::user_text("Hi"),
                Message::new(Role::Assistant, said.map(block).to_vec()),
                Message::new(Role::User, results.map(block).to_vec()),
            ],
        )
    };
    let body: Value = serde_json::from_slice(&body(&request, "p")).unwrap();
    let items: Vec<String> = body["input"].as_array().unwrap().iter().map(Value::to_string).collect();
    expect![[r#"
        {"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}
        {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Look."}]}
        {"type":"function_call","call_id":"call_1","name":"Read","arguments":"{\"a\":1.5}"}
        {"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"Error:"},{"type":"input_text","text":"broken"},{"type":"input_image","image_url":"http://x/y.png","detail":"auto"}]}
        {"type":"message","role":"user","content":[{"type":"input_file","filename":"document","file_data":"data:application/pdf;base64,AA=="}]}"#]]
    .assert_eq(&items.join("\n"));
    let mut head = body;
    head.as_object_mut().unwrap().remove("input");
    expect![[r#"{"model":"m","max_output_tokens":100,"reasoning":{"effort":"high"},"stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"s","instructions":"one","tools":[{"type":"function","name":"Read","description":"Reads.","parameters":{"type":"object","properties":{}},"strict":false}]}"#]]
        .assert_eq(&head.to_string());
}

#[test]
fn images_of_the_user_are_addresses() {
    let blocks = vec![
        Block::new_text("look"),
        Block::new_image("image/png", "AA=="),
        block(json!({"type": "image", "source": {"type": "url", "url": "http://x/y.png"}})),
    ];
    let request = Request::new("p/m", 100, vec![Message::new(Role::User, blocks)]);
    let body: Value = serde_json::from_slice(&body(&request, "p")).unwrap();
    expect![[r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"auto"},{"type":"input_image","image_url":"http://x/y.png","detail":"auto"}]}]"#]]
        .assert_eq(&body["input"].to_string());
}
