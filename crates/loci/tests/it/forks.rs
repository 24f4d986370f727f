//! Names, copies and places: `-n`, `-r <title>`, `--fork-session`, `--resume-session-at`, other directories.

use crate::support::{World, assert_fine, loci, print};
use loci_testkit::Step;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const NEW: &str = "0f0f0f0f-0001-4000-8000-000000000001";

fn id_of(file: &Path) -> String {
    file.file_stem().unwrap().to_str().unwrap().to_owned()
}

fn file_of(world: &World, id: &str) -> PathBuf {
    world.home.sessions().into_iter().find(|file| id_of(file) == id).unwrap()
}

/// A project with one session that read a file and answered.
async fn one_turn() -> (World, String) {
    let world = World::with_git([]).await;
    world.home.write("a.txt", "hello\n");
    let call = Step::call("Read", json!({"file_path": world.path("a.txt")}));
    let world = world.then([call, Step::text("It says hello.")]).await;
    assert_fine(&world.print(["What does it say?", "-n", "Greeting"]));
    let id = id_of(&world.home.sessions()[0]);
    (world.then([Step::text("Again."), Step::text("And again.")]).await, id)
}

/// The prompts of the last request.
fn asked(world: &World) -> Vec<String> {
    let request = world.last_request();
    let messages = request.json["messages"].as_array().unwrap().clone();
    let texts = messages.iter().filter(|message| message["role"] == "user").flat_map(
        |message| match &message["content"] {
            Value::String(text) => vec![text.clone()],
            Value::Array(blocks) => {
                blocks.iter().filter_map(|block| block["text"].as_str()).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        },
    );
    texts.filter(|text| !text.starts_with("<system-reminder>")).collect()
}

fn kinds(entries: &[Value]) -> Vec<String> {
    let kind = |entry: &Value| match entry["operation"].as_str() {
        Some(operation) => operation.to_owned(),
        None => entry["type"].as_str().unwrap().to_owned(),
    };
    entries.iter().map(kind).collect()
}

/// Invariant 18 of `docs/design/session-log.md`.
#[tokio::test]
async fn a_fork_copies_the_chain_and_leaves_the_source_alone() {
    let (world, id) = one_turn().await;
    let source = file_of(&world, &id);
    let before = fs::read(&source).unwrap();
    let backup = world.home.write_config(format!("file-history/{id}/abc@v1"), "old");
    assert_fine(&world.print(["Once more", "-r", &id, "--fork-session", "--session-id", NEW]));
    assert_eq!(fs::read(&source).unwrap(), before);
    assert_eq!(asked(&world), ["What does it say?", "Once more"]);
    let fork = world.home.read_session(file_of(&world, NEW));
    assert_eq!(
        kinds(&fork),
        [
            "mode",
            "enqueue",
            "dequeue",
            "user",
            "assistant",
            "user",
            "assistant",
            "custom-title",
            "user",
            "assistant",
            "cost-state",
            "last-prompt"
        ]
    );
    let chain = |entries: Vec<Value>| entries.into_iter().filter(|entry| entry["uuid"].is_string());
    let copied: Vec<Value> = chain(world.home.read_session(&source))
        .map(|mut entry| {
            entry["sessionId"] = json!(NEW);
            entry
        })
        .collect();
    assert_eq!(
        chain(fork.clone()).take(copied.len()).collect::<Vec<_>>(),
        copied,
        "only the session's name changed"
    );
    assert_eq!(fork[7]["customTitle"], "Greeting (fork)");
    let linked = world.home.config_home().join(format!("file-history/{NEW}/abc@v1"));
    assert_eq!(fs::read(linked).unwrap(), fs::read(backup).unwrap());

    assert_fine(&world.print(["And more", "-r", NEW]));
    assert_eq!(asked(&world), ["What does it say?", "Once more", "And more"], "the copy goes on by itself");
    let taken = world.print(["x", "-r", &id, "--fork-session", "--session-id", NEW]);
    assert_eq!(taken.code, Some(1));
    assert!(taken.stderr.contains("is already in use"), "{taken:?}");
}

#[tokio::test]
async fn a_name_is_written_with_the_first_prompt_and_found() {
    let (world, id) = one_turn().await;
    let entries = world.home.read_session(file_of(&world, &id));
    assert_eq!(kinds(&entries)[..4], ["enqueue", "dequeue", "custom-title", "user"]);
    assert_fine(&world.print(["Go on", "-r", "Greeting"]));
    assert_eq!(asked(&world), ["What does it say?", "Go on"]);
    assert_fine(&world.print(["Rename", "-r", "Greeting", "-n", "Farewell"]));
    let listed = world.run(&loci().args(["sessions", "list", "--json"])).stdout;
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()[0]["title"], "Farewell");
    let unknown = world.print(["x", "-r", "greet"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""));
    assert!(unknown.stderr.contains("No conversation found with this id or title: `greet`"), "{unknown:?}");
}

#[tokio::test]
async fn ambiguous_title_lists_resume_commands() {
    let (world, id) = one_turn().await;
    assert_fine(&world.print(["Another", "-n", "Greeting"]));
    let output = world.print(["x", "-r", "Greeting", "--output-format", "json"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains(&format!("loci -r {id}  # Greeting")), "{output:?}");
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&result["is_error"], &result["type"]), (&json!(true), &json!("result")));
}

