//! A model whose price nobody told us: its cost is unknown, not nothing.

use loci_testkit::Step;
use serde_json::{Value, json};

use crate::support::{World, assert_fine, control, is_result, loci, stream, user};

const MYSTERY: &str = "mystery-1";

#[tokio::test]
async fn unknown_price_is_said_in_result_stats_and_list() {
    let world = World::new([Step::text("hi").usage(1_000, 100, 0, 0)]).await;
    let output = world.run(&loci().args(["-p", "hello", "--model", MYSTERY, "--output-format", "json"]));
    assert_fine(&output);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(result["modelUsage"][MYSTERY]["priceUnknown"], true, "{result}");
    assert_eq!(result["loci"]["price_unknown"], json!([MYSTERY]), "{result}");
    let json = |args: &[&str]| -> Value {
        let output = world.run(&loci().args(args.iter().copied()));
        assert_fine(&output);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let stats = json(&["stats", "--json"]);
    assert_eq!(
        (&stats["priceUnknown"], &stats["models"][0]["priceUnknown"]),
        (&json!(true), &json!(true)),
        "{stats}"
    );
    let list = json(&["sessions", "list", "--json"]);
    assert_eq!(list[0]["costUsd"], Value::Null, "{list}");
    let text = world.run(&loci().arg("stats")).stdout;
    assert!(
        text.contains("Price unknown, counted as $0.00: mystery-1") && text.contains("unknown"),
        "{text}"
    );
}

#[tokio::test]
async fn budget_is_refused_for_a_model_without_a_price() {
    let world = World::new([Step::text("hi")]).await;
    for args in [["--model", MYSTERY].as_slice(), &["--model", "haiku", "--fallback-model", MYSTERY]] {
        let output =
            world.run(&loci().args(["-p", "hello", "--max-budget-usd", "1"]).args(args.iter().copied()));
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(
            output.stderr.contains("The price of `mystery-1` is unknown, so a budget of $1 cannot be kept"),
            "{output:?}"
        );
    }
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn run_with_a_budget_keeps_its_model_when_another_has_no_price() {
    let world = World::new([Step::text("hi")]).await;
    let mut session = world.start(&stream(["--max-budget-usd", "1"]));
    session.write_json(&control("m", json!({"subtype": "set_model", "model": MYSTERY})));
    let answer = session.wait_for_json(|frame| frame["response"]["request_id"] == "m")["response"].clone();
    session.write_json(&user("hello"));
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    assert!(answer["error"].as_str().unwrap().contains("The price of `mystery-1` is unknown"), "{answer}");
    assert_ne!(world.last_request().json["model"], MYSTERY);
}

/// A local server says how much its model can read, and is believed.
#[tokio::test]
async fn window_of_a_local_server_is_believed() {
    let world = World::new([Step::text("hi"), Step::text("hi")]).await;
    for (model, window) in [("local-7b", 65_536), (MYSTERY, 200_000)] {
        let output = world.run(&loci().args(["-p", "hello", "--model", model, "--output-format", "json"]));
        assert_fine(&output);
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(result["loci"]["context"]["window"], window, "{result}");
        assert_eq!(result["modelUsage"][model]["contextWindow"], window, "{result}");
    }
}

/// One that says it only when a prompt does not fit is believed from then on.
#[tokio::test]
async fn window_of_a_context_error_is_believed() {
    let words = "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens.";
    let refusal = Step::status(400).error("BadRequestError", words);
    let summary = "<summary>They said hello.</summary>";
    let world = World::new([Step::text("hi"), refusal, Step::text(summary), Step::text("again")]).await;
    let binary = |args: &[&str]| {
        loci().args(["--model", MYSTERY, "--output-format", "json"]).args(args.iter().copied())
    };
    assert_fine(&world.run(&binary(&["-p", "hello"])));
    let output = world.run(&binary(&["-p", "more", "-c"]));
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(result["loci"]["context"]["window"], 65_536, "{result}");
}
