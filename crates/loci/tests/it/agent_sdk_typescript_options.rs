//! Options and functions of the official TypeScript Agent SDK beside the usual ones.

use expect_test::{Expect, expect};
use loci_testkit::{Script, Step};
use serde_json::json;

use crate::agent_sdk_typescript::check_in;
use crate::support::World;

async fn check(script: impl Into<Script>, scenario: &str, expected: Expect) -> Option<World> {
    check_in("agent_sdk_options.mjs", script, scenario, expected).await
}

fn answers<const N: usize>() -> Vec<Step> {
    (1..=N).map(|n| Step::text(n.to_string())).collect()
}

#[tokio::test]
async fn host_may_start_the_process_and_ask_for_a_trace() {
    check(
        answers::<4>(),
        "own_process",
        expect![[r#"
            ["1",true]
            "2"
            [true]
            "3"
            ["4","Mine"]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn options_that_are_not_offered_are_told() {
    check(
        answers::<2>(),
        "told_as_not_offered",
        expect![[r#"
            "1"
            [true,true]
            [true,true]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn options_that_restrict_and_cannot_be_kept_are_refused() {
    check(
        answers::<1>(),
        "refused",
        expect![[r#"
            ["raised",true]
            ["raised",true]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn resume_drops_turn_guards_what_is_dropped() {
    check(
        answers::<4>(),
        "resume_drops_turn",
        expect![[r#"
            "3"
            ["raised",true]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn permission_tool_decides_and_bypassing_is_possible_where_it_was_allowed() {
    let call = |file: &str| Step::call("Bash", json!({"command": format!("touch {file}")}));
    let steps = [call("asked"), Step::text("Done."), call("unasked"), Step::text("Again.")];
    check(
        steps,
        "permission_tool",
        expect![[r#"
            "Done."
            [true,false]
            ["Again.",true]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn hooks_that_fail_close_or_leave_open_what_they_guard_as_asked() {
    let write = || Step::call("Write", json!({"file_path": "new.txt", "content": "x"}));
    check(
        [write(), Step::text("1"), write(), Step::text("2")],
        "failing_hooks",
        expect![[r#"
            ["block","1",false]
            ["continue","2",true]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn tool_policies_of_a_server_in_the_host_hold_against_allowed_tools() {
    let calls = ["add", "sub", "mul"].map(|tool| Step::call(&format!("mcp__calc__{tool}"), json!({"a": 1})));
    check(
        calls.into_iter().chain([Step::text("Done.")]).collect::<Vec<_>>(),
        "tool_policies",
        expect![[r#"
            ["asked","mcp__calc__sub",{"name":"calc","source":"sdk"}]
            ["called","sub"]
            ["called","mul"]
            ["Done.",["mcp__calc__add"]]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn plugin_whose_servers_the_host_sees_to_brings_none() {
    check(
        answers::<4>(),
        "plugin_without_servers",
        expect![[r#"
            ["argv",true,1]
            ["argv",true,0]
            ["initialize",true,1]
            ["initialize",true,0]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn prompt_suggestions_are_typed_frames() {
    check(
        [Step::text("1"), Step::text("2"), Step::text("run the tests")],
        "suggestions",
        expect![[r#"
            "1"
            "2"
            ["suggestion","run the tests"]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn resources_are_read_streams_are_added_and_a_query_is_closed() {
    check(
        answers::<2>(),
        "resources_and_streams",
        expect![[r#"
            "1"
            [{"uri":"ui://page","text":"buy milk"}]
            "2"
            true
        "#]],
    )
    .await;
}

#[tokio::test]
async fn store_is_flushed_and_loaded_as_asked() {
    check(
        answers::<2>(),
        "store_options",
        expect![[r#"
            "2"
            ["user","assistant","user","assistant"]
            1
        "#]],
    )
    .await;
}

#[tokio::test]
async fn messages_of_agents_are_found() {
    let send = json!({"description": "Look", "prompt": "Look.", "subagent_type": "looker"});
    check(
        [Step::call("Agent", send), Step::text("Seen."), Step::text("Done.")],
        "agent_messages",
        expect![[r#"
            ["user","assistant"]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn conversation_runs_as_an_agent_of_the_options() {
    let Some(world) = check(
        answers::<1>(),
        "main_agent",
        expect![[r#"
            [["Read"],1]
            "1"
        "#]],
    )
    .await
    else {
        return;
    };
    let request = world.last_request();
    assert!(request.system_text().contains("You look."), "{}", request.system_text());
    assert_eq!(request.json["model"], "claude-haiku-5-5");
}

#[tokio::test]
async fn names_of_events_and_tools_are_known_or_told() {
    check(
        answers::<2>(),
        "names",
        expect![[r#"
            ["1","all events are known"]
            ["2",false,true]
            true
        "#]],
    )
    .await;
}

#[tokio::test]
async fn settings_functions_agree_with_the_run() {
    check(
        answers::<1>(),
        "settings_functions",
        expect![[r#"
            "dropped"
            [true]
            "default"
        "#]],
    )
    .await;
}

#[tokio::test]
async fn spare_process_is_an_error() {
    check(
        answers::<1>(),
        "spare",
        expect![[r#"
            ["raised","string"]
        "#]],
    )
    .await;
}