#[tokio::test]
async fn a_session_goes_on_from_a_message() {
    let (world, id) = one_turn().await;
    assert_fine(&world.print(["Second", "-r", &id]));
    let entries = world.home.read_session(file_of(&world, &id));
    let first_answer =
        entries.iter().rfind(|entry| entry["message"]["content"][0]["text"] == "It says hello.").unwrap();
    let uuid = first_answer["uuid"].as_str().unwrap();
    assert_fine(&world.print(["Instead", "-r", &id, "--resume-session-at", uuid]));
    assert_eq!(asked(&world), ["What does it say?", "Instead"]);
    let entries = world.home.read_session(file_of(&world, &id));
    let instead = entries.iter().find(|entry| entry["message"]["content"] == "Instead").unwrap();
    assert_eq!(instead["parentUuid"], uuid);

    let unknown = world.print(["x", "-r", &id, "--resume-session-at", NEW, "--output-format", "json"]);
    assert_eq!(unknown.code, Some(1));
    let result: Value = serde_json::from_str(&unknown.stdout).unwrap();
    assert_eq!(result["is_error"], true);
    assert!(unknown.stderr.contains(&format!("No message found with message.uuid of: {NEW}")), "{unknown:?}");
}

/// Classes 5, 13 and 17: a session is found from wherever its project can be meant.
#[tokio::test]
async fn a_session_is_resumed_from_other_places() {
    let (world, id) = one_turn().await;
    let project = world.home.project();
    let deep = project.join("sub/deep");
    let (tree, elsewhere, link) =
        (project.with_file_name("tree"), project.with_file_name("elsewhere"), project.with_file_name("link"));
    for dir in [&deep, &elsewhere] {
        fs::create_dir_all(dir).unwrap();
    }
    world.home.git(&["worktree", "add", "--quiet", "-b", "side", tree.to_str().unwrap()]);
    std::os::unix::fs::symlink(&project, &link).unwrap();
    let world = world.then(std::iter::repeat_n(Step::text("Here."), 8).collect::<Vec<_>>()).await;
    let mut expected = vec!["What does it say?".to_owned()];
    for (dir, how) in [
        (&deep, vec!["-c"]),
        (&deep, vec!["-r", "Greeting"]),
        (&tree, vec!["-r", "Greeting"]),
        (&tree, vec!["-r", &id]),
        (&elsewhere, vec!["-r", &id]),
        (&elsewhere, vec!["-r", "Greeting"]),
        (&link, vec!["-c"]),
    ] {
        let prompt = format!("{how:?} in {}", dir.display());
        assert_fine(&world.run(&print([&prompt]).args(how).cwd(dir)));
        expected.push(prompt);
        assert_eq!(asked(&world), expected);
    }
    assert_eq!(world.home.sessions().len(), 1, "one file all the while");
    fs::remove_dir_all(&project).unwrap();
    assert_fine(&world.run(&print(["gone", "-r", &id]).cwd(&elsewhere)));
}

/// Class 3: a title stays in sight however much is said after it.
#[tokio::test]
async fn a_title_is_repeated_near_the_end() {
    let (world, id) = one_turn().await;
    let world = world.then([Step::text("word ".repeat(20_000)), Step::text("short")]).await;
    assert_fine(&world.print(["Say a lot", "-r", &id]));
    let titles = || {
        kinds(&world.home.read_session(file_of(&world, &id)))
            .iter()
            .filter(|kind| *kind == "custom-title")
            .count()
    };
    assert_eq!(titles(), 2, "once at the beginning and once after the long answer");
    assert_fine(&world.print(["Say little", "-r", &id]));
    assert_eq!(titles(), 2);
    let listed = world.run(&loci().args(["sessions", "list", "--json"])).stdout;
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()[0]["title"], "Greeting");
}

#[tokio::test]
async fn unsaved_fork_writes_nothing() {
    let (world, id) = one_turn().await;
    assert_fine(&world.print(["Once more", "-r", &id, "--fork-session", "--no-session-persistence"]));
    assert_eq!(asked(&world), ["What does it say?", "Once more"]);
    assert_eq!(world.home.sessions().len(), 1);
}

/// Whoever leaves a branch says so before anything else, so that a crash does not bring the old one back.
/// Invariant 7 of `docs/design/session-log.md`.
#[tokio::test]
async fn branch_from_an_earlier_message_outlasts_a_crash() {
    let (world, id) = one_turn().await;
    assert_fine(&world.print(["Second", "-r", &id]));
    let file = file_of(&world, &id);
    let entries = world.home.read_session(&file);
    let answer =
        entries.iter().rfind(|entry| entry["message"]["content"][0]["text"] == "It says hello.").unwrap();
    let uuid = answer["uuid"].as_str().unwrap();
    assert_fine(&world.print(["Instead", "-r", &id, "--resume-session-at", uuid]));
    // It dies after the prompt.
    let text = fs::read_to_string(&file).unwrap();
    let kept = text.lines().position(|line| line.contains("Instead") && line.contains("parentUuid")).unwrap();
    let kept: String = text.lines().take(kept + 1).map(|line| format!("{line}\n")).collect();
    fs::write(&file, kept).unwrap();
    let world = world.then([]).await;
    assert_fine(&world.print(["Third", "-r", &id]));
    assert_eq!(asked(&world), ["What does it say?", "Instead", "Third"]);
}
