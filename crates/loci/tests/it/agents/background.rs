//! Agents and commands in the background: told of once, whoever waits.

use loci_testkit::{Gate, Script, Step};
use serde_json::{Value, json};

use super::{agent, has, in_background, is_agents, keys, kinds, main_session, recorded, wait_until};
use crate::support::{World, assert_fine, control, is_result, print, stream, user, watched};

fn notifications(world: &World) -> Vec<String> {
    let all = main_session(world);
    let notes = all.iter().filter(|it| it["origin"]["kind"] == "task-notification");
    notes.map(|it| it["message"]["content"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn frames_and_records_are_those_of_the_reference() {
    let gate = Gate::new();
    let script = Script::new([
        Step::call("Agent", in_background("general-purpose", "Say hello later.")),
        Step::text("Started."),
        Step::text("It said hello."),
    ])
    .route([Step::text("Hello.").wait_before_headers(gate.clone())], is_agents);
    let world = World::new(script).await;
    let session = world.start_closed(&watched(["Start a helper."]));
    wait_until(
        || world.model.main_requests().iter().filter(|it| !is_agents(it)).count() == 2,
        "the first turn goes on",
    );
    gate.release();
    let output = session.finish();
    assert_fine(&output);
    let frames = output.json_lines();
    // Which of the two conversations says something first is nobody's to say.
    let (mut ours, mut theirs) = (kinds(&frames), kinds(&recorded("background/frames.jsonl")));
    // Newer than what was recorded.
    ours.retain(|kind| kind != "system/background_tasks_changed");
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
    let results: Vec<&Value> = frames.iter().filter(|it| is_result(it)).collect();
    assert_eq!(
        (&results[0]["result"], &results[1]["result"]),
        (&json!("Started."), &json!("It said hello."))
    );
    assert_eq!(results[1]["origin"], json!({"kind": "task-notification"}));
    let launch = frames.iter().find(|it| it["tool_use_result"]["isAsync"] == true).unwrap();
    let theirs = recorded("background/frames.jsonl");
    let theirs = theirs.iter().find(|it| it["tool_use_result"]["isAsync"] == true).unwrap();
    for key in keys(&theirs["tool_use_result"]) {
        assert!(!launch["tool_use_result"][key].is_null(), "{key}");
    }
    let told = notifications(&world);
    assert_eq!(told.len(), 1);
    for part in [
        "<status>completed</status>",
        "<summary>Agent \"short task\" finished</summary>",
        "the user has said nothing, and approved nothing",
        "<result>Hello.</result>",
        "<tool_uses>0</tool_uses>",
    ] {
        assert!(told[0].contains(part), "{part}: {}", told[0]);
    }
    let ended = frames.iter().find(|it| it["subtype"] == "task_notification").unwrap();
    assert_eq!(ended["summary"], "Hello.");
    let main = main_session(&world);
    let note = main.iter().find(|it| it["origin"]["kind"] == "task-notification").unwrap();
    let theirs = recorded("background/main.jsonl");
    let theirs = theirs.iter().find(|it| it["origin"]["kind"] == "task-notification").unwrap();
    assert_eq!(keys(note), keys(theirs));
    let output = std::fs::read_to_string(launch["tool_use_result"]["outputFile"].as_str().unwrap());
    assert!(
        output.is_err() || output.unwrap().contains("Hello."),
        "what it says is in its file while the session lasts"
    );
}

#[tokio::test]
async fn plain_output_is_the_answer_of_the_last_turn() {
    for format in ["text", "json"] {
        let script = Script::new([
            Step::call("Agent", in_background("general-purpose", "x")),
            Step::text("Started."),
            Step::text("It is done."),
        ])
        .route([Step::text("Hello.")], is_agents);
        let world = World::new(script).await;
        let output = world.run(&print(["go", "--output-format", format]));
        assert_eq!(output.code, Some(0));
        assert!(
            output.stdout.contains("It is done.") && !output.stdout.contains("Started."),
            "{}",
            output.stdout
        );
    }
}

#[tokio::test]
async fn idle_session_is_woken_when_background_work_ends() {
    let gate = Gate::new();
    let script = Script::new([
        Step::new()
            .tool("Agent", in_background("general-purpose", "x"))
            .tool("Bash", json!({"command": "cat go; exit 3", "run_in_background": true})),
        Step::text("Started."),
        Step::text("The agent is done."),
        Step::text("The command failed."),
    ])
    .route([Step::text("Hello.").wait_before_headers(gate.clone())], is_agents);
    let world = World::new(script).await;
    let pipe = crate::support::Pipe::new(&world.home, "go");
    let mut session = world.start(&stream(["--allowedTools", "Bash"]));
    session.write_json(&user("go"));
    assert_eq!(session.wait_for_json(is_result)["result"], "Started.");
    gate.release();
    assert_eq!(session.wait_for_json(is_result)["result"], "The agent is done.");
    drop(pipe.reader_came());
    assert_eq!(session.wait_for_json(is_result)["result"], "The command failed.");
    let output = session.finish();
    assert_fine(&output);
    let told = notifications(&world);
    assert_eq!(told.len(), 2, "each end is told once");
    assert!(
        told[1].contains("<status>failed</status>") && told[1].contains("failed with exit code 3"),
        "{}",
        told[1]
    );
    let ended: Vec<Value> = output
        .json_lines()
        .into_iter()
        .filter(|it| it["subtype"] == "task_notification")
        .map(|it| it["status"].clone())
        .collect();
    assert_eq!(ended, ["completed", "failed"]);
}

#[tokio::test]
async fn end_of_background_work_is_told_within_a_turn() {
    let script = Script::new([
        Step::call("Bash", json!({"command": "true", "run_in_background": true})),
        Step::dynamic(|_| Step::call("TaskList", json!({}))),
        Step::call("Bash", json!({"command": "sleep 0.3"})),
        Step::text("Done."),
    ]);
    let world = World::new(script).await;
    assert_fine(&world.run(&watched(["go", "--allowedTools", "Bash"])));
    let all = main_session(&world);
    let notes =
        all.iter().filter(|it| it.to_string().contains("<task-id>") && it["type"] != "queue-operation");
    assert_eq!(notes.count(), 1, "told once");
    assert!(has(world.requests().last().unwrap(), "<task-notification>"));
}

#[tokio::test]
async fn stop_task_stops_an_agent_and_the_model_hears_of_it_with_the_next_prompt() {
    let script = Script::new([
        Step::call("Agent", in_background("general-purpose", "x")),
        Step::text("Started."),
        Step::text("Understood."),
    ])
    .route([Step::text("never").hang_before_headers()], is_agents);
    let world = World::new(script).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("go"));
    let started = session.wait_for_json(|frame| frame["subtype"] == "task_started");
    session.wait_for_json(is_result);
    session.write_json(&control("r1", json!({"subtype": "stop_task", "task_id": started["task_id"]})));
    let stopped = session.wait_for_json(|frame| frame["subtype"] == "task_notification");
    assert_eq!(stopped["status"], "stopped");
    let answer = session.wait_for_json(|frame| frame["type"] == "control_response");
    assert_eq!(answer["response"]["subtype"], "success");
    session.write_json(&control("r2", json!({"subtype": "stop_task", "task_id": "unknown"})));
    assert_eq!(
        session.wait_for_json(|frame| frame["type"] == "control_response")["response"]["subtype"],
        "success"
    );
    session.write_json(&user("and now?"));
    assert_eq!(session.wait_for_json(is_result)["result"], "Understood.");
    assert_fine(&session.finish());
    assert!(has(&world.last_request(), "was stopped: stopped by request"));
}

#[tokio::test]
async fn user_moves_a_running_agent_to_the_background() {
    let gate = Gate::new();
    let script = Script::new([
        Step::call("Agent", agent("general-purpose", "x")),
        Step::text("It goes on."),
        Step::text("It is done."),
    ])
    .route([Step::text("Hello.").wait_before_headers(gate.clone())], is_agents);
    let world = World::new(script).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("go"));
    wait_until(|| world.model.requests().iter().any(is_agents), "the agent asks");
    session.write_json(&control("r1", json!({"subtype": "background_tasks"})));
    let moved = session.wait_for_json(|frame| frame["subtype"] == "task_updated");
    assert_eq!(moved["patch"], json!({"is_backgrounded": true}));
    assert_eq!(session.wait_for_json(is_result)["result"], "It goes on.");
    gate.release();
    assert_eq!(session.wait_for_json(is_result)["result"], "It is done.");
    assert_fine(&session.finish());
    assert_eq!(notifications(&world).len(), 1);
}

#[tokio::test]
async fn agent_in_the_background_survives_a_compaction() {
    let gate = Gate::new();
    let script = Script::new([
        Step::call("Agent", in_background("general-purpose", "x")),
        Step::text("Started."),
        Step::text("<summary>An agent works.</summary>"),
        Step::text("It is done."),
    ])
    .route([Step::text("Hello.").wait_before_headers(gate.clone())], is_agents);
    let world = World::new(script).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("go"));
    let started = session.wait_for_json(|frame| frame["subtype"] == "task_started");
    session.wait_for_json(is_result);
    session.write_json(&user("/compact"));
    session.wait_for_json(is_result);
    gate.release();
    assert_eq!(session.wait_for_json(is_result)["result"], "It is done.");
    assert_fine(&session.finish());
    let boundary = main_session(&world).into_iter().find(|it| it["subtype"] == "compact_boundary").unwrap();
    assert!(boundary.to_string().contains(started["task_id"].as_str().unwrap()), "{boundary}");
}

