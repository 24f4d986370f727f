//! Requests as Chat Completions have them, as data.

use std::sync::Arc;

use expect_test::{Expect, expect};
use loci_core::raw::RawJson;
use proptest::prelude::*;

use super::*;
use crate::chat::pdf_text::tests::pdf_with;
use crate::request::SystemBlock;

fn block(value: Value) -> Block {
    Block::from_value(&value).unwrap()
}

/// Writes the body for a client that has read no document yet.
fn body(request: &Request, provider: &str, server: ChatServer) -> Bytes {
    super::body(request, provider, server, &PdfTextCache::default())
}

fn check(messages: Vec<Message>, expected: Expect) {
    let request = Request::new("p/m", 100, messages);
    let body: Value = serde_json::from_slice(&body(&request, "p", ChatServer::Other)).unwrap();
    let lines: Vec<String> = body["messages"].as_array().unwrap().iter().map(Value::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn request_has_the_fields_of_chat_completions() {
    let tool = json!({"name": "Read", "description": "Reads.", "input_schema": {"$schema": "x", "type": "object", "properties": {"a": {"oneOf": []}}}});
    let request = Request {
        system: vec![
            SystemBlock { text: "one".to_owned(), is_cached: false },
            SystemBlock { text: "two".to_owned(), is_cached: true },
        ],
        tools: Arc::from([ToolSpec {
            name: "Read".to_owned(),
            json: RawJson::from_value(&tool).unwrap(),
            uses_references: false,
        }]),
        effort: Some("low".to_owned()),
        session_id: Some("s".to_owned()),
        ..Request::new("p/vendor/m", 100, vec![Message::user_text("Hi")])
    };
    let text = |is_openai| {
        let server = if is_openai { ChatServer::OpenAi } else { ChatServer::Other };
        String::from_utf8(body(&request, "p", server).to_vec()).unwrap()
    };
    expect![[r#"{"model":"vendor/m","max_tokens":100,"reasoning_effort":"low","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"Read","description":"Reads.","parameters":{"type":"object","properties":{"a":{"oneOf":[]}}}}}],"messages":[{"role":"system","content":"one\n\ntwo"},{"role":"user","content":"Hi"}]}"#]]
        .assert_eq(&text(false));
    assert!(
        text(true).contains(r#""max_completion_tokens":100"#)
            && text(true).contains(r#""prompt_cache_key":"s""#)
    );
}

#[test]
fn openrouter_is_told_what_to_cache_where_the_model_wants_that() {
    let result = block(json!({"type": "tool_result", "tool_use_id": "t", "content": "read"}));
    let call = block(json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}}));
    let messages = vec![
        Message::user_text("Hi"),
        Message::new(Role::Assistant, vec![call]),
        Message::new(Role::User, vec![result]),
    ];
    let sent = |model: &str, server| {
        let request = Request {
            system: vec![SystemBlock { text: "one".to_owned(), is_cached: true }],
            ..Request::new(model, 100, messages.clone())
        };
        let body: Value = serde_json::from_slice(&body(&request, "or", server)).unwrap();
        body["messages"].clone()
    };
    for model in ["or/anthropic/claude-opus-5", "or/google/gemini-3-pro"] {
        let marked = sent(model, ChatServer::OpenRouter);
        let text =
            |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
        assert_eq!((&marked[0]["content"], &marked[3]["content"]), (&text("one"), &text("read")), "{model}");
        assert_eq!(marked[1]["content"], "Hi", "only the end is marked");
    }
    for (model, server) in
        [("or/openai/gpt-5", ChatServer::OpenRouter), ("or/anthropic/claude-opus-5", ChatServer::Other)]
    {
        assert!(!sent(model, server).to_string().contains("cache_control"), "{model}");
    }
    assert_eq!(ChatServer::at("https://openrouter.ai/api/v1"), ChatServer::OpenRouter);
    assert_eq!(ChatServer::at("https://openrouter.ai.example/v1"), ChatServer::Other);
}

#[test]
fn models_of_openai_that_think_have_another_name_for_the_system() {
    for (model, expected) in [("p/gpt-5", "developer"), ("p/o3-mini", "developer"), ("p/gpt-4o", "system")] {
        let request = Request {
            system: vec![SystemBlock { text: "one".to_owned(), is_cached: false }],
            ..Request::new(model, 100, vec![Message::user_text("Hi")])
        };
        let body: Value = serde_json::from_slice(&body(&request, "p", ChatServer::OpenAi)).unwrap();
        assert_eq!(body["messages"][0]["role"], expected, "{model}");
    }
}

#[test]
fn calls_and_results_stand_together() {
    let calls = [
        json!({"type": "thinking", "thinking": "secret", "signature": "s"}),
        json!({"type": "text", "text": "Look."}),
        json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"a": 1.50}}),
        json!({"type": "tool_use", "id": "toolu/2", "name": "mcp__a.b__c", "input": {}}),
    ];
    let results = [
        json!({"type": "text", "text": "By the way"}),
        json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "fine"}),
        json!({"type": "tool_result", "tool_use_id": "toolu/2", "is_error": true, "content": [
            {"type": "text", "text": "broken"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]}),
    ];
    check(
        vec![
            Message::user_text("Hi"),
            Message::new(Role::Assistant, calls.map(block).to_vec()),
            Message::new(Role::User, results.map(block).to_vec()),
        ],
        expect![[r#"
            {"role":"user","content":"Hi"}
            {"role":"assistant","content":"Look.","tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"Read","arguments":"{\"a\":1.5}"}},{"id":"call_6fe8b3bf48c3c84b","type":"function","function":{"name":"mcp__a_b__c_64188a07","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"toolu_1","content":"fine"}
            {"role":"tool","tool_call_id":"call_6fe8b3bf48c3c84b","content":"Error:\nbroken\n[The image is in the next message.]"}
            {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"auto"}},{"type":"text","text":"By the way"}]}"#]],
    );
}

