//! Hooks that nobody waits for, and hooks beside a person.

use loci_testkit::{Binary, Session, Step};
use serde_json::{Value, json};

use super::changes::wait_for_kept;
use super::{KEEP, answering, command, configure, last_message, specific};
use crate::support::{World, is_result, stream, user};

fn free() -> Binary {
    stream(["--permission-mode", "bypassPermissions", "--include-hook-events"]).env("IS_SANDBOX", "1")
}

fn is_response_of(event: &'static str) -> impl Fn(&Value) -> bool {
    move |frame| frame["subtype"] == "hook_response" && frame["hook_event"] == event
}

#[tokio::test]
async fn async_hook_holds_nothing_up_and_is_told_with_the_next_prompt() {
    let steps = vec![Step::call("Bash", json!({"command": "true"})), Step::text("One."), Step::text("Two.")];
    let world = World::new(steps).await;
    let said = specific("PostToolUse", json!({"additionalContext": "the tests passed"}));
    // It ends when the test says so, long after the turn has.
    let line = format!("until [ -f go ]; do sleep 0.02; done; echo '{said}'");
    let handler = json!({"type": "command", "command": line, "async": true});
    configure(&world, json!({"PostToolUse": [{"hooks": [handler]}]}));
    let mut session = world.start(&free());
    session.write_json(&user("one"));
    session.wait_for_json(is_result);
    assert!(!last_message(&world).contains("the tests passed"));
    world.home.write("go", "");
    session.wait_for_json(is_response_of("PostToolUse"));
    session.write_json(&user("two"));
    session.wait_for_json(is_result);
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
    assert!(last_message(&world).contains("PostToolUse:Bash hook added context: the tests passed"));
}

#[tokio::test]
async fn decision_of_an_async_hook_does_not_count_and_its_end_is_the_sessions() {
    let world =
        World::new(vec![Step::call("Bash", json!({"command": "touch made"})), Step::text("One.")]).await;
    let deny = specific("PreToolUse", json!({"permissionDecision": "deny"}));
    let hooks = json!({
        "PreToolUse": [{"hooks": [{"type": "command", "command": format!("echo '{deny}'"), "async": true}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "sleep 300; touch late", "async": true}]}],
    });
    configure(&world, hooks);
    let output = super::run(&world);
    assert_eq!(super::result(&output)["result"], "One.");
    assert!(world.home.project().join("made").exists());
    assert!(!world.home.project().join("late").exists());
}

#[tokio::test]
async fn async_rewake_hook_that_blocks_wakes_the_model() {
    let steps = vec![
        Step::call("Bash", json!({"command": "true"})),
        Step::text("One."),
        Step::text("I will mend it."),
    ];
    let world = World::new(steps).await;
    let line = "until [ -f go ]; do sleep 0.02; done; echo the tests fail >&2; exit 2";
    let handler = json!({"type": "command", "command": line, "asyncRewake": true});
    configure(&world, json!({"PostToolUse": [{"hooks": [handler]}]}));
    let mut session = world.start(&free());
    session.write_json(&user("one"));
    session.wait_for_json(is_result);
    world.home.write("go", "");
    // Nobody asks anything: the turn begins by itself.
    let second = session.wait_for_json(is_result);
    assert_eq!(second["result"], "I will mend it.");
    session.close_stdin();
    session.finish();
    assert!(last_message(&world).contains("the tests fail"), "{}", last_message(&world));
}

fn asking() -> Binary {
    stream(["--permission-prompt-tool", "stdio"])
}

fn is_question(frame: &Value) -> bool {
    frame["request"]["subtype"] == "can_use_tool"
}

fn allow(session: &mut Session, question: &Value) {
    let answer = json!({"behavior": "allow", "updatedInput": question["request"]["input"]});
    session.write_json(&json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": question["request_id"], "response": answer}}));
}

fn touch() -> Vec<Step> {
    vec![Step::call("Bash", json!({"command": "touch made"})), Step::text("Done.")]
}

#[tokio::test]
async fn question_that_waits_is_notified() {
    let world = World::new(touch()).await;
    configure(&world, json!({"Notification": command("permission_prompt", KEEP)}));
    let mut session = world.start(&asking());
    session.write_json(&user("go"));
    let question = session.wait_for_json(is_question);
    let told = wait_for_kept(&world, 1);
    assert_eq!(told[0]["notification_type"], "permission_prompt");
    assert!(told[0]["message"].as_str().unwrap().contains("Bash"), "{told:?}");
    allow(&mut session, &question);
    session.wait_for_json(is_result);
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
    assert_eq!(wait_for_kept(&world, 1).len(), 1);
}

#[tokio::test]
async fn first_answer_to_a_question_wins() {
    let reply = |behavior: &str| {
        specific("PermissionRequest", json!({"decision": {"behavior": behavior, "message": "by a hook"}}))
    };
    // The hook is first: the question to the client is withdrawn.
    for (behavior, is_made) in [("allow", true), ("deny", false)] {
        let world = World::new(touch()).await;
        configure(&world, json!({"PermissionRequest": answering("Bash", &reply(behavior))}));
        let mut session = world.start(&asking());
        session.write_json(&user("go"));
        let question = session.wait_for_json(is_question);
        let withdrawn = session.wait_for_json(|frame| frame["type"] == "control_cancel_request");
        assert_eq!(withdrawn["request_id"], question["request_id"]);
        session.wait_for_json(is_result);
        // One that comes later changes nothing.
        allow(&mut session, &question);
        session.close_stdin();
        assert_eq!(session.finish().code, Some(0));
        assert_eq!(world.home.project().join("made").exists(), is_made, "{behavior}");
    }
    // The client is first: what the hook would say is not waited for.
    let world = World::new(touch()).await;
    let slow = format!("{KEEP}; sleep 300; echo '{}'", reply("deny"));
    configure(&world, json!({"PermissionRequest": command("Bash", &slow)}));
    let mut session = world.start(&asking());
    session.write_json(&user("go"));
    let question = session.wait_for_json(is_question);
    assert_eq!(wait_for_kept(&world, 1).len(), 1, "the hook was asked beside the client");
    allow(&mut session, &question);
    assert_eq!(session.wait_for_json(is_result)["result"], "Done.");
    session.close_stdin();
    session.finish();
    assert!(world.home.project().join("made").exists());
}
