//! Going on with a session: `-c`, `-r`, and what the model is then sent.

use crate::support::{
    MODEL, Pipe, World, assert_fine, control, is_result, loci, print, stream, user, watched,
};
use expect_test::{Expect, expect};
use loci_testkit::{Binary, Session, Step, TestHome};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Two prompts with everything between them that could be sent differently after a restart.
async fn eventful() -> World {
    let world = World::with_git([]).await;
    let notes = world.path("notes.txt");
    world.home.write("notes.txt", "one\ntwo\n");
    world.home.write_config("CLAUDE.md", "Be terse.\n");
    let edit = json!({"file_path": notes, "old_string": "two", "new_string": "2 \u{2028}\u{1F600}"});
    world
        .then([
            Step::text("I read.")
                .thinking("Hm.", "c2ln")
                .tool("Read", json!({"file_path": notes, "limit": "5"}))
                .tool("Glob", json!({"pattern": "*.txt"}))
                .tool("Bash", json!({"command": "ls missing"})),
            Step::call("Edit", edit),
            Step::status(500),
            Step::text("Half an").stop_reason("max_tokens"),
            Step::call("Teleport", json!({})),
            Step::text("Answered."),
            Step::call("Read", json!({"file_path": notes})),
            Step::text("Again."),
        ])
        .await
}

const FIRST: &str = "Change the notes";
const SECOND: &str = "And now?";

/// Calls run one after the other, so that their results come in the same order in every run.
fn orderly(binary: Binary) -> Binary {
    binary.args(["--permission-mode", "acceptEdits"]).env("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", "1")
}

/// The bodies of all requests, with temporary paths replaced.
fn bodies(world: &World) -> Vec<String> {
    let mut normaliser = world.normaliser();
    world.requests().iter().map(|it| normaliser.text(std::str::from_utf8(&it.body).unwrap())).collect()
}

/// Invariant 6 of `docs/design/session-log.md`.
#[tokio::test]
async fn a_resumed_session_sends_what_an_uninterrupted_one_would() {
    let whole = eventful().await;
    let mut session = whole.start(&orderly(stream([])));
    for prompt in [FIRST, SECOND] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    assert_fine(&session.finish());
    let expected = bodies(&whole);
    assert_eq!(expected.len(), 8);

    for way in ["-c", "-r"] {
        let world = eventful().await;
        assert_fine(&world.run(&orderly(print([FIRST]))));
        let id = world.home.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned();
        let again = if way == "-c" { print([SECOND, "-c"]) } else { print([SECOND, "-r", &id]) };
        assert_fine(&world.run(&orderly(again)));
        for (n, (ours, uninterrupted)) in bodies(&world).iter().zip(&expected).enumerate() {
            assert_same(ours, uninterrupted, &format!("request {n} after {way}"));
        }
        world.session();
    }
}

/// Asserts that two long texts are equal; if not, shows where they part.
fn assert_same(ours: &str, theirs: &str, what: &str) {
    let part = ours.bytes().zip(theirs.bytes()).position(|(a, b)| a != b);
    let part = part.unwrap_or(ours.len().min(theirs.len()));
    let around = |text: &str| {
        String::from_utf8_lossy(&text.as_bytes()[part.saturating_sub(80)..(part + 80).min(text.len())])
            .into_owned()
    };
    assert!(ours == theirs, "{what} differs at {part}:\n{}\n{}", around(ours), around(theirs));
}

