//! `loci sessions replay`: what was sent is sent again, and what runs runs in a copy.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{World, assert_fine, loci, print};
use loci_testkit::{Binary, Output, Recorded, Step};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Lets everything run that the recordings here do.
const FREE: [&str; 4] = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash"];

fn replay<const N: usize>(session: &str, args: [&str; N]) -> Binary {
    loci().args(["sessions", "replay", session]).args(args)
}

fn bash(command: &str) -> Step {
    Step::call("Bash", json!({"command": command}))
}

fn id(world: &World) -> String {
    world.home.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The outcomes of the calls, each with what it was about.
fn outcomes(report: &Value) -> BTreeMap<&str, &str> {
    let calls = report["calls"].as_array().unwrap().iter();
    let about = |call: &'_ Value| -> &'static str {
        let input = call["input"].to_string();
        let marks = ["pwd", "*.txt", "made.txt", "git log", "a.txt"];
        marks.into_iter().find(|mark| input.contains(mark)).unwrap()
    };
    calls.map(|call| (about(call), call["outcome"].as_str().unwrap())).collect()
}

/// The same outcome for every call but one.
fn all_but<'a>(outcome: &'a str, others: &[(&'a str, &'a str)]) -> BTreeMap<&'a str, &'a str> {
    let all = ["a.txt", "pwd", "*.txt", "made.txt", "git log"].into_iter().map(|about| (about, outcome));
    all.chain(others.iter().copied()).collect()
}

