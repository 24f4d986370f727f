//! The main conversation as an agent: remembered by the session, with first words that are said once.

use loci_testkit::Step;
use serde_json::json;

use super::{define, main_session};
use crate::support::{World, assert_fine, is_result, loci, print, stream, user};

#[tokio::test]
async fn session_goes_on_as_the_agent_it_was() {
    let world = World::new([Step::text("1")]).await;
    define(&world, "guide", "tools: Read\nmodel: haiku\ninitialPrompt: Begin here.\n", "You guide.");
    define(&world, "other", "", "You differ.");
    assert_fine(&world.run(&loci().args(["-p", "hi", "--agent", "guide"])));
    let kept = main_session(&world);
    let lines: Vec<_> = kept.iter().filter(|it| it["type"] == "agent-setting").collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["agentSetting"], "guide");
    assert!(world.last_request().last_user_text().ends_with("Begin here.\n\nhi"));

    // Whatever the settings say meanwhile, and without saying the first words again.
    world.home.write_config("settings.json", json!({"agent": "other"}).to_string());
    let world = world.then([Step::text("2")]).await;
    assert_fine(&world.run(&loci().args(["-p", "-c", "again"])));
    let request = world.last_request();
    assert!(request.system_text().contains("You guide.") && !request.system_text().contains("You differ."));
    assert_eq!(request.tool_names(), ["Read"]);
    assert!(request.json["model"].as_str().unwrap().contains("haiku"));
    assert!(request.last_user_text().ends_with("again") && !request.last_user_text().contains("Begin here."));
    assert_eq!(main_session(&world).iter().filter(|it| it["type"] == "agent-setting").count(), 1);

    // Another one may be chosen, and is what it is from then on.
    let world = world.then([Step::text("3")]).await;
    assert_fine(&world.run(&print(["-c", "now", "--agent", "other"])));
    assert!(world.last_request().system_text().contains("You differ."));
    let world = world.then([Step::text("4")]).await;
    assert_fine(&world.run(&print(["-c", "and now"])));
    assert!(world.last_request().system_text().contains("You differ."));

    // A copy is the same.
    let world = world.then([Step::text("5")]).await;
    assert_fine(&world.run(&print(["-c", "copy", "--fork-session"])));
    assert!(world.last_request().system_text().contains("You differ."));

    // One that is gone is told, and the session goes on as usual.
    std::fs::remove_file(world.home.project().join(".claude/agents/other.md")).unwrap();
    world.home.write_config("settings.json", "{}");
    let world = world.then([Step::text("6")]).await;
    let output = world.run(&print(["-c", "still there?"]));
    assert_eq!(output.code, Some(0));
    assert!(output.stderr.contains("ran as the agent `other`, which there is no more"), "{}", output.stderr);
    assert!(!world.last_request().system_text().contains("You differ."));
}

#[tokio::test]
async fn first_words_stand_before_the_first_prompt_of_a_client_too() {
    let world = World::new([Step::text("1"), Step::text("2")]).await;
    define(&world, "guide", "initialPrompt: Begin here.\n", "You guide.");
    let mut session = world.start(&stream(["--agent", "guide"]));
    for text in ["one", "two"] {
        session.write_json(&user(text));
        session.wait_for_json(is_result);
    }
    assert_fine(&session.finish());
    let requests = world.requests();
    assert!(requests[0].last_user_text().contains("Begin here."), "{}", requests[0].last_user_text());
    assert!(!requests[1].last_user_text().contains("Begin here."));
}

/// Hooks that mean nothing, limits that are none: what is wrong is said, and what cannot be switched off stays.
#[tokio::test]
async fn broken_hooks_of_the_main_agent_are_told_and_limits_cannot_be_taken_away() {
    let call = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"});
    let script = loci_testkit::Script::new([Step::call("Agent", call), Step::text("Done.")])
        .route([Step::text("One.")], super::is_agents);
    let world = World::new(script).await;
    let fields = "name: boss\ndescription: d\nhooks:\n  Nonsense:\n    - hooks:\n        - type: command\n          command: x\n";
    world.home.write_config("agents/boss.md", format!("---\n{fields}---\nYou lead.\n"));
    let run = print(["go", "--agent", "boss"])
        .env("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", "0")
        .env("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "none");
    let output = world.run(&run);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("Hooks of the agent `boss`"), "{}", output.stderr);
    assert_eq!(super::side_files(&world).len(), 1);
}
