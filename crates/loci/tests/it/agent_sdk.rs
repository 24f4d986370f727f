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
        ["account", "agents", "available_output_styles", "commands", "models", "output_style", "pid"]
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
    assert_eq!(world.last_request().json["model"], "claude-haiku-4-5");
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
