//! What hooks of other programs' users rely on: names of tools that changed, answers in the documented shape, the order of
//! events, and what each payload says.

use loci_testkit::{Recorded, Script, Step};
use serde_json::{Value, json};

use super::handlers::talk;
use super::{KEEP, answering, command, configure, kept, last_message, result, run, specific};
use crate::mcp::{config, entry};
use crate::support::{World, assert_fine, is_result, print, stream, user, wait_for_file, watched};

fn is_agent(request: &Recorded) -> bool {
    request.header("x-claude-code-agent-id").is_some()
}

fn send_agent() -> Step {
    let input = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": false});
    Step::call("Agent", input)
}

/// A main line that sends one agent out, and the agent's own answer.
fn with_agent() -> Script {
    Script::new([send_agent(), Step::text("Done.")]).route([Step::text("Found.")], is_agent)
}

#[tokio::test]
async fn matcher_and_condition_that_say_task_hold_for_agents() {
    for group in [
        json!({"matcher": "Task", "hooks": [{"type": "command", "command": format!("{KEEP}; exit 2")}]}),
        json!({"matcher": "^Task$", "hooks": [{"type": "command", "command": format!("{KEEP}; exit 2")}]}),
        json!({"hooks": [{"type": "command", "command": format!("{KEEP}; exit 2"), "if": "Task"}]}),
        json!({"hooks": [{"type": "command", "command": format!("{KEEP}; exit 2"), "if": "Task(general-purpose)"}]}),
    ] {
        let world = World::new(with_agent()).await;
        configure(&world, json!({"PreToolUse": [group]}));
        run(&world);
        assert!(!world.model.requests().iter().any(is_agent), "{group}: the agent was sent out");
        assert_eq!(kept(&world, "kept.jsonl")[0]["tool_name"], "Agent", "{group}");
    }
}

#[tokio::test]
async fn output_in_the_documented_shape_takes_the_place_of_a_commands() {
    for (output, expected) in [
        (json!({"stdout": "[gone]", "stderr": "", "interrupted": false, "isImage": false}), true),
        (json!({"stdout": "[gone]"}), true),
        (json!("[gone]"), true),
        (json!({"text": "[gone]"}), false),
    ] {
        let world =
            World::new([Step::call("Bash", json!({"command": "echo sk-1234"})), Step::text("Done.")]).await;
        let answer = specific("PostToolUse", json!({"updatedToolOutput": output}));
        configure(&world, json!({"PostToolUse": answering("Bash", &answer)}));
        let run = run(&world);
        let told = last_message(&world);
        assert_eq!(!told.contains("sk-1234") && told.contains("[gone]"), expected, "{output} {told}");
        let notice = run.stderr.contains("has no `stdout`, as the tool's own has; the tool's own is kept");
        assert_eq!(notice, !expected, "{output} {}", run.stderr);
    }
}

#[tokio::test]
async fn reason_of_a_callback_that_blocks_after_a_call_reaches_the_model() {
    let world = World::new([Step::call("Bash", json!({"command": "true"})), Step::text("Done.")]).await;
    let hooks = json!({"PostToolUse": [{"hookCallbackIds": ["hook_0"]}]});
    let block = json!({"decision": "block", "reason": "format it first"});
    let (callbacks, _) = talk(&world, hooks, |_| Some(block.clone()));
    assert_eq!(callbacks.len(), 1);
    let told = last_message(&world);
    assert_eq!(told.matches("format it first").count(), 1, "{told}");
}

/// A hook that has begun comes to its end, whoever answers first.
#[tokio::test]
async fn hook_of_a_permission_request_reads_all_and_ends_by_itself() {
    let world = World::new([Step::call("Bash", json!({"command": "touch made"})), Step::text("Done.")]).await;
    let audit = "touch begun; until [ -e done ]; do sleep 0.02; done; cat > audit.json";
    configure(&world, json!({"PermissionRequest": command("", audit)}));
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("go"));
    let asked = session.wait_for_json(|frame| frame["request"]["subtype"] == "can_use_tool");
    wait_for_file(&world.home.project().join("begun"));
    session.write_json(&json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": asked["request_id"],
        "response": {"behavior": "allow", "updatedInput": asked["request"]["input"]},
    }}));
    session.wait_for_json(is_result);
    world.home.write("done", "");
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
    let audit = std::fs::read_to_string(world.home.project().join("audit.json")).unwrap();
    let payload: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!(payload["tool_input"]["command"], "touch made", "all of the input is there");
}

