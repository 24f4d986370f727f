//! Permission requests, questions and plans; what is cancelled is over.

use super::client::{Editor, choosing};
use crate::settings::trust;
use crate::support::{Pipe, World, assert_ended};
use loci_testkit::Step;
use serde_json::{Value, json};

fn touch(name: &str) -> Step {
    Step::call("Bash", json!({"command": format!("touch {name}"), "description": "Make a file"}))
}

fn is_permission(message: &&Value) -> bool {
    message["method"] == "session/request_permission"
}

#[tokio::test]
async fn allowed_call_runs_and_a_rejected_one_does_not() {
    for (option, is_made) in [("allow_once", true), ("reject_once", false), ("made up", false)] {
        let world = World::new([touch("made"), Step::text("Done.")]).await;
        let mut editor = Editor::start(&world, [], &json!({})).answering(choosing(option));
        let session = editor.new_session(&world);
        assert_eq!(editor.prompt(&session, "Make it"), "end_turn", "{option}");
        let asked = editor.log.iter().find(is_permission).unwrap().clone();
        let call = &asked["params"]["toolCall"];
        assert_eq!((call["kind"].as_str(), call["title"].as_str()), (Some("execute"), Some("`touch made`")));
        assert_eq!(call["rawInput"]["command"], "touch made");
        let updates = editor.updates_of(&session, "tool_call_update");
        assert_eq!(updates.last().unwrap()["status"], if is_made { "completed" } else { "failed" });
        editor.leave();
        assert_eq!(world.home.project().join("made").exists(), is_made, "{option}");
    }
}

#[tokio::test]
async fn always_keeps_what_the_engine_suggests_and_is_not_asked_again() {
    let world = World::new([touch("a"), touch("a"), Step::text("Done.")]).await;
    trust(&world);
    let mut editor = Editor::start(&world, [], &json!({})).answering(choosing("allow_always"));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Make it twice"), "end_turn");
    let asked: Vec<Value> = editor.log.iter().filter(is_permission).cloned().collect();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    let kinds: Vec<&Value> =
        asked[0]["params"]["options"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    editor.leave();
    let settings = world.home.read(".claude/settings.local.json");
    assert!(settings.contains("Bash(touch"), "{settings}");
}

#[tokio::test]
async fn rejecting_always_counts_until_the_session_ends() {
    let world = World::new([touch("a"), touch("a"), Step::text("Done.")]).await;
    let mut editor = Editor::start(&world, [], &json!({})).answering(choosing("reject_always"));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Make it twice"), "end_turn");
    assert_eq!(editor.log.iter().filter(is_permission).count(), 1);
    editor.leave();
    assert!(!world.home.project().join("a").exists());
}

#[tokio::test]
async fn cancel_stops_a_running_command_and_the_prompt_is_cancelled() {
    let world =
        World::new([Step::call("Bash", json!({"command": "cat in > out"})), Step::text("never")]).await;
    let (input, output) = (Pipe::new(&world.home, "in"), Pipe::new(&world.home, "out"));
    let mut editor =
        Editor::start(&world, ["--permission-mode", "default"], &json!({})).answering(choosing("allow_once"));
    let session = editor.new_session(&world);
    let prompt = editor.send_prompt(&session, "Wait");
    editor.asked("session/request_permission");
    // Nobody reads what the command waits to write, so it runs until it is stopped.
    let running = output.writer_came();
    editor.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(editor.answer_to(prompt)["result"]["stopReason"], "cancelled");
    assert_ended(running);
    drop(input);
    assert_eq!(editor.updates_of(&session, "tool_call_update").last().unwrap()["status"], "failed");
    editor.leave();
    world.session();
}

#[tokio::test]
async fn cancel_calls_off_open_permission_requests_and_late_answers_change_nothing() {
    let world = World::new([touch("made"), Step::text("Later.")]).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let session = editor.new_session(&world);
    let prompt = editor.send_prompt(&session, "Make it");
    let asked = editor.asked("session/request_permission");
    editor.notify("session/cancel", &json!({"sessionId": session}));
    let off = editor.asked("$/cancel_request");
    assert_eq!(off["params"]["requestId"], asked["id"]);
    assert_eq!(editor.answer_to(prompt)["result"]["stopReason"], "cancelled");
    editor.answer(&asked, &json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}));
    assert_eq!(editor.prompt(&session, "Go on"), "end_turn");
    editor.leave();
    assert!(!world.home.project().join("made").exists());
    world.session();
}

