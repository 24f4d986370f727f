//! The tools of agents without an engine: what they refuse.

use loci_core::tool::{ToolContent, ToolOutcome};
use serde_json::json;

use super::agent::Agent;
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
    ] {
        let outcome = host.call(tool, input.clone()).await;
        assert!(text(&outcome).contains(expected) && outcome.is_failure(), "{input}: {outcome:?}");
    }
}

#[tokio::test]
async fn background_agents_can_be_switched_off() {
    let mut host = TestHost::new();
    host.env_mut().vars = [("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")].into_iter().collect();
    let input = json!({"description": "d", "prompt": "p", "run_in_background": true});
    let outcome = host.call(&Agent::new(""), input).await;
    assert!(text(&outcome).contains("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"), "{outcome:?}");
}

#[test]
fn listing_stands_behind_the_description() {
    let tool = Agent::new("- a: does a\n");
    assert!(tool.descriptor().description.ends_with("for `subagent_type`:\n- a: does a"));
}