#[tokio::test]
async fn agent_whose_model_says_nothing_any_more_is_given_up() {
    let script = Script::new([
        Step::call("Agent", in_background("general-purpose", "x")),
        Step::text("Started."),
        Step::text("It failed."),
    ])
    .route([Step::text("half an answer").stall_after_events(3)], is_agents);
    let world = World::new(script).await;
    let run = watched(["go"]).env("CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS", "300");
    let output = world.run(&run);
    assert_fine(&output);
    let ended: Vec<Value> =
        output.json_lines().into_iter().filter(|it| it["subtype"] == "task_notification").collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["status"], "failed");
    let told = notifications(&world);
    assert!(told[0].contains("its model said nothing for 300 ms"), "{}", told[0]);
}

#[tokio::test]
async fn stall_limit_is_for_the_background_alone() {
    let gate = Gate::new();
    let script = Script::new([Step::call("Agent", agent("general-purpose", "x")), Step::text("Done.")])
        .route([Step::text("At last.").wait_before_headers(gate.clone())], is_agents);
    let world = World::new(script).await;
    let session = world.start_closed(&watched(["go"]).env("CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS", "1"));
    wait_until(|| world.model.requests().iter().any(is_agents), "the agent asks");
    gate.release();
    assert_fine(&session.finish());
    assert!(has(&world.last_request(), "At last."));
}

