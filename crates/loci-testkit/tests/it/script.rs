//! Which step a request plays, and the JSON form of scripts.

use crate::client::{post, request};
use loci_testkit::{Script, ScriptedModel, Step};
use serde_json::{Value, json};

/// Returns a main request with this many assistant messages in it.
fn at_turn(turn: usize) -> Value {
    let mut body = request("hi");
    for n in 0..turn {
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": format!("answer {n}")}));
        messages.push(json!({"role": "user", "content": "go on"}));
    }
    body
}

fn side() -> Value {
    let mut body = request("title?");
    body.as_object_mut().unwrap().remove("tools");
    body
}

/// Plays `requests` and compares the answers: the text of each, or its status, or `cut`.
async fn check(script: Script, requests: Vec<Value>, expected: &[&str]) {
    let model = ScriptedModel::start(script).await;
    let mut answers = Vec::new();
    for body in &requests {
        let answer = post(model.base_url(), body).await;
        let deltas = answer.events();
        let texts: String = deltas.iter().filter_map(|it| it["delta"]["text"].as_str()).collect();
        answers.push(match (answer.status, texts) {
            (200, text) if answer.event_names().contains(&"message_stop") => text,
            (200, _) => "cut".into(),
            (status, _) => status.to_string(),
        });
    }
    assert_eq!(answers, expected);
    model.requests_valid().unwrap();
}

#[tokio::test]
async fn main_requests_take_steps_in_order() {
    let script = Script::new([Step::text("one"), Step::status(529).times(2), Step::text("two")]);
    let requests = vec![at_turn(0), side(), at_turn(1), at_turn(1), at_turn(1), at_turn(2), side()];
    check(script, requests, &["one", "ok", "529", "529", "two", "done", "ok"]).await;
}

#[tokio::test]
async fn any_request_may_take_a_step() {
    let script = Script::new([Step::text("one"), Step::text("two")]).every_request();
    check(script, vec![side(), at_turn(0), side()], &["one", "two", "done"]).await;
}

#[tokio::test]
async fn turns_choose_the_step_whatever_the_order() {
    let script = Script::new([
        Step::text("one"),
        Step::status(500),
        Step::text("never whole").cut_after_events(3),
        Step::text("two"),
        Step::text("three"),
    ]);
    let requests = vec![at_turn(2), at_turn(0), at_turn(1), at_turn(1), at_turn(1), at_turn(0), at_turn(3)];
    let expected = ["three", "one", "500", "cut", "two", "one", "done"];
    check(script.by_assistant_turns(), requests, &expected).await;
}

#[tokio::test]
async fn repeated_step_is_followed_by_the_next() {
    let script = Script::repeat(Step::text("a"), 2).then(Step::text("b")).then_repeat(Step::text("c"), 2);
    check(script, vec![at_turn(0); 6], &["a", "a", "b", "c", "c", "done"]).await;
}

#[tokio::test]
async fn exceptions_and_side_answers_take_no_step() {
    let script = Script::new([Step::text("one")])
        .side_answer(Step::text("a title"))
        .answer_when(Step::text("summary"), |it| it.last_user_text() == "summarise");
    check(script, vec![request("summarise"), side(), at_turn(0)], &["summary", "a title", "one"]).await;
}

#[tokio::test]
async fn a_dynamic_step_sees_the_request() {
    let step = Step::dynamic(|it| Step::text(format!("you said {}", it.last_user_text())));
    check(Script::repeat(step, 2), vec![request("a"), request("b")], &["you said a", "you said b"]).await;
}

#[tokio::test]
async fn script_in_json_is_played() {
    let script = Script::from_json(
        r#"[
            {"repeat": {"text": "again"}, "n": 2},
            {"status": 429, "headers": {"retry-after": 0}, "error": {"type": "x", "message": "y"}},
            {"thinking": "hm", "text": "both", "tools": [{"name": "Read", "input": {}}], "chunk": 1},
            {"text": "torn", "break": {"cut": {"after": 3}}}
        ]"#,
    );
    check(script.unwrap(), vec![at_turn(0); 5], &["again", "again", "429", "both", "cut"]).await;
}

#[test]
fn the_json_form_round_trips() {
    let steps = [
        json!({"content": [{"type": "text", "text": "a"}], "stop_reason": "refusal"}),
        json!({"content": [], "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}}),
        json!({"delay_ms": 5, "chunk": 6, "chunk_delay_ms": 7, "times": 8}),
        json!({"status": 529, "headers": {"retry-after": "1"}, "error": {"type": "t", "message": "m"}}),
        json!({"break": "hang"}),
        json!({"break": "refuse", "reset": true}),
        json!({"break": {"cut_inside": "middle"}, "unknown_events": true}),
        json!({"break": {"error_event": {"at": {"after": 2}, "kind": "k", "message": "m"}}}),
    ];
    for mut form in steps {
        let step: Step = serde_json::from_value(form.clone()).unwrap();
        if form["content"] == json!([]) {
            form.as_object_mut().unwrap().remove("content");
        }
        assert_eq!(serde_json::to_value(&step).unwrap(), form);
    }
    let script = Script::new([Step::text("a")]).by_assistant_turns();
    let text = serde_json::to_string(&script).unwrap();
    assert_eq!(serde_json::to_string(&Script::from_json(&text).unwrap()).unwrap(), text);
    assert!(serde_json::from_value::<Step>(json!({"txet": "typo"})).is_err());
}
