//! The tools of agents without an engine: what they refuse.

use loci_core::tool::{ToolContent, ToolOutcome};
use serde_json::json;

use super::agent::{Agent, agent_tool, background_agent_tool, foreground_agent_tool};
use super::list_agents::ListAgents;
use super::send_message::SendMessage;
use crate::Tool;
use crate::testing::TestHost;

fn text(outcome: &ToolOutcome) -> &str {
    match &outcome.content {
        ToolContent::Text(text) => text,
        ToolContent::Blocks(_) => panic!("blocks"),
    }
}

#[tokio::test]
async fn calls_without_agents_or_words_are_refused() {
    let host = TestHost::new();
    let task = json!({"description": "d", "prompt": "p"});
    for (tool, input, expected) in [
        (&Agent::new("") as &dyn Tool, task.clone(), "No agents can be sent out"),
        (&Agent::new(""), json!({"description": "d", "prompt": " "}), "`prompt` is empty"),
        (&Agent::new(""), json!({"description": "d"}), "prompt"),
        (&Agent::new(""), json!({"description": "d", "prompt": "p", "isolation": "remote"}), "isolation"),
        (&SendMessage::default(), json!({"to": "a", "message": "m"}), "No agents can be sent out"),
        (&ListAgents::default(), json!({}), "No agents can be sent out"),
        // Models know more arguments than these tools have a use for.
        (&ListAgents::default(), json!({"q": "x", "channel": "y"}), "No agents can be sent out"),
        (
            &SendMessage::default(),
            json!({"to": "a", "message": "m", "notify_when_idle": true, "summary": "s".repeat(300)}),
            "No agents can be sent out",
        ),
        (&SendMessage::default(), json!({"to": "a", "notify_when_idle": true}), "No agents can be sent out"),
    ] {
        let outcome = host.call(tool, input.clone()).await;
        assert!(text(&outcome).contains(expected) && outcome.is_failure(), "{input}: {outcome:?}");
    }
}

#[tokio::test]
async fn background_that_is_switched_off_is_no_reason_to_refuse_a_call() {
    let mut host = TestHost::new();
    host.env_mut().vars = [("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")].into_iter().collect();
    let input = json!({"description": "d", "prompt": "p", "run_in_background": true});
    let outcome = host.call(foreground_agent_tool("").as_ref(), input).await;
    assert!(
        text(&outcome).contains("No agents can be sent out"),
        "it is looked at like any other: {outcome:?}"
    );
}

#[test]
fn listing_stands_behind_the_description() {
    let tool = Agent::new("- a: does a\n");
    assert!(tool.descriptor().description.ends_with("for `subagent_type`:\n- a: does a"));
}

/// Where there is no choice between foreground and background, the model is not offered one.
#[test]
fn choice_of_the_background_is_offered_only_where_there_is_one() {
    for (tool, has_choice, says) in [
        (agent_tool("- a: x"), true, "With `run_in_background`"),
        (foreground_agent_tool("- a: x"), false, "as the result of the call"),
        (background_agent_tool("- a: x"), false, "Agents work in the background"),
    ] {
        let descriptor = tool.descriptor();
        assert_eq!(descriptor.input_schema["properties"]["run_in_background"].is_object(), has_choice);
        assert_eq!(descriptor.description.contains("run_in_background"), has_choice);
        assert!(
            descriptor.description.contains(says) && descriptor.description.ends_with("- a: x"),
            "{says}"
        );
    }
    let asked = json!({"description": "d", "prompt": "p", "run_in_background": false});
    let check = crate::InputCheck::new(&background_agent_tool("").descriptor().input_schema);
    assert!(check.check(&asked).is_ok(), "a word about it is no mistake");
}
