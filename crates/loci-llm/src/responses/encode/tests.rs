//! Requests as Responses have them, as data.

use std::sync::Arc;

use expect_test::expect;
use loci_core::raw::RawJson;
use proptest::prelude::*;

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
        {"type":"message","id":"msg_80d2d4c6f454582800000000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Look.","annotations":[]}]}
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

/// A round of a conversation: what the user says and shows, what the model thinks, says and calls, what comes of it.
#[derive(Debug, Clone)]
struct Round {
    asked: String,
    image: Option<String>,
    said: String,
    calls: Vec<Call>,
}

#[derive(Debug, Clone)]
struct Call {
    input: String,
    output: String,
    is_error: bool,
    image: Option<String>,
}

fn round() -> impl Strategy<Value = Round> {
    let image = || proptest::option::of("[A-Za-z0-9]{4,8}");
    let call = ("\\PC{0,12}", "\\PC{0,12}", any::<bool>(), image());
    let call = call.prop_map(|(input, output, is_error, image)| Call { input, output, is_error, image });
    let calls = proptest::collection::vec(call, 0..3);
    ("\\PC{1,12}", image(), "\\PC{1,12}", calls).prop_map(|(asked, image, said, calls)| Round {
        asked,
        image,
        said,
        calls,
    })
}

fn image_block(data: &str) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

/// Says rounds as the transcript has them, with thoughts that Anthropic's models signed.
fn conversation(rounds: &[Round]) -> Vec<Message> {
    let mut messages = Vec::new();
    for (n, round) in rounds.iter().enumerate() {
        let id = |idx: usize| format!("toolu_{n}_{idx}");
        let mut asked = vec![Block::new_text(&round.asked)];
        asked.extend(round.image.as_deref().map(|data| block(image_block(data))));
        messages.push(Message::new(Role::User, asked));
        let mut said = vec![
            block(json!({"type": "thinking", "thinking": "private", "signature": "sealed"})),
            Block::new_text(&round.said),
        ];
        said.extend(round.calls.iter().enumerate().map(|(idx, call)| {
            block(json!({"type": "tool_use", "id": id(idx), "name": "Read", "input": {"a": call.input}}))
        }));
        messages.push(Message::new(Role::Assistant, said));
        let results = round.calls.iter().enumerate().map(|(idx, call)| {
            let text = json!({"type": "text", "text": call.output});
            let parts: Vec<Value> =
                std::iter::once(text).chain(call.image.as_deref().map(image_block)).collect();
            block(json!({"type": "tool_result", "tool_use_id": id(idx), "is_error": call.is_error, "content": parts}))
        });
        let results: Vec<Block> = results.collect();
        if !results.is_empty() {
            messages.push(Message::new(Role::User, results));
        }
    }
    messages
}

/// Returns all texts and images of an item, in their order.
fn told(item: &Value) -> Vec<String> {
    let parts = [&item["content"], &item["output"]].into_iter().flat_map(|value| match value {
        Value::String(text) => vec![json!({"text": text})],
        Value::Array(parts) => parts.clone(),
        _ => Vec::new(),
    });
    let text = |part: Value| {
        let value = part["text"].as_str().or_else(|| part["image_url"].as_str());
        value.unwrap_or_default().trim_start_matches("Error:").trim_start_matches('\n').to_owned()
    };
    parts.map(text).filter(|text| !text.is_empty()).collect()
}

#[test]
fn past_answers_have_what_the_official_types_ask_for() {
    let say = |text: &str| Message::new(Role::Assistant, vec![Block::new_text(text)]);
    let answers = |messages: Vec<Message>| -> Vec<Value> {
        let body: Value = serde_json::from_slice(&body(&Request::new("p/m", 100, messages), "p")).unwrap();
        let items = body["input"].as_array().unwrap().iter();
        items.filter(|item| item["role"] == "assistant").cloned().collect()
    };
    let ask = || Message::user_text("Hi");
    let earlier = answers(vec![ask(), say("Yes."), ask(), say("Yes."), ask()]);
    let later = answers(vec![ask(), say("Yes."), ask(), say("Yes."), ask(), say("No."), ask()]);
    assert_eq!(later[..2], earlier[..], "ids are the same in every request");
    let ids: Vec<&str> = later.iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert!(ids.iter().all(|id| id.starts_with("msg_")), "{ids:?}");
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    for item in &later {
        assert_eq!((item["type"].as_str(), item["status"].as_str()), (Some("message"), Some("completed")));
        assert_eq!(item["content"][0]["annotations"], json!([]));
    }
}

proptest! {
    /// Everything that was said, shown, called and answered is in the request, in its order; signed thoughts are not.
    #[test]
    fn translation_loses_nothing(rounds in proptest::collection::vec(round(), 1..5)) {
        let sent = |rounds: &[Round]| -> Vec<Value> {
            let request = Request::new("p/m", 100, conversation(rounds));
            let body: Value = serde_json::from_slice(&body(&request, "p")).unwrap();
            body["input"].as_array().unwrap().clone()
        };
        let url = |data: &String| format!("data:image/png;base64,{data}");
        let all = sent(&rounds);
        prop_assert!(!json!(all).to_string().contains("sealed"));
        let mut rest = all.iter();
        for round in &rounds {
            let asked: Vec<String> = std::iter::once(round.asked.clone()).chain(round.image.iter().map(url)).collect();
            prop_assert_eq!(told(rest.next().unwrap()), asked);
            prop_assert_eq!(told(rest.next().unwrap()), vec![round.said.clone()]);
            let mut ids = Vec::new();
            for call in &round.calls {
                let item = rest.next().unwrap();
                let arguments: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
                prop_assert_eq!(arguments, json!({"a": call.input}));
                ids.push(item["call_id"].clone());
            }
            for (call, id) in round.calls.iter().zip(ids) {
                let item = rest.next().unwrap();
                prop_assert_eq!(&item["call_id"], &id);
                prop_assert_eq!(item["output"].to_string().contains("Error:"), call.is_error || call.output.contains("Error:"));
                let output = call.output.trim_start_matches("Error:").trim_start_matches('\n').to_owned();
                let parts = std::iter::once(output).filter(|it| !it.is_empty()).chain(call.image.iter().map(url));
                prop_assert_eq!(told(item), parts.collect::<Vec<_>>());
            }
        }
        prop_assert!(rest.next().is_none());
        // A longer conversation begins with the shorter one, so the server's cache fits.
        let before = sent(&rounds[..rounds.len() - 1]);
        prop_assert_eq!(&all[..before.len()], &before[..]);
    }
}
