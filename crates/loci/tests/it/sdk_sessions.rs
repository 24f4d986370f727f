//! The official Python SDK's session functions and ours, on the same files, must agree.
//!
//! The SDK was written against the reference's files and knows nothing of us.

use crate::agent_sdk::official_sdk;
use crate::support::{World, assert_fine, loci};
use loci_testkit::{PythonVenv, Script, ScriptedModel, Step, TestHome};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The SDK in the surroundings of a test.
struct Sdk {
    python: PythonVenv,
}

impl Sdk {
    /// Returns the SDK, or none where there is no Python at all.
    #[expect(clippy::print_stderr, reason = "a skipped test says why")]
    fn find() -> Option<Self> {
        let python = official_sdk();
        if python.is_none() {
            eprintln!("skipped: there is no python3 on this machine");
        }
        python.map(|python| Self { python })
    }

    /// Calls functions one after the other and returns what they returned.
    fn call<const N: usize>(&self, home: &TestHome, calls: [(&str, Value); N]) -> [Value; N] {
        let calls: Vec<Value> = calls.into_iter().map(|(name, arguments)| json!([name, arguments])).collect();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sdk_sessions.py");
        let mut command = self.python.script(script);
        command.arg(Value::from(calls).to_string()).envs(home.env_vars("http://127.0.0.1:9"));
        let results: Vec<Value> = serde_json::from_slice(&run(&mut command)).unwrap();
        results.try_into().unwrap()
    }
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Runs `loci sessions` with `--json` and returns what it printed.
fn ours<const N: usize>(world: &World, args: [&str; N]) -> Value {
    let output = world.run(&loci().arg("sessions").args(args).arg("--json"));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

fn id_of(file: &Path) -> String {
    file.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Asserts that both list the same sessions in the same order, with the same facts.
fn assert_same_list(world: &World, theirs: &Value) {
    let ours = ours(world, ["list"]);
    let pairs = [
        ("session_id", "sessionId"),
        ("summary", "summary"),
        ("custom_title", "title"),
        ("first_prompt", "firstPrompt"),
        ("git_branch", "gitBranch"),
        ("cwd", "cwd"),
        ("tag", "tag"),
        ("created_at", "createdAt"),
        ("last_modified", "lastModified"),
        ("file_size", "fileSize"),
    ];
    let by_id = |list: &Value, key: &str| {
        let mut list = list.as_array().unwrap().clone();
        list.sort_by_key(|session| session[key].as_str().unwrap().to_owned());
        list
    };
    let (theirs, ours) = (by_id(theirs, "session_id"), by_id(&ours, "sessionId"));
    assert_eq!(theirs.len(), ours.len(), "{theirs:?}\n{ours:?}");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        for (their_key, our_key) in pairs {
            assert_eq!(theirs[their_key], ours[our_key], "{their_key} of {theirs}");
        }
    }
}

/// Asserts that both read the same messages.
fn assert_same_messages(world: &World, id: &str, theirs: &Value) {
    let shown = ours(world, ["show", id]);
    let ours: Vec<Value> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["type"], it["uuid"], it["sessionId"], it["message"]]))
        .collect();
    let theirs: Vec<Value> = theirs
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["type"], it["uuid"], it["session_id"], it["message"]]))
        .collect();
    assert!(!theirs.is_empty(), "{shown}");
    assert_eq!(theirs, ours);
}

/// Four sessions: with parallel calls and a title, without an answer, plain, and a fork.
async fn sessions() -> (World, Vec<String>) {
    let world = World::with_git([]).await;
    world.home.write("a.txt", "one\n");
    world.home.write("b.txt", "two\n");
    let calls = Step::text("I look.")
        .thinking("Hm.", "c2ln")
        .tool("Read", json!({"file_path": world.path("a.txt")}))
        .tool("Read", json!({"file_path": world.path("b.txt")}));
    let world = world
        .then([
            calls,
            Step::text("They differ: \"ü\" <b>\u{1F600}</b>"),
            Step::text("Again."),
            Step::status(400),
            Step::text("Plain."),
            Step::text("In the copy."),
        ])
        .await;
    assert_fine(&world.print(["Compare a and b\nplease, \"with\" ünicode", "-n", "Comparing \"ü\""]));
    assert_fine(&world.print(["And again", "-c"]));
    assert_eq!(world.print(["Will fail"]).code, Some(1));
    assert_fine(&world.print([&"A long prompt ".repeat(40)]));
    assert_fine(&world.print(["Copy", "-r", "Comparing \"ü\"", "--fork-session"]));
    let ids = world.home.sessions().iter().map(|file| id_of(file)).collect();
    (world, ids)
}

