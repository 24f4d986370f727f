//! What an agent says, told to a client that wants to hear it.

use loci_testkit::{Script, Step};
use serde_json::Value;

use super::{agent, has, is_agents};
use crate::support::{World, assert_fine, watched};

fn nested() -> Script {
    Script::new([Step::call("Agent", agent("general-purpose", "Level one.")), Step::text("top")])
        .route(
            [
                Step::text("One begins.").tool("Agent", agent("general-purpose", "Level two.")),
                Step::text("One ends."),
            ],
            |it| is_agents(it) && has(it, "Level one."),
        )
        .route([Step::text("Two is done.")], is_agents)
}

/// Returns the texts of agents in a stream, with the call that each belongs to.
fn texts(frames: &[Value]) -> Vec<(String, String)> {
    let of_agents =
        frames.iter().filter(|it| it["type"] == "assistant" && it["parent_tool_use_id"].is_string());
    of_agents
        .flat_map(|frame| {
            let parent = frame["parent_tool_use_id"].as_str().unwrap().to_owned();
            let blocks = frame["message"]["content"].as_array().unwrap().iter();
            let said: Vec<String> = blocks.filter_map(|it| it["text"].as_str()).map(str::to_owned).collect();
            said.into_iter().map(move |text| (text, parent.clone()))
        })
        .collect()
}

#[tokio::test]
async fn words_of_agents_are_told_only_where_they_are_asked_for() {
    for (flag, variable) in [(None, None), (Some("--forward-subagent-text"), None), (None, Some("1"))] {
        let world = World::new(nested()).await;
        let binary = watched(["go"]).args(flag);
        let binary = variable
            .into_iter()
            .fold(binary, |binary, value| binary.env("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT", value));
        let output = world.run(&binary);
        assert_fine(&output);
        let frames = output.json_lines();
        let told = texts(&frames);
        if flag.is_none() && variable.is_none() {
            assert_eq!(told, [], "nobody asked");
            continue;
        }
        let said: Vec<&str> = told.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(said, ["One begins.", "Two is done.", "One ends."], "{flag:?} {variable:?}");
        // Each belongs to the call that sent its agent out, also below another agent.
        let call = |prompt: &str| {
            let calls =
                frames.iter().flat_map(|it| it["message"]["content"].as_array().into_iter().flatten());
            let mut calls = calls.filter(|it| it["input"]["prompt"] == prompt);
            calls.next().unwrap()["id"].as_str().unwrap().to_owned()
        };
        let parents: Vec<String> = told.iter().map(|(_, parent)| parent.clone()).collect();
        assert_eq!(parents, [call("Level one."), call("Level two."), call("Level one.")]);
    }
}
