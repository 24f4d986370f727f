//! Frames of the stream beside those of the conversation, each as `stream-json` has it.

use crate::support::{World, assert_fine, control, is_result, loci, stream, user, watched};
use loci_testkit::{Gate, Output, Recorded, Script, Session, Step};
use serde_json::{Value, json};

const ID: &str = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a01";
const SECOND: &str = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a02";

fn prompt(text: &str, uuid: &str) -> Value {
    let mut line = user(text);
    line["uuid"] = json!(uuid);
    line
}

/// Returns the frames of a type, or of a subtype of `system`.
fn frames_of(output: &Output, name: &str) -> Vec<Value> {
    let is_it =
        |frame: &Value| frame["type"] == name || frame["type"] == "system" && frame["subtype"] == name;
    output.json_lines().into_iter().filter(is_it).collect()
}

fn ask(session: &mut Session, request: Value) -> Value {
    session.write_json(&control("r1", request));
    session.wait_for_json(|frame| frame["type"] == "control_response")["response"].clone()
}

#[tokio::test]
async fn permission_denied_is_told_for_a_call_that_nobody_is_asked_about() {
    let world = World::new([Step::call("Bash", json!({"command": "touch ran"})), Step::text("Done.")]).await;
    let output = world.run(&watched(["hi", "--permission-mode", "dontAsk"]));
    assert_fine(&output);
    let frames = frames_of(&output, "permission_denied");
    let [frame] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((&frame["tool_name"], &frame["decision_reason_type"]), (&json!("Bash"), &json!("mode")));
    assert!(frame["message"].as_str().unwrap().contains("Bash"), "{frame}");
    let lines = output.json_lines();
    let at = |is_it: &dyn Fn(&Value) -> bool| lines.iter().position(is_it).unwrap();
    let denied = at(&|line| line["subtype"] == "permission_denied");
    let result = at(&|line| line["message"]["content"][0]["type"] == "tool_result");
    assert!(denied < result, "the client hears of it before its result");
    let result = lines.iter().find(|line| is_result(line)).unwrap();
    assert_eq!(result["permission_denials"][0]["tool_use_id"], frame["tool_use_id"]);
}

#[tokio::test]
async fn thinking_tokens_are_told_while_the_model_thinks() {
    let thought = "a".repeat(400);
    let world = World::new([Step::text("Done.").thinking(&thought, "sig")]).await;
    let output = world.run(&watched(["hi"]));
    assert_fine(&output);
    let frames = frames_of(&output, "thinking_tokens");
    let last = frames.last().unwrap();
    let of = |frame: &Value, key: &str| frame[key].as_u64().unwrap();
    assert!(of(last, "estimated_tokens") >= 100, "{last}");
    let sum: u64 = frames.iter().map(|frame| of(frame, "estimated_tokens_delta")).sum();
    assert_eq!(sum, of(last, "estimated_tokens"), "{frames:?}");
    let lines = output.json_lines();
    let told = lines.iter().rposition(|line| line["subtype"] == "thinking_tokens").unwrap();
    let whole = lines.iter().position(|line| line["message"]["content"][0]["type"] == "thinking").unwrap();
    assert!(told < whole, "before the block is whole");
}

#[tokio::test]
async fn tool_progress_tells_that_an_agent_waits_before_it_asks_again() {
    let call = json!({"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose",
        "run_in_background": false});
    let is_agents = |request: &Recorded| request.json["messages"][0].to_string().contains("Look around.");
    let failed = Step::status(529).header("retry-after", "0").error("overloaded_error", "busy");
    let n_asked = std::sync::atomic::AtomicUsize::new(0);
    let answer = Step::dynamic(move |_| match n_asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => failed.clone(),
        _ => Step::text("Seen."),
    });
    let script = Script::new([Step::call("Agent", call), Step::text("Done.")]).answer_when(answer, is_agents);
    let world = World::new(script).await;
    let output = world.run(&watched(["hi"]));
    assert_fine(&output);
    let frames = frames_of(&output, "tool_progress");
    let [waits, goes_on] = &frames[..] else { panic!("{frames:?}") };
    let retry = &waits["subagent_retry"];
    assert_eq!(
        (&retry["attempt"], &retry["error_status"], &retry["error_category"]),
        (&json!(1), &json!(529), &json!("overloaded"))
    );
    assert_eq!((&waits["tool_name"], &waits["subagent_type"]), (&json!("Agent"), &json!("general-purpose")));
    assert!(waits["parent_tool_use_id"].is_string() && goes_on["subagent_retry"].is_null(), "{frames:?}");
    assert_eq!(goes_on["parent_tool_use_id"], waits["parent_tool_use_id"]);
}

