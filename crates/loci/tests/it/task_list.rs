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
    // The name of the field is almost right.
    let done = Step::call("TaskUpdate", json!({"task_id": "1", "status": "completed"}));
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

#[tokio::test]
async fn deleted_number_is_not_given_again_even_by_another_process() {
    let delete = Step::call("TaskUpdate", json!({"taskId": "2", "status": "deleted"}));
    let world = World::new([create("Parse"), create("Print"), delete, Step::text("1")]).await;
    assert_eq!(world.print(["go", "--session-id", "0a0a0a0a-0001-4000-8000-000000000001"]).code, Some(0));
    let dir = world.home.config_home().join("tasks/0a0a0a0a-0001-4000-8000-000000000001");
    assert_eq!(std::fs::read_to_string(dir.join(".highwatermark")).unwrap(), "2");
    let world = world.then([create("Test"), list(), Step::text("2")]).await;
    assert_eq!(world.print(["go on", "-c"]).code, Some(0));
    assert_eq!(last_result(&world), "1. [pending] Parse\n3. [pending] Test");
}

/// Claims task 1 of the list that all processes share.
fn claim(owner: &str) -> Step {
    Step::call("TaskUpdate", json!({"taskId": "1", "owner": owner, "status": "in_progress"}))
}

#[tokio::test]
async fn of_32_processes_that_claim_a_task_one_gets_it() {
    const N: usize = 32;
    let shared = World::new([create("Parse"), Step::text("1")]).await;
    let config = shared.home.config_home();
    let in_list = |binary: loci_testkit::Binary| {
        binary.env("CLAUDE_CODE_TASK_LIST_ID", "team").env("CLAUDE_CONFIG_DIR", config.display().to_string())
    };
    assert_eq!(shared.run(&in_list(print(["go"]))).code, Some(0));
    let mut worlds = Vec::new();
    for n in 0..N {
        worlds.push(
            World::new([claim(&format!("p{n}")), create(&format!("of p{n}")), Step::text("done")]).await,
        );
    }
    let running: Vec<_> = worlds.iter().map(|world| world.start_closed(&in_list(print(["go"])))).collect();
    for session in running {
        let output = session.finish();
        assert_eq!(output.code, Some(0), "{output:?}");
    }
    let answers: Vec<String> =
        worlds.iter().map(|world| world.requests()[1].tool_results()[0].text.clone()).collect();
    let winners = answers.iter().filter(|text| text.contains("is now in_progress")).count();
    let losers = answers.iter().filter(|text| text.contains("Task 1 is taken by p")).count();
    assert_eq!((winners, losers), (1, N - 1), "{answers:?}");
    let dir = config.join("tasks/team");
    let task: Value = serde_json::from_slice(&std::fs::read(dir.join("1.json")).unwrap()).unwrap();
    let winner = answers.iter().position(|text| text.contains("is now in_progress")).unwrap();
    assert_eq!(task["owner"], format!("p{winner}"));
    let files = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.filter(|name| name.ends_with(".json")).count(), N + 1, "no number is given twice");
}

#[tokio::test]
async fn todo_write_takes_the_place_of_tasks_and_is_there_again_after_a_resume() {
    let write = |status: &str| {
        let item = json!({"content": "Build", "status": status, "activeForm": "Building"});
        Step::call("TodoWrite", json!({"todos": [item]}))
    };
    let off = |args: loci_testkit::Binary| args.env("CLAUDE_CODE_ENABLE_TASKS", "0");
    let world = World::new([write("pending"), Step::text("1")]).await;
    assert_eq!(world.run(&off(print(["go"]))).code, Some(0));
    let offered = world.requests()[0].tool_names().join(" ");
    assert!(offered.contains("TodoWrite") && !offered.contains("TaskCreate"), "{offered}");
    let world = world.then([write("completed"), Step::text("2")]).await;
    assert_eq!(world.run(&off(print(["go on", "-c"]))).code, Some(0));
    let results: Vec<Value> =
        world.session().iter().map(|it| it["toolUseResult"].clone()).filter(|it| !it.is_null()).collect();
    assert_eq!(results[1]["oldTodos"], results[0]["newTodos"]);
    assert_eq!(results[1]["newTodos"][0]["status"], "completed");
    // Usually there are tasks.
    let world = world.then([Step::text("3")]).await;
    assert_eq!(world.print(["go on", "-c"]).code, Some(0));
    assert!(!world.requests()[0].tool_names().contains(&"TodoWrite"));
}
