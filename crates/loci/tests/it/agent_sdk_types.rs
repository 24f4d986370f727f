//! What we tell the official TypeScript Agent SDK has the types that the package declares: each frame, each answer to a
//! control request, each input of a hook. The compiler holds it against them; every line but the first of what a scenario
//! prints is a value that does not fit.

use expect_test::{Expect, expect};
use loci_testkit::{Gate, Script, Step};
use serde_json::json;

use crate::agent_sdk_typescript::check_in;
use crate::support::World;

async fn check(script: impl Into<Script>, scenario: &str, expected: Expect) -> Option<World> {
    check_in("agent_sdk_types.mjs", script, scenario, expected).await
}

#[tokio::test]
async fn frames_answers_and_hook_inputs_of_a_session_have_their_declared_types() {
    let send = json!({"description": "Look", "prompt": "Look.", "subagent_type": "looker"});
    let first = Step::text("Let me see.")
        .thinking("Hm.", "c2ln")
        .tool("Read", json!({"file_path": "a.txt"}))
        .tool("Write", json!({"file_path": "b.txt", "content": "b\n"}))
        .tool("Bash", json!({"command": "touch denied"}))
        .tool("mcp__calc__add", json!({"a": 1}))
        .tool("Read", json!({"file_path": "nothing.txt"}));
    let steps = vec![
        first,
        Step::text("Done."),
        Step::call("Agent", send),
        Step::call("Read", json!({"file_path": "a.txt"})),
        Step::text("Seen."),
        Step::text("It was seen."),
        Step::text("There is no such command."),
        Step::text("<summary>\n1. The user looks.\n</summary>"),
        Step::call("Bash", json!({"command": "sleep 60", "run_in_background": true})),
        Step::text("Started."),
        Step::text("So far").wait_for(Gate::new()),
        Step::text("End."),
    ];
    check(
        steps,
        "session",
        expect![[r#"
        ["Write","Bash","mcp__calc__add","Bash"]
        "AccountInfo"
        "AgentInfo[]"
        "McpServerStatus[]"
        "MessageDisplayHookInput"
        "ModelInfo[]"
        "PermissionRequestHookInput"
        "PermissionUpdate[]"
        "PostCompactHookInput"
        "PostToolBatchHookInput"
        "PostToolUseFailureHookInput"
        "PostToolUseHookInput"
        "PreCompactHookInput"
        "PreToolUseHookInput"
        "RewindFilesResult"
        "SDKAssistantMessage"
        "SDKBackgroundTasksChangedMessage"
        "SDKCompactBoundaryMessage"
        "SDKControlGetContextUsageResponse"
        "SDKControlGetUsageResponse"
        "SDKControlInitializeResponse"
        "SDKControlInterruptResponse"
        "SDKControlReadFileResponse"
        "SDKControlReloadOutputStylesResponse"
        "SDKControlReloadPluginsResponse"
        "SDKControlReloadSkillsResponse"
        "SDKConversationResetMessage"
        "SDKHookResponseMessage"
        "SDKHookStartedMessage"
        "SDKNotificationMessage"
        "SDKPartialAssistantMessage"
        "SDKResultError"
        "SDKResultSuccess"
        "SDKStatusMessage"
        "SDKSystemMessage"
        "SDKTaskNotificationMessage"
        "SDKTaskProgressMessage"
        "SDKTaskStartedMessage"
        "SDKTaskUpdatedMessage"
        "SDKThinkingTokensMessage"
        "SDKUserMessage"
        "SDKUserMessageReplay"
        "SessionEndHookInput"
        "SessionStartHookInput"
        "SlashCommand[]"
        "StopHookInput"
        "SubagentStartHookInput"
        "SubagentStopHookInput"
        "UserPromptSubmitHookInput"
    "#]],
    )
    .await;
}

#[tokio::test]
async fn frames_of_runs_that_fail_have_their_declared_types() {
    let steps = [
        Step::status(529).error("overloaded_error", "Overloaded").times(2),
        Step::call("Bash", json!({"command": "touch x"})),
        Step::text("no"),
        Step::text("no"),
        Step::text("no"),
        Step::text("no"),
        Step::text("no"),
    ];
    check(steps, "failures", expect![[r#"
        [["success",true],["error_max_turns",true],["error_max_structured_output_retries",true],["error_during_execution",true]]
        "SDKAPIRetryMessage"
        "SDKAssistantMessage"
        "SDKPermissionDeniedMessage"
        "SDKResultError"
        "SDKResultSuccess"
        "SDKSystemMessage"
        "SDKUserMessage"
    "#]]).await;
}
