//! The task list: it outlives the process, goes with a fork, and leaves nothing where nothing may be left.

use loci_testkit::Step;
use serde_json::{Value, json};

use crate::support::{World, print};

fn create(subject: &str) -> Step {
    Step::call("TaskCreate", json!({"subject": subject, "description": "x"}))
}

fn list() -> Step {
    Step::call("TaskList", json!({}))
}

/// Returns what the last request's last result says.
fn last_result(world: &World) -> String {
    world.requests().last().unwrap().tool_results().last().unwrap().text.clone()
}

#[tokio::test]
async fn a_resumed_session_has_its_tasks_and_a_fork_has_a_copy() {
    let done = Step::call("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
    let world = World::new([create("Parse"), create("Print"), done, Step::text("1")]).await;
    assert_eq!(world.print(["go"]).code, Some(0));
    let world = world.then([list(), Step::text("2")]).await;
    assert_eq!(world.print(["go on", "-c"]).code, Some(0));
    assert_eq!(last_result(&world), "1. [completed] Parse\n2. [pending] Print");

    let world = world.then([create("Fork"), list(), Step::text("3")]).await;
    assert_eq!(world.print(["elsewhere", "-c", "--fork-session"]).code, Some(0));
    assert_eq!(last_result(&world), "1. [completed] Parse\n2. [pending] Print\n3. [pending] Fork");
    let lists = std::fs::read_dir(world.home.config_home().join("tasks")).unwrap();
    let mut sizes: Vec<usize> = lists
        .map(|list| {
            let files = std::fs::read_dir(list.unwrap().path()).unwrap();
            files
                .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|it| it == "json"))
                .count()
        })
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 3]);
}

#[tokio::test]
async fn without_persistence_the_list_stays_in_memory() {
    let world = World::new([create("Parse"), list(), Step::text("1")]).await;
    let output = world.run(&print(["go", "--no-session-persistence"]));
    assert_eq!((output.code, last_result(&world).as_str()), (Some(0), "1. [pending] Parse"), "{output:?}");
    assert!(!world.home.config_home().join("tasks").exists());
}

/// What the program that shares the format would read.
#[tokio::test]
async fn files_have_the_shared_form() {
    let blocked =
        Step::call("TaskUpdate", json!({"taskId": "2", "addBlockedBy": ["1"], "status": "in_progress"}));
    let world = World::new([create("Parse"), create("Print"), blocked, Step::text("1")]).await;
    assert_eq!(world.print(["go", "--session-id", "0a0a0a0a-0001-4000-8000-000000000001"]).code, Some(0));
    let dir = world.home.config_home().join("tasks/0a0a0a0a-0001-4000-8000-000000000001");
    let task: Value = serde_json::from_slice(&std::fs::read(dir.join("2.json")).unwrap()).unwrap();
    let expected = json!({
        "id": "2", "subject": "Print", "description": "x", "status": "in_progress", "blocks": [], "blockedBy": ["1"],
    });
    assert_eq!(task, expected);
}
