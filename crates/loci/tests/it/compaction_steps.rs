//! Each step that makes a conversation shorter has a switch in the settings.

use crate::support::{World, assert_fine, print, watched};
use loci_testkit::{Recorded, Step};
use serde_json::{Value, json};

const SUMMARY: &str = "<summary>The files were compared.</summary>";
const CLEARED: &str = "[Old tool result content cleared]";

async fn world(steps: Vec<Step>, switches: &Value) -> World {
    let world = World::new(steps).await;
    for n in 0..8 {
        world.home.write(format!("long{n}.txt"), format!("file {n} {}\n", "words ".repeat(40)).repeat(150));
    }
    world.home.write_config("settings.json", json!({"compactionSteps": switches}).to_string());
    world
}

fn read(n: u64, tokens: u64) -> Step {
    Step::call("Read", json!({"file_path": format!("long{n}.txt")})).usage(10, 20, tokens - 30, 0)
}

/// Invariant 21 of `docs/design/compaction.md`.
#[tokio::test]
async fn disabled_result_budget_keeps_results() {
    let calls =
        (0..8).fold(Step::new(), |calls, n| calls.tool("Read", json!({"file_path": format!("long{n}.txt")})));
    let world = world(vec![calls, Step::text("Done.")], &json!({"resultBudget": false})).await;
    assert_fine(&world.run(&print(["compare"])));
    let results = world.requests()[1].tool_results();
    assert_eq!(results.iter().filter(|it| it.text.contains("saved to: ")).count(), 0);
    assert_eq!(results.len(), 8);
}

/// Without the step before it, the summary comes at once.
/// Invariant 21 of `docs/design/compaction.md`.
#[tokio::test]
async fn disabled_snip_summarises_at_once() {
    let mut steps: Vec<Step> = (0..5).map(|n| read(n, 12_000 * (n + 1))).collect();
    steps.extend([Step::text(SUMMARY), Step::text("Done.")]);
    let world = world(steps, &json!({"snip": false})).await;
    assert_fine(&world.run(&print(["compare"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000")));
    assert!(!world.last_request().json.to_string().contains(CLEARED));
    assert!(world.sketch().contains("This conversation was compacted"));
}

/// A client is told how many results went and what that freed, before the request that is sent without them.
#[tokio::test]
async fn cleared_results_are_a_frame() {
    let mut steps: Vec<Step> = (0..5).map(|n| read(n, 12_000 * (n + 1))).collect();
    steps.push(Step::text("Done."));
    let world = world(steps, &json!({})).await;
    let output = world.run(&watched(["compare"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"));
    assert_fine(&output);
    let frames = output.json_lines();
    let cleared: Vec<usize> = (0..frames.len())
        .filter(|at| frames[*at]["type"] == "system" && frames[*at]["subtype"] == "results_cleared")
        .collect();
    let [at] = cleared[..] else { panic!("one frame: {frames:?}") };
    let frame = &frames[at];
    let n_sent = world.last_request().json["messages"].to_string().matches(CLEARED).count();
    assert_eq!((frame["cleared_results"].as_u64(), n_sent), (Some(4), 4));
    assert!(frame["freed_tokens"].as_u64().unwrap() > 0, "{frame}");
    assert!(frame["session_id"].is_string() && frame["uuid"].is_string(), "{frame}");
    let answer = frames.iter().rposition(|frame| frame["type"] == "assistant").unwrap();
    assert!(at < answer, "it is told when it happens");
}

fn too_long() -> Step {
    Step::status(400).error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
}

/// A request for a summary that does not fit either is not compacted itself: what must be shorter becomes so by rule.
/// Invariant 12 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_compaction_is_never_compacted_itself() {
    let steps =
        vec![read(0, 900), read(1, 1_000), read(2, 1_100), too_long(), too_long(), Step::text("Done.")];
    let world = world(steps, &json!({})).await;
    assert_fine(&world.run(&print(["compare"])));
    let asks = |request: &Recorded| request.json["messages"].to_string().contains("inside <summary> tags");
    assert_eq!(world.requests().iter().filter(|request| asks(request)).count(), 1);
    assert_eq!(world.requests().len(), 6);
    assert!(world.conversation().contains("put together from the record by rule"));
}

/// A refusal is told as it is.
/// Invariant 21 of `docs/design/compaction.md`.
#[tokio::test]
async fn disabled_reactive_compaction_reports_the_refusal() {
    let steps = vec![read(0, 900), read(1, 1_000), too_long()];
    let world = world(steps, &json!({"reactive": false})).await;
    let output = world.run(&print(["compare"]));
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("compactionSteps.reactive"), "{output:?}");
    assert_eq!(world.requests().len(), 3, "nobody is asked for a summary");
    assert!(!world.sketch().contains("compact_boundary"));
}
