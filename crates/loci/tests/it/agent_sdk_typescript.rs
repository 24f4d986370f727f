//! The official TypeScript Agent SDK drives our binary, and we look at what it understood.
//!
//! It is installed once by npm, into a directory under the target directory, without the program that it usually starts.

use crate::support::{World, assert_calls_answered};
use expect_test::{Expect, expect};
use loci_testkit::{Gate, NodePackages, Script, Step};
use serde_json::json;
use std::path::Path;

/// Plays `script` to one scenario of `agent_sdk.mjs` and compares what it printed; none if there is no npm.
async fn check(script: impl Into<Script>, scenario: &str, expected: Expect) -> Option<World> {
    check_in("agent_sdk.mjs", script, scenario, expected).await
}

/// The same for a scenario of any file beside this one.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub(crate) async fn check_in(
    file: &str,
    script: impl Into<Script>,
    scenario: &str,
    expected: Expect,
) -> Option<World> {
    // What is optional brings the program that it usually starts, for every platform.
    let packages = ["--omit=optional", "@anthropic-ai/claude-agent-sdk", "typescript@5"];
    let Some(node) = NodePackages::new(env!("CARGO_TARGET_TMPDIR"), "typescript-sdk", 18, &packages) else {
        eprintln!("skipped: there is no npm on this machine");
        return None;
    };
    let world = World::with_git(script).await;
    world.home.write("a.txt", "hi\n");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    // It lies beside the scenarios that import it.
    node.script(tests.join("agent_sdk_common.mjs"));
    let mut command = node.script(tests.join(file));
    command.args([env!("CARGO_BIN_EXE_loci"), scenario]).current_dir(world.home.project());
    let verdict = json!({"behavior": "allow", "updatedInput": {"command": "mkdir made"}});
    command.env("MCP_SERVER", tests.join("mcp_server.py")).env("VERDICT", verdict.to_string());
    let output = command.envs(world.home.env_vars(world.model.base_url())).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    expected.assert_eq(&world.normaliser().text(&String::from_utf8(output.stdout).unwrap()));
    world.requests();
    for session in world.home.sessions() {
        assert_calls_answered(&world.home.read_session(session));
    }
    Some(world)
}