#[tokio::test]
async fn failure_is_over_before_the_end_and_the_end_before_the_next_start() {
    let slow = |then: &str| command("", &format!("sleep 0.3; {KEEP}{then}"));
    let world = World::new(Step::status(401).error("authentication_error", "no")).await;
    configure(&world, json!({"StopFailure": slow(""), "SessionEnd": command("", KEEP)}));
    world.print(["go"]);
    let names = |world: &World| -> Vec<String> {
        let kept = kept(world, "kept.jsonl");
        let name = |it: &Value| {
            let more = it["source"].as_str().or(it["reason"].as_str()).unwrap_or_default();
            format!("{} {more}", it["hook_event_name"].as_str().unwrap())
        };
        kept.iter().map(name).collect()
    };
    assert_eq!(names(&world), ["StopFailure ", "SessionEnd other"]);
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    configure(&world, json!({"SessionStart": command("clear", KEEP), "SessionEnd": slow("")}));
    let mut session = world.start(&stream([]));
    for prompt in ["one", "/clear", "two"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.close_stdin();
    session.finish();
    assert_eq!(names(&world), ["SessionEnd clear", "SessionStart clear", "SessionEnd other"]);
    let ended = &kept(&world, "kept.jsonl")[0];
    assert!(ended["prompt_id"].is_string(), "the last prompt of the old session: {ended}");
}

#[tokio::test]
async fn events_beside_the_main_line_name_its_prompt() {
    let agent = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": false,
        "isolation": "worktree"});
    let calls =
        [Step::call("Agent", agent), send_agent(), Step::call("mcp__s__ask", json!({})), Step::text("Done.")];
    let script = Script::new(calls).route([Step::text("Found."), Step::text("Found.")], is_agent);
    let world = World::with_git(script).await;
    world.home.write(".claude/skills/greet/SKILL.md", "Say hello.");
    let place = world.home.project().with_file_name("copies");
    let made = format!("mkdir -p '{0}/one'; echo '{0}/one'", place.display());
    let events = [
        "UserPromptExpansion",
        "UserPromptSubmit",
        "SubagentStart",
        "SubagentStop",
        "WorktreeRemove",
        "Elicitation",
        "ElicitationResult",
        "Notification",
        "Stop",
        "SessionEnd",
    ];
    let mut hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), command("", KEEP))).collect();
    hooks.insert("WorktreeCreate".to_owned(), command("", &format!("{KEEP}; {made}")));
    configure(&world, Value::Object(hooks));
    let servers = config(json!({"s": entry(&[])}));
    let flags = ["/greet", "--permission-mode", "bypassPermissions", "--mcp-config", &servers];
    assert_fine(&world.run(&print(flags).env("IS_SANDBOX", "1")));
    let payloads = kept(&world, "kept.jsonl");
    let names: Vec<&str> = payloads.iter().map(|it| it["hook_event_name"].as_str().unwrap()).collect();
    for event in
        ["UserPromptExpansion", "WorktreeCreate", "SubagentStart", "Elicitation", "ElicitationResult"]
    {
        let told: Vec<_> = world.model.requests().iter().flat_map(|it| it.tool_results()).collect();
        assert!(names.contains(&event), "{event}: {names:?} {told:?}");
    }
    let ids: Vec<&Value> = payloads.iter().map(|it| &it["prompt_id"]).collect();
    assert!(ids.iter().all(|id| id.is_string() && *id == ids[0]), "{names:?} {ids:?}");
    let start = payloads.iter().find(|it| it["hook_event_name"] == "SubagentStart").unwrap();
    let keys = start.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys, "session_id transcript_path cwd prompt_id agent_id agent_type hook_event_name");
    // Nobody could answer: one notification, behind the result.
    let told: Vec<&str> = payloads
        .iter()
        .filter(|it| it["hook_event_name"] == "Notification")
        .map(|it| it["notification_type"].as_str().unwrap())
        .collect();
    assert_eq!(told, ["elicitation_response"]);
}

