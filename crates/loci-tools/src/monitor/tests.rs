//! Watching real commands.

use super::*;
use crate::bash::tests::{ShellHost, text};

async fn watch(host: &ShellHost, input: Value) -> ToolOutcome {
    host.call(&Monitor::default(), input).await
}

/// Waits until the tasks have told a line that contains `last`; returns all.
async fn told(host: &ShellHost, last: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for _ in 0..3000 {
        lines.extend(host.tasks().drain_lines().into_iter().flat_map(|(_, lines)| lines));
        if lines.iter().any(|line| line.contains(last)) {
            return lines;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("`{last}` was not told: {lines:?}");
}

#[tokio::test]
async fn each_line_is_told_and_complaints_are_not() {
    let host = ShellHost::new();
    let command = "echo one; echo bad >&2; printf 'two\\n\\n'; printf three";
    let outcome = watch(&host, json!({"command": command, "description": "d"})).await;
    assert!(!outcome.is_failure() && text(&outcome).contains("Watching as task"), "{outcome:?}");
    assert_eq!(told(&host, "three").await, ["one", "two", "three"]);
    assert_eq!(host.tasks().drain_lines(), []);
    let id = outcome.structured["taskId"].as_str().unwrap();
    let complaints = host.task_dir().unwrap().join(format!("{id}.stderr"));
    assert_eq!(std::fs::read_to_string(complaints).unwrap(), "bad\n");
}

#[tokio::test]
async fn monitor_that_floods_or_whose_time_is_over_is_stopped() {
    for (input, expected) in [
        (json!({"command": "while :; do echo x; done", "description": "d"}), "more than 300 lines"),
        (json!({"command": "echo a; sleep 60", "description": "d", "timeout_ms": 1000}), "its time is over"),
    ] {
        let host = ShellHost::new();
        let outcome = watch(&host, input).await;
        let id = outcome.structured["taskId"].as_str().unwrap().to_owned();
        told(&host, expected).await;
        let ended = host.tasks().wait(&id, Duration::from_secs(30)).await.unwrap();
        assert!(matches!(ended.status, BackgroundStatus::Killed(_)), "{ended:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused() {
    let host = ShellHost::new();
    for input in
        [json!({"command": " ", "description": "d"}), json!({"command": "a\u{7}", "description": "d"})]
    {
        assert!(watch(&host, input).await.is_failure());
    }
    let host = ShellHost::with_vars(&[(DISABLE_BACKGROUND, "1")]);
    assert!(watch(&host, json!({"command": "true", "description": "d"})).await.is_failure());
}

#[test]
fn command_of_a_monitor_is_never_read_only() {
    let place = Workspace { cwd: "/".into(), project: "/".into(), extra_dirs: Vec::new(), home: "/".into() };
    let effects = Monitor::default().effects(&json!({"command": "tail -F log", "description": "d"}), &place);
    assert!(!effects.commands.is_empty() && effects.commands.iter().all(|command| !command.is_read_only));
}
