//! Background tasks with real processes, through the tools that make, show and stop them.

use std::time::Duration;

use loci_core::tool::ToolOutcome;
use serde_json::{Value, json};

use super::BackgroundStatus;
use crate::Host as _;
use crate::background_tasks::task_output::TaskOutput;
use crate::background_tasks::task_stop::TaskStop;
use crate::bash::Bash;
use crate::bash::tests::{Ready, ShellHost, assert_all_gone, is_gone, text};

const LONG: Duration = Duration::from_secs(60);

async fn start(host: &ShellHost, command: &str) -> String {
    let input = json!({"command": command, "run_in_background": true, "description": "a test"});
    let outcome = host.call(&Bash::default(), input).await;
    assert_eq!(outcome.is_error, Some(false), "{outcome:?}");
    let id = outcome.structured["backgroundTaskId"].as_str().unwrap().to_owned();
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase()));
    assert!(text(&outcome).contains(&format!("{id}.output")), "{outcome:?}");
    id
}

async fn output(host: &ShellHost, input: Value) -> ToolOutcome {
    host.call(&TaskOutput::default(), input).await
}

/// Returns the last paragraph: the output behind the line on the status.
fn text_of(outcome: &ToolOutcome) -> &str {
    text(outcome).split_once("\n\n").unwrap().1
}

#[tokio::test]
async fn a_task_runs_to_its_end() {
    let host = ShellHost::new();
    let mut finished = host.tasks().finished();
    for (command, status, word, output_text) in [
        ("echo out; echo err >&2", BackgroundStatus::Completed, "has completed (exit code 0)", "out\nerr"),
        ("echo a; exit 4", BackgroundStatus::Failed(4), "has failed (exit code 4)", "a"),
        ("true", BackgroundStatus::Completed, "has completed (exit code 0)", "(no new output)"),
    ] {
        let id = start(&host, command).await;
        let outcome = output(&host, json!({"task_id": id})).await;
        assert!(text(&outcome).starts_with(&format!("Task {id} {word}. Output file: ")), "{outcome:?}");
        let mut lines: Vec<&str> = text_of(&outcome).lines().collect();
        lines.sort_by_key(|line| *line != "out");
        assert_eq!(lines.join("\n"), output_text);
        assert_eq!(outcome.structured["retrieval_status"], "success");
        assert_eq!(outcome.structured["task"]["status"], status.name());
        assert_eq!(outcome.structured["task"]["exitCode"], json!(status.exit_code()));
        assert_eq!(host.tasks().find(&id).unwrap().status, status);
        assert!(finished.has_changed().unwrap());
        finished.mark_unchanged();
    }
    assert_eq!(host.tasks().list().len(), 3);
    assert!(host.tasks().drain_finished().is_empty(), "the model has seen them all");
}

#[tokio::test]
async fn new_output_is_shown_once() {
    let host = ShellHost::new();
    let (mut ready, go) = (Ready::new(&host), host.fifo("go"));
    let id = start(&host, "echo 'one é'; echo > ready; cat go; echo two").await;
    ready.line().await;
    // The pipe of the output is read a moment after it was written.
    let first = loop {
        let outcome = output(&host, json!({"task_id": id, "block": false})).await;
        assert!(text(&outcome).contains("is still running"), "{outcome:?}");
        assert_eq!(outcome.structured["retrieval_status"], "not_ready");
        if text_of(&outcome) != "(no new output)" {
            break outcome;
        }
    };
    assert_eq!(text_of(&first), "one é");
    let waited = output(&host, json!({"task_id": id, "timeout": 1})).await;
    assert_eq!(
        (text_of(&waited), &waited.structured["retrieval_status"]),
        ("(no new output)", &json!("timeout"))
    );
    tokio::fs::write(go, "").await.unwrap();
    assert_eq!(text_of(&output(&host, json!({"task_id": id})).await), "two");
}

