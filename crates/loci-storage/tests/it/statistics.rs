//! Counting what sessions used, over files that others may have written.

use std::fs;
use std::path::{Path, PathBuf};

use loci_stdx::TimeZone;
use loci_storage::project::Project;
use loci_storage::sessions::{Statistics, StatisticsQuery, session_statistics};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{World, session_id};

fn query() -> StatisticsQuery {
    StatisticsQuery::new(TimeZone::UTC)
}

fn count(world: &World) -> Statistics {
    session_statistics(&world.home, &query()).unwrap()
}

fn prompt(uuid: &str, day: u32, cwd: &Path) -> Value {
    json!({"parentUuid": null, "isSidechain": false, "type": "user", "message": {"role": "user", "content": "go"},
        "uuid": uuid, "timestamp": format!("2026-01-{day:02}T12:00:00.000Z"), "cwd": cwd, "sessionId": "s"})
}

fn answer(id: &str, model: &str, day: u32, is_sidechain: bool) -> Value {
    json!({"parentUuid": "u", "isSidechain": is_sidechain, "message": {"id": id, "model": model, "role": "assistant",
        "content": [{"type": "text", "text": "done"}], "usage": {"input_tokens": 1_000_000, "output_tokens": 0}},
        "requestId": format!("req-{id}"), "type": "assistant", "uuid": format!("a-{id}"),
        "timestamp": format!("2026-01-{day:02}T12:00:01.000Z"), "sessionId": "s"})
}

fn file_of(world: &World, n: u32) -> PathBuf {
    world.home.projects_dir().join(format!("-p{}/{}.jsonl", n % 3, session_id(n)))
}

fn write(file: &Path, lines: &[Value]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

/// Sessions, turns, responses, dollars.
fn sums(statistics: &Statistics) -> (usize, u64, u64, f64) {
    let mut sessions: Vec<usize> = statistics.rows.iter().map(|row| row.session).collect();
    sessions.dedup();
    let sum = |of: fn(&loci_storage::sessions::UsageRow) -> u64| statistics.rows.iter().map(of).sum();
    let cost = statistics.rows.iter().map(|row| row.usage.cost_usd).sum::<f64>();
    (sessions.len(), sum(|row| row.n_turns), sum(|row| row.n_responses), (cost * 1e6).round() / 1e6)
}

#[test]
fn subagents_are_paid_for_and_are_no_sessions() {
    let world = World::new();
    let file = file_of(&world, 1);
    write(&file, &[prompt("u1", 1, world.cwd()), answer("m1", "claude-sonnet-4-5", 1, false)]);
    let agent = file.with_extension("").join("subagents/agent-a1.jsonl");
    let mut task = prompt("u2", 1, world.cwd());
    task["isSidechain"] = json!(true);
    write(
        &agent,
        &[task, answer("m2", "claude-sonnet-4-5", 1, true), answer("m2", "claude-sonnet-4-5", 1, true)],
    );
    assert_eq!(sums(&count(&world)), (1, 1, 2, 6.0));
}

#[test]
fn copies_count_once_and_imports_not_at_all() {
    let world = World::new();
    let lines = [prompt("u1", 1, world.cwd()), answer("m1", "claude-sonnet-4-5", 1, false)];
    write(&file_of(&world, 1), &lines);
    // A fork under the same ids, a branch under new ones that name the old, and one that came from elsewhere.
    let mut forked = lines.to_vec();
    forked.push(prompt("u9", 2, world.cwd()));
    write(&file_of(&world, 2), &forked);
    let mut branched = prompt("other", 1, world.cwd());
    branched["forkedFrom"] = json!({"sessionId": "s", "messageUuid": "u1"});
    write(&file_of(&world, 3), &[branched]);
    let imported = lines.iter().map(|line| {
        let mut line = line.clone();
        line["uuid"] = json!("x");
        line["importedFrom"] = json!({"agent": "codex"});
        line["message"]["id"] = json!("m7");
        line
    });
    write(&file_of(&world, 4), &imported.collect::<Vec<_>>());
    assert_eq!(sums(&count(&world)), (3, 2, 1, 3.0));
}

#[test]
fn statistics_rows_have_day_project_and_model() {
    let world = World::new();
    write(
        &file_of(&world, 1),
        &[
            prompt("u1", 1, world.cwd()),
            answer("m1", "claude-sonnet-4-5", 1, false),
            prompt("u2", 2, Path::new("/elsewhere")),
            answer("m2", "a-model-of-their-own", 2, false),
            prompt("u3", 2, world.cwd()),
        ],
    );
    let statistics = count(&world);
    let rows: Vec<String> = statistics
        .rows
        .iter()
        .map(|row| {
            assert_eq!(*row.project, *world.cwd().to_string_lossy());
            let (day, model) = (row.day.unwrap(), row.model.as_deref().unwrap_or("-"));
            format!("{day} {model} {} {} {}", row.is_priced, row.n_turns, row.n_responses)
        })
        .collect();
    assert_eq!(
        rows,
        [
            "2026-01-01 claude-sonnet-4-5 true 1 1",
            "2026-01-02 - false 1 0",
            "2026-01-02 a-model-of-their-own false 1 1"
        ]
    );
}

#[test]
fn worktrees_and_subdirectories_are_one_project() {
    let world = World::new();
    fs::create_dir_all(world.cwd().join("sub")).unwrap();
    world.write("project/.git/HEAD", "ref: refs/heads/main\n");
    write(&file_of(&world, 1), &[prompt("u1", 1, world.cwd())]);
    write(&file_of(&world, 2), &[prompt("u2", 1, &world.cwd().join("sub"))]);
    write(&file_of(&world, 3), &[prompt("u3", 1, Path::new("/gone"))]);
    let mut projects: Vec<String> = count(&world).rows.iter().map(|row| row.project.to_string()).collect();
    projects.sort();
    projects.dedup();
    assert_eq!(projects, ["/gone".to_owned(), world.cwd().display().to_string()]);
    let here = StatisticsQuery { project: Some(Project::repository(world.cwd())), ..query() };
    assert_eq!(sums(&session_statistics(&world.home, &here).unwrap()).1, 2);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let world = World::new();
    write(&file_of(&world, 1), &[prompt("u1", 1, world.cwd())]);
    let subagents = file_of(&world, 1).with_extension("").join("subagents/agent-x.jsonl");
    fs::create_dir_all(&subagents).unwrap();
    let statistics = count(&world);
    assert_eq!((sums(&statistics).1, statistics.unread), (1, vec![subagents]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever is torn costs itself alone, and nothing panics.
    #[test]
    fn statistics_accept_any_bytes(noise in proptest::collection::vec(any::<u8>(), 0..200), cut in 0_usize..400) {
        let world = World::new();
        let file = file_of(&world, 1);
        let line = prompt("u1", 1, world.cwd()).to_string();
        let torn = &line.as_bytes()[..cut.min(line.len() - 1)];
        let noise: Vec<u8> = noise.into_iter().filter(|byte| *byte != b'\n').collect();
        let whole = [line.as_bytes(), b"\n", &noise, b"\n", prompt("u2", 1, world.cwd()).to_string().as_bytes(), b"\n", torn].concat();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, whole).unwrap();
        prop_assert_eq!(sums(&count(&world)), (1, 2, 0, 0.0));
    }
}