#[tokio::test]
async fn hook_progress_tells_what_a_hook_has_printed_while_it_runs() {
    let world = World::new([Step::text("Done.")]).await;
    let gate = world.home.project().with_file_name("gate");
    let command = format!("echo begun; while [ ! -e '{}' ]; do sleep 0.05; done; echo over", gate.display());
    let hooks = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]}});
    world.home.write_config("settings.json", hooks.to_string());
    let mut session = world.start(&stream([]));
    session.write_json(&user("hi"));
    let frame = session.wait_for_json(|frame| frame["subtype"] == "hook_progress");
    assert_eq!(
        (&frame["stdout"], &frame["output"], &frame["stderr"]),
        (&json!("begun\n"), &json!("begun\n"), &json!(""))
    );
    assert_eq!(frame["hook_event"], "SessionStart", "{frame}");
    std::fs::write(&gate, "").unwrap();
    let ended = session.wait_for_json(|frame| frame["subtype"] == "hook_response");
    assert_eq!((&ended["hook_id"], &ended["stdout"]), (&frame["hook_id"], &json!("begun\nover\n")));
    session.wait_for_json(is_result);
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
}

#[tokio::test]
async fn prompt_suggestion_is_told_from_the_second_answer_on_where_it_is_asked_for() {
    let is_side = |request: &Recorded| request.json.to_string().contains("in the user's place");
    for (flags, expected) in [(&["--prompt-suggestions"][..], vec!["run the tests"]), (&[], vec![])] {
        let script = Script::new([Step::text("One."), Step::text("Two.")])
            .answer_when(Step::text("\"run the tests\""), is_side);
        let world = World::new(script).await;
        let mut session = world.start(&stream([]).args(flags.iter().copied()));
        for text in ["first", "second"] {
            session.write_json(&user(text));
            session.wait_for_json(is_result);
        }
        if !expected.is_empty() {
            session.wait_for_json(|frame| frame["type"] == "prompt_suggestion");
        }
        session.close_stdin();
        let output = session.finish();
        let told: Vec<Value> = frames_of(&output, "prompt_suggestion");
        let told: Vec<&str> = told.iter().filter_map(|frame| frame["suggestion"].as_str()).collect();
        assert_eq!(told, expected, "{flags:?}");
        assert_eq!(output.stderr, "");
    }
}

#[tokio::test]
async fn rate_limit_event_tells_what_the_server_says_of_limits_once() {
    let limited = |step: Step| {
        step.header("anthropic-ratelimit-unified-status", "allowed_warning")
            .header("anthropic-ratelimit-unified-reset", "1800000000")
            .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
            .header("anthropic-ratelimit-unified-5h-utilization", "0.91")
            .header("anthropic-ratelimit-unified-overage-status", "rejected")
    };
    let world =
        World::new([limited(Step::call("Bash", json!({"command": "true"}))), limited(Step::text("Done."))])
            .await;
    let output = world.run(&watched(["hi", "--allowedTools", "Bash"]));
    assert_fine(&output);
    let frames = frames_of(&output, "rate_limit_event");
    let [frame] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(
        frame["rate_limit_info"],
        json!({"status": "allowed_warning", "resetsAt": 1_800_000_000, "rateLimitType": "five_hour",
            "utilization": 0.91, "overageStatus": "rejected"})
    );
    let world = World::new([Step::text("Done.")]).await;
    assert!(frames_of(&world.run(&watched(["hi"])), "rate_limit_event").is_empty());
}