#[tokio::test]
async fn long_output_shows_its_end() {
    let host = ShellHost::with_vars(&[("TASK_MAX_OUTPUT_LENGTH", "10")]);
    let id = start(&host, "seq 1 100").await;
    let outcome = output(&host, json!({"task_id": id})).await;
    assert_eq!(text_of(&outcome), "[282 earlier bytes are in the output file]\n98\n99\n100");
}

#[tokio::test]
async fn finished_task_is_reported_once() {
    let host = ShellHost::new();
    let id = start(&host, "exit 2").await;
    host.tasks().wait(&id, LONG).await.unwrap();
    let news = host.tasks().drain_finished();
    assert_eq!(news.len(), 1);
    assert_eq!((news[0].id.as_str(), &news[0].status), (id.as_str(), &BackgroundStatus::Failed(2)));
    assert_eq!((news[0].command.as_str(), news[0].description.as_str()), ("exit 2", "a test"));
    assert!(host.tasks().drain_finished().is_empty());
}

#[tokio::test]
async fn stop_ends_the_whole_tree() {
    for field in ["task_id", "shell_id"] {
        let host = ShellHost::new();
        let mut ready = Ready::new(&host);
        let id = start(&host, "setsid sleep 1000 & echo $$ $! > ready; wait").await;
        let pids = ready.line().await;
        let outcome = host.call(&TaskStop::default(), json!({field: id})).await;
        assert!(text(&outcome).starts_with(&format!("Task {id} has been stopped")), "{outcome:?}");
        assert_eq!(outcome.structured["task_id"], json!(id));
        assert_all_gone(&pids);
        assert_eq!(host.tasks().find(&id).unwrap().status.name(), "killed");
        assert!(host.tasks().drain_finished().is_empty());
        let again = host.call(&TaskStop::default(), json!({field: id})).await;
        assert!(text(&again).contains("is not running: it is killed"), "{again:?}");
    }
}

#[tokio::test]
async fn unknown_tasks_are_refused_with_the_known_ones() {
    let host = ShellHost::new();
    let outcome = output(&host, json!({"task_id": "nope"})).await;
    assert!(text(&outcome).contains("no background task has been started"), "{outcome:?}");
    let id = start(&host, "true").await;
    host.tasks().wait(&id, LONG).await.unwrap();
    for outcome in [
        output(&host, json!({"task_id": "nope"})).await,
        host.call(&TaskStop::default(), json!({"task_id": "nope"})).await,
    ] {
        assert!(text(&outcome).contains(&format!("Known tasks: {id} (completed).")), "{outcome:?}");
    }
    let outcome = host.call(&TaskStop::default(), json!({})).await;
    assert!(text(&outcome).contains("`task_id` is missing"), "{outcome:?}");
    let outcome = output(&host, json!({"task_id": "x", "timeout": 600_001})).await;
    assert!(text(&outcome).contains("`timeout`"), "{outcome:?}");
}

#[tokio::test]
async fn shutdown_ends_everything_and_waits() {
    let host = ShellHost::new();
    let mut ready = Ready::new(&host);
    let mut all = String::new();
    for _ in 0..3 {
        start(&host, "trap '' TERM; sleep 1000 & echo $$ $! > ready; wait").await;
        all += &ready.line().await;
    }
    // Ended itself, but left a child with its output open.
    let id = start(&host, "sleep 1000 & echo $! > ready").await;
    all += &ready.line().await;
    host.tasks().wait(&id, LONG).await.unwrap();
    host.tasks().shutdown().await;
    assert_eq!(all.split_whitespace().count(), 7);
    assert_all_gone(&all);
    assert_eq!(host.tasks().find(&id).unwrap().status, BackgroundStatus::Completed);
}

#[test]
fn dropping_the_tasks_ends_them() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let host = ShellHost::new();
    let pids = runtime.block_on(async {
        let mut ready = Ready::new(&host);
        start(&host, "setsid sleep 1000 & echo $$ $! > ready; wait").await;
        ready.line().await
    });
    drop(host);
    for pid in pids.split_whitespace() {
        while !is_gone(pid) {
            std::thread::yield_now();
        }
    }
}
