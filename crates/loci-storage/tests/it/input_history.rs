//! The history of input.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use loci_stdx::Env;
use loci_storage::config::{InputEntry, InputHistory, InputScope};
use loci_storage::layout::ConfigHome;
use serde_json::{Map, Value, json};

use crate::support::World;

/// Where a child process of the many-process test writes, and which child it is.
const CHILD_HOME: &str = "LOCI_STORAGE_TEST_HISTORY_HOME";
const CHILD_NUMBER: &str = "LOCI_STORAGE_TEST_HISTORY_CHILD";

const PROCESSES: usize = 8;
const THREADS: usize = 4;
const WRITES: usize = 50;

fn entry(display: &str, project: &str, timestamp: i64) -> InputEntry {
    InputEntry {
        display: display.into(),
        pasted_contents: Map::new(),
        timestamp,
        project: project.into(),
        session_id: Some("s".into()),
    }
}

fn recent_prompts(history: &InputHistory, scope: InputScope<'_>, limit: usize) -> Vec<String> {
    history.recent(scope, limit).unwrap().into_iter().map(|entry| entry.display).collect()
}

#[test]
fn input_history_is_newest_first_without_duplicates() {
    let world = World::new();
    let history = InputHistory::new(&world.home);
    assert_eq!(recent_prompts(&history, InputScope::Everywhere, 9), [""; 0], "before the first prompt");
    for (n, (text, project)) in
        [("a", "/p"), ("b", "/p"), ("a", "/p"), ("c", "/q"), ("b", "/q")].into_iter().enumerate()
    {
        history.append(&entry(text, project, n as i64)).unwrap();
    }
    assert_eq!(recent_prompts(&history, InputScope::Everywhere, 9), ["b", "c", "a"]);
    assert_eq!(recent_prompts(&history, InputScope::Everywhere, 2), ["b", "c"]);
    assert_eq!(recent_prompts(&history, InputScope::Project(Path::new("/p")), 9), ["a", "b"]);
    assert_eq!(recent_prompts(&history, InputScope::Project(Path::new("/other")), 9), [""; 0]);
}

#[test]
fn input_history_line_matches_the_format() {
    let world = World::new();
    let history = InputHistory::new(&world.home);
    let mut prompt = entry("see [Pasted text #1 +39 lines]", "/home/dev/project", 1_767_323_045_000);
    prompt.pasted_contents.insert("1".into(), json!({"id": 1, "type": "text", "content": "long"}));
    history.append(&prompt).unwrap();
    let text = fs::read_to_string(world.home.root().join("history.jsonl")).unwrap();
    let expected = r#"{"display":"see [Pasted text #1 +39 lines]","pastedContents":{"1":{"id":1,"type":"text","content":"long"}},"timestamp":1767323045000,"project":"/home/dev/project","sessionId":"s"}"#;
    assert_eq!(text, format!("{expected}\n"));
    assert_eq!(history.recent(InputScope::Everywhere, 1).unwrap(), [prompt.clone()]);
    prompt.pasted_contents["1"]["content"] = "other".into();
    history.append(&prompt).unwrap();
    assert_eq!(
        recent_prompts(&history, InputScope::Everywhere, 9).len(),
        2,
        "another paste is another prompt"
    );
}

#[test]
fn long_paste_lies_in_a_file_of_its_own_and_comes_back() {
    let world = World::new();
    let history = InputHistory::new(&world.home);
    let long = "x\n".repeat(2_000);
    let mut prompt = entry("see [Pasted text #1 +2000 lines]", "/p", 1);
    prompt.pasted_contents.insert("1".into(), json!({"id": 1, "type": "text", "content": long}));
    history.append(&prompt).unwrap();
    let line: Value =
        serde_json::from_str(&fs::read_to_string(world.home.root().join("history.jsonl")).unwrap()).unwrap();
    let pasted = &line["pastedContents"]["1"];
    let hash = pasted["contentHash"].as_str().unwrap();
    assert_eq!((pasted.get("content"), hash.len()), (None, 16));
    let file = world.home.root().join("paste-cache").join(format!("{hash}.txt"));
    assert_eq!(fs::read_to_string(&file).unwrap(), long);
    let recalled = history.recent(InputScope::Everywhere, 1).unwrap();
    assert_eq!(recalled[0].pasted_contents["1"]["content"], long);
    fs::remove_file(file).unwrap();
    let recalled = history.recent(InputScope::Everywhere, 1).unwrap();
    assert_eq!(recalled[0].pasted_contents["1"].get("content"), None, "it is missing, and not another text");
}

#[test]
fn paste_cache_reads_nothing_beside_itself() {
    let world = World::new();
    let history = InputHistory::new(&world.home);
    world.write(".claude/secret.txt", "secret");
    let mut prompt = entry("[Pasted text #1]", "/p", 1);
    prompt.pasted_contents.insert("1".into(), json!({"id": 1, "type": "text", "contentHash": "../secret"}));
    history.append(&prompt).unwrap();
    let recalled = history.recent(InputScope::Everywhere, 1).unwrap();
    assert_eq!(recalled[0].pasted_contents["1"].get("content"), None);
}

#[test]
fn input_history_skips_lines_that_are_no_prompt() {
    let world = World::new();
    let lines = "{\"display\":\"old\",\"project\":\"/p\"}\nnull\n{\"display\":7}\n\0\0\n{\"display\":\"torn";
    world.write(".claude/history.jsonl", lines);
    let history = InputHistory::new(&world.home);
    history.append(&entry("new", "/p", 1)).unwrap();
    assert_eq!(recent_prompts(&history, InputScope::Project(Path::new("/p")), 9), ["new", "old"]);
}

/// A process of its own appends from several threads; without the variables this does nothing.
#[test]
fn child_appends() {
    let Ok(home) = std::env::var(CHILD_HOME) else { return };
    let number = std::env::var(CHILD_NUMBER).unwrap();
    let home = ConfigHome::from_env(&Env::for_test(&home, "/"));
    let history = InputHistory::new(&home);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (history, number) = (&history, &number);
            scope.spawn(move || {
                for n in 0..WRITES {
                    history
                        .append(&entry(&format!("{number}-{thread}-{n}-{}", "x".repeat(5_000)), "/p", 0))
                        .unwrap();
                }
            });
        }
    });
}

/// Invariant 13 of `docs/design/session-log.md`.
#[test]
fn concurrent_input_history_appends_lose_nothing() {
    let world = World::new();
    let test = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let mut command = Command::new(&test);
            command.args(["--exact", "input_history::child_appends", "--quiet"]);
            command.env(CHILD_HOME, &world.env.home).env(CHILD_NUMBER, number.to_string());
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let text = fs::read_to_string(world.home.root().join("history.jsonl")).unwrap();
    let broken = text.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).count();
    assert_eq!((text.lines().count(), broken), (PROCESSES * THREADS * WRITES, 0));
    let history = InputHistory::new(&world.home);
    assert_eq!(
        recent_prompts(&history, InputScope::Everywhere, usize::MAX).len(),
        PROCESSES * THREADS * WRITES
    );
}