#[test]
fn arguments_keep_their_own_bytes() {
    let call = r#"{"type":"tool_use","id":"t","name":"A","input":{"n": 1.50,"big":12345678901234567890123}}"#;
    let call: Block = serde_json::from_str(call).unwrap();
    check(
        vec![Message::new(Role::Assistant, vec![call])],
        expect![[
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"A","arguments":"{\"n\": 1.50,\"big\":12345678901234567890123}"}}]}"#
        ]],
    );
}

#[test]
fn messages_of_one_role_are_joined_and_empty_ones_left_out() {
    let thought = json!({"type": "thinking", "thinking": "x", "signature": "s"});
    check(
        vec![
            Message::user_text("one"),
            Message::new(Role::Assistant, vec![block(thought)]),
            Message::new(Role::System, vec![Block::new_text("two")]),
            Message::user_text(""),
        ],
        expect![[r#"{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}"#]],
    );
}

#[test]
fn reasoning_goes_back_to_its_own_model_alone() {
    let thought = |model: &str| {
        block(json!({"type": "thinking", "thinking": "x",
            "loci:wire": {"provider": "p", "model": model, "raw": {"reasoning_content": "x"}}}))
    };
    check(
        vec![
            Message::new(Role::Assistant, vec![thought("p/m"), Block::new_text("a")]),
            Message::new(Role::Assistant, vec![thought("p/other"), Block::new_text("b")]),
        ],
        expect![[r#"
            {"role":"assistant","content":"a","reasoning_content":"x"}
            {"role":"assistant","content":"b"}"#]],
    );
}

#[test]
fn documents_are_text_or_files() {
    let document = |source: Value| json!({"type": "document", "source": source});
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";
    let data = pdf_with("BT /F1 12 Tf 10 500 Td (Chapter one) Tj ET", [font, font], "");
    let pdf = document(json!({"type": "base64", "media_type": "application/pdf", "data": data}));
    let scanned = document(json!({"type": "base64", "media_type": "application/pdf", "data": "AA=="}));
    let plain = document(json!({"type": "text", "media_type": "text/plain", "data": "words"}));
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "Page 1:"}, pdf]});
    let call = block(json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}}));
    let messages = vec![
        Message::new(Role::User, vec![block(plain), block(pdf), block(scanned)]),
        Message::new(Role::Assistant, vec![call]),
        Message::new(Role::User, vec![block(result)]),
    ];
    check(
        messages.clone(),
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"words"},{"type":"text","text":"[The text of a PDF document:]\n[Page 1 of 1]\nChapter one"},{"type":"text","text":"[A document was here (application/pdf) in which no text was found; this model takes text and images alone.]"}]}
            {"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"Read","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"t","content":"Page 1:\n[The text of a PDF document:]\n[Page 1 of 1]\nChapter one"}"#]],
    );
    let request = Request::new("p/m", 100, messages);
    let body: Value = serde_json::from_slice(&body(&request, "p", ChatServer::OpenAi)).unwrap();
    let file = json!({"type": "file", "file": {"filename": "document.pdf",
        "file_data": format!("data:application/pdf;base64,{data}")}});
    assert_eq!(body["messages"][0]["content"][1], file);
    assert_eq!(body["messages"][2]["content"], "Page 1:\n[The document is in the next message.]");
    assert_eq!(body["messages"][3]["content"], json!([file]));
}

