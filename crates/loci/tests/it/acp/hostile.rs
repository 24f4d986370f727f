//! Whatever comes in: every line that goes out is a message, every request is answered once, and the next line is read.

use std::collections::HashMap;

use super::client::{Editor, acp};
use crate::support::World;
use loci_testkit::Step;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

#[tokio::test]
async fn what_cannot_be_understood_is_answered_with_an_error() {
    let world = World::new([Step::text("never")]).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    for (line, id, code) in [
        ("nonsense", Value::Null, -32700),
        ("{", Value::Null, -32700),
        ("[]", Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":90}"#, json!(90), -32600),
        (r#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#, json!("a"), -32601),
        (r#"{"jsonrpc":"2.0","id":91,"method":"session/prompt","params":[]}"#, json!(91), -32602),
        (r#"{"jsonrpc":"2.0","id":92,"method":"session/prompt","params":{}}"#, json!(92), -32602),
        (
            r#"{"jsonrpc":"2.0","id":93,"method":"session/new","params":{"cwd":"x","mcpServers":[]}}"#,
            json!(93),
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":94,"method":"session/new","params":{"cwd":"/no/such/place","mcpServers":[]}}"#,
            json!(94),
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":95,"method":"session/set_mode","params":{"sessionId":"x","modeId":"plan"}}"#,
            json!(95),
            -32002,
        ),
        (
            r#"{"jsonrpc":"2.0","id":96,"method":"session/load","params":{"sessionId":"/etc/passwd.jsonl","cwd":"/","mcpServers":[]}}"#,
            json!(96),
            -32002,
        ),
        (
            r#"{"jsonrpc":"2.0","id":97,"method":"initialize","params":{"protocolVersion":"x"}}"#,
            json!(97),
            -32602,
        ),
    ] {
        editor.write_line(line);
        let answer = editor.next();
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&id, Some(code)), "{line}: {answer}");
    }
    // Answers to nothing, notifications of whatever kind and empty lines are passed over.
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"never asked","error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"no/such","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":12345}}"#,
        "",
    ] {
        editor.write_line(line);
    }
    assert_eq!(editor.call("session/list", &json!({}))["sessions"], json!([]));
    editor.leave();
}

#[tokio::test]
async fn requests_before_initialize_are_refused() {
    let world = World::new([Step::text("never")]).await;
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}});
    let output = world.run_with_stdin(&acp([]), &line.to_string());
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.json_lines()[0]["error"]["code"], -32600);
}

/// Makes lines: some are nearly right, some are anything.
fn any_line() -> impl Strategy<Value = String> {
    let method = prop::sample::select(vec![
        "initialize",
        "authenticate",
        "logout",
        "session/new",
        "session/load",
        "session/resume",
        "session/list",
        "session/close",
        "session/delete",
        "session/prompt",
        "session/cancel",
        "session/set_mode",
        "session/set_config_option",
        "$/cancel_request",
        "no/such",
        "",
    ]);
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~\u{1b}\u{202e}ä\n]{0,12}".prop_map(Value::from),
        Just(json!("/tmp")),
        Just(json!([{"type": "text", "text": "hi"}])),
        Just(json!([{"type": "image", "data": "!", "mimeType": "image/png"}])),
        Just(json!({})),
    ];
    let key = prop::sample::select(vec![
        "sessionId",
        "cwd",
        "mcpServers",
        "prompt",
        "protocolVersion",
        "clientCapabilities",
        "methodId",
        "modeId",
        "configId",
        "value",
        "cursor",
        "requestId",
        "additionalDirectories",
    ]);
    let params = prop::collection::vec((key, value.clone()), 0..5).prop_map(|fields| {
        Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    });
    let message = (method, params, prop::option::of(value), any::<bool>()).prop_map(
        |(method, params, id, is_right)| {
            let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            if let Some(id) = id {
                message["id"] = id;
            }
            if !is_right {
                message["params"] = json!(7);
            }
            message.to_string()
        },
    );
    prop_oneof![4 => message, 1 => "[^\n]{0,40}", 1 => "[\\[\\]{}\":,0-9a-z ]{0,40}"]
}

#[test]
fn standard_output_holds_messages_alone_whatever_comes_in() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() });
    let lines = prop::collection::vec(any_line(), 1..24);
    let outcome = runner.run(&lines, |lines| {
        let world = runtime.block_on(World::new(vec![Step::text("Hi.")]));
        let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"protocolVersion": 1}});
        let last = json!({"jsonrpc": "2.0", "id": "last", "method": "no/such/last", "params": {}});
        let mut input = vec![hello.to_string()];
        input.extend(lines.iter().map(|line| line.replace('\n', " ")));
        input.push(last.to_string());
        let output = world.run_with_stdin(&acp([]), &(input.join("\n") + "\n"));
        prop_assert_eq!(output.code, Some(0), "{:?}", output);
        let mut answers: HashMap<String, usize> = HashMap::new();
        for line in output.stdout.lines() {
            let message: Value = serde_json::from_str(line).map_err(|error| TestCaseError::fail(format!("{error}: {line}")))?;
            prop_assert_eq!(&message["jsonrpc"], "2.0", "{}", line);
            let is_answer = message.get("result").is_some() != message.get("error").is_some();
            prop_assert!(is_answer != message.get("method").is_some(), "{}", line);
            if is_answer {
                *answers.entry(message["id"].to_string()).or_default() += 1;
            }
        }
        prop_assert_eq!((answers.get("\"hello\""), answers.get("\"last\"")), (Some(&1), Some(&1)));
        Ok(())
    });
    outcome.unwrap();
}