/// Everything in a directory: names, modes, contents.
fn tree(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.push((format!("{} {:?}", path.display(), metadata.permissions()), content));
            if metadata.is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Hashes the messages of a request as it came over the wire: without the context that opens the first, and without the
/// marks of the prompt cache.
fn wire_hash(request: &Recorded) -> String {
    let mut hasher = Sha256::new();
    for (n, message) in request.messages().iter().enumerate() {
        hasher.update(format!("{}\n", message["role"].as_str().unwrap()));
        let blocks = message["content"].as_array().unwrap().iter().skip(usize::from(n == 0));
        for mut block in blocks.cloned() {
            block.as_object_mut().unwrap().shift_remove("cache_control");
            hasher.update(format!("{block}\n"));
        }
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Two prompts with calls of several kinds, some at once.
async fn recorded() -> World {
    let world = World::with_git([]).await;
    world.home.write("a.txt", "one\n");
    world.home.commit("a");
    let script = [
        Step::new()
            .tool("Read", json!({"file_path": world.path("a.txt")}))
            .tool("Bash", json!({"command": format!("cat {} && pwd", world.path("a.txt"))}))
            .tool("Glob", json!({"pattern": "*.txt"})),
        bash("echo made > made.txt; echo done"),
        Step::text("First."),
        bash("git log --format=%s; cat nowhere.txt"),
        Step::text("Second."),
    ];
    let world = world.then(script).await;
    assert_fine(&world.run(&print(["First prompt"]).args(FREE)));
    assert_fine(&world.run(&print(["Second prompt", "-c"]).args(FREE)));
    world
}

/// Invariants 1 and 4 of `docs/design/replay.md`.
#[tokio::test]
async fn a_session_is_sent_again_as_it_was() {
    let world = recorded().await;
    let file = &world.home.sessions()[0];
    let (before, modified) = (fs::read(file).unwrap(), fs::metadata(file).unwrap().modified().unwrap());
    let output = world.run(&replay(&id(&world), ["--dry", "--json"]));
    assert_fine(&output);
    let report = json_of(&output);
    let hashes: Vec<&Value> = report["requests"].as_array().unwrap().iter().map(|it| &it["sha256"]).collect();
    let sent: Vec<String> = world.requests().iter().map(wire_hash).collect();
    assert_eq!(sent.len(), 5);
    assert_eq!(hashes, sent.iter().map(|hash| json!(hash)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    assert_eq!(
        (&report["differs"], &report["isDry"], &report["copy"]),
        (&json!(false), &json!(true), &Value::Null)
    );
    assert_eq!(outcomes(&report), all_but("recorded", &[]));
    assert_eq!(world.requests().len(), 5, "no model was asked");
    assert_eq!(fs::read(file).unwrap(), before);
    assert_eq!(fs::metadata(file).unwrap().modified().unwrap(), modified);
}

/// Invariants 2, 3 and 5 of `docs/design/replay.md`.
#[tokio::test]
async fn calls_run_in_a_copy_and_what_differs_is_shown() {
    let world = recorded().await;
    let project = world.home.project();
    fs::remove_file(project.join("made.txt")).unwrap();
    let tmp = project.with_file_name("tmp");
    let (before, tmp_before) = (tree(&project), tree(&tmp));
    let same = world.run(&replay(&id(&world), ["--json"]).args(FREE));
    let report = json_of(&same);
    assert_eq!(outcomes(&report), all_but("same", &[]), "{report:#}");
    assert_eq!((same.code, same.stderr.as_str()), (Some(0), ""));
    assert_eq!(report["copy"]["project"], json!(project));
    assert!(!Path::new(report["copy"]["path"].as_str().unwrap()).exists(), "the copy is removed");
    assert_eq!(tree(&project), before, "the project is left alone");
    assert_eq!(tree(&tmp), tmp_before, "and nothing is left beside it");

    world.home.write("a.txt", "two\n");
    let before = tree(&project);
    let other = world.run(&replay(&id(&world), []).args(FREE));
    assert_eq!(other.code, Some(1), "{other:?}");
    for line in [
        "    -one",
        "    +two",
        "5 requests: 5 as recorded, 0 not",
        "5 calls: 3 with the recorded result, 2 with another, 0 not run",
    ] {
        assert!(other.stdout.lines().any(|it| it == line), "{line}: {}", other.stdout);
    }
    assert_eq!(tree(&project), before);

    let kept = json_of(&world.run(&replay(&id(&world), ["--keep", "--json"]).args(FREE)));
    let copy = Path::new(kept["copy"]["path"].as_str().unwrap());
    assert_eq!(fs::read_to_string(copy.join("made.txt")).unwrap(), "made\n");
}

/// Invariant 2 of `docs/design/replay.md`.
#[tokio::test]
async fn replay_does_not_run_calls_that_need_asking() {
    let world = recorded().await;
    fs::remove_file(world.home.project().join("made.txt")).unwrap();
    let output = world.run(&replay(&id(&world), ["--json"]));
    let report = json_of(&output);
    assert_eq!(outcomes(&report), all_but("same", &[("made.txt", "notRun")]), "{report:#}");
    let mut calls = report["calls"].as_array().unwrap().iter();
    let reason = calls.find_map(|call| call["reason"].as_str()).unwrap();
    assert!(reason.starts_with("it would have to be asked about: "), "{reason}");
    assert_eq!(output.code, Some(0), "what did not run is no difference");

    // A rule that names the project holds for the copy, one relative to it too, and a flag.
    let rule = format!("Read(/{})", world.path("a.txt"));
    for (rules, flag) in
        [(json!([rule]), ""), (json!(["Read(./a.txt)"]), ""), (json!([]), "Read Bash(cat *)")]
    {
        let settings = json!({"permissions": {"deny": rules}});
        world.home.write_config("settings.json", settings.to_string());
        let mut binary = replay(&id(&world), ["--json"]).args(FREE);
        if !flag.is_empty() {
            binary = binary.args(["--disallowedTools", flag]);
        }
        let report = json_of(&world.run(&binary));
        let found = outcomes(&report);
        assert_eq!((found["a.txt"], found["pwd"]), ("notRun", "notRun"), "{rules} {flag}: {report:#}");
        assert_eq!(found["made.txt"], "same", "{rules} {flag}: {report:#}");
    }
}

#[tokio::test]
async fn a_project_that_is_gone_is_said_and_another_may_take_its_place() {
    let world = recorded().await;
    let (project, moved) = (world.home.project(), world.home.project().with_file_name("moved"));
    fs::rename(&project, &moved).unwrap();
    fs::create_dir(&project).unwrap();
    let session = world.home.sessions()[0].display().to_string();
    let run = |args: &[&str]| {
        let binary = replay(&session, []).args(args.iter().copied()).args(FREE);
        world.run(&binary)
    };
    fs::remove_file(moved.join("made.txt")).unwrap();
    let other = json_of(&run(&["--project", moved.to_str().unwrap(), "--json"]));
    assert_eq!(outcomes(&other), all_but("same", &[]), "{other:#}");
    let gone = run(&["--project", "/nowhere/at/all"]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("There is no project to copy: `/nowhere/at/all`"), "{}", gone.stderr);
    assert!(gone.stderr.contains("--dry"), "{}", gone.stderr);
}