#[tokio::test]
async fn question_of_a_server_that_a_hook_decides_is_no_notification() {
    let world = World::new([Step::call("mcp__s__ask", json!({})), Step::text("Done.")]).await;
    let decline = specific("Elicitation", json!({"action": "decline"}));
    configure(
        &world,
        json!({"Elicitation": answering("", &decline), "ElicitationResult": command("", KEEP), "Notification": command("", KEEP)}),
    );
    let servers = config(json!({"s": entry(&[])}));
    world.run(&print(["go", "--allowedTools", "mcp__s", "--mcp-config", &servers]));
    assert!(last_message(&world).contains("decline"), "{}", last_message(&world));
    assert_eq!(kept(&world, "kept.jsonl"), [json!(null); 0]);
}

#[tokio::test]
async fn result_of_a_stopped_turn_says_why_and_counts_the_call() {
    let stop = json!({"continue": false, "stopReason": "enough"});
    let block = json!({"decision": "block", "reason": "enough"});
    for hooks in [
        json!({"PostToolUse": answering("Bash", &stop)}),
        json!({"PostToolBatch": answering("", &stop)}),
        json!({"PostToolBatch": answering("", &block)}),
    ] {
        let world = World::new(Step::call("Bash", json!({"command": "true"}))).await;
        configure(&world, hooks.clone());
        let said = result(&run(&world));
        let fields = ["subtype", "is_error", "result", "stop_reason", "num_turns", "terminal_reason"];
        let found: Vec<&Value> = fields.iter().map(|field| &said[field]).collect();
        assert_eq!(json!(found), json!(["success", false, "", "tool_use", 2, "hook_stopped"]), "{hooks}");
    }
    let world = World::new(Step::status(401).error("authentication_error", "no")).await;
    let output = world.print(["go", "--output-format", "json"]);
    assert_eq!(result(&output)["terminal_reason"], "api_error");
}

#[tokio::test]
async fn deferred_call_says_so_and_has_another_prompt_id_when_it_is_taken_up() {
    let world = World::new(Step::call("Bash", json!({"command": "touch made"}))).await;
    let defer = specific("PreToolUse", json!({"permissionDecision": "defer"}));
    configure(&world, json!({"PreToolUse": command("Bash", &format!("{KEEP}; echo '{defer}'"))}));
    let put_off = result(&world.print(["go", "--output-format", "json"]));
    assert_eq!((&put_off["terminal_reason"], &put_off["result"]), (&json!("tool_deferred"), &json!("")));
    let session = put_off["session_id"].as_str().unwrap();
    world.run(&print(["--output-format", "json"]).args(["--resume", session]));
    let ids: Vec<Value> = kept(&world, "kept.jsonl").iter().map(|it| it["prompt_id"].clone()).collect();
    assert!(ids.len() == 2 && ids.iter().all(Value::is_string) && ids[0] != ids[1], "{ids:?}");
}

#[tokio::test]
async fn calls_of_servers_name_the_server_and_have_content_blocks() {
    let calls =
        [Step::call("mcp__s__count", json!({})), Step::call("mcp__s__fail", json!({})), Step::text("Done.")];
    let world = World::new(calls).await;
    configure(
        &world,
        json!({"PreToolUse": command("", KEEP), "PostToolUse": command("", KEEP), "PostToolUseFailure": command("", KEEP)}),
    );
    let servers = config(json!({"s": entry(&[])}));
    assert_fine(&world.run(&print(["go", "--allowedTools", "mcp__s", "--mcp-config", &servers])));
    let payloads = kept(&world, "kept.jsonl");
    assert_eq!(payloads.len(), 4);
    for payload in &payloads {
        assert_eq!(payload["mcp_server"], json!({"name": "s", "source": "dynamic"}), "{payload}");
        assert_eq!(payload.as_object().unwrap().keys().next_back().unwrap(), "mcp_server", "it stands last");
    }
    assert_eq!(payloads[1]["tool_response"], json!([{"type": "text", "text": "count"}]));
}