#[tokio::test]
async fn sdk_and_loci_list_the_same_sessions() {
    let Some(sdk) = Sdk::find() else { return };
    let (world, ids) = sessions().await;
    let ids: [String; 4] = ids.try_into().unwrap();
    let [list, everywhere] = sdk.call(
        &world.home,
        [("list_sessions", json!({"directory": world.home.project()})), ("list_sessions", json!({}))],
    );
    assert_same_list(&world, &list);
    assert_same_list(&world, &everywhere);
    let messages = sdk.call(
        &world.home,
        ids.each_ref()
            .map(|id| ("get_session_messages", json!({"session_id": id, "directory": world.home.project()}))),
    );
    for (id, messages) in ids.iter().zip(&messages) {
        assert_same_messages(&world, id, messages);
    }
}

#[tokio::test]
async fn sdk_changes_are_seen_by_loci() {
    let Some(sdk) = Sdk::find() else { return };
    let (world, ids) = sessions().await;
    let id = ids.iter().find(|id| ours(&world, ["show", id])["title"] == "Comparing \"ü\"").unwrap();
    let [_, _, fork, list] = sdk.call(
        &world.home,
        [
            ("rename_session", json!({"session_id": id, "title": " Renamed ü "})),
            ("tag_session", json!({"session_id": id, "tag": "bl\u{200b}ue"})),
            ("fork_session", json!({"session_id": id})),
            ("list_sessions", json!({"directory": world.home.project()})),
        ],
    );
    let renamed = ours(&world, ["show", "Renamed ü"]);
    assert_eq!((renamed["sessionId"].as_str(), renamed["tag"].as_str()), (Some(id.as_str()), Some("blue")));
    assert_same_list(&world, &list);

    let fork = fork["session_id"].as_str().unwrap();
    assert_eq!(ours(&world, ["show", fork])["title"], "Renamed ü (fork)");
    assert_eq!(ours(&world, ["tree", fork])["forkedFrom"], id.as_str());
    // Ids that no earlier answer has: the SDK takes answers of one id for one.
    let script = Script::new([Step::text("word ".repeat(30_000)), Step::text("On the fork.")]).first_id(900);
    let world = World { home: world.home, model: ScriptedModel::start(script).await };
    assert_fine(&world.print(["Say a lot", "-r", "Renamed ü"]));
    assert_fine(&world.print(["Go on", "-r", fork]));
    assert!(world.last_request().json["messages"].as_array().unwrap().len() > 6, "the fork has its history");
    let [_, long, messages] = sdk.call(
        &world.home,
        [
            ("delete_session", json!({"session_id": fork})),
            ("get_session_info", json!({"session_id": id})),
            ("get_session_messages", json!({"session_id": id})),
        ],
    );
    assert_eq!(
        (&long["custom_title"], &long["tag"]),
        (&json!("Renamed ü"), &json!("blue")),
        "after a long answer"
    );
    assert_same_messages(&world, id, &messages);
    let left = ours(&world, ["list"]);
    assert!(left.as_array().unwrap().iter().all(|session| session["sessionId"] != fork));
}

#[tokio::test]
async fn loci_changes_are_seen_by_the_sdk() {
    let Some(sdk) = Sdk::find() else { return };
    let (world, ids) = sessions().await;
    let id = &ids[0];
    ours(&world, ["rename", id, "Ours ü"]);
    ours(&world, ["tag", id, "green"]);
    let branch = ours(&world, ["branch", id])["sessionId"].as_str().unwrap().to_owned();
    let info = |id: &str| ("get_session_info", json!({"session_id": id}));
    let messages = |id: &str| ("get_session_messages", json!({"session_id": id}));
    let [changed, copy, copied, original] =
        sdk.call(&world.home, [info(id), info(&branch), messages(&branch), messages(id)]);
    assert_eq!((&changed["custom_title"], &changed["tag"]), (&json!("Ours ü"), &json!("green")));
    assert_eq!(copy["custom_title"], "Ours ü (fork)");
    assert_same_messages(&world, &branch, &copied);
    assert_eq!(copied.as_array().unwrap().len(), original.as_array().unwrap().len());

    ours(&world, ["tag", id, "--clear"]);
    ours(&world, ["rm", &branch]);
    let [untagged, removed, list] = sdk.call(
        &world.home,
        [info(id), info(&branch), ("list_sessions", json!({"directory": world.home.project()}))],
    );
    assert_eq!((&untagged["tag"], &removed), (&Value::Null, &Value::Null));
    assert_same_list(&world, &list);
    ours(&world, ["rm", "--restore", &branch]);
    let [restored] = sdk.call(&world.home, [messages(&branch)]);
    assert_eq!(restored, copied);
}
