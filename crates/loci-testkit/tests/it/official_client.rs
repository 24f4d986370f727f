//! The official Python client talks to the scripted model, and we look at what it understood.
//!
//! This is what says that the server speaks the real protocol: the client was written against the real API
//! and knows nothing of us. It is installed once, into a virtual environment under the target directory.

use loci_testkit::{PythonVenv, Script, ScriptedModel, Step};
use serde_json::{Value, json};
use std::path::Path;

/// Plays `script` to one scenario of `official_client.py`; hands what it printed, and the model, to `compare`.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
async fn check(script: impl Into<Script>, scenario: &str, compare: impl FnOnce(Value, &ScriptedModel)) {
    let Some(python) = PythonVenv::new(env!("CARGO_TARGET_TMPDIR"), "official-client", &["anthropic"]) else {
        eprintln!("skipped: there is no python3 on this machine");
        return;
    };
    let model = ScriptedModel::start(script).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/official_client.py");
    let output = python.script(path).args([model.base_url(), scenario]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    compare(serde_json::from_slice(&output.stdout).unwrap(), &model);
}

#[tokio::test]
async fn official_client_streams() {
    let step = Step::text("Hello, wörld").thinking("Let me think", "c2ln");
    let step = step.tool("Read", json!({"path": "a.txt", "n": [1, 2]})).chunk(5).usage(11, 22, 33, 44);
    for step in [step.clone(), step.unknown_events()] {
        check(step, "stream", |seen, model| {
            assert_eq!(seen["texts"], json!(["Hello", ", wör", "ld"]));
            assert_eq!(seen["request_id"], "req_010000000000000000000001");
            let message = &seen["message"];
            assert_eq!(
                message["content"],
                json!([
                    {"type": "thinking", "thinking": "Let me think", "signature": "c2ln"},
                    {"type": "text", "text": "Hello, wörld"},
                    {"type": "tool_use", "id": "toolu_010000000000000000000001", "name": "Read",
                     "input": {"path": "a.txt", "n": [1, 2]}},
                ])
            );
            assert_eq!(
                (&message["id"], &message["role"]),
                (&json!("msg_010000000000000000000001"), &json!("assistant"))
            );
            assert_eq!(message["stop_reason"], "tool_use");
            check_usage(&message["usage"]);
            model.requests_valid().unwrap();
        })
        .await;
    }
}

#[tokio::test]
async fn official_client_sees_every_event() {
    check(Step::text("hi"), "raw_events", |seen, _| {
        let expected = [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ];
        assert_eq!(seen, json!(expected));
    })
    .await;
}

#[tokio::test]
async fn official_client_gets_whole_answers() {
    let step = Step::text("cut sh").stop_reason("max_tokens").usage(11, 22, 33, 44);
    check(step, "whole", |seen, _| {
        let message = &seen["message"];
        assert_eq!(message["content"], json!([{"type": "text", "text": "cut sh"}]));
        assert_eq!(message["stop_reason"], "max_tokens");
        assert_eq!(seen["request_id"], "req_010000000000000000000001");
        check_usage(&message["usage"]);
    })
    .await;
}

#[tokio::test]
async fn official_client_retries_an_overload() {
    let overloaded = Step::status(529).header("retry-after-ms", "1").times(2);
    check([overloaded, Step::text("at last")], "whole", |seen, model| {
        assert_eq!(seen["message"]["content"][0]["text"], "at last");
        let requests = model.requests();
        let counts: Vec<_> =
            requests.iter().map(|it| it.header("x-stainless-retry-count").unwrap()).collect();
        assert_eq!(counts, ["0", "1", "2"]);
    })
    .await;
}

#[tokio::test]
async fn official_client_runs_a_tool_loop() {
    let calls = Step::call("Read", json!({"path": "a.txt"})).tool("Read", json!({"path": "b.txt"}));
    check([calls, Step::text("They agree.")], "tool_loop", |seen, model| {
        let ids = ["toolu_010000000000000000000001", "toolu_010000000000000000000002"];
        assert_eq!(seen, json!({"results": [ids], "text": "They agree.", "stop_reason": "end_turn"}));
        model.requests_valid().unwrap();
        let requests = model.main_requests();
        assert_eq!((requests.len(), requests[1].n_assistant_turns()), (2, 1));
        let texts: Vec<String> = requests[1].tool_results().into_iter().map(|it| it.text).collect();
        assert_eq!(texts, ["read a.txt", "read b.txt"]);
    })
    .await;
}

#[tokio::test]
async fn official_client_counts_tokens_and_lists_models() {
    check([], "count_tokens", |seen, model| {
        assert_eq!(seen, model.requests()[0].body.len() / 4);
    })
    .await;
    check([], "models", |seen, _| assert_eq!(seen.as_array().unwrap().len(), 4)).await;
}

#[tokio::test]
async fn official_client_raises_on_failures() {
    let text = || Step::text("abcdef").chunk(3);
    let api_error =
        |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    let cases = [
        (text(), json!({"raised": null, "texts": ["abc", "def"]})),
        (
            text().error_event("overloaded_error", "Overloaded"),
            json!({"status": 200, "body": api_error("overloaded_error", "Overloaded"), "texts": ["abc"]}),
        ),
        (
            Step::status(401),
            json!({"raised": "AuthenticationError", "status": 401, "texts": [],
                   "body": api_error("authentication_error", "invalid x-api-key")}),
        ),
        (text().cut_after_events(4), json!({"raised": "connection", "texts": ["abc"]})),
        (text().cut_mid_event(), json!({"raised": "connection", "texts": ["abc"]})),
    ];
    for (step, expected) in cases {
        check(step, "failure", |mut seen, _| {
            if let Some(body) = seen["body"].as_object_mut() {
                body.remove("request_id");
            }
            for (key, value) in expected.as_object().unwrap() {
                assert_eq!(&seen[key], value, "{key} of {seen}");
            }
            assert_eq!(seen["raised"].is_null(), expected.get("raised") == Some(&Value::Null), "{seen}");
        })
        .await;
    }
}

#[tokio::test]
async fn official_client_is_refused_what_the_api_refuses() {
    check([], "refused", |seen, model| {
        assert_eq!(
            (&seen["raised"], &seen["type"]),
            (&json!("BadRequestError"), &json!("invalid_request_error"))
        );
        assert!(seen["message"].as_str().unwrap().contains("`tool_use` ids were found without"));
        assert_eq!(model.requests().len(), 1, "a 400 is not retried");
        assert!(model.requests_valid().is_err());
    })
    .await;
}

/// Checks what the client made of `usage(11, 22, 33, 44)`.
fn check_usage(usage: &Value) {
    let expected = [
        ("input_tokens", 11),
        ("output_tokens", 22),
        ("cache_read_input_tokens", 33),
        ("cache_creation_input_tokens", 44),
    ];
    for (key, n) in expected {
        assert_eq!(usage[key], n, "{key}");
    }
}
