use serde_json::{Value, json};

use crate::Toolbox;
use crate::testing::TestHost;
use loci_core::tool::{ToolContent, ToolOutcome};

async fn call(host: &TestHost, name: &str, input: Value) -> ToolOutcome {
    let toolbox = Toolbox::builtin();
    host.call(toolbox.find(name).unwrap(), input).await
}

fn text(outcome: &ToolOutcome) -> &str {
    match &outcome.content {
        ToolContent::Text(text) => text,
        ToolContent::Blocks(blocks) => panic!("blocks: {blocks:?}"),
    }
}

#[tokio::test]
async fn a_list_is_written_and_read() {
    let host = TestHost::new();
    for (name, input, told, structured) in [
        ("TaskList", json!({}), "The task list is empty.", json!({"tasks": []})),
        (
            "TaskCreate",
            json!({"subject": "Parse", "description": "all of it", "activeForm": "Parsing"}),
            "Task 1 is on the list: Parse",
            json!({"task": {"id": "1", "subject": "Parse"}}),
        ),
        (
            "TaskCreate",
            json!({"subject": "Print", "description": ""}),
            "Task 2 is on the list: Print",
            json!({"task": {"id": "2", "subject": "Print"}}),
        ),
        (
            "TaskUpdate",
            json!({"taskId": "2", "addBlockedBy": ["1"]}),
            "Task 2 was changed: blockedBy.",
            json!({"success": true, "taskId": "2", "updatedFields": ["blockedBy"]}),
        ),
        (
            "TaskUpdate",
            json!({"taskId": "#1", "status": "in_progress", "owner": "me"}),
            "Task 1 is now in_progress.",
            json!({"success": true, "taskId": "1", "updatedFields": ["owner", "status"], "statusChange": {"from": "pending", "to": "in_progress"}}),
        ),
        (
            "TaskList",
            json!({}),
            "1. [in_progress] Parse (me)\n2. [pending, waits for 1] Print",
            json!({"tasks": [
                {"id": "1", "subject": "Parse", "status": "in_progress", "blockedBy": []},
                {"id": "2", "subject": "Print", "status": "pending", "blockedBy": ["1"]},
            ]}),
        ),
        (
            "TaskGet",
            json!({"taskId": "1"}),
            "Task 1: Parse\nStatus: in_progress\nOwner: me\nOthers wait for it: 2\nDescription: all of it",
            json!({"task": {"id": "1", "subject": "Parse", "description": "all of it", "status": "in_progress", "blocks": ["2"], "blockedBy": []}}),
        ),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "deleted"}),
            "Task 1 is off the list.",
            json!({"success": true, "taskId": "1", "updatedFields": ["deleted"], "statusChange": {"from": "in_progress", "to": "deleted"}}),
        ),
    ] {
        let outcome = call(&host, name, input).await;
        assert_eq!((text(&outcome), &outcome.structured), (told, &structured), "{name}");
    }
}

#[tokio::test]
async fn impossible_task_changes_are_refused() {
    let host = TestHost::new();
    call(&host, "TaskCreate", json!({"subject": "a", "description": "b"})).await;
    call(&host, "TaskUpdate", json!({"taskId": "1", "owner": "a"})).await;
    for (name, input, says) in [
        ("TaskCreate", json!({"subject": " ", "description": ""}), "`subject` is empty"),
        ("TaskUpdate", json!({"taskId": "1", "addBlocks": ["1"]}), "Task 1 cannot wait for task 1"),
        ("TaskUpdate", json!({"taskId": "1", "status": "done"}), "status"),
        ("TaskUpdate", json!({"taskId": "1", "owner": "b"}), "Task 1 is taken by a"),
    ] {
        let outcome = call(&host, name, input).await;
        assert!(outcome.is_failure() && text(&outcome).contains(says), "{name}: {}", text(&outcome));
    }
}

#[tokio::test]
async fn unknown_tasks_are_told_without_an_error() {
    let host = TestHost::new();
    for (name, input, structured) in [
        ("TaskGet", json!({"taskId": "7"}), json!({"task": null})),
        (
            "TaskUpdate",
            json!({"taskId": "7", "status": "completed"}),
            json!({"success": false, "taskId": "7", "updatedFields": [], "error": "Task not found"}),
        ),
    ] {
        let outcome = call(&host, name, input).await;
        assert!(!outcome.is_failure() && text(&outcome).contains("There is no task 7"), "{name}");
        assert_eq!(outcome.structured, structured);
    }
}
