//! Old results that the server clears: what it is asked for, and what it says it did.

use crate::support::{World, assert_fine, print};
use loci_testkit::{Recorded, Step};
use serde_json::{Value, json};

async fn world() -> World {
    let edits =
        json!([{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 90_000}]);
    let reading = Step::call("Read", json!({"file_path": "notes.txt"})).usage(10, 20, 70_000, 0);
    let cleared = Step::text("Done.").usage(10, 20, 12_000, 0).applied_edits(edits);
    let world = World::new(vec![reading, cleared, Step::text("More.")]).await;
    world.home.write("notes.txt", "port=9000\n");
    world
}

fn edits(request: &Recorded) -> Vec<Value> {
    request.json["context_management"]["edits"].as_array().cloned().unwrap_or_default()
}

/// The server is asked in every request alike, what it reports is kept, and what it counted is what counts.
/// Invariant 18 of `docs/design/compaction.md`.
#[tokio::test]
async fn what_the_server_clears_is_asked_for_and_kept() {
    let world = world().await;
    let run = |args: [&str; 3]| print(args).env("LOCI_CONTEXT_EDITING", "1");
    let run = |args: [&str; 3]| run(args).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "200000");
    assert_fine(&world.run(&run(["compare", "--output-format", "text"])));
    let requests = world.requests();
    let asked = edits(&requests[0]);
    assert_eq!(asked[0]["type"], "clear_thinking_20251015", "what is done to reasoning comes first");
    let except = asked[1]["exclude_tools"].as_array().unwrap();
    assert!(except.contains(&json!("TaskCreate")) && !except.contains(&json!("Read")), "{except:?}");
    let mut clear = asked[1].clone();
    clear.as_object_mut().unwrap().remove("exclude_tools");
    assert_eq!(
        clear,
        json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 160_000},
            "keep": {"type": "tool_uses", "value": 5}, "clear_at_least": {"type": "input_tokens", "value": 18_000}})
    );
    let header = requests[0].header("anthropic-beta").unwrap();
    assert!(header.contains("context-management-2025-06-27"), "{header}");
    assert_eq!(edits(&requests[1]), asked, "the same every time");
    let said = world.session().into_iter().find(|entry| entry["message"]["content"][0]["text"] == "Done.");
    let kept = said.unwrap()["message"]["context_management"]["applied_edits"].clone();
    assert_eq!(
        (&kept[0]["cleared_tool_uses"], &kept[0]["cleared_input_tokens"]),
        (&json!(8), &json!(90_000))
    );
    let output = world.run(&run(["more", "-c", "--output-format=json"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let sent = world.last_request().json["messages"].to_string();
    assert!(sent.contains("port=9000"), "what is sent stays as it was: {sent}");
}

/// One switch for all clearing; and whoever else answers is not asked for what it may not know.
#[tokio::test]
async fn the_server_is_not_asked_where_it_may_not_be() {
    for (name, value) in [
        ("LOCI_CONTEXT_EDITING", "0"),
        ("LOCI_DISABLE_CLEARING", "1"),
        ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
        // Another server than the one that is known to do it.
        ("LOCI_UNRELATED", "1"),
    ] {
        let world = world().await;
        let mut run = print(["compare"]).env(name, value);
        if name.starts_with("LOCI_DISABLE") || name.starts_with("CLAUDE") {
            run = run.env("LOCI_CONTEXT_EDITING", "1");
        }
        assert_fine(&world.run(&run));
        let asked = edits(&world.requests()[0]);
        assert!(!asked.iter().any(|edit| edit["type"] == "clear_tool_uses_20250919"), "{name}: {asked:?}");
    }
}
