//! What a client asks about a session, and changes about it, over the control channel.

use crate::support::{World, assert_fine, control, is_result, stream, user};
use loci_testkit::{Gate, Session, Step};
use serde_json::{Value, json};

/// Asks, and returns the answer's payload.
fn ask(session: &mut Session, request: Value) -> Value {
    session.write_json(&control("r1", request.clone()));
    let frame = session.wait_for_json(|frame| frame["type"] == "control_response");
    assert_eq!(frame["response"]["subtype"], "success", "{request}: {frame}");
    frame["response"]["response"].clone()
}

fn prompt(text: &str, uuid: &str) -> Value {
    let mut line = user(text);
    line["uuid"] = json!(uuid);
    line
}

const IDS: [&str; 3] = [
    "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a01",
    "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a02",
    "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a03",
];

#[tokio::test]
async fn get_context_usage_tells_categories_that_add_up() {
    let world = World::new([Step::text("Hi.")]).await;
    world.home.write("CLAUDE.md", "Be kind. ".repeat(100));
    let mut session = world.start(&stream([]));
    session.write_json(&user("hi"));
    session.wait_for_json(is_result);
    let usage = ask(&mut session, json!({"subtype": "get_context_usage"}));
    let summary = ask(&mut session, json!({"subtype": "get_context_usage", "detail": "summary"}));
    assert_fine(&session.finish());
    let categories = usage["categories"].as_array().unwrap();
    let used: u64 =
        categories.iter().filter(|it| it["kind"] == "used").map(|it| it["tokens"].as_u64().unwrap()).sum();
    assert_eq!(usage["totalTokens"], used, "{usage}");
    assert_eq!((&usage["maxTokens"], &usage["model"]), (&json!(200_000), &json!("claude-sonnet-4-5")));
    assert_eq!(usage["isAutoCompactEnabled"], true);
    assert!(usage["autoCompactThreshold"].as_u64().unwrap() < 200_000);
    assert!(usage["memoryFiles"][0]["path"].as_str().unwrap().ends_with("CLAUDE.md"), "{usage}");
    assert!(usage["systemTools"].as_array().unwrap().iter().any(|it| it["name"] == "Bash"));
    assert_eq!(usage["gridRows"].as_array().unwrap().len(), 10);
    for key in ["percentage", "rawMaxTokens", "mcpTools", "agents", "messageBreakdown", "skills"] {
        assert!(!usage[key].is_null(), "{key}");
    }
    assert_eq!((&summary["gridRows"], &summary["messageBreakdown"]), (&json!([]), &Value::Null));
}

