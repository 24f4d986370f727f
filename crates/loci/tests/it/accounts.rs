//! What a session costs is the same wherever it is told: results, `/usage`, control requests, the transcript, `loci stats` and
//! the list of sessions; with agents, summaries, questions on the side, and over a resume.

use crate::support::{World, assert_fine, control, is_result, loci, print, stream, user};
use loci_testkit::{Recorded, Script, Session, Step};
use serde_json::{Value, json};

fn is_agents(request: &Recorded) -> bool {
    request.header("x-claude-code-agent-id").is_some()
}

fn is_of(text: &'static str) -> impl Fn(&Recorded) -> bool + Send + Sync + 'static {
    move |request| String::from_utf8_lossy(&request.body).contains(text)
}

fn ask(session: &mut Session, request: Value) -> Value {
    session.write_json(&control("r1", request.clone()));
    let frame = session.wait_for_json(|frame| frame["type"] == "control_response");
    assert_eq!(frame["response"]["subtype"], "success", "{request}: {frame}");
    frame["response"]["response"].clone()
}

fn say(session: &mut Session, prompt: &str) -> Value {
    session.write_json(&user(prompt));
    session.wait_for_json(is_result)
}

fn json_of(world: &World, args: &[&str]) -> Value {
    let output = world.run(&loci().args(args.iter().copied()));
    assert_fine(&output);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// In and out at the list price of claude-sonnet-4-5 ($3, $15) and of the agent's claude-haiku-4-5 ($1, $5).
fn sonnet(input: f64, output: f64) -> f64 {
    (input * 3.0 + output * 15.0) / 1e6
}

fn haiku(input: f64, output: f64) -> f64 {
    (input + output * 5.0) / 1e6
}

fn close(told: &Value, expected: f64) -> bool {
    told.as_f64().is_some_and(|told| (told - expected).abs() < 1e-9)
}

/// Asserts that a figure of dollars stands in a text, as people read it.
fn assert_says(text: &str, cost: f64) {
    let shown = format!("${cost:.4}");
    assert!(text.contains(&shown), "{shown}: {text}");
}

#[tokio::test]
async fn cost_of_a_session_is_the_same_wherever_it_is_told() {
    let looker =
        json!({"looker": {"description": "Looks.", "prompt": "You look.", "model": "claude-haiku-4-5"}});
    let call = json!({"description": "look", "prompt": "Look around.", "subagent_type": "looker",
        "run_in_background": false});
    let write = json!({"file_path": "new.txt", "content": "one\ntwo\n"});
    let script = Script::new([
        Step::call("Agent", call).usage(1_000, 100, 0, 0),
        Step::call("Write", write).usage(2_000, 200, 0, 0),
        Step::text("Done.").usage(3_000, 300, 0, 0),
        Step::text("Second.").usage(4_000, 400, 0, 0),
        Step::text("After it.").usage(5_000, 500, 0, 0),
    ])
    .answer_when(Step::text("Seen.").usage(10_000, 1_000, 0, 0), is_agents)
    .answer_when(Step::text("On the side.").usage(6_000, 600, 0, 0), is_of("a question on the side"))
    .answer_when(Step::text("<summary>All was done.</summary>").usage(7_000, 700, 0, 0), is_of("<summary>"));
    let world = World::new(script).await;
    let looker = looker.to_string();
    let mut session = world.start(&stream(["--permission-mode", "acceptEdits", "--agents", &looker]));
    let first = say(&mut session, "Send it.");
    let main = sonnet(6_000.0, 600.0);
    let agents = haiku(10_000.0, 1_000.0);
    assert!(close(&first["total_cost_usd"], main + agents), "{first}");
    assert_eq!(first["usage"]["input_tokens"], 6_000, "the main loop of this turn");
    assert!(close(&first["modelUsage"]["claude-haiku-4-5"]["costUSD"], agents), "{first}");
    let stats = json!({
        "spawned": 1, "requested": {"background": 0, "foreground": 1, "unset": 0}, "started_in_background": 0,
        "max_depth": 1, "spawned_by_subagents": 0, "completed": 1, "failed": 0,
        "killed": {"parent": 0, "user": 0, "system": 0},
        "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0}, "by_type": {"looker": 1},
    });
    assert_eq!(first["subagent_stats"], stats);
    let side = ask(&mut session, json!({"subtype": "side_question", "question": "What is it?"}));
    assert_eq!(side, json!({"response": "On the side.", "synthetic": false}));
    say(&mut session, "And now?");
    let compacted = say(&mut session, "/compact");
    assert_eq!(compacted["is_error"], false, "{compacted}");
    let used = main + agents + sonnet(6_000.0, 600.0) + sonnet(4_000.0, 400.0) + sonnet(7_000.0, 700.0);
    assert!(close(&compacted["total_cost_usd"], used), "{used}: {compacted}");
    let usage = ask(&mut session, json!({"subtype": "get_usage"}));
    assert!(close(&usage["session"]["total_cost_usd"], used), "{used}: {usage}");
    assert_eq!(usage["session"]["model_usage"], compacted["modelUsage"]);
    assert_eq!(
        (&usage["session"]["total_lines_added"], &usage["session"]["total_lines_removed"]),
        (&json!(2), &json!(0))
    );
    assert_says(ask(&mut session, json!({"subtype": "get_session_cost"}))["text"].as_str().unwrap(), used);
    assert_says(say(&mut session, "/usage")["result"].as_str().unwrap(), used);
    assert_fine(&session.finish());
    assert!(close(&json_of(&world, &["stats", "--json"])["costUSD"], used), "{used}");

    let output = world.run(&print(["Go on.", "-c", "--output-format", "json"]));
    assert_fine(&output);
    let resumed: Value = serde_json::from_str(&output.stdout).unwrap();
    let used = used + sonnet(5_000.0, 500.0);
    assert!(close(&resumed["total_cost_usd"], used), "{used}: {resumed}");
    let own = &resumed["model_usage_since_last_result"]["claude-sonnet-4-5"];
    assert_eq!((&own["inputTokens"], &own["outputTokens"]), (&json!(5_000), &json!(500)), "{resumed}");
    let by_model: f64 =
        resumed["modelUsage"].as_object().unwrap().values().map(|it| it["costUSD"].as_f64().unwrap()).sum();
    assert!((by_model - used).abs() < 1e-9, "{resumed}");
    let stats = json_of(&world, &["stats", "--json"]);
    assert!(close(&stats["costUSD"], used), "{used}: {stats}");
    let list = json_of(&world, &["sessions", "list", "--json"]);
    assert!(close(&list[0]["costUsd"], used), "{used}: {list}");
    let main_file =
        world.home.sessions().into_iter().find(|file| !file.to_string_lossy().contains("subagents"));
    let lines = world.home.read_session(main_file.unwrap());
    let state = lines.iter().rfind(|line| line["type"] == "cost-state").unwrap();
    assert!(close(&state["totalCostUSD"], used), "{used}: {state}");
    assert_eq!((&state["totalLinesAdded"], &state["totalLinesRemoved"]), (&json!(2), &json!(0)), "{state}");
    let output = world.run(&print(["-c", "/usage"]));
    assert_fine(&output);
    assert_says(&output.stdout, used);
    assert!(output.stdout.contains("2 added, 0 removed"), "{}", output.stdout);
}

#[tokio::test]
async fn facts_that_settings_give_a_model_count_in_results_budgets_and_statistics() {
    let world = World::new([Step::text("Hi.").usage(1_000_000, 0, 0, 0), Step::text("Again.")]).await;
    let facts = json!({"models": {
        "claude-next-9": {"window": 300_000, "maxOutput": 9_000, "price": {"input": 7, "output": 8}},
        "claude-sonnet-4-5": {"price": {"input": 1, "output": 1}},
    }});
    world.home.write_config("settings.json", facts.to_string());
    let run = |args: &[&str]| {
        let output =
            world.run(&loci().args(["-p", "hi", "--output-format", "json"]).args(args.iter().copied()));
        assert_eq!(output.code, Some(0), "{output:?}");
        serde_json::from_str::<Value>(&output.stdout).unwrap()
    };
    let result = run(&["--model", "claude-next-9", "--max-budget-usd", "50"]);
    assert!(close(&result["total_cost_usd"], 7.0), "{result}");
    let used = &result["modelUsage"]["claude-next-9"];
    assert_eq!(
        (&used["contextWindow"], &used["maxOutputTokens"]),
        (&json!(300_000), &json!(9_000)),
        "{used}"
    );
    assert_eq!((&used["costBasis"], &used["provider"]), (&json!("list"), &json!("firstParty")), "{used}");
    assert_eq!(world.last_request().json["max_tokens"], 9_000);
    // A price that settings lower counts everywhere, too.
    let cheap = run(&["--model", "claude-sonnet-4-5"])["total_cost_usd"].as_f64().unwrap();
    let stats = json_of(&world, &["stats", "--json"]);
    assert!(close(&stats["costUSD"], 7.0 + cheap), "{cheap}: {stats}");
}

#[tokio::test]
async fn long_prompts_of_a_model_with_two_prices_cost_the_higher_one() {
    let world = World::new([
        Step::text("Short.").usage(100_000, 1_000, 0, 0),
        Step::text("Long.").usage(50_000, 1_000, 60_000, 0),
    ])
    .await;
    for (prompt, expected) in [("a", 0.01 + 0.0005), ("b", 0.025 + 0.0025 + 0.003)] {
        let output = world.run(&loci().args(["-p", prompt, "--output-format", "json", "--model", "haiku"]));
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert!(close(&result["total_cost_usd"], expected), "{expected}: {result}");
        assert!(result["modelUsage"]["claude-haiku-5-5"].is_object(), "{result}");
    }
}