#[tokio::test]
async fn tool_of_a_server_that_is_a_hook_is_called_with_an_object() {
    let world = World::new([Step::call("Bash", json!({"command": "true"})), Step::text("Done.")]).await;
    let handler = json!({"type": "mcp_tool", "server": "s", "tool": "echo"});
    configure(&world, json!({"PreToolUse": [{"matcher": "Bash", "hooks": [handler]}]}));
    let servers = config(json!({"s": entry(&[])}));
    let binary = watched(["go", "--include-hook-events", "--mcp-config", &servers]);
    let frames = world.run(&binary).json_lines();
    let response = frames.iter().find(|it| it["subtype"] == "hook_response").unwrap();
    assert_eq!(response["stdout"], "{}", "{response}");
}

#[tokio::test]
async fn what_a_change_of_directory_leaves_is_there_for_the_next_command() {
    let bash = |line: &str| Step::call("Bash", json!({"command": line}));
    let world =
        World::new([bash("mkdir -p sub && cd sub"), bash("echo \"[$COLOUR]\""), Step::text("Done.")]).await;
    let leave = "sleep 0.5; echo 'export COLOUR=blue' >> \"$CLAUDE_ENV_FILE\"";
    configure(&world, json!({"CwdChanged": command("", leave)}));
    run(&world);
    assert!(last_message(&world).contains("[blue]"), "{}", last_message(&world));
}

#[tokio::test]
async fn worktree_hook_of_a_start_is_told_of_the_session_that_begins_there() {
    let world = World::with_git(Step::text("Done.")).await;
    let place = world.home.project().with_file_name("copies");
    let kept_by = place.with_file_name("kept.jsonl");
    let keep = format!("cat >> '{}'", kept_by.display());
    let made = format!("mkdir -p '{0}/one'; echo '{0}/one'", place.display());
    configure(
        &world,
        json!({"WorktreeCreate": command("", &format!("{keep}; {made}")), "SessionStart": command("", &keep), "SessionEnd": command("", &keep)}),
    );
    assert_fine(&world.run(&print(["go", "-w", "calm"])));
    let text = std::fs::read_to_string(kept_by).unwrap();
    let payloads: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&Value> = payloads.iter().map(|it| &it["session_id"]).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]), "{payloads:?}");
}

#[tokio::test]
async fn refused_compaction_is_no_error_and_the_next_prompt_says_why() {
    for (line, is_refused) in [("echo not now >&2; exit 2", true), ("echo not now >&2; exit 1", false)] {
        let steps = ["One.", "Two.", "<summary>Short.</summary>", "Three."].map(Step::text);
        let world = World::new(steps).await;
        configure(&world, json!({"PreCompact": command("", line)}));
        let mut session = world.start(&stream([]));
        let mut results = Vec::new();
        for prompt in ["one", "two", "/compact", "three"] {
            session.write_json(&user(prompt));
            results.push(session.wait_for_json(is_result));
        }
        session.close_stdin();
        assert_eq!(session.finish().code, Some(0), "{line}");
        let compacted = &results[2];
        assert_eq!(compacted["is_error"], false, "{compacted}");
        let said = compacted["result"].as_str().unwrap();
        assert_eq!(said.contains("not now"), is_refused, "{line}: {said}");
        let sent = world.last_request().json["messages"].to_string();
        assert_eq!(sent.matches("PreCompact:manual hook added context").count(), 1, "{line}: {sent}");
    }
}

