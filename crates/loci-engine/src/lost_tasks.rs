//! Commands that ran in the background when a session ended. None of them outlives it, and the model, which
//! believes that they run, is told so when the session goes on: once, before the next prompt.

use std::sync::{Arc, LazyLock};

use loci_context::CompactionCarryover;
use loci_core::entry::{Entry, EntryKind};
use memchr::memmem::Finder;
use serde_json::Value;

static STARTED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"backgroundTaskId\""));

const OPENING: &str =
    "<task-notification>\nNot running any more, because they ended with the session that started them:";

/// Returns the words for the model about what a path leaves running; `None` when that is nothing.
pub(crate) fn notice(path: &[Arc<Entry>]) -> Option<String> {
    // Hardly any session has run one, and nothing of those is parsed.
    let is_first = |entry: &Arc<Entry>| {
        let is_boundary = entry.is_compact_boundary() && !CompactionCarryover::tasks_at(entry).is_empty();
        is_boundary || STARTED.find(entry.line().as_bytes()).is_some()
    };
    let first = path.iter().position(is_first)?;
    let mut running: Vec<(String, String)> = Vec::new();
    for entry in &path[first..] {
        if entry.is_compact_boundary() {
            running =
                CompactionCarryover::tasks_at(entry).into_iter().filter_map(|task| named(&task)).collect();
        } else if entry.head().kind == EntryKind::User {
            let result: Value = entry.fields().read("toolUseResult").unwrap_or_default();
            if let Some(id) = result["backgroundTaskId"].as_str() {
                running.push((id.to_owned(), command(path, entry)));
            }
            let is_told = |id: &str| ended(&result) == Some(id) || is_notice_of(entry, id);
            running.retain(|(id, _)| !is_told(id));
        }
    }
    let lines: Vec<String> = running.iter().map(|(id, command)| format!("- {id}: {command}")).collect();
    (!lines.is_empty()).then(|| {
        format!(
            "{OPENING}\n{}\nWhat they wrote is in their output files.\n</task-notification>",
            lines.join("\n")
        )
    })
}

/// Returns the task that a result says has ended.
fn ended(result: &Value) -> Option<&str> {
    let task = &result["task"];
    match (task["task_id"].as_str(), task["status"].as_str()) {
        (Some(id), Some(status)) => (status != "running").then_some(id),
        _ => result["task_id"].as_str(),
    }
}

fn is_notice_of(entry: &Entry, id: &str) -> bool {
    let item = format!("\n- {id}: ");
    let texts = entry.blocks();
    entry.head().is_meta
        && texts
            .iter()
            .filter_map(|block| block.text())
            .any(|text| text.starts_with(OPENING) && text.contains(&item))
}

/// Returns the command behind a result: what the call it answers was asked to run, on one line.
fn command(path: &[Arc<Entry>], result: &Entry) -> String {
    let blocks = result.blocks();
    let answered = blocks.iter().find_map(|block| Some(block.tool_result()?.tool_use_id));
    let calls = path.iter().rev().filter(|entry| entry.head().kind == EntryKind::Assistant);
    let call = calls
        .flat_map(|entry| entry.blocks())
        .filter_map(|block| block.tool_use())
        .find(|call| Some(&call.id) == answered.as_ref());
    let command = call.and_then(|call| Some(call.input.get("command")?.as_str()?.to_owned()));
    command.map_or_else(
        || "a command".to_owned(),
        |command| command.split_whitespace().collect::<Vec<_>>().join(" "),
    )
}

/// Parts a task as a boundary names it: its id, and the command.
fn named(task: &str) -> Option<(String, String)> {
    task.split_once(": ").map(|(id, command)| (id.to_owned(), command.to_owned()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn entries(lines: &[Value]) -> Vec<Arc<Entry>> {
        lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
    }

    fn start(n: u32, id: &str) -> [Value; 2] {
        let call = json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": "Bash", "input": {"command": format!("sleep\n {n}")}});
        let result =
            json!({"type": "tool_result", "tool_use_id": format!("toolu_{n}"), "content": "started"});
        [
            json!({"type": "assistant", "uuid": format!("a{n}"), "message": {"id": format!("m{n}"), "role": "assistant", "content": [call]}}),
            json!({"type": "user", "uuid": format!("r{n}"), "message": {"role": "user", "content": [result]}, "toolUseResult": {"backgroundTaskId": id}}),
        ]
    }

    fn result(fields: Value) -> Value {
        json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": []}, "toolUseResult": fields})
    }

    /// Class 15 of the sessions' regressions: told once, and only what nobody saw end.
    #[test]
    fn what_ran_is_told_once() {
        let mut lines: Vec<Value> = [start(1, "b1"), start(2, "b2"), start(3, "b3"), start(4, "b4")].concat();
        lines.push(result(json!({"task": {"task_id": "b1", "status": "running"}})));
        lines.push(result(json!({"task": {"task_id": "b2", "status": "completed"}})));
        lines.push(result(json!({"task_id": "b3", "message": "stopped"})));
        let said = notice(&entries(&lines)).unwrap();
        expect![[r#"
            <task-notification>
            Not running any more, because they ended with the session that started them:
            - b1: sleep 1
            - b4: sleep 4
            What they wrote is in their output files.
            </task-notification>"#]]
        .assert_eq(&said);
        lines.push(json!({"type": "user", "uuid": "n", "isMeta": true, "message": {"role": "user", "content": [{"type": "text", "text": said}]}}));
        assert_eq!(notice(&entries(&lines)), None);
        lines.extend(start(5, "b5"));
        assert!(notice(&entries(&lines)).unwrap().contains("\n- b5: sleep 5\nWhat"));
    }

    #[test]
    fn a_boundary_names_what_ran_before_it() {
        let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "compactMetadata": {"trigger": "auto", "loci": {"tasks": ["b9: cargo watch: all"]}}});
        let said = notice(&entries(&[boundary])).unwrap();
        assert!(said.contains("\n- b9: cargo watch: all\n"), "{said}");
    }

    #[test]
    fn words_of_people_end_nothing() {
        let mut lines = start(1, "b1").to_vec();
        lines.push(json!({"type": "user", "uuid": "p", "message": {"role": "user", "content": "<task-notification> - b1: done"}}));
        assert!(notice(&entries(&lines)).is_some());
    }
}