#[tokio::test]
async fn cancelled_outcome_of_a_permission_request_ends_the_turn() {
    let world = World::new([touch("made"), Step::text("never")]).await;
    let answer = |request: &Value| {
        (request["method"] == "session/request_permission")
            .then(|| json!({"outcome": {"outcome": "cancelled"}}))
    };
    let mut editor = Editor::start(&world, [], &json!({})).answering(answer);
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Make it"), "cancelled");
    editor.leave();
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn cancelled_request_ends_its_prompt_and_those_that_wait_go_on() {
    let world = World::new([touch("made"), Step::text("Second.")]).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let session = editor.new_session(&world);
    let first = editor.send_prompt(&session, "Make it");
    editor.asked("session/request_permission");
    let second = editor.send_prompt(&session, "And now");
    let third = editor.send_prompt(&session, "And then");
    editor.notify("$/cancel_request", &json!({"requestId": third}));
    assert_eq!(editor.answer_to(third)["result"]["stopReason"], "cancelled");
    editor.notify("$/cancel_request", &json!({"requestId": first}));
    assert_eq!(editor.answer_to(first)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.answer_to(second)["result"]["stopReason"], "end_turn");
    editor.leave();
}

fn ask() -> Step {
    let options = json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]);
    let question =
        json!({"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": false});
    Step::call("AskUserQuestion", json!({"questions": [question]}))
}

#[tokio::test]
async fn questions_of_the_model_are_options_of_a_permission_request() {
    let world = World::new([ask(), Step::text("Blue it is.")]).await;
    let mut editor = Editor::start(&world, [], &json!({})).answering(choosing("1"));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Ask me"), "end_turn");
    let asked = editor.log.iter().find(is_permission).unwrap();
    assert_eq!(asked["params"]["options"][1]["name"], "Blue: cold");
    editor.leave();
    assert!(world.conversation().contains("Blue"), "{}", world.conversation());
}

#[tokio::test]
async fn questions_of_the_model_are_a_form_where_the_editor_has_forms() {
    let world = World::new([ask(), Step::text("Green it is.")]).await;
    let forms = json!({"elicitation": {"form": {}}});
    let mut editor = Editor::start(&world, [], &forms).answering(|request| {
        let is_form = request["method"] == "elicitation/create" && request["params"]["mode"] == "form";
        is_form.then(|| json!({"action": "accept", "content": {"question_1_other": "Green"}}))
    });
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Ask me"), "end_turn");
    let asked = editor.log.iter().find(|it| it["method"] == "elicitation/create").unwrap();
    assert_eq!(asked["params"]["sessionId"], json!(session));
    assert_eq!(asked["params"]["requestedSchema"]["properties"]["question_1"]["oneOf"][1]["const"], "Blue");
    editor.leave();
    assert!(world.conversation().contains("Green"), "{}", world.conversation());
}

#[tokio::test]
async fn plan_is_approved_in_the_editor_and_the_mode_changes() {
    for (capabilities, policy) in [
        (json!({}), json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})),
        (
            json!({"elicitation": {"form": {}}}),
            json!({"action": "accept", "content": {"decision": "allow_once"}}),
        ),
    ] {
        let plan = Step::call("ExitPlanMode", json!({"plan": "1. Do it."}));
        let world = World::new([plan, Step::text("Begun.")]).await;
        let mut editor = Editor::start(&world, ["--permission-mode", "plan"], &capabilities)
            .answering(move |_| Some(policy.clone()));
        let session = editor.new_session(&world);
        assert_eq!(editor.prompt(&session, "Plan it"), "end_turn");
        assert!(editor.log.iter().any(|it| it.get("id").is_some() && it.to_string().contains("1. Do it.")));
        let modes = editor.updates_of(&session, "current_mode_update");
        assert_ne!(modes.last().unwrap()["currentModeId"], "plan", "{modes:?}");
        editor.leave();
    }
}
