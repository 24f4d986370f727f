//! The session file: what is written, in which form, and when not.

use crate::support::{MODEL, World, assert_fine, is_result, print, stream, user, watched};
use expect_test::{expect, expect_file};
use loci_testkit::Step;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A world with a file to work on and two prompts' worth of answers that use every kind of tool.
async fn two_turns() -> World {
    let world = World::with_git([]).await;
    let (notes, new) = (world.path("notes.txt"), world.path("new.txt"));
    world.home.write("notes.txt", "one\ntwo\n");
    let edit = json!({"file_path": notes, "old_string": "two", "new_string": "2"});
    world
        .then([
            Step::text("Looking.").thinking("Two files.", "c2ln").tool("Read", json!({"file_path": notes})),
            Step::call("Edit", edit).tool("Bash", json!({"command": "ls", "description": "list"})),
            Step::text("Changed one line."),
            Step::call("Write", json!({"file_path": new, "content": "new\n"}))
                .tool("Bash", json!({"command": "ls missing"})),
            Step::text("Made a file."),
        ])
        .await
}

/// Says both prompts of [`two_turns`] in one process.
fn say_both(world: &World) {
    let mut session = world.start(&stream(["--permission-mode", "acceptEdits"]));
    for prompt in ["Change the notes", "And now a file"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    assert_fine(&session.finish());
}

#[tokio::test]
async fn two_turn_session_file_matches_snapshot() {
    let world = two_turns().await;
    say_both(&world);
    let golden = world.normaliser().transcript(&world.session());
    expect_file!["golden/two_turns.jsonl"].assert_eq(&golden);
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user Change the notes
        3 <- 2: assistant (thinks Two files.)
        4 <- 3: assistant Looking.
        5 <- 4: assistant calls Read #500
        6 <- 5: user answers #500 1	one
        7 <- 6: assistant calls Edit #501
        8 <- 7: assistant calls Bash #502
        9 <- 7: user answers #501 Updated `<project>/notes.txt`. The changed lines are now:
        10 <- 8: user answers #502 README.md
        11 <- 10: assistant Changed one line.
        12 cost-state
        13 last-prompt -> 11
        14 queue-operation enqueue
        15 queue-operation dequeue
        16 <- 11: user And now a file
        17 <- 16: assistant calls Write #503
        18 <- 17: assistant calls Bash #504
        19 <- 17: user answers #503 Created `<project>/new.txt` (1 line).
        20 <- 18: user answers #504 (error) Exit code 2
        21 <- 20: assistant Made a file.
        22 cost-state
        23 last-prompt -> 21
    "#]]
    .assert_eq(&world.sketch());
}

/// Finds an entry of one kind.
type Test = Box<dyn Fn(&Value) -> bool>;

#[tokio::test]
async fn entries_have_the_shape_of_the_reference() {
    let world = two_turns().await;
    say_both(&world);
    let (ours, theirs) = (world.session(), fixtures());
    let result_with = |key: &'static str| move |it: &Value| it["toolUseResult"].get(key).is_some();
    let block = |kind: &'static str| move |it: &Value| it["message"]["content"][0]["type"] == kind;
    let cases: Vec<(&str, Test)> = vec![
        ("a prompt", Box::new(|it| it["promptSource"] == "sdk")),
        ("an enqueued prompt", Box::new(|it| it["operation"] == "enqueue")),
        ("a dequeued prompt", Box::new(|it| it["operation"] == "dequeue")),
        ("the last prompt", Box::new(|it| it["type"] == "last-prompt" && it["lastPrompt"].is_string())),
        ("thinking", Box::new(block("thinking"))),
        ("a call", Box::new(block("tool_use"))),
        ("an answer", Box::new(|it| it["message"]["stop_reason"] == "end_turn")),
        ("a read file", Box::new(result_with("file"))),
        ("a command", Box::new(result_with("stdout"))),
        ("an edit", Box::new(result_with("replaceAll"))),
        ("a new file", Box::new(|it| it["toolUseResult"]["type"] == "create")),
        ("a failed call", Box::new(|it| it["message"]["content"][0]["is_error"] == true)),
    ];
    for (what, is_it) in cases {
        let find = |entries: &[Value]| {
            keys(entries.iter().find(|it| is_it(it)).unwrap_or_else(|| panic!("no {what}")))
        };
        assert_eq!(find(&ours), find(&theirs), "{what}");
    }
}

/// Returns the entries of all fixtures that the official program wrote headless.
fn fixtures() -> Vec<Value> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    let names = ["simple", "parallel_tools", "thinking", "error_tool_result", "file_history"];
    let texts = names.map(|it| std::fs::read_to_string(directory.join(format!("{it}.jsonl"))).unwrap());
    texts.iter().flat_map(|it| it.lines()).map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// Renders the keys of an entry in their order, those of what it holds included.
///
/// The format leaves the order inside a block of content open (the reference itself writes two orders), and
/// `cache_creation` is passed on as the server wrote it.
fn keys(value: &Value) -> String {
    let Value::Object(fields) = value else { return "..".into() };
    let inside = |(key, value): (&String, &Value)| match (key.as_str(), value) {
        ("content", Value::Array(blocks)) => {
            let sorted = |block: &Value| {
                let mut keys: Vec<&String> = block.as_object().into_iter().flat_map(|it| it.keys()).collect();
                keys.sort();
                format!("{keys:?}")
            };
            format!("{key}[{}]", blocks.iter().map(sorted).collect::<Vec<_>>().join(" "))
        }
        ("cache_creation", _) => key.clone(),
        (_, Value::Object(_)) => format!("{key}{}", keys(value)),
        _ => key.clone(),
    };
    format!("{{{}}}", fields.iter().map(inside).collect::<Vec<_>>().join(" "))
}

#[tokio::test]
async fn frames_and_entries_share_their_ids() {
    let world = two_turns().await;
    let id = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b";
    let mut session = world.start(&stream(["--permission-mode", "acceptEdits"]));
    let mut prompt = user("Change the notes");
    prompt["uuid"] = id.into();
    session.write_json(&prompt);
    session.wait_for_json(is_result);
    let output = session.finish();
    let entries = world.session();
    let said: Vec<&Value> =
        entries.iter().filter(|it| it["type"] == "user" || it["type"] == "assistant").collect();
    assert_eq!(said[0]["uuid"], id, "a prompt keeps the id its client gave it");
    let stored: Vec<&Value> = said[1..].iter().map(|it| &it["uuid"]).collect();
    let frames = output.json_lines();
    let shown = frames.iter().filter(|it| it["type"] == "user" || it["type"] == "assistant");
    assert_eq!(shown.map(|it| &it["uuid"]).collect::<Vec<_>>(), stored);
}

#[tokio::test]
async fn a_prompt_with_a_picture_is_kept_and_sent_whole() {
    let world = World::new(Step::text("A dot.")).await;
    let content = json!([
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "text", "text": "What is this?"},
    ]);
    let line = json!({"type": "user", "message": {"role": "user", "content": content}});
    assert_fine(&world.run_with_stdin(&stream([]), &format!("{line}\n")));
    let prompt = world.session().into_iter().find(|it| it["type"] == "user").unwrap();
    assert_eq!(prompt["message"]["content"], content);
    expect![[r#"
        user: {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}
        user: What is this?
    "#]]
    .assert_eq(&world.conversation());
}

#[tokio::test]
async fn long_output_goes_to_a_file_beside_the_session() {
    let steps = [Step::call("Bash", json!({"command": "cat big.txt"})), Step::text("Long.")];
    let world = World::new(steps).await;
    let line = "0123456789abcdef\n";
    world.home.write("big.txt", line.repeat(4_000));
    assert_fine(&world.print(["Show it"]));
    let text = world.last_request().tool_results().remove(0).text;
    let head: String = text.lines().take(4).collect::<Vec<_>>().join("\n");
    expect![[r#"
        <persisted-output>
        Output too large (66.4KB). Full output saved to: <home>/.claude/projects/<project>/<uuid-1>/tool-results/<toolu-1>.txt

        Preview (first 2KB):"#]].assert_eq(&world.normaliser().text(&head));
    let session = world.home.sessions().remove(0);
    let spilled: Vec<PathBuf> = files(&session.with_extension(""));
    let [file] = spilled.as_slice() else { panic!("expected one file: {spilled:?}") };
    assert!(text.contains(&file.display().to_string()), "{head}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), line.repeat(4_000));
}

/// Invariant 17 of `docs/design/session-log.md`.
#[cfg(unix)]
#[tokio::test]
async fn only_the_user_can_read_a_session() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(Step::text("ok")).await;
    assert_fine(&world.print(["hi"]));
    let mode = std::fs::metadata(&world.home.sessions()[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_session_has_the_id_it_was_given() {
    let id = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b";
    let world = World::new(Step::text("ok")).await;
    let output = world.run(&print(["hi", "--output-format", "json"]).arg(format!("--session-id={id}")));
    assert_fine(&output);
    assert_eq!(output.json_lines()[0]["session_id"], id);
    let path = &world.home.sessions()[0];
    assert_eq!(path.file_stem().unwrap(), id);
    assert!(world.session().iter().all(|it| it["sessionId"] == id));
    assert_eq!(world.last_request().header("x-claude-code-session-id"), Some(id));
}

#[tokio::test]
async fn an_id_that_cannot_be_used_is_refused() {
    let taken = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b";
    let cases = [
        (
            "not-a-uuid",
            expect![[r#"
            Error: Not a valid session id (a UUID is needed): `not-a-uuid`
        "#]],
        ),
        (
            "../../0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b",
            expect![[r#"
            Error: Not a valid session id (a UUID is needed): `../../0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b`
        "#]],
        ),
        (
            "",
            expect![[r#"
            Error: Not a valid session id (a UUID is needed): ``
        "#]],
        ),
        (
            taken,
            expect![[r#"
            Error: Session ID 0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b is already in use
            Continue it with `loci -r 0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b`, or choose another id.
        "#]],
        ),
        (
            "0B0DD0A4-9B0E-4F3E-8A53-6BD0CE0A1A2B",
            expect![[r#"
            Error: Session ID 0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b is already in use
            Continue it with `loci -r 0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b`, or choose another id.
        "#]],
        ),
    ];
    let world = World::new([]).await;
    assert_fine(&world.print(["hi", "--session-id", taken]));
    let before = world.home.only_session();
    for (id, expected) in cases {
        let [said, also] = [print(["hi"]), watched(["hi"])].map(|binary| {
            let output = world.run(&binary.arg(format!("--session-id={id}")));
            assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{id}");
            output.stderr
        });
        assert_eq!(said, also);
        expected.assert_eq(&said);
    }
    assert_eq!(world.home.only_session(), before);
    assert_eq!(world.requests().len(), 1, "nothing is asked with a bad id");
}

#[tokio::test]
async fn no_session_persistence_writes_nothing() {
    let world = World::new([
        Step::call("Read", json!({"file_path": "notes.txt"})).tool("Bash", json!({"command": "cat big.txt"})),
        Step::text("ok"),
    ])
    .await;
    world.home.write("notes.txt", "one\n");
    world.home.write("big.txt", "0123456789abcdef\n".repeat(4_000));
    let output = world.print(["hi", "--no-session-persistence", "--output-format", "json"]);
    assert_fine(&output);
    assert_eq!(output.json_lines()[0]["result"], "ok");
    assert_eq!(files(&world.home.home()), Vec::<PathBuf>::new());
}

/// Invariant 10 of `docs/design/session-log.md`.
#[tokio::test]
async fn a_home_that_cannot_be_written_is_said_once_and_the_turn_goes_on() {
    let world = World::new([
        Step::call("Read", json!({"file_path": "notes.txt"})),
        Step::text("first"),
        Step::text("second"),
    ])
    .await;
    world.home.write("notes.txt", "one\n");
    // A file where a directory must be stops root too.
    world.home.write_config("projects", "in the way");
    let mut session = world.start(&stream([]));
    for (prompt, answer) in [("one", "first"), ("two", "second")] {
        session.write_json(&user(prompt));
        assert_eq!(session.wait_for_json(is_result)["result"], answer);
    }
    let output = session.finish();
    assert_eq!(output.code, Some(0));
    let tmp = world.home.project().with_file_name("tmp");
    let ours = fs::read_dir(tmp).unwrap().next().unwrap().unwrap().path();
    let said = world.normaliser().literal(&ours.display().to_string(), "<tmp>").text(&output.stderr);
    expect![[r#"
        Failed to save the session (Not a directory (os error 20)): `<home>/.claude/projects/<project>/<uuid-1>.jsonl`
        The session is kept in memory and saving is tried again with every entry
        What could not be saved is kept in `<tmp>/unsaved/<uuid-1>.jsonl`; the next run of loci adds it to the session
    "#]].assert_eq(&said);
    expect![[r#"
        user: one
        assistant: Read {"file_path":"notes.txt"} <toolu-1>
        user: <toolu-1>: 1	one
        2	
        assistant: first
        user: two
    "#]]
    .assert_eq(&world.conversation());

    // The next run finds it all, and says so.
    fs::remove_file(world.home.config_home().join("projects")).unwrap();
    let world = world.then(Step::text("third")).await;
    let output = world.print(["three", "-c"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "third\n"));
    expect![[r#"
        Entries that an earlier run could not save are in the session now: `<home>/.claude/projects/<project>/<uuid-1>.jsonl`
    "#]]
    .assert_eq(&world.normaliser().text(&output.stderr));
    expect![[r#"
        user: one
        assistant: Read {"file_path":"notes.txt"} <toolu-1>
        user: <toolu-1>: 1	one
        2	
        assistant: first
        user: two
        assistant: second
        user: three
    "#]]
    .assert_eq(&world.conversation());
    world.session();
}

/// Returns all files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|it| it.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn entries_record_current_branch_and_directory() {
    let world = World::with_git([
        Step::call("Bash", json!({"command": "git switch -q -c other"})),
        Step::text("Switched."),
        Step::text("Still here."),
    ])
    .await;
    let mut session = world.start(&stream(["--allowedTools", "Bash"]));
    for prompt in ["Switch", "And now?"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    assert_fine(&session.finish());
    let entries = world.session();
    let branches: Vec<&Value> =
        entries.iter().map(|it| &it["gitBranch"]).filter(|it| it.is_string()).collect();
    assert_eq!((branches[0], *branches.last().unwrap()), (&json!("main"), &json!("other")));
    let cwd = world.home.project().display().to_string();
    assert!(entries.iter().all(|it| it["cwd"].is_null() || it["cwd"] == cwd.as_str()));
    assert_eq!(MODEL, entries.iter().find(|it| it["type"] == "assistant").unwrap()["message"]["model"]);
}
