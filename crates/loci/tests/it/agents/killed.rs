//! kill -9 at any moment with ten agents at work: no line of any transcript is lost, and each of them can go on.
//!
//! A few kills run with the other tests; `cargo xtask torture agents` runs a hundred.

use std::collections::BTreeSet;
use std::path::Path;

use loci_testkit::{Recorded, Script, Step};
use serde_json::{Value, json};

use super::{agent, in_background, is_agents, many, side_files};
use crate::support::{World, watched};
use crate::torture::Dice;

/// How many kills; set by `cargo xtask torture agents`.
const RUNS: &str = "LOCI_TORTURE_AGENTS";
/// How many agents work at once.
const N_AGENTS: usize = 10;
/// How many steps each of them has to do.
const N_STEPS: usize = 6;

/// What the kills met, so that a test that meets nothing fails.
#[derive(Debug, Default)]
struct Seen {
    agents: usize,
    cut_off: usize,
    answered: usize,
    torn_lines: usize,
    results: usize,
}

#[tokio::test]
async fn agents_survive_being_killed_at_any_moment() {
    let n_kills: usize = std::env::var(RUNS).map_or(4, |runs| runs.parse().unwrap());
    let mut dice = Dice(n_kills as u64);
    let mut seen = Seen::default();
    for _ in 0..n_kills {
        let calls = (0..N_AGENTS / 2)
            .fold(many(N_AGENTS / 2, &in_background("general-purpose", "Work.")), |step, _| {
                step.tool("Agent", agent("general-purpose", "Work."))
            });
        let script = Script::new([calls, Step::text("Waiting.").times(N_AGENTS + 1)])
            .route([Step::dynamic(work).times(usize::MAX)], is_agents);
        let world = World::new(script).await;
        kill(&world, n_kills, &mut dice, &mut seen);
        go_on(world, &mut seen).await;
    }
    println!("{n_kills} kills: {seen:?}");
    assert!(seen.cut_off > 0 && seen.results > 0, "the kills met agents at work: {seen:?}");
}

/// What an agent's model says: a few calls, then an answer.
fn work(request: &Recorded) -> Step {
    match request.n_assistant_turns() {
        n if n < N_STEPS => {
            Step::text(format!("Step {n}. ")).tool("Bash", json!({"command": format!("echo step-{n}")}))
        }
        _ => Step::text("All steps are done."),
    }
}

/// Starts the session and kills it at a moment that the dice choose.
fn kill(world: &World, n_kills: usize, dice: &mut Dice, seen: &mut Seen) {
    let mut session = world.start_closed(&watched(["go", "--allowedTools", "Bash"]));
    // Late enough, with many kills, that some agents have answered.
    let n_lines = 12 + dice.below(if n_kills > 20 { 260 } else { 120 });
    for _ in 0..n_lines {
        if session.next_line().is_none() {
            break;
        }
    }
    let output = session.crash();
    let stored: BTreeSet<String> = world.home.sessions().iter().flat_map(|file| uuids(file, seen)).collect();
    // What a client was shown of results is on disk, whoever's they are.
    for frame in output.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let is_result = frame["type"] == "user" && frame["message"]["content"][0]["type"] == "tool_result";
        if is_result {
            seen.results += 1;
            let uuid = frame["uuid"].as_str().unwrap();
            assert!(stored.contains(uuid), "shown, but not stored: {frame}");
        }
    }
}

/// Returns the ids of a transcript's entries; at most the line that was being written is torn, and an agent's entries are
/// one chain.
fn uuids(file: &Path, seen: &mut Seen) -> Vec<String> {
    let bytes = std::fs::read(file).unwrap();
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let entries: Vec<Option<Value>> = lines.iter().map(|line| serde_json::from_slice(line).ok()).collect();
    let n_torn = entries.iter().filter(|entry| entry.is_none()).count();
    assert!(n_torn <= 1 && entries.iter().rev().skip(1).all(Option::is_some), "{file:?}: {n_torn} torn");
    seen.torn_lines += n_torn;
    let entries: Vec<Value> = entries.into_iter().flatten().collect();
    let ids: Vec<String> = entries.iter().filter_map(|it| it["uuid"].as_str()).map(str::to_owned).collect();
    for entry in entries.iter().filter(|it| it["uuid"].is_string()) {
        let parent = entry["parentUuid"].as_str();
        assert!(parent.is_none_or(|parent| ids.iter().any(|id| id == parent)), "{file:?}: {entry}");
    }
    ids
}

/// The session that goes on knows every agent that had begun, and each that was cut off answers after a message.
async fn go_on(world: World, seen: &mut Seen) {
    let began: Vec<String> = side_files(&world)
        .iter()
        .filter(|file| std::fs::metadata(file).unwrap().len() > 0)
        .map(|file| file.file_stem().unwrap().to_str().unwrap().trim_start_matches("agent-").to_owned())
        .collect();
    seen.agents += began.len();
    let sends = Step::dynamic(|request| {
        let ids = cut_off(&String::from_utf8_lossy(&request.body));
        match ids.is_empty() {
            true => Step::text("Nobody was cut off."),
            false => ids.iter().fold(Step::new(), |step, id| {
                step.tool("SendMessage", json!({"to": id, "message": "Go on."}))
            }),
        }
    });
    let script = Script::new([sends, Step::text("Sent.").times(N_AGENTS + 1)])
        .route([Step::text("Done at last.").times(usize::MAX)], is_agents);
    let world = world.then(script).await;
    let output = world.run(&watched(["-c", "what happened?"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let first = world.model.main_requests().into_iter().find(|it| !is_agents(it)).unwrap();
    let body = String::from_utf8_lossy(&first.body).into_owned();
    for id in &began {
        assert!(body.contains(id.as_str()), "nothing is said of {id}: {body}");
    }
    let cut_off = cut_off(&body);
    seen.cut_off += cut_off.len();
    seen.answered += body.matches("It had answered; what it returned").count();
    for id in &cut_off {
        let file = side_files(&world).into_iter().find(|file| file.to_string_lossy().contains(id.as_str()));
        let text = std::fs::read_to_string(file.unwrap()).unwrap();
        assert!(text.contains("Done at last."), "{id} did not go on");
    }
    world.model.requests_valid().unwrap();
}

/// Returns the agents that a request says were cut off.
fn cut_off(body: &str) -> BTreeSet<String> {
    let lines = body.split("\\n- a").skip(1).filter_map(|rest| rest.split("\\n").next());
    let lines = lines.filter(|line| line.contains("It was cut off; SendMessage"));
    lines.filter_map(|line| line.split(':').next()).map(|id| format!("a{id}")).collect()
}