#[tokio::test]
async fn frames_say_what_hooks_want_told_and_which_ran_out_of_time() {
    let world = World::new([Step::call("Bash", json!({"command": "true"})), Step::text("Done.")]).await;
    let late = json!({"type": "command", "command": "sleep 60", "timeout": 0.2});
    let told = json!({"systemMessage": "look at this"});
    configure(
        &world,
        json!({
            "PreToolUse": [{"hooks": [late]}],
            "PostToolUse": answering("", &told),
            "Stop": command("", "echo broken >&2; exit 1"),
        }),
    );
    let binary = watched(["go", "--include-hook-events", "--permission-mode", "bypassPermissions"]);
    let frames = world.run(&binary.env("IS_SANDBOX", "1")).json_lines();
    let of =
        |event: &str| frames.iter().find(|it| it["subtype"] == "hook_response" && it["hook_event"] == event);
    assert_eq!(of("PreToolUse").unwrap()["outcome"], "cancelled");
    let said: Vec<&Value> =
        frames.iter().filter(|it| it["subtype"] == "informational").map(|it| &it["content"]).collect();
    assert!(said.contains(&&json!("look at this")), "{said:?}");
    assert!(said.iter().any(|text| text.as_str().unwrap().contains("exit code 1: broken")), "{said:?}");
    assert!(frames.iter().all(|it| it["prevent_continuation"].is_null()), "nothing was stopped");
}

#[tokio::test]
async fn contexts_of_several_hooks_of_one_event_are_one_attachment() {
    let world = World::new([Step::call("Bash", json!({"command": "true"})), Step::text("Done.")]).await;
    let says = |event: &str, text: &str| {
        let answer = specific(event, json!({"additionalContext": text}));
        json!({"type": "command", "command": format!("echo '{answer}'")})
    };
    let both = |event: &str| json!([{"hooks": [says(event, "first"), says(event, "second")]}]);
    configure(&world, json!({"PreToolUse": both("PreToolUse"), "SessionStart": both("SessionStart")}));
    run(&world);
    let session = world.session();
    let kept: Vec<(&Value, &Value)> = session
        .iter()
        .map(|entry| &entry["attachment"])
        .filter(|it| it["type"] == "hook_additional_context")
        .map(|it| (&it["hookName"], &it["content"]))
        .collect();
    let texts = json!(["first", "second"]);
    assert_eq!(kept, [(&json!("SessionStart"), &texts), (&json!("PreToolUse:Bash"), &texts)]);
}

/// Until a plan is approved, no hook lets a call through that changes something.
#[tokio::test]
async fn hook_that_allows_does_not_lift_plan_mode() {
    let world = World::new([Step::call("Bash", json!({"command": "touch made"})), Step::text("Done.")]).await;
    let allow = specific("PreToolUse", json!({"permissionDecision": "allow"}));
    configure(&world, json!({"PreToolUse": answering("Bash", &allow)}));
    assert_fine(&world.print(["go", "--permission-mode", "plan"]));
    assert!(!world.home.project().join("made").exists());
}

/// Two names that read alike are two servers, and a rule for one opens nothing of the other.
#[tokio::test]
async fn rule_for_a_server_opens_no_tool_of_another() {
    let calls =
        [Step::call("mcp__a__b__c", json!({})), Step::call("mcp__a_b__c", json!({})), Step::text("Done.")];
    let world = World::new(calls).await;
    let servers = config(json!({"a": entry(&["--tools", "b__c"]), "a__b": entry(&["--tools", "c"])}));
    let flags = ["go", "--output-format", "json", "--allowedTools", "mcp__a__b", "--mcp-config", &servers];
    let said = result(&world.run(&print(flags)));
    let denied: Vec<&Value> =
        said["permission_denials"].as_array().unwrap().iter().map(|it| &it["tool_name"]).collect();
    assert_eq!(denied, [&json!("mcp__a__b__c")]);
}

/// An allow rule with parentheses grants nothing, and that is said at the start.
#[tokio::test]
async fn allow_rule_with_parentheses_for_a_servers_tool_grants_nothing_and_is_told() {
    let world = World::new([Step::call("mcp__s__echo", json!({"text": "x"})), Step::text("Done.")]).await;
    let servers = config(json!({"s": entry(&[])}));
    let settings = json!({"permissions": {"allow": ["mcp__s(*)", "mcp__s__echo(text:x)"]}});
    world.home.write_config("settings.json", settings.to_string());
    let output = world.run(&print(["go", "--output-format", "json", "--mcp-config", &servers]));
    assert_eq!(result(&output)["permission_denials"][0]["tool_name"], "mcp__s__echo");
    assert_eq!(output.stderr.matches("this one grants nothing").count(), 2, "{}", output.stderr);
}