#[test]
fn images_of_the_user_are_addresses() {
    check(
        vec![Message::new(
            Role::User,
            vec![
                Block::new_text("look"),
                Block::new_image("image/png", "AA=="),
                block(json!({"type": "image", "source": {"type": "url", "url": "http://x/y.png"}})),
            ],
        )],
        expect![[
            r#"{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"auto"}},{"type":"image_url","image_url":{"url":"http://x/y.png","detail":"auto"}}]}"#
        ]],
    );
}

#[test]
fn system_prompt_of_openai_s_thinking_models_is_the_developer_s() {
    for (model, server, role) in [
        ("p/gpt-5.2", ChatServer::OpenAi, "developer"),
        ("p/o3-mini", ChatServer::OpenAi, "developer"),
        ("p/gpt-4o", ChatServer::OpenAi, "system"),
        ("p/gpt-5.2", ChatServer::Other, "system"),
    ] {
        let system = vec![SystemBlock { text: "one".to_owned(), is_cached: false }];
        let request = Request { system, ..Request::new(model, 1, vec![Message::user_text("Hi")]) };
        let body: Value = serde_json::from_slice(&body(&request, "p", server)).unwrap();
        assert_eq!(body["messages"][0]["role"], role, "{model}");
    }
}

/// What the user says, what the model says, and what it calls with what outcome.
type Round = (String, String, Vec<(String, String)>);

/// One round of a conversation: what the user says, what the model says and calls, what comes of it.
fn round() -> impl Strategy<Value = Round> {
    let call = ("\\PC{0,12}", "\\PC{0,12}");
    ("\\PC{1,12}", "\\PC{1,12}", proptest::collection::vec(call, 0..3))
}

/// Says rounds as the transcript has them.
fn conversation(rounds: &[Round]) -> Vec<Message> {
    let mut messages = Vec::new();
    for (n, (asked, said, calls)) in rounds.iter().enumerate() {
        messages.push(Message::user_text(asked));
        let id = |idx: usize| format!("toolu_{n}_{idx}");
        let mut blocks = vec![Block::new_text(said)];
        blocks.extend(calls.iter().enumerate().map(|(idx, (input, _))| {
            block(json!({"type": "tool_use", "id": id(idx), "name": "Read", "input": {"a": input}}))
        }));
        messages.push(Message::new(Role::Assistant, blocks));
        if !calls.is_empty() {
            let results = calls.iter().enumerate().map(|(idx, (_, output))| {
                block(json!({"type": "tool_result", "tool_use_id": id(idx), "content": output}))
            });
            messages.push(Message::new(Role::User, results.collect::<Vec<_>>()));
        }
    }
    messages
}

proptest! {
    /// Everything that was said, called and answered is in the request, in its order, and nothing else.
    #[test]
    fn translation_loses_nothing(rounds in proptest::collection::vec(round(), 1..5)) {
        let sent = |rounds: &[Round]| -> Vec<Value> {
            let request = Request::new("p/m", 100, conversation(rounds));
            let body: Value = serde_json::from_slice(&body(&request, "p", ChatServer::Other)).unwrap();
            body["messages"].as_array().unwrap().clone()
        };
        let all = sent(&rounds);
        let mut rest = all.iter();
        for (asked, said, calls) in &rounds {
            prop_assert_eq!(&rest.next().unwrap()["content"], asked);
            let answer = rest.next().unwrap();
            prop_assert_eq!(&answer["content"], said);
            let made = answer["tool_calls"].as_array().cloned().unwrap_or_default();
            prop_assert_eq!(made.len(), calls.len());
            for (call, (input, _)) in made.iter().zip(calls) {
                let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                prop_assert_eq!(arguments, json!({"a": input}));
            }
            for (call, (_, output)) in made.iter().zip(calls) {
                let result = rest.next().unwrap();
                prop_assert_eq!(&result["tool_call_id"], &call["id"]);
                prop_assert_eq!(&result["content"], output);
            }
        }
        prop_assert!(rest.next().is_none());
        // A longer conversation begins with the shorter one, so the server's cache fits.
        let before = sent(&rounds[..rounds.len() - 1]);
        prop_assert_eq!(&all[..before.len()], &before[..]);
    }
}
