//! Each request is the one before plus what is new, byte for byte, or the prompt cache is lost and the bill grows.
//!
//! A long session with tools, a resume, a fork and a compaction is watched from outside. Only a compaction may begin
//! anew; right behind it the rule holds again.

use crate::support::{World, assert_fine, is_result, print, stream, user};
use loci_testkit::{Binary, Recorded, Step};
use serde_json::json;

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
const SUMMARY: &str = "<summary>The files were compared.</summary>";

/// A request as text, cache marks aside and without what closes the list of messages.
fn text(request: &Recorded) -> String {
    let body = String::from_utf8(request.body.to_vec()).unwrap().replace(MARK, "");
    body.strip_suffix("]}").unwrap().to_owned()
}

/// Returns how much of a request the next one repeats, from the beginning on.
fn shared(before: &str, after: &str) -> f64 {
    let n_same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    n_same as f64 / before.len() as f64
}

/// Checks all neighbours among the requests but those behind the given ones.
fn check(world: &World, boundaries: &[usize]) {
    let requests = world.requests();
    for (idx, pair) in requests.windows(2).enumerate().filter(|(idx, _)| !boundaries.contains(idx)) {
        let share = shared(&text(&pair[0]), &text(&pair[1]));
        assert!(share >= 0.999, "request {} shares {share} with the one before", idx + 1);
    }
    assert!(requests.iter().all(|request| request.violations.is_empty()));
}

fn windowed(run: Binary) -> Binary {
    run.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000")
}

/// Two calls and an answer; each response says that the context holds so many tokens.
fn turn(n: usize, tokens: u64) -> Vec<Step> {
    let read = json!({"file_path": format!("file{n}.txt")});
    let both =
        Step::text(format!("I look {n}.")).tool("Read", read).tool("Bash", json!({"command": "echo ü"}));
    vec![both.usage(10, 20, tokens, 0), Step::text(format!("Answer {n}.")).usage(10, 20, tokens + 100, 0)]
}

/// Invariant 14 of `docs/design/compaction.md`.
#[tokio::test]
async fn each_request_is_a_byte_prefix_of_the_next() {
    let mut steps: Vec<Step> = (0..12).flat_map(|n| turn(n, 1_000 * n as u64)).collect();
    // The next turn finds the window full after its calls.
    let full = turn(12, 70_000);
    steps.push(full[0].clone());
    steps.push(Step::text(SUMMARY));
    steps.push(Step::text("Answer 12.").usage(10, 20, 9_000, 0));
    steps.extend((13..18).flat_map(|n| turn(n, 10_000)));
    let world = World::new(steps).await;
    for n in 0..18 {
        world.home.write(format!("file{n}.txt"), format!("line {n} \"quoted\" \u{1f600}\n").repeat(40));
    }
    let allowed = ["--allowedTools", "Read,Bash"];
    let mut session = world.start(&windowed(stream(allowed)));
    for n in 0..8 {
        session.write_json(&user(&format!("prompt {n}")));
        session.wait_for_json(is_result);
    }
    session.finish();
    let more = |n: usize, flags: &[&str]| {
        let prompt = format!("prompt {n}");
        windowed(print([prompt.as_str(), "-c"]).args(allowed).args(flags.iter().copied()))
    };
    for n in 8..12 {
        assert_fine(&world.run(&more(n, &[])));
    }
    check(&world, &[]);
    assert_fine(&world.run(&more(12, &[])));
    for n in 13..15 {
        assert_fine(&world.run(&more(n, &[])));
    }
    assert_fine(&world.run(&more(15, &["--fork-session"])));
    for n in 16..18 {
        assert_fine(&world.run(&more(n, &[])));
    }
    // The request for the summary leaves out the newest round, and the one behind it begins with the summary.
    check(&world, &[24, 25]);
    assert_eq!(world.requests().len(), 24 + 3 + 10);
}
