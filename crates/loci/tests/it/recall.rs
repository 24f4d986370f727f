//! Looking up what a compaction took out of sight: the Recall tool, `sessions show --before`, resuming from before.

use loci_testkit::Step;
use serde_json::{Value, json};

use crate::support::{World, assert_fine, is_result, loci, print, stream, user};

const SUMMARY: &str = "<summary>1. The user talked about ports.</summary>";

/// A session that was compacted once, after three turns; the first names a port that the summary does not.
async fn compacted(more: Vec<Step>) -> World {
    let mut steps = vec![Step::text("Noted."), Step::text("Two."), Step::text("Three."), Step::text(SUMMARY)];
    steps.extend(more);
    let world = World::new(steps).await;
    let mut session = world.start(&stream([]));
    for prompt in ["The falcon port is 48213.", "second", "third", "/compact"] {
        session.write_json(&user(prompt));
        let result = session.wait_for_json(is_result);
        assert_eq!(result["is_error"], false, "{result}");
    }
    session.finish();
    world
}

/// The transcript's entry that says this.
fn entry_with_text(world: &World, text: &str) -> Value {
    let entries = world.home.only_session();
    let is_it = |entry: &&Value| {
        let content = &entry["message"]["content"];
        content == text || content[0]["text"] == text
    };
    entries.iter().find(is_it).unwrap().clone()
}

/// The words are found before the boundary and come back as they were, unasked.
/// Invariant 8 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_compacted_message_is_recalled_word_for_word() {
    let recall = Step::call("Recall", json!({"query": "falcon port"}));
    let world = compacted(vec![recall, Step::text("It is 48213.")]).await;
    assert_fine(&world.print(["Which port has falcon?", "-c"]));
    let requests = world.requests();
    let asked = requests[4].json["messages"].to_string();
    assert!(!asked.contains("48213"), "the summary does not say it: {asked}");
    let results = world.last_request().tool_results();
    let text = &results[0].text;
    assert!(text.contains("The falcon port is 48213.") && text.contains("before a compaction"), "{text}");
    let uuid = entry_with_text(&world, "The falcon port is 48213.")["uuid"].as_str().unwrap().to_owned();
    assert!(text.contains(&format!("[{uuid}] user")), "{text}");
    assert!(!results[0].is_error);
}

/// A fork begins behind the compaction, and the words before it are in its source.
/// Invariant 8 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_fork_recalls_what_was_said_before_it_was_compacted() {
    let recall = Step::call("Recall", json!({"query": "falcon port"}));
    let world = compacted(vec![recall, Step::text("It is 48213.")]).await;
    assert_fine(&world.print(["Which port has falcon?", "-c", "--fork-session"]));
    assert_eq!(world.home.sessions().len(), 2);
    let text = &world.last_request().tool_results()[0].text;
    assert!(text.contains("The falcon port is 48213.") && text.contains("before a compaction"), "{text}");
}

/// The list of tools is part of the cached prefix: it is the same before and after a compaction.
#[tokio::test]
async fn recall_is_offered_wherever_a_record_is_kept() {
    let offered = |world: &World| world.last_request().tool_names().contains(&"Recall");
    let world = World::new(vec![Step::text("a"), Step::text("b"), Step::text("c"), Step::text("d")]).await;
    assert_fine(&world.print(["hi"]));
    assert!(offered(&world));
    assert_fine(&world.print(["hi", "--no-session-persistence"]));
    assert!(!offered(&world), "without a record there is nothing to look up");
    assert_fine(&world.print(["hi", "--tools", "Read,Recall"]));
    assert_eq!(world.last_request().tool_names(), ["Read", "Recall"]);
    world.home.write_config("settings.json", r#"{"recallEnabled": false}"#);
    assert_fine(&world.print(["hi"]));
    assert!(!offered(&world), "a setting turns it off");
}

/// Invariant 9 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_session_is_shown_as_it_was_before_a_compaction() {
    let world = compacted(vec![]).await;
    let id = world.home.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    let show = |args: &[&str]| {
        let output = world.run(&loci().args(["sessions", "show"]).arg(&id).args(args.iter().copied()));
        assert_fine(&output);
        output.stdout
    };
    let boundary = world.home.only_session().into_iter().find(|entry| entry["subtype"] == "compact_boundary");
    let boundary = boundary.unwrap()["uuid"].as_str().unwrap().to_owned();
    let before = show(&["--before", "last"]);
    for words in ["The falcon port is 48213.", "Noted.", "third", "Three."] {
        assert!(before.contains(words), "{words}: {before}");
    }
    assert!(!before.contains("compacted") && show(&[]).contains("compacted"));
    assert_eq!(show(&["--before", "1"]), before);
    assert_eq!(show(&["--before", &boundary]), before);
    let output = world.run(&loci().args(["sessions", "show"]).arg(&id).args(["--before", "7"]));
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains(&format!("1 ({boundary})")), "{output:?}");
}

