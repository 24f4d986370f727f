//! Questions, plans, agents' questions and background work at a real terminal.

use std::time::{Duration, Instant};

use loci_testkit::{Recorded, Screen, Script, Step};
use serde_json::json;

use crate::support::{World, loci};

const SIZE: (u16, u16) = (110, 40);

fn is_agents(request: &Recorded) -> bool {
    request.header("x-claude-code-agent-id").is_some()
}

fn leave(mut screen: Screen) {
    screen.type_text("/exit\r");
    assert!(screen.finish().is_cooked, "the terminal is given back");
}

#[tokio::test]
async fn questions_of_the_model_are_answered_at_the_terminal() {
    let option = |label: &str| json!({"label": label, "description": format!("It is {label}")});
    let ask = json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [option("Red"), option("Blue")]},
        {"question": "Which sizes?", "header": "Size", "multiSelect": true, "options": [option("Small"), option("Large")]}
    ]});
    let world = World::new([Step::call("AskUserQuestion", ask), Step::text("I see.")]).await;
    let mut screen = world.start_interface(["go"], SIZE);
    let contents = screen.wait_for("Enter to choose");
    assert!(contents.contains("2. Blue") && contents.contains("Other:"), "{contents}");
    screen.type_text("2");
    screen.wait_for("Which sizes?");
    // Both, and a word of one's own.
    screen.type_text("1");
    screen.wait_for("[x] Small");
    screen.type_text("\x1b[B\r\x1b[B");
    let contents = screen.wait_for("[x] Large");
    assert!(contents.contains("4. Send"), "{contents}");
    screen.type_text("Huge\r");
    screen.wait_for("I see.");
    let told = world.last_request().tool_results().remove(0).text;
    for part in ["Blue", "Small", "Large", "Huge"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("Red"), "{told}");
    leave(screen);
}

#[tokio::test]
async fn plan_is_refused_with_words_and_then_approved_at_the_terminal() {
    let plan = |text: &'static str| {
        Step::dynamic(move |request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            let file = body.split("The plan file is ").nth(1).unwrap().split(". ").next().unwrap().to_owned();
            Step::call("Write", json!({"file_path": file, "content": text}))
        })
    };
    let exit = || Step::call("ExitPlanMode", json!({}));
    let world = World::new([]).await;
    let script = [
        plan("1. Build it at once"),
        exit(),
        plan("1. Build it at once\n2. Test it well"),
        exit(),
        Step::call("Write", json!({"file_path": world.path("made"), "content": "x"})),
        Step::text("All done."),
    ];
    let world = world.then(script).await;
    let mut screen = world.start_interface(["--permission-mode", "plan", "plan it"], SIZE);
    let contents = screen.wait_for("Is this plan good?");
    assert!(contents.contains("Build it at once"), "{contents}");
    screen.wait_for("No, keep planning");
    screen.wait_for("Tab comment");
    screen.type_text("\x1b[A\tand tests?\r");
    screen.wait_for("Test it well");
    screen.wait_for("Is this plan good?");
    screen.wait_for("Tab comment");
    screen.type_text("2");
    screen.wait_for("All done.");
    assert!(world.home.project().join("made").exists(), "edits are accepted from now on");
    let said = world.requests().iter().any(|it| String::from_utf8_lossy(&it.body).contains("and tests?"));
    assert!(said, "the model knows what was missing");
    leave(screen);
}

#[tokio::test]
async fn plan_is_carried_out_in_a_new_conversation_where_that_is_chosen() {
    let plan = Step::dynamic(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let file = body.split("The plan file is ").nth(1).unwrap().split(". ").next().unwrap().to_owned();
        Step::call("Write", json!({"file_path": file, "content": "1. Build it at once"}))
    });
    let script = [plan, Step::call("ExitPlanMode", json!({})), Step::text("All built.")];
    let world = World::new(script).await;
    world.home.write_config("settings.json", r#"{"showClearContextOnPlanAccept": true}"#);
    let mut screen = world.start_interface(["--permission-mode", "plan", "plan it"], SIZE);
    screen.wait_for("3. Yes, and begin a new conversation with the plan alone");
    screen.wait_for("Tab comment");
    screen.type_text("3");
    screen.wait_for("All built.");
    let request = world.last_request();
    let said = request.json["messages"].to_string();
    assert!(said.contains("Carry out this plan") && said.contains("Build it at once"), "{said}");
    assert!(!said.contains("plan it") && !said.contains("ExitPlanMode"), "nothing else is left: {said}");
    assert!(!screen.contents().contains("plan mode on"), "and it is carried out");
    leave(screen);
    assert_eq!(world.home.sessions().len(), 2, "the planning is kept");
}

