//! `--session-mirror`: every line of a transcript as it is written, for stores of the client.

use crate::support::{World, assert_fine, is_result, stream, user};
use loci_testkit::Step;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[tokio::test]
async fn every_transcript_line_is_mirrored_in_order_and_before_the_result() {
    let send = json!({"description": "Look", "prompt": "Look around.", "subagent_type": "general-purpose"});
    let steps = [Step::call("Agent", send), Step::text("Seen."), Step::text("Done.")];
    let world = World::new(steps).await;
    let output = world.run_with_stdin(&stream(["--session-mirror"]), &user("hi").to_string());
    assert_fine(&output);
    let lines = output.json_lines();
    let mut mirrored: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for frame in lines.iter().filter(|frame| frame["type"] == "transcript_mirror") {
        assert_eq!(frame.as_object().unwrap().len(), 3, "it has neither uuid nor session_id");
        let entries = frame["entries"].as_array().unwrap().clone();
        mirrored.entry(frame["filePath"].as_str().unwrap().to_owned()).or_default().extend(entries);
    }
    assert_eq!(mirrored.len(), 2, "the session's own file and the agent's: {:?}", mirrored.keys());
    for (file, entries) in &mirrored {
        let text = std::fs::read_to_string(file).unwrap();
        let written: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(entries, &written, "{file}");
    }
    assert!(mirrored.keys().any(|file| file.contains("/subagents/agent-")));
    let result = lines.iter().position(is_result).unwrap();
    let answer = lines.iter().position(|frame| {
        frame["type"] == "transcript_mirror" && frame["entries"].to_string().contains("Done.")
    });
    assert!(answer.unwrap() < result);
}

#[tokio::test]
async fn nothing_is_mirrored_unasked() {
    let world = World::new([Step::text("Hi.")]).await;
    let output = world.run_with_stdin(&stream([]), &user("hi").to_string());
    assert_fine(&output);
    assert!(!output.stdout.contains("transcript_mirror"));
}
