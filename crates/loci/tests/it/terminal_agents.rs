//! The agent view, goals, side tasks and what is learned from answers, at a real terminal and without one.

use loci_testkit::{Gate, Recorded, Screen, Script, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, print, watched};

const SIZE: (u16, u16) = (110, 40);

fn is_agents(request: &Recorded) -> bool {
    request.header("x-claude-code-agent-id").is_some()
}

/// Whether a request is that of the fork that was given the side task; what the conversation is told of its end is not.
fn is_side_task(request: &Recorded) -> bool {
    let said = request.last_user_text();
    said.contains("look for other callers") && !said.contains("task-notification")
}

/// Whether a request asks the small model whether a goal holds.
fn is_goal_check(request: &Recorded) -> bool {
    has(request, "has reached the goal that its user set")
}

fn has(request: &Recorded, text: &str) -> bool {
    String::from_utf8_lossy(&request.body).contains(text)
}

fn leave(mut screen: Screen) {
    screen.type_text("/exit\r");
    assert!(screen.finish().is_cooked, "the terminal is given back");
}

#[tokio::test]
async fn agent_is_followed_spoken_to_and_heard() {
    let gate = Gate::new();
    let call = json!({"description": "short task", "prompt": "Look for it.", "subagent_type": "general-purpose",
        "run_in_background": true});
    let script = Script::new([
        Step::call("Agent", call),
        Step::text("It is on its way."),
        Step::text("The helper has answered."),
    ])
    .route(
        [
            Step::text("I begin to look.").tool("Glob", json!({"pattern": "*.none"})),
            Step::text("Half of it is found.").wait_before_headers(gate.clone()),
            Step::text("All of it is found."),
        ],
        is_agents,
    );
    let world = World::new(script).await;
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("It is on its way.");
    screen.wait_for("tokens\n");
    // ← on an empty prompt.
    screen.type_text("\x1b[D");
    screen.wait_for("general-purpose: short task");
    screen.type_text("\r");
    screen.wait_for("I begin to look.");
    // What is said before would be heard with the result of its call, and there would be no other step.
    world.model.wait_for_requests(4).await;
    screen.type_text("m");
    screen.wait_for("To it:");
    screen.type_text("look at b, too\r");
    screen.wait_for("hears it before its next step");
    gate.release();
    screen.wait_for("All of it is found.");
    screen.wait_for("· done");
    screen.type_text("\x1b");
    screen.wait_for("Definitions");
    screen.type_text("\x1b");
    screen.wait_gone("Definitions");
    screen.wait_for("The helper has answered.");
    leave(screen);
    let told = world.requests().into_iter().filter(is_agents).any(|it| has(&it, "look at b, too"));
    assert!(told, "the agent was told");
}