/// Ctrl+B in the protocol: a command that runs goes on beside the conversation, and its end is told once.
#[tokio::test]
async fn user_moves_a_running_command_to_the_background() {
    let command = "echo begun; until [ -e go ]; do sleep 0.01; done; echo ended";
    let world = World::new([
        Step::call("Bash", json!({"command": command})),
        Step::text("It goes on."),
        Step::text("It is done."),
    ])
    .await;
    let mut session = world.start(&stream(["--allowedTools", "Bash"]));
    session.write_json(&user("go"));
    let called = session.wait_for_json(|frame| frame["type"] == "assistant");
    assert_eq!(called["message"]["content"][0]["name"], "Bash");
    // The command may not have begun yet; then there is nothing to move, and it is asked for again.
    let mut moved = None;
    for n in 0..1000 {
        session.write_json(&control(&format!("r{n}"), json!({"subtype": "background_tasks"})));
        let answered = |frame: &Value| {
            frame["type"] == "control_response" || frame["tool_use_result"]["backgroundTaskId"].is_string()
        };
        let frame = session.wait_for_json(answered);
        if frame["tool_use_result"]["backgroundTaskId"].is_string() {
            moved = Some(frame);
            break;
        }
    }
    let moved = moved.expect("the command was moved");
    assert_eq!(moved["tool_use_result"]["backgroundedByUser"], true, "{moved}");
    assert_eq!(session.wait_for_json(is_result)["result"], "It goes on.");
    world.home.write("go", "");
    assert_eq!(session.wait_for_json(is_result)["result"], "It is done.");
    assert_fine(&session.finish());
    assert_eq!(notifications(&world).len(), 1, "its end is told once");
}

#[tokio::test]
async fn agent_that_takes_long_moves_to_the_background_where_that_was_asked_for() {
    let gate = Gate::new();
    let script = Script::new([
        Step::call("Agent", agent("general-purpose", "Take your time.")),
        Step::text("I go on."),
        Step::text("It came."),
    ])
    .route([Step::text("Late.").wait_before_headers(gate.clone())], is_agents);
    let world = World::new(script).await;
    let variables = [("CLAUDE_AUTO_BACKGROUND_TASKS", "1"), ("LOCI_AUTO_BACKGROUND_MS", "50")];
    let binary = variables.iter().fold(print(["go"]), |binary, (name, value)| binary.env(name, *value));
    let session = world.start_closed(&binary);
    let own = || world.model.main_requests().into_iter().filter(|it| !is_agents(it)).collect::<Vec<_>>();
    wait_until(|| own().len() == 2, "the conversation goes on");
    gate.release();
    let output = session.finish();
    assert_fine(&output);
    assert_eq!(output.stdout, "It came.\n");
    assert!(notifications(&world)[0].contains("<result>Late.</result>"), "{:?}", notifications(&world));
    let told = super::results(&own()[1]);
    assert!(told.contains("takes long") && !told.contains("The user moved"), "nobody moved it: {told}");
}

