//! What went wrong with compaction elsewhere, class by class, as the public history of the field tells it.
//!
//! Classes 1, 2, 4, 9, 11, 13 and 17, and parts of 3 and 16, are held where the rule is: `loci-context`, `loci-storage` and `compaction.rs`. Classes 8
//! and 12, and agents of class 7, are held by `after_compaction.rs` of `loci-engine`, at the seam that skills and agents plug into.

use crate::support::{World, assert_fine, control, is_result, print, stream, user};
use loci_testkit::{Binary, Gate, Step};
use serde_json::{Value, json};

const SUMMARY: &str = "<summary>The ports were compared.</summary>";

fn windowed(run: Binary) -> Binary {
    run.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000")
}

/// An answer after which the server has counted so many tokens.
fn answer(text: &str, tokens: u64) -> Step {
    Step::text(text).usage(10, 20, tokens - 30, 0)
}

fn n_compactions(world: &World) -> usize {
    let asks = |request: &Value| request.to_string().contains("inside <summary> tags");
    world.requests().iter().filter(|request| asks(&request.json["messages"])).count()
}

/// Regression class 3: a compaction begins where the one before it ended, so that its request fits.
#[tokio::test]
async fn a_second_compaction_begins_at_the_first() {
    let steps = vec![
        answer("One.", 100),
        answer("Two.", 100),
        Step::text(SUMMARY),
        answer("Three.", 100),
        answer("Four.", 100),
        Step::text("<summary>And again.</summary>"),
        answer("Five.", 100),
    ];
    let world = World::new(steps).await;
    let mut session = world.start(&stream([]));
    for prompt in ["The falcon port is 48213.", "two", "/compact", "three", "four", "/compact", "five"] {
        session.write_json(&user(prompt));
        assert_eq!(session.wait_for_json(is_result)["is_error"], false, "{prompt}");
    }
    session.finish();
    let requests = world.requests();
    let sent = |idx: usize| requests[idx].json["messages"].to_string();
    assert!(sent(2).contains("48213") && sent(2).contains("inside <summary> tags"));
    assert!(sent(5).contains("The ports were compared.") && sent(5).contains("inside <summary> tags"));
    assert!(!sent(5).contains("48213"), "{}", sent(5));
    assert!(sent(6).contains("And again.") && !sent(6).contains("48213"), "{}", sent(6));
}

/// Regression class 5: what another session does with models does not move the trigger of this one.
/// Regression class 6: and neither does a restart, or the suffix of a model's name.
#[tokio::test]
async fn the_window_is_that_of_the_sessions_own_model() {
    let steps = vec![
        answer("One.", 170_000),
        answer("Other.", 100),
        answer("Two.", 180_000),
        answer("Three.", 190_000),
        Step::text(SUMMARY),
        answer("Four.", 9_000),
    ];
    let world = World::new(steps).await;
    let large = "claude-sonnet-4-5[1m]";
    let id = "0a0a0a0a-0001-4000-8000-00000000000d";
    let loci = |args: &[&str]| crate::support::loci().args(["-p"]).args(args.iter().copied());
    assert_fine(&world.run(&loci(&["one", "--model", large, "--session-id", id])));
    assert_fine(&world.run(&loci(&["elsewhere", "--model", "claude-haiku-4-5"])));
    assert_fine(&world.run(&loci(&["two", "-r", id, "--model", large])));
    assert_eq!(n_compactions(&world), 0, "there is room in a million");
    assert_fine(&world.run(&loci(&["three", "-r", id, "--model", large])));
    assert_eq!(n_compactions(&world), 0);
    assert_fine(&world.run(&loci(&["four", "-r", id, "--model", "claude-sonnet-4-5"])));
    assert_eq!(n_compactions(&world), 1, "and none in the usual window");
}

/// Regression class 7: the name and the mode of a session outlast a compaction.
/// Regression class 10: so does whose copy it is, and it is called by its first prompt, not by the summary.
#[tokio::test]
async fn name_mode_and_first_prompt_outlast_a_compaction() {
    let steps = vec![
        answer("One.", 100),
        answer("Two.", 70_000),
        Step::text(SUMMARY),
        answer("Three.", 100),
        answer("Four.", 100),
        answer("Five.", 100),
    ];
    let world = World::new(steps).await;
    let named = print(["What is the port?", "-n", "Ports", "--permission-mode", "acceptEdits"]);
    assert_fine(&world.run(&windowed(named)));
    assert_fine(&world.run(&windowed(print(["two", "-r", "Ports"]))));
    assert_fine(&world.run(&windowed(print(["three", "-r", "Ports"]))));
    assert_eq!(n_compactions(&world), 1);
    let mut session = world.start(&windowed(stream(["-r", "Ports"])));
    session.write_json(&user("four"));
    let init = session.wait_for_json(|frame| frame["subtype"] == "init");
    assert_eq!(init["permissionMode"], "acceptEdits");
    session.wait_for_json(is_result);
    session.finish();
    assert_fine(&world.run(&windowed(print(["five", "-r", "Ports", "--fork-session"]))));
    let list = world.run(&crate::support::loci().args(["sessions", "list", "--json"]));
    assert!(
        list.stdout.contains("What is the port?") && list.stdout.contains("Ports (fork)"),
        "{}",
        list.stdout
    );
    assert!(!list.stdout.contains("This conversation was compacted"), "{}", list.stdout);
    let last = world.requests().last().unwrap().json["messages"].to_string();
    assert!(last.contains("The ports were compared.") && last.contains("five"), "{last}");
}