#[tokio::test]
async fn get_settings_tells_what_is_in_force_and_where_it_comes_from() {
    let world = World::new([]).await;
    world.home.write_config("settings.json", r#"{"cleanupPeriodDays": 9, "env": {"MY_TOKEN": "x"}}"#);
    let mut session = world.start(&stream(["--settings", r#"{"effortLevel": "low"}"#]));
    let settings = ask(&mut session, json!({"subtype": "get_settings"}));
    assert_fine(&session.finish());
    assert_eq!(settings["effective"]["cleanupPeriodDays"], 9);
    assert_eq!(settings["applied"]["model"], "claude-sonnet-4-5");
    let sources = settings["sources"].as_array().unwrap();
    let names: Vec<&str> = sources.iter().filter_map(|it| it["source"].as_str()).collect();
    assert_eq!(names, ["userSettings", "flagSettings"], "{settings}");
    assert_eq!(sources[1]["settings"]["effortLevel"], "low");
    assert!(!settings.to_string().contains("\"x\""), "secrets are hidden: {settings}");
}

#[tokio::test]
async fn apply_flag_settings_counts_at_once_and_for_the_next_session() {
    let touch = || Step::call("Bash", json!({"command": "touch ran"}));
    let world =
        World::new([touch(), Step::text("1"), touch(), Step::text("2"), touch(), Step::text("3")]).await;
    let mut session = world.start(&stream(["--allowedTools", "Bash"]));
    let run = |session: &mut Session, line: &str| {
        session.write_json(&user(line));
        session.wait_for_json(is_result)["permission_denials"].as_array().unwrap().len()
    };
    assert_eq!(run(&mut session, "A"), 0);
    let settings =
        json!({"permissions": {"deny": ["Bash(touch *)"]}, "model": "haiku", "outputStyle": "Concise"});
    ask(&mut session, json!({"subtype": "apply_flag_settings", "settings": settings}));
    assert_eq!(run(&mut session, "B"), 1);
    assert_eq!(world.last_request().json["model"], "claude-haiku-5-5");
    let settings = ask(&mut session, json!({"subtype": "get_settings"}));
    assert_eq!(settings["effective"]["permissions"]["deny"], json!(["Bash(touch *)"]), "{settings}");
    session.write_json(&user("/clear"));
    session.wait_for_json(is_result);
    assert_eq!(run(&mut session, "C"), 1, "the layer outlasts the conversation");
    let output = session.finish();
    assert_eq!(output.code, Some(0));
    assert!(output.stderr.contains("from the next session on: outputStyle"), "{}", output.stderr);
}

#[tokio::test]
async fn set_max_thinking_tokens_counts_from_the_next_request() {
    let world = World::new([Step::text("1"), Step::text("2")]).await;
    let mut session = world.start(&stream([]));
    for (most, expected) in [(json!(0), "disabled"), (json!(3000), "enabled")] {
        ask(&mut session, json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": most}));
        session.write_json(&user("hi"));
        session.wait_for_json(is_result);
        assert_eq!(world.last_request().json["thinking"]["type"], expected);
    }
    assert_fine(&session.finish());
}

#[tokio::test]
async fn interrupt_tells_which_prompts_still_wait_and_may_take_them_back() {
    for (cancels, n_results) in [(false, 2), (true, 1)] {
        let gate = Gate::new();
        let world = World::new([Step::text("So far").wait_for(gate), Step::text("Next.")]).await;
        let mut session = world.start(&stream(["--include-partial-messages"]));
        session.write_json(&prompt("A", IDS[0]));
        session.wait_for_json(|frame| frame["event"]["delta"]["type"] == "text_delta");
        session.write_json(&prompt("B", IDS[1]));
        let answer = ask(&mut session, json!({"subtype": "interrupt", "cancel_queued": cancels}));
        match cancels {
            true => assert_eq!(answer, json!({"still_queued": [], "cancelled": [IDS[1]]})),
            false => assert_eq!(answer, json!({"still_queued": [IDS[1]]})),
        }
        let output = session.finish();
        let n = output.json_lines().iter().filter(|frame| is_result(frame)).count();
        assert_eq!(n, n_results, "{output:?}");
    }
}

#[tokio::test]
async fn cancel_async_message_takes_back_a_prompt_that_waits() {
    let gate = Gate::new();
    let world = World::new([Step::text("So far").wait_for(gate.clone())]).await;
    let mut session = world.start(&stream(["--include-partial-messages"]));
    session.write_json(&prompt("A", IDS[0]));
    session.wait_for_json(|frame| frame["event"]["delta"]["type"] == "text_delta");
    session.write_json(&prompt("B", IDS[1]));
    for (uuid, expected) in [(IDS[1], true), (IDS[1], false), (IDS[0], false)] {
        let answer = ask(&mut session, json!({"subtype": "cancel_async_message", "message_uuid": uuid}));
        assert_eq!(answer, json!({"cancelled": expected}), "{uuid}");
    }
    gate.release();
    let output = session.finish();
    assert_fine(&output);
    assert_eq!(output.json_lines().iter().filter(|frame| is_result(frame)).count(), 1);
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn withdrawn_request_is_not_answered() {
    let world = World::new([]).await;
    let mut session = world.start(&stream([]));
    session.write_json(&json!({"type": "control_cancel_request", "request_id": "gone"}));
    session.write_json(&control("gone", json!({"subtype": "mcp_status"})));
    ask(&mut session, json!({"subtype": "get_usage"}));
    let output = session.finish();
    assert_fine(&output);
    assert_eq!(output.json_lines().len(), 1, "{output:?}");
}

#[tokio::test]
async fn should_query_false_is_recorded_and_answered_with_no_turn() {
    let world = World::new([Step::text("Hi.")]).await;
    let mut silent = prompt("Know this.", IDS[0]);
    silent["shouldQuery"] = json!(false);
    let output = world.run_with_stdin(&stream([]), &format!("{silent}\n{}", user("And now?")));
    assert_fine(&output);
    let turns: Vec<Value> =
        output.json_lines().into_iter().filter(is_result).map(|it| it["num_turns"].clone()).collect();
    assert_eq!(turns, [0, 1]);
    assert_eq!(world.requests().len(), 1);
    let said = world.conversation();
    assert!(said.contains("Know this.") && said.contains("And now?"), "{said}");
}

#[tokio::test]
async fn client_composed_prompt_is_sent_as_it_is() {
    let world = World::new([Step::text("Hi.")]).await;
    world.home.write("a.txt", "attached");
    let mut line = user("/usage of @a.txt");
    line["client_composed"] = json!(true);
    assert_fine(&world.run_with_stdin(&stream([]), &line.to_string()));
    let request = world.last_request().json.to_string();
    assert!(request.contains("/usage of @a.txt") && !request.contains("attached"), "{request}");
}

#[tokio::test]
async fn prompt_with_priority_next_is_heard_in_the_turn_at_hand() {
    let gate = Gate::new();
    let first = Step::call("Read", json!({"file_path": "a.txt"})).wait_for(gate.clone());
    let world = World::new([first, Step::text("Done.")]).await;
    world.home.write("a.txt", "hi");
    let mut session = world.start(&stream(["--include-partial-messages"]));
    session.write_json(&user("A"));
    session.wait_for_json(|frame| frame["event"]["type"] == "message_start");
    let mut line = prompt("Hurry.", IDS[0]);
    line["priority"] = json!("next");
    session.write_json(&line);
    ask(&mut session, json!({"subtype": "get_usage"}));
    gate.release();
    session.wait_for_json(is_result);
    let output = session.finish();
    assert_fine(&output);
    assert_eq!(world.requests().len(), 2);
    assert!(world.conversation().contains("Hurry."), "{}", world.conversation());
}

#[tokio::test]
async fn session_state_is_told_to_those_who_ask() {
    let world = World::new([Step::call("Bash", json!({"command": "touch ran"})), Step::text("Done.")]).await;
    let run = stream(["--permission-prompt-tool", "stdio"]).env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
    let mut session = world.start(&run);
    session.write_json(&user("hi"));
    let question = session.wait_for_json(|frame| frame["request"]["subtype"] == "can_use_tool");
    let id = question["request_id"].clone();
    let answer = json!({"subtype": "success", "request_id": id, "response": {"behavior": "allow"}});
    session.write_json(&json!({"type": "control_response", "response": answer}));
    session.wait_for_json(|frame| frame["state"] == "idle");
    let output = session.finish();
    assert_fine(&output);
    let lines = output.json_lines();
    let states: Vec<&str> = lines.iter().filter_map(|frame| frame["state"].as_str()).collect();
    assert_eq!(states, ["running", "requires_action", "running", "idle"]);
    let told = lines.iter().filter(|frame| frame["subtype"] == "session_state_changed");
    assert!(told.clone().all(|frame| frame["sdk_host_only"] == true));
    assert_eq!(lines.last().unwrap()["state"], "idle", "after the result");
}

#[tokio::test]
async fn clear_tells_that_the_conversation_was_reset() {
    let world = World::new([Step::text("1")]).await;
    let output = world.run_with_stdin(&stream([]), &format!("{}\n{}", user("A"), user("/clear")));
    assert_fine(&output);
    let lines = output.json_lines();
    let reset = lines.iter().find(|frame| frame["type"] == "conversation_reset").unwrap();
    let last = lines.iter().rfind(|frame| frame["subtype"] == "init").unwrap();
    assert_eq!(reset["new_conversation_id"], last["session_id"]);
    assert_ne!(lines[0]["session_id"], last["session_id"]);
}

#[tokio::test]
async fn other_questions_are_answered_without_a_model_request() {
    let world = World::new([]).await;
    let hooks = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    world.home.write_config("settings.json", hooks);
    let mut session = world.start(&stream(["--allowedTools", "Read"]));
    let mut ask = |subtype: &str| ask(&mut session, json!({"subtype": subtype}));
    assert!(ask("list_models")["models"].as_array().unwrap().iter().any(|it| it["value"] == "opus"));
    let rules = ask("list_permission_rules")["state"].clone();
    assert_eq!(rules["rules"][0]["rule"], "Read", "{rules}");
    assert_eq!(rules["rules"][0]["behavior"], "allow");
    let hooks = ask("get_hooks_listing");
    assert_eq!(hooks["hooks"][0]["event"], "Stop");
    assert_eq!(hooks["policy"]["allDisabled"], false, "{hooks}");
    assert!(ask("reload_skills")["skills"].as_array().unwrap().iter().any(|it| it["name"] == "init"));
    assert!(ask("reload_output_styles")["available_output_styles"].is_array());
    let usage = ask("get_usage");
    assert_eq!(usage["session"]["total_cost_usd"], 0.0);
    assert_eq!((&usage["subscription_type"], &usage["rate_limits_available"]), (&Value::Null, &json!(false)));
    assert!(ask("get_session_cost")["text"].is_string());
    assert_fine(&session.finish());
    assert_eq!(world.model.requests().len(), 0);
    let mut session = world.start(&stream(["--settings", r#"{"disableAllHooks": true}"#]));
    session.write_json(&control("h", json!({"subtype": "get_hooks_listing"})));
    let hooks = session.wait_for_json(|frame| frame["response"]["request_id"] == "h");
    assert_eq!(hooks["response"]["response"]["policy"]["allDisabled"], true, "{hooks}");
    assert_eq!(session.finish().code, Some(0));
}

#[tokio::test]
async fn read_file_follows_the_rules_of_the_read_tool() {
    let world = World::new([]).await;
    world.home.write("a.txt", "hello");
    world.home.write("secret.txt", "hidden");
    let outside = world.home.project().with_file_name("outside.txt");
    std::fs::write(&outside, "far").unwrap();
    let mut session = world.start(&stream(["--disallowedTools", "Read(secret.txt)"]));
    let mut ask = |path: &str, more: Value| {
        let mut request = json!({"subtype": "read_file", "path": path});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        session.write_json(&control("r1", request));
        session.wait_for_json(|frame| frame["type"] == "control_response")["response"].clone()
    };
    let read = ask("a.txt", json!({}))["response"].clone();
    assert_eq!((&read["contents"], &read["absPath"]), (&json!("hello"), &json!(world.path("a.txt"))));
    let cut = ask("a.txt", json!({"max_bytes": 2}))["response"].clone();
    assert_eq!((&cut["contents"], &cut["truncated"]), (&json!("he"), &json!(true)));
    assert_eq!(ask("a.txt", json!({"encoding": "base64"}))["response"]["contents"], "aGVsbG8=");
    crate::fifos::put_fifo(&world.home.project().join("pipe"));
    for path in ["secret.txt", "missing.txt", "pipe", "/dev/zero", outside.to_str().unwrap()] {
        assert_eq!(ask(path, json!({}))["subtype"], "error", "{path}");
    }
    assert_fine(&session.finish());
}

#[tokio::test]
async fn rename_and_update_settings_are_kept() {
    let world = World::new([Step::text("1")]).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("A"));
    session.wait_for_json(is_result);
    ask(&mut session, json!({"subtype": "rename_session", "title": "Mine"}));
    let update = json!({"cleanupPeriodDays": 9, "permissions": {"allow": ["Read"]}});
    ask(&mut session, json!({"subtype": "update_settings", "source": "userSettings", "settings": update}));
    assert_fine(&session.finish());
    assert!(world.session().iter().any(|entry| entry["customTitle"] == "Mine"));
    let kept = std::fs::read_to_string(world.home.config_home().join("settings.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept, update);
}
