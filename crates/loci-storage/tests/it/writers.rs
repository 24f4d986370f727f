//! Many processes on one config home: sessions, input history and the state file lose nothing.
//!
//! A few writes each run with the other tests; `cargo xtask torture writers` runs 32 processes with 1,000 each.

use std::collections::HashSet;
use std::fs;
use std::process::{Command, Stdio};

use loci_settings::edit;
use loci_stdx::Env;
use loci_storage::config::{InputEntry, InputHistory, edit_state};
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::{Lease, SessionLog, load_transcript};
use serde_json::{Map, Value, json};

use crate::support::{World, session_id, user};

const PROCESSES: &str = "LOCI_TORTURE_PROCESSES";
const WRITES: &str = "LOCI_TORTURE_WRITES";
/// Where a child writes, and which child it is.
const CHILD_HOME: &str = "LOCI_STORAGE_TEST_WRITERS_HOME";
const CHILD_NUMBER: &str = "LOCI_STORAGE_TEST_WRITERS_CHILD";

/// What others keep in the state file; none of it is ours to change.
const UNKNOWN: &str = "{\n  \"zeta\": 1.50,\n  \"unknown\": {\n    \"big\": 123456789012345678901234567890\n  },\n  \
                       \"projects\": {\n    \"/p\": {\n      \"odd key\": [1, 2]\n    }\n  }\n}";

fn number(variable: &str, otherwise: u32) -> u32 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Invariants 3 and 13 of `docs/design/session-log.md`.
#[test]
fn many_processes_on_one_home_lose_nothing() {
    let (n_processes, n_writes) = (number(PROCESSES, 32), number(WRITES, 6));
    let world = World::new();
    world.write(".claude.json", UNKNOWN);
    let test = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..n_processes)
        .map(|number| {
            let mut command = Command::new(&test);
            command.args(["--exact", "writers::child_writes", "--quiet", "--nocapture"]);
            command.env(CHILD_HOME, &world.env.home).env(CHILD_NUMBER, number.to_string());
            command.env(WRITES, n_writes.to_string());
            command.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    check_state(&world, n_processes, n_writes);
    check_sessions(&world, n_processes, n_writes);
    check_history(&world, n_processes, n_writes);
    println!(
        "{n_processes} processes, {n_writes} writes each of a session, the history and the state: all there"
    );
}

/// One process: its own session, the common history, and a number in the state that all count up.
#[test]
fn child_writes() {
    let Ok(home) = std::env::var(CHILD_HOME) else { return };
    let env = Env::for_test(&home, &home);
    let home = ConfigHome::from_env(&env);
    let me = number(CHILD_NUMBER, 0);
    let id = session_id(me);
    let lease = Lease::acquire(&home, &id, &env).unwrap();
    let mut log = SessionLog::leased(home.session(&env.cwd, &id).file(), lease);
    let history = InputHistory::new(&home);
    for n in 0..number(WRITES, 0) {
        log.append(&[&user(&format!("{me}-{n}"), &env.cwd)]).unwrap();
        history.append(&prompt(&format!("{me}-{n}"))).unwrap();
        count_up(&home, &["all".to_owned(), format!("child {me}")]);
    }
    log.sync().unwrap();
    assert_eq!(log.take_warning(), None);
}

fn prompt(display: &str) -> InputEntry {
    InputEntry {
        display: display.to_owned(),
        pasted_contents: Map::new(),
        timestamp: 0,
        project: "/p".into(),
        session_id: None,
    }
}

fn count_up(home: &ConfigHome, keys: &[String]) {
    let changed = edit_state(home, |text| {
        keys.iter().try_fold(text.to_owned(), |text, key| {
            let state: Value = serde_json::from_str(&text).unwrap();
            let next = state["counts"][key].as_u64().unwrap_or(0) + 1;
            edit::set(&text, &["counts", key], &json!(next))
        })
    });
    assert!(changed.unwrap());
}

fn check_state(world: &World, n_processes: u32, n_writes: u32) {
    let text = fs::read_to_string(world.home.state_file()).unwrap();
    assert!(
        text.starts_with(UNKNOWN.strip_suffix("\n}").unwrap()),
        "what is not ours keeps its bytes: {text}"
    );
    let state: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(state["counts"]["all"], n_processes * n_writes);
    for me in 0..n_processes {
        assert_eq!(state["counts"][format!("child {me}")], n_writes);
    }
}

fn check_sessions(world: &World, n_processes: u32, n_writes: u32) {
    for me in 0..n_processes {
        let loaded = load_transcript(world.home.session(&world.env.home, &session_id(me)).file()).unwrap();
        let uuids: Vec<&str> =
            loaded.entries.iter().map(|entry| entry.head().uuid.as_ref().unwrap().as_str()).collect();
        let expected: Vec<String> = (0..n_writes).map(|n| format!("{me}-{n}")).collect();
        assert_eq!((uuids, loaded.skipped.len()), (expected.iter().map(String::as_str).collect(), 0));
    }
}

fn check_history(world: &World, n_processes: u32, n_writes: u32) {
    let text = fs::read_to_string(world.home.root().join("history.jsonl")).unwrap();
    let shown = |line: &str| serde_json::from_str::<InputEntry>(line).unwrap().display;
    let found: HashSet<String> = text.lines().map(shown).collect();
    let expected = (0..n_processes).flat_map(|me| (0..n_writes).map(move |n| format!("{me}-{n}")));
    assert_eq!(found, expected.collect());
    assert_eq!(text.lines().count(), (n_processes * n_writes) as usize);
}