/// Resumed at a message before the boundary, the conversation is what it was, without the summary.
/// Invariant 9 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_session_is_resumed_from_before_a_compaction() {
    let world = compacted(vec![Step::text("Again."), Step::text("More.")]).await;
    let id = world.home.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    let uuid = entry_with_text(&world, "Noted.")["uuid"].as_str().unwrap().to_owned();
    assert_fine(&world.run(&print(["Instead", "-r", &id, "--resume-session-at", &uuid])));
    let texts = |world: &World| -> Vec<String> {
        let messages = world.last_request().json["messages"].clone();
        let text = |message: &Value| {
            message["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned()
        };
        messages.as_array().unwrap().iter().map(text).collect()
    };
    assert_eq!(texts(&world), ["The falcon port is 48213.", "Noted.", "Instead"]);
    assert_fine(&world.run(&print(["And on", "-r", &id])));
    assert_eq!(texts(&world), ["The falcon port is 48213.", "Noted.", "Instead", "Again.", "And on"]);
}

/// Invariant 12 of `docs/design/memory.md`.
#[tokio::test]
async fn earlier_sessions_and_memories_are_recalled_where_that_is_permitted() {
    let look = || Step::call("Recall", json!({"query": "falcon port", "where": "project"}));
    // Reads the message that the second match names.
    let quote = Step::dynamic(|request| {
        let text = request.tool_results().pop().unwrap().text;
        let second = text.split("\n2. [").nth(1).unwrap();
        let (message, rest) = second.split_once(']').unwrap();
        let session = rest.split_once(", session ").unwrap().1.lines().next().unwrap();
        Step::call("Recall", json!({"message": message, "session": session}))
    });
    let steps =
        vec![Step::text("Noted."), look(), Step::text("No."), look(), quote, Step::text("It is 48213.")];
    let world = World::new(steps).await;
    crate::memory::remember(
        &world,
        "falcon.md",
        "---\nname: falcon\n---\nThe falcon has a port of its own.\n",
    );
    assert_fine(&world.print(["The falcon port is 48213."]));
    assert_fine(&world.print(["What was it?"]));
    let refused = world.last_request().tool_results().remove(0);
    assert!(refused.is_error && !refused.text.contains("48213"), "nobody permitted it: {refused:?}");

    let rule = format!("Read(/{}/projects/**)", world.home.config_home().display());
    assert_fine(&world.print(["What was it?", "--allowedTools", &rule]));
    let results = world.last_request().tool_results();
    let requests = world.requests();
    let found = &requests[requests.len() - 2].tool_results()[0];
    assert!(found.text.contains("1. [falcon.md] a memory of this project\n"), "{found:?}");
    assert!(found.text.contains("The falcon port is 48213."), "{found:?}");
    let quoted = results.last().unwrap();
    assert!(!quoted.is_error && quoted.text.ends_with("\nThe falcon port is 48213."), "{quoted:?}");
}
