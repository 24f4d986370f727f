//! How a run ends, for scripts: the table of `docs/headless.md`.

use crate::support::{World, assert_fine, is_result, loci, print, stream, user, watched};
use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

/// Runs a binary and compares its code, and whether it wrote to standard output and standard error.
async fn check(steps: Vec<Step>, binary: Binary, stdin: &str, expected: (i32, bool, bool)) -> World {
    let world = World::new(steps).await;
    let output = world.run_with_stdin(&binary.env("CLAUDE_CODE_MAX_RETRIES", "0"), stdin);
    let found = (output.code.unwrap(), !output.stdout.is_empty(), !output.stderr.is_empty());
    assert_eq!(found, expected, "{output:?}");
    world
}

#[tokio::test]
async fn codes_and_streams_are_those_of_the_documentation() {
    let hi = || vec![Step::text("Hi.")];
    let unknown = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a09";
    check(hi(), print(["hi"]), "", (0, true, false)).await;
    check(hi(), stream([]), "", (0, false, false)).await;
    check(hi(), stream([]), &user("hi").to_string(), (0, true, false)).await;
    check(vec![Step::status(400)], print(["hi"]), "", (1, true, false)).await;
    let call = Step::call("Read", json!({"file_path": "a.txt"}));
    check(vec![call, Step::text("never")], print(["hi", "--max-turns", "1"]), "", (1, true, false)).await;
    check(hi(), print(["hi", "--nonsense"]), "", (1, false, true)).await;
    check(hi(), print(["hi", "--output-format", "stream-json"]), "", (1, false, true)).await;
    check(hi(), print([]), "", (1, false, true)).await;
    check(hi(), print(["hi", "--resume", unknown]), "", (1, false, true)).await;
    check(hi(), watched(["hi", "--resume", unknown]), "", (1, true, true)).await;
    check(hi(), stream([]), "nonsense", (1, false, true)).await;
    check(hi(), loci().args(["sessions", "show", unknown]), "", (1, false, true)).await;
}

#[tokio::test]
async fn json_result_has_every_documented_field() {
    let world = World::new([Step::text("Hi.")]).await;
    let output = world.print(["hi", "--output-format", "json"]);
    assert_fine(&output);
    let result: Value = output.json_lines().into_iter().find(is_result).unwrap();
    for field in [
        "type subtype is_error api_error_status terminal_reason result session_id uuid user_message_uuid",
        "result_index num_turns duration_ms duration_api_ms ttft_ms time_to_request_ms stop_reason usage",
        "total_cost_usd modelUsage model_usage_since_last_result permission_denials fast_mode_state loci",
    ]
    .join(" ")
    .split(' ')
    {
        assert!(result.get(field).is_some(), "{field}: {result}");
    }
    let usage = &result["modelUsage"]["claude-sonnet-4-5"];
    for field in
        "inputTokens outputTokens cacheReadInputTokens cacheCreationInputTokens webSearchRequests costUSD \
         contextWindow maxOutputTokens canonicalModel costBasis"
            .split_whitespace()
    {
        assert!(usage.get(field).is_some(), "{field}: {usage}");
    }
    assert_eq!(result["model_usage_since_last_result"]["claude-sonnet-4-5"]["costUSD"], usage["costUSD"]);
}

#[tokio::test]
async fn result_of_each_turn_tells_its_own_share_of_the_usage() {
    let world = World::new([Step::text("1"), Step::text("2")]).await;
    let output = world.run_with_stdin(&stream([]), &format!("{}\n{}", user("A"), user("B")));
    assert_fine(&output);
    let results: Vec<Value> = output.json_lines().into_iter().filter(is_result).collect();
    let cost = |result: &Value, key: &str| result[key]["claude-sonnet-4-5"]["costUSD"].as_f64().unwrap();
    let shares: f64 = results.iter().map(|it| cost(it, "model_usage_since_last_result")).sum();
    let total = results[1]["total_cost_usd"].as_f64().unwrap();
    assert!((shares - total).abs() < 1e-9 && (cost(&results[1], "modelUsage") - total).abs() < 1e-9);
    assert_eq!(results.iter().map(|it| it["result_index"].clone()).collect::<Vec<_>>(), [0, 1]);
}

/// A mistyped verb is no prompt: nobody is asked.
#[tokio::test]
async fn mistyped_verb_names_the_one_that_was_meant() {
    let world = World::new([Step::text("never")]).await;
    for line in [&["sesions"][..], &["sesions", "list"]] {
        let output = world.run(&loci().args(line.iter().copied()));
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
        assert!(output.stderr.contains("Did you mean `loci sessions`?"), "{output:?}");
    }
    assert!(world.requests().is_empty());
}
