//! The official Python Agent SDK drives our binary, and we look at what it understood.
//!
//! This is what says that the binary speaks the real protocol: the SDK was written for another program and knows
//! nothing of us. It is installed once, into a virtual environment under the target directory; from source,
//! because the wheels bring that other program along.

use crate::support::{World, assert_calls_answered};
use expect_test::{Expect, expect};
use loci_testkit::{Gate, PythonVenv, Script, Step};
use serde_json::json;
use std::path::Path;

/// Returns a Python that has the SDK, or none if there is no Python at all.
pub(crate) fn official_sdk() -> Option<PythonVenv> {
    let install = ["--no-binary", "claude-agent-sdk", "claude-agent-sdk"];
    PythonVenv::new(env!("CARGO_TARGET_TMPDIR"), "official-sdk", &install)
}

/// Plays `script` to one scenario of `agent_sdk.py` and compares what it printed; none if there is no Python.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
async fn check(script: impl Into<Script>, scenario: &str, expected: Expect) -> Option<World> {
    let Some(python) = official_sdk() else {
        eprintln!("skipped: there is no python3 on this machine");
        return None;
    };
    let world = World::with_git(script).await;
    world.home.write("a.txt", "hi\n");
    let mut command = python.script(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agent_sdk.py"));
    command.args([env!("CARGO_BIN_EXE_loci"), scenario]).current_dir(world.home.project());
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py");
    let verdict = json!({"behavior": "allow", "updatedInput": {"command": "mkdir made"}});
    command.env("MCP_SERVER", server).env("VERDICT", verdict.to_string());
    let output = command.envs(world.home.env_vars(world.model.base_url())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expected.assert_eq(&world.normaliser().text(&String::from_utf8(output.stdout).unwrap()));
    world.requests();
    for session in world.home.sessions() {
        assert_calls_answered(&world.home.read_session(session));
    }
    Some(world)
}

fn looking() -> [Step; 2] {
    let first = Step::text("Let me see.").thinking("Hm.", "c2ln").tool("Read", json!({"file_path": "a.txt"}));
    [first, Step::text("It says hi.")]
}

#[tokio::test]
async fn sdk_query_answers_one_prompt() {
    let Some(world) = check(
        looking(),
        "one_shot",
        expect![[r#"
            ["SystemMessage", "init"]
            ["SystemMessage", "thinking_tokens"]
            ["AssistantMessage", [["ThinkingBlock", "Hm."]]]
            ["AssistantMessage", [["TextBlock", "Let me see."]]]
            ["AssistantMessage", [["ToolUseBlock", {"file_path": "a.txt"}]]]
            ["UserMessage", [["ToolResultBlock", "1\thi\n2\t"]]]
            ["AssistantMessage", [["TextBlock", "It says hi."]]]
            ["ResultMessage", "success", false, 2, "It says hi.", "completed"]
        "#]],
    )
    .await
    else {
        return;
    };
    let request = world.last_request();
    let agent = request.header("user-agent").unwrap();
    assert!(agent.contains("sdk-py"), "{agent}");
    // The SDK asks for no system prompt unless told: one line of identity remains.
    assert_eq!(request.system_text().lines().count(), 1);
}

#[tokio::test]
async fn sdk_raises_a_failed_run() {
    check([Step::call("Bash", json!({"command": "ls"})), Step::text("never")], "failure", expect![[r#"
        ["SystemMessage", "init"]
        ["AssistantMessage", [["ToolUseBlock", {"command": "ls"}]]]
        ["UserMessage", [["ToolResultBlock", "README.md\na.txt"]]]
        ["ResultMessage", "error_max_turns", true, 2, null, "max_turns"]
        ["raised", "ResultError", "Claude Code returned an error result: Reached maximum number of turns (1) (exit code: 1)"]
    "#]])
        .await;
}

#[tokio::test]
async fn sdk_client_runs_several_turns() {
    check(
        [Step::text("first"), Step::text("second")],
        "several_turns",
        expect![[r#"
            ["account", "agents", "available_output_styles", "capabilities", "claude_code_version", "commands", "current_permission_mode", "fast_mode_state", "hook_on_failure_supported", "models", "output_style", "pid", "session_state"]
            ["SystemMessage", "init"]
            ["AssistantMessage", [["TextBlock", "first"]]]
            ["ResultMessage", "success", false, 1, "first", "completed"]
            ["SystemMessage", "init"]
            ["AssistantMessage", [["TextBlock", "second"]]]
            ["ResultMessage", "success", false, 1, "second", "completed"]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_client_interrupts_a_turn() {
    let held = Step::text("So far").wait_for(Gate::new());
    check(
        [held, Step::text("Going on.")],
        "interrupt",
        expect![[r#"
        ["SystemMessage", "init"]
        ["SystemMessage", "status"]
        ["AssistantMessage", [["TextBlock", "So far"]]]
        ["UserMessage", [["TextBlock", "[Request interrupted by user]"]]]
        ["ResultMessage", "error_during_execution", true, 1, null, "aborted_streaming"]
        ["SystemMessage", "init"]
        ["SystemMessage", "status"]
        ["AssistantMessage", [["TextBlock", "Going on."]]]
        ["ResultMessage", "success", false, 1, "Going on.", "completed"]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_permission_callback_answers_questions() {
    let calls =
        Step::call("Bash", json!({"command": "touch deny"})).tool("Bash", json!({"command": "touch this"}));
    let Some(world) = check(
        [calls, Step::text("Done.")],
        "permissions",
        expect![[r#"
        ["SystemMessage", "init"]
        ["AssistantMessage", [["ToolUseBlock", {"command": "touch deny"}]]]
        ["AssistantMessage", [["ToolUseBlock", {"command": "touch this"}]]]
        ["asked", "Bash", {"command": "touch deny"}]
        ["UserMessage", [["ToolResultBlock", "Not that one."]]]
        ["asked", "Bash", {"command": "touch this"}]
        ["UserMessage", [["ToolResultBlock", "(no output)"]]]
        ["AssistantMessage", [["TextBlock", "Done."]]]
        ["ResultMessage", "success", false, 2, "Done.", "completed"]
    "#]],
    )
    .await
    else {
        return;
    };
    let made = ["deny", "this", "other"].map(|it| world.home.project().join(it).exists());
    assert_eq!(made, [false, false, true]);
}

#[tokio::test]
async fn sdk_client_changes_mode_and_model() {
    let write = Step::dynamic(|_| Step::call("Write", json!({"file_path": "new.txt", "content": "x"})));
    let Some(world) = check(
        [write, Step::text("Written.")],
        "changes",
        expect![[r#"
        ["SystemMessage", "status"]
        ["SystemMessage", "init"]
        ["AssistantMessage", [["ToolUseBlock", {"file_path": "new.txt", "content": "x"}]]]
        ["UserMessage", [["ToolResultBlock", "Created `<project>/new.txt` (1 line)."]]]
        ["AssistantMessage", [["TextBlock", "Written."]]]
        ["ResultMessage", "success", false, 2, "Written.", "completed"]
    "#]],
    )
    .await
    else {
        return;
    };
    assert_eq!(world.home.read("new.txt"), "x");
    assert_eq!(world.last_request().json["model"], "claude-haiku-5-5");
}

#[tokio::test]
async fn sdk_resumes_sessions() {
    let Some(world) = check(
        [Step::text("a"), Step::text("b"), Step::text("c")],
        "resumed",
        expect![[r#"
            [true, "b"]
            [true, "c"]
        "#]],
    )
    .await
    else {
        return;
    };
    assert_eq!(world.home.sessions().len(), 1);
}

#[tokio::test]
async fn sdk_hooks_decide_and_fail_closed_where_they_are_told_to() {
    let call = Step::call("Bash", json!({"command": "touch ran"}));
    let write = Step::call("Write", json!({"file_path": "new.txt", "content": "x"}));
    let steps = [call, Step::text("Done."), write, Step::text("Done.")];
    let Some(world) = check(steps, "hooks", expect![[r#"
        ["prompted", "go"]
        ["before", "Bash", true]
        ["ResultMessage", "success", false, 2, "Done.", "completed"]
        ["hook_response", "hook_started"]
        ["UserMessage", [["ToolResultBlock", "PreToolUse:Write hook error: [callback]: the client refused: the guard is down"]]]
    "#]]).await else { return };
    let made = ["ran", "new.txt"].map(|it| world.home.project().join(it).exists());
    assert_eq!(made, [false, false]);
    assert!(world.requests()[0].json.to_string().contains("It is late."));
}

#[tokio::test]
async fn sdk_calls_an_in_process_mcp_server() {
    let call = Step::call("mcp__calc__add", json!({"a": 2, "b": 3}));
    check(
        [call, Step::text("Five.")],
        "mcp_in_process",
        expect![[r#"
        ["called", {"a": 2, "b": 3}]
        ["ResultMessage", "success", false, 2, "Five.", "completed"]
        [["calc", "connected"]]
        [{"name": "add", "annotations": {"readOnly": true}, "description": "Adds."}]
        [["calc", "disabled"]]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_hook_puts_a_call_off_that_a_later_run_takes_up() {
    check(
        [Step::call("Bash", json!({"command": "touch made"})), Step::text("Done."), Step::text("Going on.")],
        "deferred",
        expect![[r#"
            ["success", false, "Bash", {"command": "touch made"}, false]
            ["Done.", null, true]
            ["Going on.", null, true]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_gets_structured_output_or_the_documented_failure() {
    let answer = |input| Step::call("StructuredOutput", input);
    let mut steps = vec![answer(json!({"n": 3}))];
    steps.extend([0; 5].map(|_| answer(json!({}))));
    check(steps, "structured", expect![[r#"
        ["success", {"n": 3}, "{\"n\":3}"]
        ["error_max_structured_output_retries", true]
        ["raised", "Claude Code returned an error result: Failed to provide valid structured output after 5 attempts (exit code: 1)"]
    "#]]).await;
}

#[tokio::test]
async fn sdk_sends_agents_out() {
    let send = json!({"description": "Look", "prompt": "Look.", "subagent_type": "looker"});
    let steps = [Step::call("Agent", send), Step::text("Seen."), Step::text("Done.")];
    check(
        steps,
        "agents",
        expect![[r#"
        ["TaskStartedMessage"]
        ["AssistantMessage", [["TextBlock", "Seen."]]]
        ["TaskNotificationMessage"]
        ["ResultMessage", "success", false, 2, "Done.", "completed"]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_options_reach_the_request() {
    let Some(world) = check(
        [Step::text("Hi.")],
        "request_options",
        expect![[r#"
        [["Read"], ["/tmp"], ["context-1m-2025-08-07"]]
        ["ResultMessage", "success", false, 1, "Hi.", "completed"]
        ["debug lines on stderr", true]
    "#]],
    )
    .await
    else {
        return;
    };
    let request = world.last_request();
    assert!(request.system_text().contains("Rhyme."));
    assert!(!request.system_text().contains("Working directory"));
    assert_eq!(request.json["thinking"]["budget_tokens"], 2000);
    assert_eq!(request.json["output_config"]["task_budget"]["total"], 50000);
    assert!(request.header("anthropic-beta").unwrap().contains("context-1m-2025-08-07"));
    assert!(request.header("user-agent").unwrap().contains("client-app/tests/1"));
    assert!(world.session().iter().any(|entry| entry["customTitle"] == "Mine"));
}

#[tokio::test]
async fn sdk_prompts_are_verbatim_where_that_is_asked() {
    let Some(world) = check(
        [Step::text("Hi.")],
        "verbatim",
        expect![[r#"
            ["ResultMessage", "success", false, 1, "Hi.", "completed"]
            ["warnings of the SDK", []]
        "#]],
    )
    .await
    else {
        return;
    };
    assert!(world.conversation().contains("/usage of @a.txt"), "{}", world.conversation());
}

#[tokio::test]
async fn sdk_rewinds_files_and_asks_about_the_context() {
    let write = Step::call("Write", json!({"file_path": "new.txt", "content": "x"}));
    check(
        [write, Step::text("Written.")],
        "checkpoints",
        expect![[r#"
        true
        false
        ["claude-sonnet-4-5", true, true, true]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_session_store_has_the_session_and_brings_it_back() {
    let Some(world) = check(
        ["1", "2"].map(Step::text),
        "stores",
        expect![[r#"
        ["user", "assistant"]
        [true, "2"]
        ["Kept", 1]
        4
    "#]],
    )
    .await
    else {
        return;
    };
    assert!(world.conversation().contains("one"), "{}", world.conversation());
}

#[tokio::test]
async fn sdk_branches_from_a_message_and_guards_what_is_dropped() {
    check(
        ["1", "2", "3"].map(Step::text),
        "branches",
        expect![[r#"
        [false, "3"]
        ["raised", true]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_system_prompt_takes_every_form() {
    let steps = [Step::text("1"), Step::text("2"), Step::text("3"), Step::text("4")];
    let Some(world) = check(
        steps,
        "prompt_forms",
        expect![[r#"
        ["ResultMessage", "success", false, 1, "1", "completed"]
        ["ResultMessage", "success", false, 1, "2", "completed"]
        ["ResultMessage", "success", false, 1, "3", "completed"]
        ["ResultMessage", "success", false, 1, "4", "completed"]
    "#]],
    )
    .await
    else {
        return;
    };
    let prompts: Vec<String> = world.requests().iter().map(|request| request.system_text()).collect();
    for (prompt, needle) in prompts.iter().zip(["Brief.", "Custom.", "From a file."]) {
        assert!(prompt.contains(needle) && prompt.len() < 500, "{prompt}");
    }
    assert!(prompts[3].len() > 1_000, "the preset is the usual prompt");
}

#[tokio::test]
async fn sdk_thinking_options_make_the_thinking_of_the_request() {
    let steps = [Step::text("1"), Step::text("2"), Step::text("3")];
    let Some(world) = check(
        steps,
        "thinking_forms",
        expect![[r#"
        ["ResultMessage", "success", false, 1, "1", "completed"]
        ["ResultMessage", "success", false, 1, "2", "completed"]
        ["ResultMessage", "success", false, 1, "3", "completed"]
    "#]],
    )
    .await
    else {
        return;
    };
    let requests = world.requests();
    let thinking: Vec<&serde_json::Value> =
        requests.iter().map(|request| &request.json["thinking"]).collect();
    assert_eq!((&thinking[0]["type"], &thinking[0]["display"]), (&json!("adaptive"), &json!("omitted")));
    assert_eq!(requests[0].json["output_config"]["effort"], "low");
    assert!(thinking[1].is_null() || thinking[1]["type"] == "disabled", "{}", thinking[1]);
    assert_eq!(thinking[2]["type"], "adaptive");
}

#[tokio::test]
async fn sdk_prompts_may_be_streamed_and_messages_received_without_end() {
    let steps = [Step::text("1"), Step::text("2"), Step::text("3")];
    check(
        steps,
        "streamed_prompts",
        expect![[r#"
        ["ResultMessage", "success", false, 1, "1", "completed"]
        ["ResultMessage", "success", false, 1, "2", "completed"]
        ["ResultMessage", "success", false, 1, "3", "completed"]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_settings_plugins_sources_skills_and_permission_tool_count() {
    let calls =
        Step::call("Bash", json!({"command": "touch ran"})).tool("Bash", json!({"command": "mkdir asked"}));
    let Some(world) = check([calls, Step::text("Done.")], "environment", expect![[r#"
        [["plug"], true, [{"name": "s", "status": "connected", "source": "dynamic"}]]
        ["UserMessage", [["ToolResultBlock", "Permission to use Bash was not granted: the rule `Bash(touch *)` (command line settings, --settings:1). Do not try to get around this; take another way or say what you need."]]]
        ["UserMessage", [["ToolResultBlock", "(no output)"]]]
        ["Done.", ["Bash"]]
    "#]]).await else { return };
    let made = ["ran", "asked", "made"].map(|name| world.home.project().join(name).exists());
    assert_eq!(made, [false, false, true]);
}

#[tokio::test]
async fn sdk_stops_a_task_that_runs_in_the_background() {
    let call =
        Step::call("Bash", json!({"command": "sleep 60", "description": "wait", "run_in_background": true}));
    check(
        [call, Step::text("Started.")],
        "tasks",
        expect![[r#"
        ["local_bash", "wait"]
        [true, "killed"]
        [true, "stopped"]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_reads_limits_and_usage_by_model() {
    let step = Step::text("Hi.")
        .usage(100, 20, 0, 0)
        .header("anthropic-ratelimit-unified-status", "allowed")
        .header("anthropic-ratelimit-unified-reset", "1800000000")
        .header("anthropic-ratelimit-unified-representative-claim", "seven_day")
        .header("anthropic-ratelimit-unified-7d-utilization", "0.5");
    check([step], "limits", expect![[r#"
        ["allowed", "seven_day", 0.5, 1800000000]
        ["cacheCreationEphemeral1hInputTokens", "cacheCreationEphemeral5mInputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "canonicalModel", "contextWindow", "costBasis", "costUSD", "inputTokens", "maxOutputTokens", "outputTokens", "provider", "thinkingTokens", "webSearchRequests"]
        [true, 100, true]
    "#]]).await;
}

#[tokio::test]
async fn sdk_store_functions_work_on_sessions_with_agents() {
    let call = json!({"description": "look", "prompt": "Look.", "subagent_type": "looker", "run_in_background": false});
    let steps = [Step::call("Agent", call), Step::text("Seen."), Step::text("Done.")];
    check(
        steps,
        "stored_agents",
        expect![[r#"
        ["user", "assistant"]
        true
        ["user", "assistant"]
        ["kept", "Send it."]
        0
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sdk_hears_of_resets_adds_rules_and_reports_a_store_that_fails() {
    let call = || Step::call("Bash", json!({"command": "mkdir -p one"}));
    check(
        [call(), call(), Step::text("Made."), Step::text("One.")],
        "remaining",
        expect![[r#"
            ["asked", "mkdir -p one", true]
            ["ResultMessage", "success", false, 3, "Made.", "completed"]
            ["reset", true]
            ["ResultMessage", "success", false, 1, "One.", "completed"]
            ["mirror errors", true]
            true
            "one"
        "#]],
    )
    .await;
}