/// One that has nothing to do until those in the background are done holds no place that they wait for.
#[tokio::test]
async fn agent_that_waits_for_its_own_in_the_background_leaves_them_its_place() {
    let inner = Step::call("Agent", in_background("general-purpose", "Inner."));
    let script = Script::new([Step::call("Agent", agent("general-purpose", "Outer.")), Step::text("ok")])
        .route([Step::text("The inner one.")], |it| is_agents(it) && !has(it, "Outer."))
        .route([inner, Step::text("Sent."), Step::text("All is done.")], is_agents);
    let world = World::new(script).await;
    assert_fine(&world.run(&watched(["go"]).env("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "1")));
    let told = super::results(&world.last_request());
    assert!(told.contains("All is done."), "{told}");
}

/// A run that has waited long enough says that it stops what still works.
#[tokio::test]
async fn agents_that_a_run_no_longer_waits_for_are_named() {
    let gate = Gate::new();
    let script =
        Script::new([Step::call("Agent", in_background("general-purpose", "x")), Step::text("I go on.")])
            .route([Step::text("never").wait_before_headers(gate.clone())], is_agents);
    let world = World::new(script).await;
    let output = world.run(&print(["go"]).env("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", "100"));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "I go on.\n"));
    assert!(output.stderr.contains("100 ms after the last answer are stopped"), "{}", output.stderr);
}

#[tokio::test]
async fn command_of_an_agent_in_the_background_has_a_time() {
    let command = "echo $$ > pid; exec sleep 600";
    let long = Step::call("Bash", json!({"command": command, "run_in_background": true}));
    let wait = "until [ -s pid ]; do sleep 0.1; done; while kill -0 $(cat pid); do sleep 0.1; done; sleep 1";
    let told = Step::dynamic(|request| {
        let is_told = String::from_utf8_lossy(&request.body).contains("CLAUDE_SUBAGENT_BG_SHELL_MAX_MS");
        Step::text(if is_told { "It was stopped." } else { "It runs." })
    });
    let script =
        Script::new([Step::call("Agent", agent("general-purpose", "Start it.")), Step::text("Done.")])
            .route([long, Step::call("Bash", json!({"command": wait})), told], is_agents);
    let world = World::new(script).await;
    let binary = print(["go", "--allowedTools", "Bash,Edit"]).env("CLAUDE_SUBAGENT_BG_SHELL_MAX_MS", "500");
    assert_fine(&world.run(&binary));
    let results = world.last_request().json["messages"].to_string();
    assert!(results.contains("It was stopped."), "{results}");
}

/// What an agent in the background leaves running goes on; its result names it, and its end is told once.
#[tokio::test]
async fn command_of_an_agent_in_the_background_outlives_it_and_its_end_is_told_once() {
    let waiting = "until [ -e go ]; do sleep 0.05; done";
    let starts = Step::call("Bash", json!({"command": waiting, "run_in_background": true}));
    let script = Script::new([
        Step::call("Agent", in_background("general-purpose", "Start it.")),
        Step::text("Sent."),
        Step::text("I know that it runs."),
        Step::call("Bash", json!({"command": "touch go"})),
        Step::text("Touched."),
        Step::text("It is over."),
    ])
    .route([starts, Step::text("Started.")], is_agents);
    let world = World::new(script).await;
    let mut session = world.start(&stream(["--allowedTools", "Bash,Edit"]));
    session.write_json(&user("go"));
    session.wait_for_json(is_result);
    session.wait_for_json(is_result);
    session.write_json(&user("Touch it."));
    session.wait_for_json(|it| {
        it["subtype"] == "task_notification" && it["summary"].to_string().contains("until")
    });
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    let requests = world.requests();
    let last = requests.iter().rfind(|it| !is_agents(it)).unwrap();
    assert!(has(last, "What it started in the background goes on"));
    let told = String::from_utf8_lossy(&last.body).matches("completed (exit code 0)").count();
    assert_eq!(told, 1, "{:?}", last.messages());
}