/// Regression class 7: while a plan is made nothing is written, also after a compaction, and open tasks are still known.
#[tokio::test]
async fn plan_mode_and_open_tasks_outlast_a_compaction() {
    let steps = vec![
        Step::call("TaskCreate", json!({"subject": "Compare ports", "description": ""})),
        answer("One.", 100),
        answer("Two.", 70_000),
        Step::text(SUMMARY),
        Step::call("Write", json!({"file_path": "made.txt", "content": "x"})),
        answer("Three.", 100),
    ];
    let world = World::new(steps).await;
    let planning = stream(["--permission-mode", "plan", "--allowedTools", "Write,TaskCreate"]);
    let mut session = world.start(&windowed(planning));
    for prompt in ["one", "two", "three"] {
        session.write_json(&user(prompt));
        let init = session.wait_for_json(|frame| frame["subtype"] == "init");
        assert_eq!(init["permissionMode"], "plan", "{prompt}");
        session.wait_for_json(is_result);
    }
    session.finish();
    assert_eq!(n_compactions(&world), 1);
    assert!(!world.home.project().join("made.txt").exists(), "nothing is written while a plan is made");
    let sent = world.conversation();
    assert!(sent.contains("- 1. [pending] Compare ports"), "{sent}");
}

/// Regression class 14: an interrupt during a compaction leaves no trace of it.
#[tokio::test]
async fn an_interrupted_compaction_leaves_the_conversation_as_it_was() {
    let gate = Gate::new();
    let steps = vec![
        answer("One.", 100),
        answer("Two.", 100),
        Step::text("<summary>half").wait_for(gate.clone()).then_text("never"),
        answer("Three.", 100),
    ];
    let world = World::new(steps).await;
    let mut session = world.start(&windowed(stream([])));
    for prompt in ["one", "two"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.write_json(&user("/compact"));
    gate.reached().await;
    session.write_json(&control("stop", json!({"subtype": "interrupt"})));
    session.wait_for_json(is_result);
    session.write_json(&user("three"));
    session.wait_for_json(is_result);
    session.finish();
    assert_eq!(
        world.conversation(),
        "user: one\nassistant: One.\nuser: two\nassistant: Two.\nuser: three\n",
        "no boundary, no summary, no mark"
    );
}

/// Regression class 16: a summary is asked for under the limits and with the thinking of the conversation, and falls
/// back where the conversation would.
#[tokio::test]
async fn summary_request_has_the_conversations_limits_and_fallback() {
    let busy = Step::status(529).header("retry-after", "0");
    let steps =
        vec![answer("One.", 100), answer("Two.", 100), busy, Step::text(SUMMARY), answer("Three.", 100)];
    let world = World::new(steps).await;
    let limited = stream(["--fallback-model", "claude-haiku-4-5"]);
    let limited = limited.env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "5000").env("CLAUDE_CODE_MAX_RETRIES", "0");
    let mut session = world.start(&limited);
    for prompt in ["one", "two", "/compact", "three"] {
        session.write_json(&user(prompt));
        assert_eq!(session.wait_for_json(is_result)["is_error"], false, "{prompt}");
    }
    session.finish();
    let requests = world.requests();
    let (main, summary) = (&requests[1].json, &requests[2].json);
    assert_eq!(summary["max_tokens"], 5_000);
    for field in ["model", "max_tokens", "thinking", "system", "tools"] {
        assert_eq!(summary[field], main[field], "{field}");
    }
    assert_eq!(requests[3].json["model"], "claude-haiku-4-5");
    assert_eq!(requests[4].json["model"], main["model"], "the conversation itself goes on as it was");
}

/// Regression class 15: after a compaction the context is not said to be full any more.
#[tokio::test]
async fn the_level_falls_with_a_compaction() {
    let steps =
        vec![answer("One.", 100), answer("Two.", 70_000), Step::text(SUMMARY), answer("Three.", 9_000)];
    let world = World::new(steps).await;
    let mut session = world.start(&windowed(stream([])));
    let mut levels = Vec::new();
    for prompt in ["one", "two", "three"] {
        session.write_json(&user(prompt));
        let result = session.wait_for_json(is_result);
        levels
            .push((result["loci"]["context"]["tokens"].clone(), result["loci"]["context"]["level"].clone()));
    }
    session.finish();
    assert_eq!(levels[1], (json!(70_000), json!("compact")));
    assert_eq!(levels[2], (json!(9_000), json!("fine")));
}