#[tokio::test]
async fn goal_lets_the_work_go_on_until_it_holds() {
    let script = Script::new([
        Step::text("I have begun."),
        Step::call("Bash", json!({"command": "echo 7 passed"})),
        Step::text("7 passed."),
    ])
    .route(
        Script::new([
            Step::text(r#"{"ok": false, "reason": "no test was run"}"#),
            Step::text(r#"{"ok": true, "reason": "7 passed is shown"}"#),
        ])
        .every_request(),
        is_goal_check,
    );
    let world = World::new(script).await;
    let output = world.run(&watched(["/goal the tests pass"]));
    assert_fine(&output);
    let frames = output.json_lines();
    let goals: Vec<_> = frames.iter().filter(|it| it["subtype"] == "goal_status").collect();
    let states: Vec<_> = goals.iter().map(|it| it["status"].as_str().unwrap_or_default()).collect();
    assert_eq!(states, ["not_yet", "reached"], "{frames:?}");
    let told: Vec<_> =
        frames.iter().filter(|it| it["type"] == "active_goal").map(|it| &it["value"]).collect();
    let told: Vec<_> =
        told.iter().map(|it| (&it["condition"], &it["iterations"], &it["last_reason"])).collect();
    let (goal, none) = (json!("the tests pass"), Value::Null);
    assert_eq!(
        told,
        [(&goal, &json!(0), &none), (&goal, &json!(1), &json!("no test was run")), (&none, &none, &none)],
        "set, looked at, and no more"
    );
    let main: Vec<Recorded> = world.requests().into_iter().filter(|it| !is_goal_check(it)).collect();
    assert!(has(&main[0], "the tests pass"), "the condition is the directive");
    assert!(has(&main[1], "no test was run"), "the reason is the guidance");
    assert_eq!(main.len(), 3);
}

#[tokio::test]
async fn goal_of_a_session_is_restored_until_it_holds() {
    let script = Script::new([Step::text("I have begun."), Step::text("All pass.")]).route(
        Script::new([Step::text("who knows"), Step::text(r#"{"ok": true, "reason": "it is shown"}"#)])
            .every_request(),
        is_goal_check,
    );
    let world = World::new(script).await;
    assert_fine(&world.run(&print(["/goal the tests pass"])));
    let mut screen = world.start_interface(["-c"], SIZE);
    screen.wait_for("◎ /goal active");
    screen.type_text("go on\r");
    screen.wait_for("The goal is reached: the tests pass");
    screen.wait_gone("/goal active");
    leave(screen);
    let mut screen = world.start_interface(["-c"], SIZE);
    screen.wait_for("All pass.");
    let seen = screen.wait_for("for shortcuts");
    assert!(!seen.contains("/goal active"), "{seen}");
    leave(screen);
}

#[tokio::test]
async fn goal_is_refused_where_hooks_are_and_cleared_by_a_word() {
    let world = World::new([]).await;
    let output = world.run(&print(["/goal x", "--settings", r#"{"disableAllHooks": true}"#]));
    assert!(output.stdout.contains("disableAllHooks"), "{output:?}");
    let output = world.run(&print(["/goal clear"]));
    assert!(output.stdout.contains("No goal set"), "{output:?}");
    assert_eq!(world.requests().len(), 0);
}

#[tokio::test]
async fn side_task_goes_to_a_fork_that_knows_the_conversation() {
    let script = Script::new([Step::text("The port is 7007."), Step::text("The side task is done.")])
        .route([Step::text("Other callers: none.")], is_side_task);
    let world = World::new(script).await;
    let mut screen = world.start_interface(["remember the port"], SIZE);
    screen.wait_for("The port is 7007.");
    screen.wait_for("tokens\n");
    screen.type_text("/subtask look for other callers\r");
    screen.wait_for("works on it in the background");
    screen.wait_for("The side task is done.");
    leave(screen);
    let forked: Vec<Recorded> = world.requests().into_iter().filter(is_side_task).collect();
    assert_eq!(forked.len(), 1);
    for text in ["The port is 7007.", "look for other callers"] {
        assert!(has(&forked[0], text), "{text}");
    }
}

#[tokio::test]
async fn rules_are_learned_from_answers_and_saved() {
    let script = Script::new([
        Step::call("Bash", json!({"command": "tool lint src/a"})),
        Step::call("Bash", json!({"command": "tool lint src/b"})),
        Step::text("Done."),
    ]);
    let world = World::new(script).await;
    let mut screen = world.start_interface(["go"], SIZE);
    for file in ["src/a", "src/b"] {
        screen.wait_until("the question", |seen| {
            seen.contains(&format!("tool lint {file}"))
                && seen.contains("1. Yes")
                && !seen.contains("typing pauses")
        });
        screen.type_text("1");
    }
    screen.wait_for("Done.");
    screen.type_text("/fewer-permission-prompts\r");
    screen.wait_for("Bash(tool lint *)");
    screen.wait_for("every command that begins with");
    screen.type_text(" s");
    screen.wait_for("Saved in your settings");
    screen.type_text("/debug\r");
    screen.wait_for("The last turn took");
    screen.wait_for("call Bash tool lint src/a");
    screen.type_text("\x1b");
    screen.wait_gone("The last turn took");
    leave(screen);
    let saved = std::fs::read_to_string(world.home.project().join(".claude/settings.local.json")).unwrap();
    assert!(saved.contains("Bash(tool lint *)"), "{saved}");
}

#[tokio::test]
async fn commands_about_the_session_are_answered_without_a_terminal() {
    let world = World::new([]).await;
    for (command, expected) in [
        ("/tasks", "Nothing runs in the background"),
        ("/agents", "Can be sent out: "),
        ("/list-agents", "No agent was sent out"),
        ("/stop", "Nothing runs in the background"),
        ("/goal", "No goal set"),
        ("/debug", "Nothing was asked of a model yet"),
        ("/fewer-permission-prompts", "Nothing was asked in this session"),
        ("/plugin", "There are no plugins"),
        ("/sandbox", "This machine can give"),
        ("/context time", "Nothing was answered yet"),
        ("/subtask look", "There is no conversation yet"),
    ] {
        let output = world.run(&print([command]));
        assert!(output.stdout.contains(expected), "{command}: {output:?}");
    }
    assert_eq!(world.requests().len(), 0);
}