#[tokio::test]
async fn query_answers_one_prompt() {
    let first = Step::text("Let me see.").thinking("Hm.", "c2ln").tool("Read", json!({"file_path": "a.txt"}));
    let Some(world) = check(
        [first, Step::text("It says hi.")],
        "one_shot",
        expect![[r#"
            ["system","init"]
            ["system","thinking_tokens"]
            ["assistant",["Hm."],"main"]
            ["assistant",["Let me see."],"main"]
            ["assistant",[{"file_path":"a.txt"}],"main"]
            ["user",["1\thi\n2\t"],"main"]
            ["assistant",["It says hi."],"main"]
            ["result","success",false,2,"It says hi."]
        "#]],
    )
    .await
    else {
        return;
    };
    let request = world.last_request();
    assert!(request.header("user-agent").unwrap().contains("sdk-ts"));
    assert_eq!(
        request.system_text().lines().count(),
        1,
        "no prompt is asked for: a line of identity remains"
    );
}

#[tokio::test]
async fn prompt_tool_and_limit_options_reach_the_request() {
    let Some(world) = check(
        [Step::text("Hi.")],
        "prompts_and_limits",
        expect![[r#"
        [["Read"],["/tmp"]]
        ["success","Hi."]
    "#]],
    )
    .await
    else {
        return;
    };
    let request = world.last_request();
    assert!(request.system_text().contains("Rhyme."));
    assert!(!request.system_text().contains("Working directory"), "dynamic sections are in the message");
    assert_eq!(request.json["thinking"]["budget_tokens"], 2000);
    assert!(request.header("user-agent").unwrap().contains("client-app/tests/1"));
}

#[tokio::test]
async fn permission_callback_answers_questions() {
    let calls =
        Step::call("Bash", json!({"command": "touch deny"})).tool("Bash", json!({"command": "touch this"}));
    let Some(world) = check(
        [calls, Step::text("Done.")],
        "permissions",
        expect![[r#"
        ["asked","Bash",{"command":"touch deny"},"string"]
        ["asked","Bash",{"command":"touch this"},"string"]
        "Done."
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
async fn hook_callbacks_are_called_and_decide() {
    let call = Step::call("Bash", json!({"command": "touch ran"}));
    let Some(world) = check(
        [call, Step::text("Done.")],
        "hooks",
        expect![[r#"
        ["prompt","UserPromptSubmit",null]
        ["before","PreToolUse","Bash"]
        ["stop","Stop",null]
        ["success","Done."]
        ["hook_response","hook_started"]
    "#]],
    )
    .await
    else {
        return;
    };
    assert!(!world.home.project().join("ran").exists());
}

#[tokio::test]
async fn in_process_mcp_server_is_called_and_looked_after() {
    let call = Step::call("mcp__calc__add", json!({"a": 2, "b": 3}));
    check(
        [call, Step::text("Five.")],
        "mcp_in_process",
        expect![[r#"
        ["called",2,3]
        "Five."
        [["calc","connected"]]
        [["calc","disabled"]]
        ["calc"]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn output_format_gives_structured_output_or_gives_up() {
    let answer = |input| Step::call("StructuredOutput", input);
    check(
        [answer(json!({"n": "x"})), answer(json!({"n": 3}))],
        "structured",
        expect![[r#"
        ["success",{"n":3}]
    "#]],
    )
    .await;
    check(
        [0; 5].map(|_| answer(json!({}))),
        "structured_given_up",
        expect![[r#"
        ["error_max_structured_output_retries",true]
        ["raised",true]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn agents_of_the_options_are_sent_out() {
    let send = json!({"description": "Look", "prompt": "Look.", "subagent_type": "looker"});
    let steps = [Step::call("Agent", send), Step::text("Seen."), Step::text("Done.")];
    let Some(world) = check(
        steps,
        "agents",
        expect![[r#"
        ["assistant",[{"description":"Look","prompt":"Look.","subagent_type":"looker"}],"main"]
        ["system","task_started"]
        ["user",["Look."],"agent"]
        ["assistant",["Seen."],"agent"]
        ["system","task_updated"]
        ["system","task_notification"]
        ["user",["Seen."],"main"]
        ["assistant",["Done."],"main"]
        ["result","success",false,2,"Done."]
    "#]],
    )
    .await
    else {
        return;
    };
    assert_eq!(world.requests()[1].json["model"], "claude-haiku-5-5");
    assert!(world.requests()[1].system_text().contains("You look.\n\nTouch nothing."));
}

#[tokio::test]
async fn control_methods_of_a_query_work() {
    let write = Step::call("Write", json!({"file_path": "new.txt", "content": "x"}));
    let Some(world) = check([write, Step::text("Written.")], "control", expect![[r#"
        ["account","agents","available_output_styles","capabilities","claude_code_version","commands","current_permission_mode","fast_mode_state","hook_on_failure_supported","models","output_style","pid","session_state"]
        true
        true
        true
        ["apiKeySource","apiProvider","tokenSource"]
        "Written."
        ["claude-haiku-4-5",true,true]
        ["claude-haiku-4-5"]
        "x"
        null
        true
        1
        true
        true
        true
    "#]]).await else { return };
    let request = world.last_request();
    assert_eq!(request.json["model"], "claude-haiku-4-5");
    assert_eq!(request.json["thinking"]["budget_tokens"], 3000);
    assert!(!world.home.project().join("new.txt").exists(), "it was taken back");
}

#[tokio::test]
async fn interrupt_and_abort_end_a_turn() {
    let held = || Step::text("So far").wait_for(Gate::new());
    check(
        [held(), Step::text("Going on.")],
        "interrupts",
        expect![[r#"
        {"still_queued":[]}
        ["error_during_execution","aborted_streaming"]
        ["success","completed"]
    "#]],
    )
    .await;
    check(
        [held()],
        "aborted",
        expect![[r#"
        [true]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sessions_are_continued_forked_and_looked_up() {
    check(
        ["1", "2", "3", "4", "5"].map(Step::text),
        "sessions",
        expect![[r#"
        [true,"1"]
        [true]
        [true]
        [false,"4"]
        "5"
        ["Renamed","kept",6]
        2
        6
        [2,0]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn session_store_has_the_session_and_brings_it_back() {
    let Some(world) = check(
        ["1", "2"].map(Step::text),
        "stores",
        expect![[r#"
        ["user","assistant"]
        [true,"2"]
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
async fn warm_process_answers_its_query() {
    check(
        [Step::text("Warm.")],
        "warm",
        expect![[r#"
        "Warm."
    "#]],
    )
    .await;
}

#[tokio::test]
async fn elicitation_callback_answers_servers() {
    check(
        [Step::call("mcp__s__ask", json!({})), Step::text("Done.")],
        "elicitations",
        expect![[r#"
        "success"
        ["s"]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn prompts_thinking_budgets_and_settings_of_options_reach_the_request() {
    let steps: Vec<Step> = (1..=9).map(|n| Step::text(n.to_string())).collect();
    let Some(world) = check(
        steps,
        "more_options",
        expect![[r#"
        [["1","2","3","4","5","6","7","8","9"],[]]
    "#]],
    )
    .await
    else {
        return;
    };
    let requests = world.requests();
    assert!(requests[0].system_text().contains("Static.\n\nDynamic."), "{}", requests[0].system_text());
    assert!(requests[1].system_text().contains("Custom."), "{}", requests[1].system_text());
    let thinking = |at: usize| &requests[at].json["thinking"];
    assert_eq!((&thinking(2)["type"], &thinking(2)["display"]), (&json!("adaptive"), &json!("omitted")));
    assert_eq!(requests[2].json["output_config"]["effort"], "low");
    assert!(thinking(3).is_null() || thinking(3)["type"] == "disabled", "{}", thinking(3));
    assert_eq!(thinking(4)["budget_tokens"], 2000);
    assert_eq!(requests[4].json["output_config"]["task_budget"]["total"], 50_000);
    assert!(requests[5].header("anthropic-beta").unwrap().contains("context-1m-2025-08-07"));
    let planned = requests[7].json["messages"].to_string();
    assert!(planned.contains("Plan in verse."), "{planned}");
}

#[tokio::test]
async fn tool_aliases_and_modes_of_servers_count() {
    let steps = [Step::call("Bash", json!({"command": "ls"})), Step::text("Done.")];
    check(
        steps,
        "tool_aliases",
        expect![[r#"
        ["called","ls"]
        "Done."
        {}
        ["warning"]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn plugins_come_by_either_way_and_are_read_anew() {
    check(
        [Step::text("1"), Step::text("2")],
        "plugins",
        expect![[r#"
        ["argv",null,true]
        [["plug"],0]
        "1"
        ["initialize",true,true]
        [["plug"],0]
        "2"
    "#]],
    )
    .await;
}

#[tokio::test]
async fn background_task_is_stopped() {
    let call = Step::call("Bash", json!({"command": "sleep 60", "run_in_background": true}));
    check(
        [call, Step::text("Started.")],
        "tasks",
        expect![[r#"
        1
        false
        "stopped"
    "#]],
    )
    .await;
}

#[tokio::test]
async fn limits_denials_and_usage_are_typed_frames() {
    let limited = Step::call("Bash", json!({"command": "touch ran"}))
        .header("anthropic-ratelimit-unified-status", "allowed_warning")
        .header("anthropic-ratelimit-unified-reset", "1800000000");
    check([limited, Step::text("Done.")], "frames", expect![[r#"
        ["default",true]
        {"status":"allowed_warning","resetsAt":1800000000}
        ["Bash","mode"]
        ["cacheCreationEphemeral1hInputTokens","cacheCreationEphemeral5mInputTokens","cacheCreationInputTokens","cacheReadInputTokens","canonicalModel","contextWindow","costBasis","costUSD","inputTokens","maxOutputTokens","outputTokens","provider","thinkingTokens","webSearchRequests"]
        ["assistant","rate_limit_event","result","system","user"]
    "#]]).await;
}

#[tokio::test]
async fn settings_archives_and_imports_of_the_sdk_work_on_our_files() {
    check(
        [Step::text("1"), Step::text("2")],
        "settings",
        expect![[r#"
        9
        true
        false
        1
        "2"
    "#]],
    )
    .await;
}
