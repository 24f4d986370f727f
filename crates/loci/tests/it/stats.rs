//! `loci stats`: turns, tokens and cost, each counted once.

use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, loci};

fn stats<const N: usize>(args: [&str; N]) -> Binary {
    loci().arg("stats").args(args).env("TZ", "UTC")
}

fn counted<const N: usize>(world: &World, args: [&str; N]) -> Value {
    let output = world.run(&stats(args).arg("--json"));
    assert_fine(&output);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Two sessions, one of them continued and forked: a fork copies what was paid for once.
async fn world() -> World {
    let step = |text: &str| Step::text(text).usage(1_000, 100, 0, 0);
    let world = World::new(vec![step("One."), step("Two."), step("Three."), step("Four.")]).await;
    assert_fine(&world.print(["first"]));
    assert_fine(&world.print(["second", "-c"]));
    assert_fine(&world.print(["third", "-c", "--fork-session"]));
    assert_fine(&world.print(["other"]));
    world
}

fn check(whole: &Value) {
    assert_eq!((&whole["sessions"], &whole["turns"]), (&json!(3), &json!(4)), "{whole}");
    assert_eq!((&whole["responses"], &whole["tokens"]), (&json!(4), &json!(4 * 1_100)), "{whole}");
    let price = 4.0 * (1_000.0 * 3.0 + 100.0 * 15.0) / 1e6;
    assert!((whole["costUSD"].as_f64().unwrap() - price).abs() < 1e-9, "{whole}");
}

#[tokio::test]
async fn usage_is_counted_once() {
    let world = world().await;
    let whole = counted(&world, []);
    check(&whole);
    assert_eq!(whole["unpricedModels"], json!([]));
    let [model] = whole["models"].as_array().unwrap().as_slice() else { panic!("{whole}") };
    assert_eq!((&model["model"], &model["inputTokens"]), (&json!("claude-sonnet-4-5"), &json!(4_000)));
    assert_eq!((&model["sessions"], &model["turns"]), (&json!(3), &json!(4)));
    let [project] = whole["projects"].as_array().unwrap().as_slice() else { panic!("{whole}") };
    assert_eq!((&project["project"], &project["turns"]), (&json!(world.home.project()), &json!(4)));
    let turns: u64 = whole["days"].as_array().unwrap().iter().map(|day| day["turns"].as_u64().unwrap()).sum();
    assert_eq!(turns, 4);
}

#[tokio::test]
async fn archived_sessions_count_and_removed_ones_do_not() {
    let world = world().await;
    let archived = world.run(&loci().args(["sessions", "archive", "--older-than", "0"]));
    assert_eq!(archived.code, Some(0), "{archived:?}");
    assert!(world.home.sessions().is_empty());
    check(&counted(&world, []));
}

#[tokio::test]
async fn stats_text_and_csv_agree() {
    let world = world().await;
    let csv = world.run(&stats(["--csv"])).stdout;
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let sum = |column: usize| -> u64 { rows.iter().map(|row| row[column].parse::<u64>().unwrap()).sum() };
    assert_eq!((sum(4), sum(5), sum(6), sum(7)), (4, 4, 4_000, 400), "{csv}");
    let text = world.run(&stats([])).stdout;
    assert!(
        text.starts_with("3 sessions, 4 turns, 4 responses, 4.4k tokens, $0.02 at list price\n"),
        "{text}"
    );
    for needle in ["\nMODEL", "\nclaude-sonnet-4-5", "\nPROJECT", "\nDAY", "█"] {
        assert!(text.contains(needle), "{needle}: {text}");
    }
}

#[tokio::test]
async fn stats_are_filtered_by_time_and_project() {
    let world = world().await;
    let elsewhere = world.home.project().parent().unwrap().display().to_string();
    for (args, n_turns) in [
        (["--since", "1h"], 4),
        (["--since", "2999-01-01"], 0),
        (["--until", "2020-01-01"], 0),
        (["--project", "."], 4),
        (["--project", &elsewhere], 0),
    ] {
        assert_eq!(counted(&world, args)["turns"], n_turns, "{args:?}");
    }
    let nothing = world.run(&stats(["--since", "2999-01-01"]));
    assert_eq!((nothing.stdout.as_str(), nothing.stderr.as_str()), ("", "There is nothing to count\n"));
    let wrong = world.run(&stats(["--since", "soon"]));
    assert!(wrong.code == Some(1) && wrong.stderr.contains("2026-01-31"), "{wrong:?}");
}