#[tokio::test]
async fn question_of_an_agent_at_the_terminal_names_it() {
    let call = json!({"description": "short task", "prompt": "Work.", "subagent_type": "general-purpose",
        "run_in_background": true});
    let script =
        Script::new([Step::call("Agent", call), Step::text("It is on its way."), Step::text("Heard.")])
            .route([Step::call("Bash", json!({"command": "touch made"})), Step::text("Done.")], is_agents);
    let world = World::new(script).await;
    let mut screen = world.start_interface(["go"], SIZE);
    let contents = screen.wait_for("general-purpose (short task) asks: may this command run?");
    assert!(contents.contains("touch made"), "{contents}");
    screen.wait_for("Tab comment");
    screen.type_text("\r");
    screen.wait_for("Heard.");
    assert!(world.home.project().join("made").exists());
    leave(screen);
}

#[tokio::test]
async fn task_list_and_background_commands_are_seen_at_the_terminal() {
    let create = |subject: &str| json!({"subject": subject, "description": "d", "activeForm": "Doing it"});
    let script = [
        Step::call("TaskCreate", create("Build the house")).tool("TaskCreate", create("Paint the door")),
        Step::call("TaskUpdate", json!({"taskId": "1", "status": "completed"}))
            .tool("TaskUpdate", json!({"taskId": "2", "status": "in_progress"})),
        Step::call("Bash", json!({"command": "echo begun; sleep 600", "run_in_background": true})),
        Step::text("Under way."),
        Step::text("I see."),
    ];
    let world = World::new(script).await;
    let mut screen = world.start_interface(["go", "--allowedTools", "Bash"], SIZE);
    screen.wait_for("Under way.");
    let contents = screen.contents();
    assert!(contents.contains("Paint the door") && contents.contains("◼ Doing it"), "{contents}");
    screen.type_text("/tasks\r");
    screen.wait_for("running  shell: echo begun");
    screen.wait_for("Enter look");
    screen.type_text("\r");
    screen.wait_for("r read again");
    screen.type_text("x");
    screen.wait_for("sleep 600 · stopped");
    screen.type_text("\x1b");
    screen.wait_for("Background tasks");
    screen.type_text("\x1b");
    screen.wait_gone("Background tasks");
    leave(screen);
}

#[tokio::test]
async fn task_list_is_hidden_in_the_next_session_where_it_was_left_so() {
    let create = json!({"subject": "Build the house", "description": "d"});
    let script = [Step::call("TaskCreate", create), Step::text("Under way.")];
    let world = World::new(script).await;
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("Under way.");
    screen.wait_for("◻ Build the house");
    screen.type_text("\x14");
    screen.wait_gone("◻ Build the house");
    let state = || std::fs::read_to_string(world.home.home().join(".claude.json")).unwrap();
    let last = Instant::now() + Duration::from_secs(60);
    while !state().contains("\"showExpandedTodos\": false") && Instant::now() < last {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(state().contains("\"showExpandedTodos\": false"), "{}", state());
    leave(screen);
    let mut screen = loci().args(["-c"]).start_screen(&world.home, world.model.base_url(), SIZE);
    screen.wait_for("for shortcuts");
    let contents = screen.wait_for("Under way.");
    assert!(!contents.contains("◻ Build the house"), "{contents}");
    screen.type_text("\x14");
    screen.wait_for("◻ Build the house");
    leave(screen);
}
