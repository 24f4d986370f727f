//! `/clear`: another session takes the place of the one that is left, in one step.

use crate::support::{World, assert_fine, control, is_result, print, shape, stream, user};
use expect_test::expect;
use loci_testkit::{Gate, Step};
use serde_json::{Value, json};

fn ids(frames: &[Value]) -> Vec<&str> {
    frames.iter().filter(|frame| is_result(frame)).filter_map(|frame| frame["session_id"].as_str()).collect()
}

#[tokio::test]
async fn clear_begins_a_new_session_and_names_the_old_one() {
    let world = World::new(["one", "two", "three", "four"].map(Step::text)).await;
    let lines = ["A", "/clear old work", "B", "C"].map(|text| user(text).to_string()).join("\n");
    let output = world.run_with_stdin(&stream([]), &lines);
    assert_fine(&output);
    let frames = output.json_lines();
    expect![[r#"
        system init
        assistant one
        result success completed
        conversation_reset
        system init
        result success completed
        system init
        assistant two
        result success completed
        system init
        assistant three
        result success completed
    "#]]
    .assert_eq(&shape(&frames));
    let [old, cleared, new, last] = ids(&frames)[..] else { panic!("four turns: {frames:?}") };
    assert_ne!(old, new);
    assert_eq!([cleared, last], [new, new]);
    expect![[r#"
        user: B
        assistant: two
        user: C
    "#]]
    .assert_eq(&world.conversation());
    assert_eq!(world.home.sessions().len(), 2, "{:?}", world.home.sessions());
    // Costs and limits count on.
    let costs: Vec<f64> =
        frames.iter().filter(|it| is_result(it)).filter_map(|it| it["total_cost_usd"].as_f64()).collect();
    assert!(costs[0] > 0.0 && costs.is_sorted(), "{costs:?}");
    let output = world.run(&print(["D", "-r", "old work"]));
    assert_fine(&output);
    expect![[r#"
        user: A
        assistant: one
        user: D
    "#]]
    .assert_eq(&world.conversation());
}

#[tokio::test]
async fn prompts_before_clear_are_answered_in_the_old_session() {
    let gate = Gate::new();
    let world =
        World::new([Step::text("one").wait_for(gate.clone()), Step::text("two"), Step::text("three")]).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("A"));
    gate.reached().await;
    for text in ["B", "/clear", "C"] {
        session.write_json(&user(text));
    }
    session.close_stdin();
    gate.release();
    let output = session.finish();
    assert_fine(&output);
    let frames = output.json_lines();
    let [first, second, cleared, last] = ids(&frames)[..] else { panic!("four turns: {frames:?}") };
    assert_eq!((first, cleared), (second, last));
    assert_ne!(second, last);
    expect![[r#"
        user: C
    "#]]
    .assert_eq(&world.conversation());
}

#[tokio::test]
async fn mode_and_model_are_carried_over_clear() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let lines = [
        control("r1", json!({"subtype": "set_permission_mode", "mode": "acceptEdits"})),
        control("r2", json!({"subtype": "set_model", "model": "haiku"})),
        user("A"),
        user("/clear"),
        user("B"),
    ];
    let output = world.run_with_stdin(&stream([]), &lines.map(|line| line.to_string()).join("\n"));
    assert_fine(&output);
    let frames = output.json_lines();
    let inits: Vec<_> = frames.iter().filter(|frame| frame["subtype"] == "init").collect();
    let [first, _, last] = inits[..] else { panic!("three turns: {frames:?}") };
    assert_eq!(last["permissionMode"], "acceptEdits");
    assert_eq!(last["model"], first["model"]);
    assert!(last["model"].as_str().is_some_and(|model| model.contains("haiku")), "{last}");
}

#[tokio::test]
async fn budget_counts_on_after_clear() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let lines = ["A", "/clear", "B"].map(|text| user(text).to_string()).join("\n");
    let output = world.run_with_stdin(&stream(["--max-budget-usd", "0.0000001"]), &lines);
    let frames = output.json_lines();
    let subtypes: Vec<_> = frames
        .iter()
        .filter(|it| is_result(it))
        .map(|it| it["subtype"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(subtypes.last(), Some(&"error_max_budget_usd"), "{subtypes:?}");
    assert_eq!(subtypes.first(), Some(&"error_max_budget_usd"), "{subtypes:?}");
}

#[tokio::test]
async fn clear_alone_sends_no_request_and_leaves_no_session() {
    let world = World::new([Step::text("never")]).await;
    let output = world.print(["/clear"]);
    assert_fine(&output);
    assert_eq!(output.stdout, "\n");
    assert_eq!(world.requests().len(), 0);
    assert_eq!(world.home.sessions().len(), 0, "{:?}", world.home.sessions());
}