#[tokio::test]
async fn way_of_a_prompt_with_an_id_is_told_from_queued_to_completed_or_cancelled() {
    let gate = Gate::new();
    let world = World::new([Step::text("One.").wait_for(gate.clone())]).await;
    let mut session = world.start(&stream([]));
    session.write_json(&prompt("one", ID));
    session.wait_for_json(|frame| frame["state"] == "started");
    session.write_json(&prompt("two", SECOND));
    let request = json!({"subtype": "cancel_async_message", "message_uuid": SECOND});
    assert_eq!(ask(&mut session, request)["response"], json!({"cancelled": true}));
    gate.release();
    session.wait_for_json(is_result);
    session.wait_for_json(|frame| frame["state"] == "completed");
    let output = session.finish();
    assert_fine(&output);
    let told: Vec<(Value, Value)> = frames_of(&output, "command_lifecycle")
        .into_iter()
        .map(|frame| (frame["command_uuid"].clone(), frame["state"].clone()))
        .collect();
    let expected =
        [(ID, "queued"), (ID, "started"), (SECOND, "queued"), (SECOND, "cancelled"), (ID, "completed")];
    assert_eq!(told, expected.map(|(id, state)| (json!(id), json!(state))));
    let answer = &frames_of(&output, "assistant")[0];
    assert_eq!((&answer["user_message_uuid"], &answer["user_message_uuids"]), (&json!(ID), &json!([ID])));
    assert!(answer["timestamp"].is_string(), "{answer}");
    let result = &frames_of(&output, "result")[0];
    assert_eq!((&result["user_message_uuids"], &result["queued_turn_count"]), (&json!([ID]), &json!(0)));
}

#[tokio::test]
async fn background_tasks_changed_has_all_that_runs_and_an_interrupt_stops_it() {
    let call = json!({"command": "sleep 60", "run_in_background": true});
    for (initialize, is_stopped) in [
        (json!({"subtype": "initialize"}), true),
        (json!({"subtype": "initialize", "perTaskStopAffordance": true}), false),
    ] {
        let world = World::new([Step::call("Bash", call.clone()), Step::text("Done.")]).await;
        let mut session = world.start(&stream(["--allowedTools", "Bash"]));
        assert_eq!(ask(&mut session, initialize)["subtype"], "success");
        session.write_json(&user("hi"));
        let changed = session.wait_for_json(|frame| frame["subtype"] == "background_tasks_changed");
        let started = session.wait_for_json(|frame| frame["subtype"] == "task_started");
        assert_eq!(changed["tasks"][0]["task_id"], started["task_id"], "{changed}");
        assert_eq!(
            (&changed["tasks"][0]["task_type"], &started["is_backgrounded"]),
            (&json!("local_bash"), &json!(true))
        );
        session.wait_for_json(is_result);
        session.write_json(&control("r2", json!({"subtype": "interrupt"})));
        if is_stopped {
            session.wait_for_json(|frame| frame["patch"]["status"] == "killed");
            let last = session.wait_for_json(|frame| frame["subtype"] == "background_tasks_changed");
            assert_eq!(last["tasks"], json!([]));
        }
        let output = session.finish();
        let interrupted =
            output.json_lines().iter().position(|frame| frame["response"]["request_id"] == "r2");
        let lines = output.json_lines();
        let later = &lines[interrupted.unwrap()..];
        let is_killed = later.iter().any(|frame| frame["patch"]["status"] == "killed");
        assert!(is_killed || !is_stopped, "{later:?}");
    }
}

