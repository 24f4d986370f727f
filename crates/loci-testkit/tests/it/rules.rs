//! What the server refuses because the real API would.

use crate::client::{post, request};
use loci_testkit::{Script, ScriptedModel, Step, violations};
use serde_json::{Value, json};

/// Checks what is said about a request whose fields are replaced by those of `changes` (`null` removes).
fn check(changes: Value, expected: &[&str]) {
    let mut body = request("hi");
    let fields = body.as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(fields.remove(key)),
            value => drop(fields.insert(key.clone(), value.clone())),
        }
    }
    let found = violations(&body);
    assert_eq!(found.len(), expected.len(), "{changes}: {found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{changes}: {found} lacks {expected}");
    }
}

fn check_messages(messages: Value, expected: &[&str]) {
    check(json!({"messages": messages}), expected);
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn request_fields_are_checked() {
    let tool = json!({"name": "Read", "input_schema": {}});
    let thinking = |budget: u32| json!({"type": "enabled", "budget_tokens": budget});
    check(json!({}), &[]);
    check(json!({"model": null}), &["model: Field required"]);
    check(json!({"max_tokens": null}), &["max_tokens: Field required"]);
    check(json!({"max_tokens": 0}), &["max_tokens"]);
    check(json!({"messages": null}), &["messages: Field required"]);
    check(json!({"messages": []}), &["at least one message"]);
    check(json!({"max_tokens": 2000, "thinking": thinking(1999)}), &[]);
    check(json!({"max_tokens": 2000, "thinking": thinking(2000)}), &["greater than `thinking.budget"]);
    check(json!({"max_tokens": 2000, "thinking": thinking(10)}), &["greater than or equal to 1024"]);
    check(json!({"thinking": {"type": "adaptive"}}), &[]);
    check(json!({"tools": [tool, tool]}), &["unique"]);
    check(json!({"tools": [{"name": "a b", "input_schema": {}}]}), &["tools.0.custom.name"]);
    check(json!({"tools": [{"name": "a"}]}), &["input_schema: Field required"]);
    check(json!({"tools": [{"name": "web_search", "type": "web_search_20250305"}]}), &[]);
    assert_eq!(violations(&Value::Null).len(), 1);
}

#[test]
fn cache_marks_are_checked() {
    let marked = |n: usize| {
        let block = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
        Value::Array(vec![block; n])
    };
    check(json!({"system": marked(3), "messages": [user(marked(1))]}), &[]);
    check(json!({"system": marked(3), "messages": [user(marked(2))]}), &["Found 5"]);
    let inside = json!([{"type": "tool_result", "tool_use_id": "a", "content": marked(5)}]);
    let messages = json!([user(json!("q")), assistant(json!([call("a")])), user(inside)]);
    check(json!({"messages": messages}), &["Found 5"]);
}

#[test]
fn order_and_content_of_messages_are_checked() {
    let q = user(json!("q"));
    check_messages(json!([assistant(json!("a")), q]), &["first message"]);
    check_messages(json!([q, q, assistant(json!("a")), q]), &[]);
    check_messages(json!([q, {"role": "system", "content": "note"}]), &[]);
    check_messages(json!([q, {"role": "tool", "content": "x"}]), &["role"]);
    check_messages(json!([user(json!(""))]), &["non-empty content"]);
    check_messages(json!([user(json!([]))]), &["non-empty content"]);
    check_messages(json!([user(json!([text("")]))]), &["messages.0.content.0: text content blocks must be"]);
    check_messages(json!([q, assistant(json!([text(" \n")])), q]), &["non-whitespace"]);
    check_messages(json!([q, assistant(json!(" \n")), q]), &["non-whitespace"]);
    check_messages(json!([q, assistant(json!("prefill "))]), &["trailing whitespace"]);
    check_messages(json!([q, assistant(json!([text("prefill\n")]))]), &["trailing whitespace"]);
    check_messages(json!([q, assistant(json!([{"type": "thinking", "thinking": "t"}])), q]), &["signature"]);
}

#[test]
fn tool_calls_and_results_must_pair() {
    let q = user(json!("q"));
    let calls = assistant(json!([text("t"), call("a"), call("b")]));
    check_messages(json!([q, calls, user(json!([result("b"), result("a"), text("t")]))]), &[]);
    check_messages(
        json!([q, calls, user(json!([result("a")]))]),
        &["messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b"],
    );
    check_messages(json!([q, calls, q]), &["immediately after: a, b"]);
    check_messages(json!([q, calls]), &["immediately after: a, b"]);
    check_messages(
        json!([q, calls, user(json!([text("t"), result("a"), result("b")]))]),
        &["immediately after: a, b"],
    );
    check_messages(
        json!([q, calls, q, user(json!([result("a"), result("b")]))]),
        &["without", "unexpected", "unexpected"],
    );
    check_messages(json!([user(json!([result("a")]))]), &["messages.0: unexpected `tool_use_id`"]);
    let one = assistant(json!([call("a")]));
    let answered = user(json!([result("a")]));
    check_messages(json!([q, one, answered, one, answered]), &["messages.3: `tool_use` ids must be unique"]);
    check_messages(json!([q, one, user(json!([result("a"), result("a")]))]), &["single result"]);
    let empty_error = json!([{"type": "tool_result", "tool_use_id": "a", "content": "", "is_error": true}]);
    check_messages(json!([q, one, user(empty_error)]), &["`is_error`"]);
}

#[tokio::test]
async fn a_refused_request_takes_no_step() {
    let model = ScriptedModel::start(Step::text("one")).await;
    let mut bad = request("hi");
    bad["messages"] = json!([]);
    let answer = post(model.base_url(), &bad).await;
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (400, &json!("invalid_request_error")));
    assert!(model.requests_valid().unwrap_err().starts_with("request 0: messages: at least one"));
    let answer = post(model.base_url(), &request("hi")).await;
    assert!(answer.body.contains("\"one\""));
}

#[tokio::test]
async fn a_lenient_script_answers_all_the_same() {
    let model = ScriptedModel::start(Script::from(Step::text("one")).lenient()).await;
    let mut bad = request("hi");
    bad["max_tokens"] = Value::Null;
    assert_eq!(post(model.base_url(), &bad).await.status, 200);
    assert!(model.requests_valid().is_err());
}