/// Invariant 6 of `docs/design/session-log.md`.
#[tokio::test]
async fn results_that_came_out_of_order_are_sent_in_that_order_ever_after() {
    let calls =
        Step::call("Bash", json!({"command": "cat held.pipe"})).tool("Glob", json!({"pattern": "*.txt"}));
    let world = World::new([calls, Step::text("one"), Step::text("two")]).await;
    let held = Pipe::new(&world.home, "held.pipe");
    let mut session = world.start_closed(&watched(["first"]));
    let mut writer = held.reader_came();
    session.wait_for_json(|frame| frame["type"] == "user");
    writer.write_all(b"at last\n").unwrap();
    drop(writer);
    assert_fine(&session.finish());
    assert_fine(&world.print(["second", "-c"]));
    expect![[r#"
        user: first
        assistant: Bash {"command":"cat held.pipe"} <toolu-1>
        assistant: Glob {"pattern":"*.txt"} <toolu-2>
        user: <toolu-2>: No files found
        user: <toolu-1>: at last
        assistant: one
        user: second
    "#]]
    .assert_eq(&world.conversation());
    let requests = world.requests();
    let unmarked = |n: usize| {
        let text = serde_json::to_string(requests[n].messages()).unwrap();
        text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    let before = unmarked(1);
    assert!(unmarked(2).starts_with(before.strip_suffix(']').unwrap()), "the prefix changed");
}

/// Invariant 1 of `docs/design/session-log.md`.
#[tokio::test]
async fn a_session_goes_on_in_its_own_file_with_its_own_model() {
    let world = World::new([Step::text("one"), Step::text("two"), Step::text("three")]).await;
    assert_fine(&world.print(["first"]));
    let file = world.home.sessions().remove(0);
    let before = fs::read(&file).unwrap();
    assert_fine(&world.run(&loci().args(["-p", "second", "-c"])));
    let after = fs::read(&file).unwrap();
    assert!(after.starts_with(&before), "what was written stays as it is");
    assert_fine(&world.run(&print(["third", "--resume"]).arg(file.display().to_string())));
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user first
        3 <- 2: assistant one
        4 cost-state
        5 last-prompt -> 3
        6 queue-operation enqueue
        7 queue-operation dequeue
        8 <- 3: user second
        9 <- 8: assistant two
        10 cost-state
        11 last-prompt -> 9
        12 queue-operation enqueue
        13 queue-operation dequeue
        14 <- 9: user third
        15 <- 14: assistant three
        16 cost-state
        17 last-prompt -> 15
    "#]]
    .assert_eq(&world.sketch());
    let models: Vec<Value> = world.requests().iter().map(|it| it.json["model"].clone()).collect();
    assert_eq!(models, [MODEL; 3]);
}

/// Class 15: commands in the background end with the session, and whoever goes on with it is told so, once.
#[tokio::test]
async fn ended_background_tasks_are_reported_once_on_resume() {
    let start = Step::call("Bash", json!({"command": "sleep 600", "run_in_background": true}));
    let world = World::new([start, Step::text("It runs."), Step::text("I see."), Step::text("Still.")]).await;
    assert_fine(&world.print(["begin", "--allowedTools", "Bash"]));
    for prompt in ["and now?", "and now??"] {
        assert_fine(&world.run(&loci().args(["-p", prompt, "-c"])));
    }
    let notices = |body: &str| body.matches("<task-notification>").count();
    let bodies = bodies(&world);
    assert_eq!(bodies.iter().map(|body| notices(body)).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert!(bodies[2].contains(": sleep 600\\n"), "{}", bodies[2]);
    let session = fs::read_to_string(&world.home.sessions()[0]).unwrap();
    assert!(session.contains(r#""origin":{"kind":"task-notification"}"#));
    world.model.requests_valid().unwrap();
}

#[tokio::test]
async fn what_a_session_cost_before_counts_when_its_cost_is_asked_for() {
    let dear = |text: &str| Step::text(text).usage(1_000_000, 0, 0, 0);
    let world = World::new([dear("one"), dear("two")]).await;
    assert_fine(&world.print(["first"]));
    let mut session = world.start(&stream(["-c"]));
    let ask = |session: &mut Session, n: &str| {
        session.write_json(&control(n, json!({"subtype": "get_usage"})));
        let answer = session.wait_for_json(|frame| frame["response"]["request_id"] == n);
        answer["response"]["response"]["session"].clone()
    };
    assert_eq!(ask(&mut session, "before")["total_cost_usd"], 3.0);
    session.write_json(&user("second"));
    let result = session.wait_for_json(is_result);
    assert_eq!(result["total_cost_usd"], 6.0, "a result tells what the session used");
    assert_eq!(result["modelUsage"][MODEL]["inputTokens"], 2_000_000);
    let usage = ask(&mut session, "after");
    assert_eq!(usage["total_cost_usd"], 6.0);
    assert_eq!(usage["model_usage"][MODEL]["inputTokens"], 2_000_000);
    assert_fine(&session.finish());
}

/// The mode that a run's first frame names.
fn mode_of(world: &World, binary: &Binary) -> Value {
    let output = world.run(binary);
    assert_eq!(output.code, Some(0), "{output:?}");
    output.json_lines()[0]["permissionMode"].clone()
}

#[tokio::test]
async fn a_session_goes_on_in_its_mode_unless_that_is_one_to_choose_anew() {
    for (before, flag, after) in [
        ("acceptEdits", None, "acceptEdits"),
        ("dontAsk", None, "dontAsk"),
        ("default", None, "default"),
        ("plan", None, "default"),
        ("acceptEdits", Some("dontAsk"), "dontAsk"),
    ] {
        let world = World::new([]).await;
        assert_fine(&world.print(["hi", "--permission-mode", before]));
        for more in [["-c"].as_slice(), &["-c", "--fork-session"]] {
            let flag = flag.map(|flag| ["--permission-mode", flag]);
            let again = watched(["again"]).args(more.iter().copied()).args(flag.into_iter().flatten());
            assert_eq!(mode_of(&world, &again), after, "{before} {flag:?} {more:?}");
        }
    }
}

#[tokio::test]
async fn foreign_session_file_cannot_choose_the_mode() {
    let world = World::new([]).await;
    assert_fine(&world.print(["hi", "--permission-mode", "acceptEdits"]));
    let file = world.home.sessions().remove(0);
    let elsewhere = world.home.project().join(file.file_name().unwrap());
    fs::rename(&file, &elsewhere).unwrap();
    let again = watched(["again", "-r", &elsewhere.display().to_string()]);
    assert_eq!(mode_of(&world, &again), "default");
}

#[tokio::test]
async fn continue_takes_the_newest_session_of_this_directory() {
    let world = World::new([]).await;
    // With none, a fresh session starts.
    assert_fine(&world.print(["alpha", "-c"]));
    assert_fine(&world.print(["beta"]));
    let elsewhere = world.home.home();
    assert_fine(&world.run(&print(["gamma"]).cwd(&elsewhere)));
    assert_eq!(world.home.sessions().len(), 3);
    assert_fine(&world.print(["delta", "-c"]));
    expect![[r#"
        user: beta
        assistant: done
        user: delta
    "#]]
    .assert_eq(&world.conversation());
}

/// Invariant 16 of `docs/design/session-log.md`.
#[tokio::test]
async fn resume_without_prompt_changes_no_file() {
    let world = World::new([]).await;
    assert_fine(&world.print(["hi"]));
    let file = world.home.sessions().remove(0);
    let stand = |path: &Path| (fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap());
    let before = stand(&file);

    assert_fine(&world.run(&stream(["-c"])));
    let output = world.print(["-c"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert_eq!(stand(&file), before);
    assert_eq!(world.home.sessions().len(), 1);
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn a_session_that_is_not_there_is_an_error_result() {
    let world = World::new([]).await;
    let unknown = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b";
    for name in [unknown, "no such title", "missing.jsonl"] {
        let output = world.run(&watched(["hi", "-r", name]));
        assert_eq!(output.code, Some(1));
        let frames = output.json_lines();
        let [result] = frames.as_slice() else { panic!("expected one frame: {frames:?}") };
        assert_eq!(
            (&result["subtype"], &result["is_error"]),
            (&json!("error_during_execution"), &json!(true))
        );
        assert!(result["errors"][0].as_str().unwrap().contains(name), "{result}");
        let output = world.run(&print(["hi", "-r", name]));
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
        assert!(output.stderr.contains(name), "{}", output.stderr);
    }
    check_complaint(
        &world,
        unknown,
        expect![[r#"
        Error: No conversation found with session ID: <uuid-1>
        Give the id or title of a saved conversation or the path of its .jsonl file; `loci sessions list --all` shows them
    "#]],
    );
    assert_eq!(world.requests().len(), 0);
}

fn check_complaint(world: &World, name: &str, expected: Expect) {
    let output = world.run(&print(["hi", "-r", name]));
    expected.assert_eq(&world.normaliser().text(&output.stderr));
}

#[tokio::test]
async fn what_the_official_program_wrote_can_be_continued() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    let mut names: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path()).collect();
    names.retain(|it| it.extension().is_some_and(|ext| ext == "jsonl"));
    assert!(names.len() >= 20);
    let world = World::new([]).await;
    for fixture in names {
        let (file, id) = place(&world.home, &fixture);
        let before = fs::read(&file).unwrap();
        let output = world.print(["Please go on.", "-r", &id]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "done\n"), "{}", fixture.display());
        assert!(world.last_request().last_user_text().ends_with("Please go on."), "{}", fixture.display());
        assert!(fs::read(&file).unwrap().starts_with(&before), "{}", fixture.display());
    }
    world.model.requests_valid().unwrap();
}

/// Class 6: entries of a wrong shape cost themselves, not the session.
#[tokio::test]
async fn entries_of_a_wrong_shape_do_not_stop_a_session() {
    let world = World::new([Step::text("one")]).await;
    assert_fine(&world.print(["first"]));
    let file = world.home.sessions().remove(0);
    let whole = fs::read_to_string(&file).unwrap();
    let mut said = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said = said.rfind(|entry| entry["type"] == "assistant").unwrap();
    let (tail, session) = (said["uuid"].clone(), said["sessionId"].clone());
    let message = |role: &str, content: Value| json!({"type": role, "message": {"role": role, "id": "msg_x", "content": content}});
    let calls = |input: Value| {
        message("assistant", json!([{"type": "tool_use", "id": "toolu_x", "name": "Read", "input": input}]))
    };
    let answers =
        |id: Value| message("user", json!([{"type": "tool_result", "tool_use_id": id, "content": "x"}]));
    let shapes = [
        json!({"type": "attachment"}),
        json!({"type": "attachment", "attachment": null}),
        json!({"type": "attachment", "attachment": "diagnostics"}),
        json!({"type": "attachment", "attachment": {"type": "diagnostics", "files": 7}}),
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": {"a": 1}}}),
        json!({"type": "attachment", "attachment": {"type": "agent_listing_delta", "addedLines": "no list"}}),
        message("user", json!(42)),
        message("user", json!([null, 7, {"type": 3}, {"text": "no type"}])),
        message("assistant", json!({"type": "text"})),
        calls(json!("not an object")),
        calls(json!(["a", "list"])),
        answers(json!(17)),
        message("user", json!([{"type": "tool_use", "id": "toolu_x", "name": "Read", "input": {}}])),
        message(
            "assistant",
            json!([{"type": "tool_use", "id": "toolu_x", "input": {}}, {"type": "text", "text": "hm"}]),
        ),
        message("assistant", json!([{"type": "tool_result", "tool_use_id": "toolu_x", "content": "x"}])),
        json!({"type": "system", "subtype": 5, "content": {}}),
        json!({"type": "file-history-snapshot", "snapshot": "none"}),
        json!({"type": "user"}),
    ];
    for (idx, mut shape) in shapes.into_iter().enumerate() {
        shape["uuid"] = json!(format!("00000000-0000-4000-8000-{idx:012}"));
        shape["parentUuid"] = tail.clone();
        shape["sessionId"] = session.clone();
        shape["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        fs::write(&file, format!("{whole}{shape}\n")).unwrap();
        let output = world.print(["Please go on.", "-c"]);
        assert_eq!(output.code, Some(0), "{shape}: {output:?}");
        assert!(world.last_request().last_user_text().ends_with("Please go on."), "{shape}");
    }
    world.model.requests_valid().unwrap();
}

/// Puts a fixture where a session of the project lies; returns the file and its id.
fn place(home: &TestHome, fixture: &Path) -> (PathBuf, String) {
    let text = fs::read_to_string(fixture).unwrap();
    let id = text.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let id = id.filter_map(|it| Some(it["sessionId"].as_str()?.to_owned())).next().unwrap();
    let slug = home.project().display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    (home.write_config(format!("projects/{slug}/{id}.jsonl"), text), id)
}

/// The crash came after the model had thought and before it had said anything: what the person asked is asked again.
#[tokio::test]
async fn prompt_that_was_only_thought_about_stays_in_the_conversation() {
    let world = World::new([Step::new().thinking("Hm.", "sig").then_text("Port 9000.")]).await;
    assert_fine(&world.run(&print(["which port is it?"])));
    let file = world.home.sessions().remove(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let is_after_thinking = |line: &&str| line.contains("Port 9000.");
    let kept: Vec<&str> = text.lines().take_while(|line| !is_after_thinking(line)).collect();
    assert!(kept.last().unwrap().contains("\"thinking\""), "{kept:?}");
    std::fs::write(&file, kept.join("\n") + "\n").unwrap();
    let world = world.then([Step::text("It is 9000.")]).await;
    let output = world.run(&print(["-c", "are you there?"]));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "It is 9000.\n"), "{output:?}");
    let messages = serde_json::to_string(world.last_request().messages()).unwrap();
    assert!(messages.contains("which port is it?") && messages.contains("are you there?"), "{messages}");
}

/// Makes a session that ends with the result of a call, which nobody has answered.
async fn cut_short() -> World {
    let world =
        World::new([Step::call("Bash", json!({"command": "echo port 9000"})), Step::text("9000.")]).await;
    assert_fine(&world.print(["which port is it?"]));
    let file = world.home.sessions().remove(0);
    let text = fs::read_to_string(&file).unwrap();
    let n_kept = text.lines().position(|line| line.contains("\"tool_result\"")).unwrap() + 1;
    let kept: Vec<&str> = text.lines().take(n_kept).collect();
    fs::write(&file, kept.join("\n") + "\n").unwrap();
    world.then([Step::text("It is 9000.")]).await
}

#[tokio::test]
async fn turn_that_was_cut_short_goes_on_without_a_prompt_where_a_variable_says_so() {
    let on = ("CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "1");
    let own = ("CLAUDE_CODE_RESUME_PROMPT", "Finish it.");
    for (vars, expected) in [
        (vec![on], "Continue from where you left off."),
        (vec![on, own], "Finish it."),
        (vec![on, own, ("CLAUDE_CODE_RESUME_INTERRUPTED_TURN_MAX_AGE_MS", "soon")], "Finish it."),
    ] {
        let world = cut_short().await;
        let with = |binary: Binary| vars.iter().fold(binary, |it, (name, value)| it.env(name, *value));
        let output = world.run(&with(print(["-c"])));
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "It is 9000.\n"), "{output:?}");
        let messages = serde_json::to_string(world.last_request().messages()).unwrap();
        assert!(messages.contains(expected) && messages.contains("port 9000"), "{messages}");
        assert!(!messages.contains("No response requested."), "the turn is still open: {messages}");
        // It is over now, so there is nothing to go on with.
        assert_eq!(world.run(&with(print(["-c"]))).code, Some(1));
    }
    // A client that sends no prompt has it go on, too, after the first words of both.
    let world = cut_short().await;
    let output = world.run(&stream(["-c"]).env(on.0, on.1));
    assert_fine(&output);
    assert!(output.json_lines().iter().any(|frame| frame["result"] == "It is 9000."), "{output:?}");
}

#[tokio::test]
async fn turn_that_was_cut_short_waits_where_it_is_too_old_or_nobody_asks() {
    let world = cut_short().await;
    for vars in [
        &[][..],
        &[("CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "0")],
        &[
            ("CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "1"),
            ("CLAUDE_CODE_RESUME_INTERRUPTED_TURN_MAX_AGE_MS", "3600000"),
        ],
    ] {
        let file = world.home.sessions().remove(0);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("\"timestamp\":\"20", "\"timestamp\":\"19")).unwrap();
        let binary = vars.iter().fold(print(["-c"]), |it, (name, value)| it.env(name, *value));
        let output = world.run(&binary);
        assert_eq!(output.code, Some(1), "{vars:?} {output:?}");
    }
    assert_eq!(world.requests().len(), 0);
}