#[tokio::test]
async fn commands_changed_has_the_commands_once_skills_come_and_reload_plugins_answers_with_all() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut session = world.start(&stream([]));
    ask(&mut session, json!({"subtype": "initialize"}));
    session.write_json(&user("one"));
    session.wait_for_json(is_result);
    world
        .home
        .write(".claude/skills/tidy-up/SKILL.md", "---\nname: tidy-up\ndescription: Tidies.\n---\nTidy.");
    let skills = ask(&mut session, json!({"subtype": "reload_skills"}));
    assert!(skills["response"]["skills"].to_string().contains("tidy-up"), "{skills}");
    session.write_json(&user("two"));
    let changed = session.wait_for_json(|frame| frame["subtype"] == "commands_changed");
    assert!(changed["commands"].as_array().unwrap().iter().any(|it| it["name"] == "tidy-up"), "{changed}");
    session.wait_for_json(is_result);
    let reloaded = ask(&mut session, json!({"subtype": "reload_plugins"}))["response"].clone();
    for key in ["commands", "agents", "plugins", "mcpServers"] {
        assert!(reloaded[key].is_array(), "{key}: {reloaded}");
    }
    assert_eq!(reloaded["error_count"], 0);
    let busy = ask(&mut session, json!({"subtype": "teleport"}));
    assert_eq!(busy["error_code"], "unsupported_request");
    let output = session.finish();
    assert_fine(&output);
    assert_eq!(frames_of(&output, "commands_changed").len(), 1);
}

#[tokio::test]
async fn refusal_of_the_model_is_told_before_its_result() {
    let world = World::new([Step::text("I cannot.").stop_reason("refusal")]).await;
    let output = world.run(&watched(["hi"]));
    let frames = frames_of(&output, "model_refusal_no_fallback");
    assert_eq!(frames.len(), 1, "{output:?}");
    assert_eq!(frames[0]["original_model"], "claude-sonnet-4-5");
    assert_eq!(frames_of(&output, "result")[0]["safety_stops"], 1);
}

#[tokio::test]
async fn shell_line_of_a_client_is_a_prompt_like_any_other() {
    // Nobody sits there who could have typed it, so nothing runs unasked: the model hears it.
    let world = World::new([Step::text("That would list files.")]).await;
    let output = world.run(&loci().args(["-p", "!touch ran", "--model", "claude-sonnet-4-5"]));
    assert_fine(&output);
    assert!(!world.home.project().join("ran").exists());
    assert!(world.conversation().contains("!touch ran"), "{}", world.conversation());
}

#[tokio::test]
async fn tool_aliases_of_initialize_call_another_tool() {
    let world = World::new([Step::call("Shell", json!({"command": "touch ran"})), Step::text("Done.")]).await;
    let mut session = world.start(&stream(["--allowedTools", "Bash"]));
    ask(&mut session, json!({"subtype": "initialize", "toolAliases": {"Shell": "Bash", "Bash": "Shell"}}));
    session.write_json(&user("hi"));
    let result = session.wait_for_json(is_result);
    assert_fine(&session.finish());
    assert!(world.home.project().join("ran").exists(), "{result}");
}

#[tokio::test]
async fn permission_mode_of_a_server_asks_where_the_session_would_not() {
    let servers = crate::mcp::config(json!({"s": crate::mcp::entry(&["--tools", "echo"])}));
    let call = || Step::call("mcp__s__echo", json!({"a": 1}));
    let world = World::new([call(), Step::text("One."), call(), Step::text("Two.")]).await;
    let args = ["--dangerously-skip-permissions", "--mcp-config", &servers];
    let mut session = world.start(&stream(args).env("IS_SANDBOX", "1"));
    let request = |server: &str, mode: Value| json!({"subtype": "set_mcp_permission_mode_override", "serverName": server, "mode": mode});
    let denials = |session: &mut Session| {
        session.write_json(&user("go"));
        session.wait_for_json(is_result)["permission_denials"].as_array().unwrap().len()
    };
    assert_eq!(ask(&mut session, request("s", json!("default")))["subtype"], "success");
    assert_eq!(denials(&mut session), 1, "nobody is there to be asked");
    assert!(ask(&mut session, request("t", json!("auto")))["response"]["warning"].is_string());
    assert_eq!(ask(&mut session, request("s", json!("bypassPermissions")))["subtype"], "error");
    ask(&mut session, request("s", Value::Null));
    assert_eq!(denials(&mut session), 0);
    assert_fine(&session.finish());
}
