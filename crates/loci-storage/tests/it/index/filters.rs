//! Narrowing a search, with the index and without.

use loci_core::passage::Voice;
use loci_storage::search::SearchFilter;
use serde_json::{Value, json};

use super::{add, check_same, messages, search_for, update};
use crate::support::World;

fn at(mut line: Value, time: &str, branch: &str) -> Value {
    line["timestamp"] = json!(time);
    line["gitBranch"] = json!(branch);
    line
}

/// Two sessions that say `port` in every voice.
fn world() -> World {
    let world = World::new();
    let call =
        json!([{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/p/src/port.rs"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "a port"}]);
    let early = |line| at(line, "2026-01-01T00:00:00.000Z", "main");
    let late = |line| at(line, "2026-02-01T00:00:00.000Z", "side");
    add(
        &world,
        1,
        &[
            early(super::prompt("u1", "the port")),
            early(super::line("c1", "assistant", call)),
            early(super::line("r1", "user", result)),
            late(super::line("a1", "assistant", json!([{"type": "text", "text": "port found"}]))),
        ],
    );
    add(&world, 2, &[late(super::prompt("u2", "my port"))]);
    world
}

fn check(world: &World, filter: SearchFilter, expected: &[&str]) {
    let mut found = messages(&check_same(world, &super::SearchQuery { filter, ..search_for("port") }));
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn every_filter_narrows_indexed_and_scanned_alike() {
    let ms = |text: &str| Some(text.parse::<loci_stdx::Timestamp>().unwrap().as_millisecond());
    let none = SearchFilter::default;
    for is_indexed in [false, true] {
        let world = world();
        if is_indexed {
            update(&world, "a");
        }
        check(&world, none(), &["a1", "c1", "r1", "u1", "u2"]);
        check(&world, SearchFilter { since_ms: ms("2026-01-15T00:00:00Z"), ..none() }, &["a1", "u2"]);
        check(&world, SearchFilter { until_ms: ms("2026-01-15T00:00:00Z"), ..none() }, &["c1", "r1", "u1"]);
        check(&world, SearchFilter { voices: vec![Voice::Person], ..none() }, &["u1", "u2"]);
        check(&world, SearchFilter { voices: vec![Voice::Call, Voice::Model], ..none() }, &["a1", "c1"]);
        check(&world, SearchFilter { tool: Some("Read".into()), ..none() }, &["c1", "r1"]);
        check(&world, SearchFilter { tool: Some("Bash".into()), ..none() }, &[]);
        check(&world, SearchFilter { branch: Some("side".into()), ..none() }, &["a1", "u2"]);
        check(&world, SearchFilter { file: Some("src/port.rs".into()), ..none() }, &["a1", "c1", "r1", "u1"]);
        check(&world, SearchFilter { file: Some("ort.rs".into()), ..none() }, &[]);
        let sessions = Some([super::file_of(&world, 2)].into_iter().collect());
        check(&world, SearchFilter { sessions: sessions.clone(), ..none() }, &["u2"]);
        check(&world, SearchFilter { sessions, file: Some("port.rs".into()), ..none() }, &[]);
    }
}

/// A result that was written after its call had been indexed still knows its tool.
#[test]
fn a_result_knows_its_tool_across_updates() {
    let world = World::new();
    let call = json!([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "x"}}]);
    add(&world, 1, &[super::line("c1", "assistant", call)]);
    update(&world, "a");
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "a port"}]);
    add(&world, 1, &[super::line("r1", "user", result)]);
    let bash = SearchFilter { tool: Some("Bash".into()), ..SearchFilter::default() };
    check(&world, bash.clone(), &["r1"]);
    update(&world, "b");
    check(&world, bash, &["r1"]);
}
