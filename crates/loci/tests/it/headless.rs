//! What goes in and comes out without a terminal: formats, flags, standard input, a reader that is slow or gone.

use crate::support::{
    Pipe, World, assert_ended, assert_fine, control, frames, is_result, loci, print, shape, stream, user,
    watched,
};
use expect_test::{Expect, expect, expect_file};
use loci_testkit::{Binary, Gate, Step};
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

/// A turn with a call in it.
fn looking() -> [Step; 2] {
    let first = Step::text("Let me see.").thinking("Hm.", "c2ln").tool("Read", json!({"file_path": "a.txt"}));
    [first, Step::text("It says hi.").chunk(5)]
}

async fn looking_world() -> World {
    let world = World::new(looking()).await;
    world.home.write("a.txt", "hi\n");
    world
}

#[tokio::test]
async fn text_output_is_the_answer() {
    let world = looking_world().await;
    let output = world.print(["What does a.txt say?"]);
    assert_fine(&output);
    assert_eq!(output.stdout, "It says hi.\n");
}

#[tokio::test]
async fn json_is_one_result() {
    let world = looking_world().await;
    let output = world.print(["What does a.txt say?", "--output-format", "json"]);
    assert_fine(&output);
    expect_file!["golden/result.json"].assert_eq(&frames(&output.json_lines(), &mut world.normaliser()));
}

#[tokio::test]
async fn stream_json_is_a_frame_a_line() {
    let world = looking_world().await;
    let output = world.run(&watched(["What does a.txt say?"]));
    assert_fine(&output);
    assert!(output.stdout.ends_with("}\n"));
    expect_file!["golden/stream.jsonl"].assert_eq(&frames(&output.json_lines(), &mut world.normaliser()));
}

#[tokio::test]
async fn partial_messages_come_in_order() {
    let world = looking_world().await;
    let output = world.run(&watched(["What does a.txt say?", "--include-partial-messages"]));
    assert_fine(&output);
    let lines = output.json_lines();
    expect![[r#"
        system init
        system status requesting
        stream_event message_start
        stream_event content_block_start
        system thinking_tokens
        stream_event content_block_delta thinking_delta
        stream_event content_block_delta signature_delta
        stream_event content_block_stop
        assistant (thinks Hm.; signed c2ln)
        stream_event content_block_start
        stream_event content_block_delta text_delta
        stream_event content_block_stop
        assistant Let me see.
        stream_event content_block_start
        stream_event content_block_delta input_json_delta
        stream_event content_block_delta input_json_delta
        stream_event content_block_stop
        assistant Read {"file_path":"a.txt"} <toolu-1>
        stream_event message_delta
        stream_event message_stop
        user <toolu-1>: 1	hi
        2	
        system status requesting
        stream_event message_start
        stream_event content_block_start
        stream_event content_block_delta text_delta
        stream_event content_block_delta text_delta
        stream_event content_block_delta text_delta
        stream_event content_block_stop
        assistant It says hi.
        stream_event message_delta
        stream_event message_stop
        result success completed
    "#]]
    .assert_eq(&world.normaliser().text(&shape(&lines)));
    let starts = lines.iter().filter(|it| it["event"]["type"] == "message_start");
    assert!(starts.clone().count() == 2 && starts.clone().all(|it| it["ttft_ms"].is_number()));
    let text: String = lines.iter().filter_map(|it| it["event"]["delta"]["text"].as_str()).collect();
    assert_eq!(text, "Let me see.It says hi.");
}

#[tokio::test]
async fn prompts_are_echoed_when_that_is_asked() {
    let world = World::new([]).await;
    let mut named = user("first");
    named["uuid"] = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b".into();
    let lines = format!("{named}\n{}\n", user("second"));
    let output = world.run_with_stdin(&stream(["--replay-user-messages"]), &lines);
    assert_fine(&output);
    let replays: Vec<Value> = output.json_lines().into_iter().filter(|it| it["isReplay"] == true).collect();
    expect![[r#"
        {"type":"user","message":{"role":"user","content":"first"},"parent_tool_use_id":null,"timestamp":"<time>","isReplay":true,"session_id":"<uuid-1>","uuid":"<uuid-2>"}
        {"type":"user","message":{"role":"user","content":"second"},"parent_tool_use_id":null,"timestamp":"<time>","isReplay":true,"session_id":"<uuid-1>","uuid":"<uuid-3>"}
    "#]].assert_eq(&frames(&replays, &mut world.normaliser()));
    assert_eq!(replays[0]["uuid"], named["uuid"]);
}

#[tokio::test]
async fn each_prompt_is_a_turn() {
    let world = World::new([Step::text("one"), Step::text("two"), Step::text("three")]).await;
    let blocks =
        json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "C"}]}});
    let noise = json!({"type": "keep_alive"});
    let future = json!({"type": "from_the_future", "n": 1});
    let lines = format!("{}\n\n{noise}\n{}\n{future}\n{blocks}", user("A"), user("B"));
    let output = world.run_with_stdin(&stream([]), &lines);
    assert_fine(&output);
    expect![[r#"
        system init
        assistant one
        result success completed
        system init
        assistant two
        result success completed
        system init
        assistant three
        result success completed
    "#]]
    .assert_eq(&shape(&output.json_lines()));
    expect![[r#"
        user: A
        assistant: one
        user: B
        assistant: two
        user: C
    "#]]
    .assert_eq(&world.conversation());
}

#[tokio::test]
async fn a_prompt_during_a_turn_waits_for_its_end() {
    let gate = Gate::new();
    let world = World::new([Step::text("one").wait_for(gate.clone()), Step::text("two")]).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("A"));
    gate.reached().await;
    session.write_json(&user("B"));
    session.close_stdin();
    gate.release();
    let output = session.finish();
    assert_fine(&output);
    expect![[r#"
        system init
        assistant one
        result success completed
        system init
        assistant two
        result success completed
    "#]]
    .assert_eq(&shape(&output.json_lines()));
    expect![[r#"
        user: A
        assistant: one
        user: B
    "#]]
    .assert_eq(&world.conversation());
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user A
        3 <- 2: assistant one
        4 cost-state
        5 last-prompt -> 3
        6 queue-operation enqueue
        7 queue-operation dequeue
        8 <- 3: user B
        9 <- 8: assistant two
        10 cost-state
        11 last-prompt -> 9
    "#]]
    .assert_eq(&world.sketch());
}

#[tokio::test]
async fn stream_input_without_prompt_writes_nothing() {
    let world = World::new([]).await;
    let output = world.run(&stream([]));
    assert_fine(&output);
    assert_eq!(output.stdout, "");
    assert_eq!(world.home.sessions().len(), 0);
}

#[tokio::test]
async fn a_line_that_is_not_json_ends_the_run() {
    let gate = Gate::new();
    let world = World::new([Step::text("one").wait_for(gate.clone()), Step::text("two")]).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("A"));
    gate.reached().await;
    session.write_line("nonsense");
    let output = session.finish();
    assert_eq!(output.code, Some(1));
    assert!(!output.json_lines().iter().any(is_result));
    expect![[r#"
        A line on standard input is not JSON: expected ident at line 1 column 2: `nonsense`
    "#]]
    .assert_eq(&output.stderr);
    let world = world.then(Step::text("Going on.")).await;
    assert_fine(&world.print(["go on", "-c"]));
    world.session();
}

#[tokio::test]
async fn piped_stdin_is_added_to_the_prompt() {
    let cases = [
        (Some("Explain"), "an error\n", "Explain\nan error\n"),
        (Some("Explain"), "", "Explain"),
        (None, "an error\n", "an error\n"),
        (None, "\u{feff}Grüße \u{1F600}", "\u{feff}Grüße \u{1F600}"),
    ];
    for (argument, stdin, expected) in cases {
        let world = World::new([]).await;
        let output = world.run_with_stdin(&print([]).args(argument), stdin);
        assert_fine(&output);
        let prompt = world.session().into_iter().find(|it| it["type"] == "user").unwrap();
        assert_eq!(prompt["message"]["content"], expected);
    }
}

/// A pipe that nobody writes to and nobody closes is not waited for beside a prompt.
#[tokio::test]
async fn silent_stdin_is_reported_and_the_prompt_runs_without_it() {
    let world = World::new(Step::text("answer")).await;
    let mut session = world.start(&print(["hi"]).env("LOCI_STDIN_WAIT_MS", "50"));
    assert_eq!(session.next_line().as_deref(), Some("answer"), "standard input is still open");
    let output = session.finish();
    assert_eq!(output.code, Some(0), "{output:?}");
    let notice = "Nothing came on standard input for 0.05 seconds: going on without it";
    assert!(output.stderr.starts_with(notice), "{output:?}");
}

/// Where standard input is the only prompt there can be, it is waited for, and that is said.
#[tokio::test]
async fn slow_stdin_without_a_prompt_is_waited_for() {
    let world = World::new(Step::text("answer")).await;
    let mut session = world.start(&print([]).env("LOCI_STDIN_WAIT_MS", "0"));
    session.write_line("late prompt");
    session.close_stdin();
    let output = session.finish();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "answer\n"), "{output:?}");
    assert!(world.last_request().json["messages"].to_string().contains("late prompt"));
}

#[tokio::test]
async fn oversized_stdin_is_refused() {
    let world = World::new([]).await;
    let most = "x".repeat(10 * 1024 * 1024);
    assert_refused(
        &world,
        print([]),
        &format!("{most}x"),
        expect![[r#"
        Error: Standard input is larger than 10 MB
        Save it to a file and name the file in the prompt.
    "#]],
    );
    assert_eq!(world.model.requests().len(), 0);
}

/// Asserts that a run fails before it starts: exit 1, an explanation, nothing on standard output.
fn assert_refused(world: &World, binary: Binary, stdin: &str, expected: Expect) {
    let output = world.run_with_stdin(&binary, stdin);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
    expected.assert_eq(&world.normaliser().text(&output.stderr));
}

#[tokio::test]
async fn impossible_flag_combinations_are_refused() {
    let cases: [(&str, Expect); 19] = [
        (
            "-p hi --output-format stream-json",
            expect![[r#"
            Error: --output-format=stream-json needs --verbose when used with --print
        "#]],
        ),
        (
            "-p hi --input-format stream-json",
            expect![[r#"
            Error: --input-format=stream-json needs --output-format=stream-json
        "#]],
        ),
        (
            "-p hi --input-format stream-json --output-format json",
            expect![[r#"
            Error: --input-format=stream-json needs --output-format=stream-json
        "#]],
        ),
        (
            "-p hi --replay-user-messages",
            expect![[r#"
            Error: --replay-user-messages needs stream-json for both --input-format and --output-format
        "#]],
        ),
        (
            "-p hi --replay-user-messages --output-format stream-json --verbose",
            expect![[r#"
            Error: --replay-user-messages needs stream-json for both --input-format and --output-format
        "#]],
        ),
        (
            "-p hi --include-partial-messages",
            expect![[r#"
            Error: --include-partial-messages needs --output-format=stream-json
        "#]],
        ),
        (
            "-p hi --forward-subagent-text",
            expect![[r#"
            Error: --forward-subagent-text needs --output-format=stream-json
        "#]],
        ),
        (
            "-p hi --prompt-suggestions --output-format json",
            expect![[r#"
            Error: --prompt-suggestions needs --output-format=stream-json
        "#]],
        ),
        (
            "-p",
            expect![[r#"
            Error: There is no prompt
            Give one as an argument, `loci -p "your prompt"`, or pipe one in.
        "#]],
        ),
        (
            "-p hi --quux",
            expect![[r#"
            error: unexpected argument '--quux' found

              tip: to pass '--quux' as a value, use '-- --quux'

            Usage: loci --print <PROMPT>

            For more information, try '--help'.
        "#]],
        ),
        (
            "-p hi --teleport abc",
            expect![[r#"
            Error: --teleport takes over a session of the cloud, which loci cannot read; `loci -r` lists those here
        "#]],
        ),
        (
            "-p hi --output-format xml",
            expect![[r#"
            error: invalid value 'xml' for '--output-format <FORMAT>'
              [possible values: text, json, stream-json]

            For more information, try '--help'.
        "#]],
        ),
        (
            "-p hi --permission-mode yolo",
            expect![[r#"
                error: invalid value 'yolo' for '--permission-mode <MODE>': Unknown permission mode: `yolo` (expected default, acceptEdits, plan, auto, dontAsk or bypassPermissions)

                For more information, try '--help'.
            "#]],
        ),
        (
            "-p hi --max-turns 0",
            expect![[r#"
            Error: --max-turns needs a number above 0
        "#]],
        ),
        (
            "-p hi --max-turns many",
            expect![[r#"
            error: invalid value 'many' for '--max-turns <N>': invalid digit found in string

            For more information, try '--help'.
        "#]],
        ),
        (
            "-p hi --max-budget-usd -1",
            expect![[r#"
            error: unexpected argument '-1' found

              tip: to pass '-1' as a value, use '-- -1'

            Usage: loci [OPTIONS] [PROMPT]
                   loci <COMMAND>

            For more information, try '--help'.
        "#]],
        ),
        (
            "-p hi -c --session-id 0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b",
            expect![[r#"
            Error: --session-id chooses the id of a new session; with --continue or --resume it needs --fork-session
        "#]],
        ),
        (
            "-p hi --system-prompt a --system-prompt-file b",
            expect![[r#"
            error: the argument '--system-prompt <TEXT>' cannot be used with '--system-prompt-file <FILE>'

            Usage: loci --print --system-prompt <TEXT> <PROMPT>

            For more information, try '--help'.
        "#]],
        ),
        (
            "-p hi --system-prompt-file missing.md",
            expect![[r#"
            Error: Failed to read prompt file: `missing.md`: No such file or directory (os error 2)
        "#]],
        ),
    ];
    let world = World::new([]).await;
    for (line, expected) in cases {
        assert_refused(&world, loci().args(line.split(' ')), "", expected);
    }
    assert_eq!(world.model.requests().len(), 0);
    assert_eq!(world.home.sessions().len(), 0);
}

#[tokio::test]
async fn version_flag_prints_the_version() {
    let world = World::new([]).await;
    for flag in ["-v", "--version"] {
        let output = world.run(&loci().arg(flag));
        assert_fine(&output);
        let (number, rest) = output.stdout.split_once(' ').unwrap();
        assert!(number.split('.').filter(|it| it.parse::<u32>().is_ok()).count() == 3, "{}", output.stdout);
        assert!(rest.starts_with("(Claude Code"), "{}", output.stdout);
    }
    let output = world.run(&loci().arg("--help"));
    assert_fine(&output);
    assert!(output.stdout.contains("--output-format"));
}

#[tokio::test]
async fn very_long_answer_is_printed_whole() {
    let text = "0123456789abcdef".repeat(2 * 1024 * 64);
    let world = World::new(Step::text(text.clone()).chunk(64 * 1024)).await;
    let mut child = spawn(&world, &["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    // Nothing is read until all has been sent, which is far more than a pipe holds.
    let mut stdout = child.stdout.take().unwrap();
    let mut read = [0; 1];
    stdout.read_exact(&mut read).unwrap();
    world.model.wait_for_requests(1).await;
    let mut rest = String::new();
    // A byte at a time at first, so that the writer meets a full pipe again and again.
    let mut slow = BufReader::with_capacity(1, &mut stdout);
    slow.by_ref().take(4096).read_to_string(&mut rest).unwrap();
    slow.read_to_string(&mut rest).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success());
    let whole = format!("{{{rest}");
    let result: Value = serde_json::from_str(whole.lines().last().unwrap()).unwrap();
    assert!(result["type"] == "result" && result["result"] == text.as_str(), "the end was lost");
}

#[tokio::test]
async fn a_slow_reader_loses_nothing_and_delays_nothing() {
    let long = |n: usize| {
        let text = format!("{n} {}", "0123456789abcdef".repeat(16 * 1024));
        Step::text(text).chunk(64 * 1024).tool("Bash", json!({"command": "ls"}))
    };
    let steps: Vec<Step> = (0..4).map(long).chain([Step::text("Done.")]).collect();
    let world = World::new(steps).await;
    let mut child = spawn(&world, &["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    // Nothing is read until the whole turn is on disk, which is far more than a pipe holds.
    let is_over = || {
        let file = world.home.sessions().pop();
        file.is_some_and(|file| std::fs::read_to_string(file).unwrap().contains("\"type\":\"last-prompt\""))
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_over() {
        assert!(std::time::Instant::now() < deadline, "the turn waits for its reader");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    let frames: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_message = |value: &&Value| value["type"] == "assistant" || value["type"] == "user";
    let shown: Vec<&Value> = frames.iter().filter(is_message).map(|frame| &frame["uuid"]).collect();
    let entries = world.session();
    let stored: Vec<&Value> = entries.iter().filter(is_message).skip(1).map(|entry| &entry["uuid"]).collect();
    assert_eq!(shown, stored, "every entry after the prompt was shown");
    assert_eq!(frames.last().unwrap()["result"], "Done.");
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_run_quietly() {
    for args in [
        &["-p", "hi", "--output-format", "stream-json", "--verbose"][..],
        &["-p", "hi", "--output-format", "json"],
        &["-p", "hi"],
    ] {
        let gate = Gate::new();
        let steps = [Step::text("one").wait_for(gate.clone()), Step::text("two")];
        let world = World::new(steps).await;
        let mut child = spawn(&world, args);
        gate.reached().await;
        drop(child.stdout.take());
        gate.release();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(said, "", "{args:?}");
        assert_eq!(status.code(), Some(141), "{args:?}");
        world.session();
        let world = world.then(Step::text("three")).await;
        assert_fine(&world.print(["go on", "-c"]));
        let sent = world.conversation();
        assert!(sent.contains("user: hi\n") && sent.contains("user: go on\n"), "{args:?}: {sent}");
    }
}

#[tokio::test]
async fn closed_stdout_stops_running_commands() {
    let calls = Step::call("Bash", json!({"command": "sleep 600 > alive.pipe"}));
    let world = World::new([Step::call("Bash", json!({"command": "ls"})), calls]).await;
    let alive = Pipe::new(&world.home, "alive.pipe");
    let args = ["-p", "hi", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
    let mut child = spawn(&world, &[&args[..], &["--allowedTools", "Bash,Edit(*.pipe)"]].concat());
    let alive = alive.writer_came();
    drop(child.stdout.take());
    // The next thing it would say tells it that nobody reads. It is made to say it again and again: a process that
    // another test starts at this moment holds a copy of the pipe until it becomes another program.
    let mut stdin = child.stdin.take().unwrap();
    let question = format!("{}\n", control("q", json!({"subtype": "mcp_status"})));
    std::thread::spawn(move || {
        let pause = std::time::Duration::from_millis(100);
        (0..200)
            .take_while(|_| stdin.write_all(question.as_bytes()).is_ok())
            .for_each(|_| std::thread::sleep(pause));
    });
    assert_ended(alive);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(141));
    world.session();
}

#[tokio::test]
async fn sigterm_ends_the_run_while_stdout_is_blocked() {
    let long =
        Step::text("0123456789abcdef".repeat(64 * 1024)).tool("Bash", json!({"command": "cat held.pipe"}));
    let world = World::new(long).await;
    let held = Pipe::new(&world.home, "held.pipe");
    let mut child = spawn(&world, &["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    // By now far more was said than a pipe holds, and nobody reads it.
    let _writer = held.reader_came();
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || sender.send(child.wait()));
    let status = receiver.recv_timeout(std::time::Duration::from_secs(20)).expect("it ends").unwrap();
    drop(stdout);
    assert_eq!(status.code(), Some(143));
    world.session();
}

/// Starts the binary with its own pipes, for what a [`loci_testkit::Session`] cannot do.
fn spawn(world: &World, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loci"));
    command.args(args).current_dir(world.home.project());
    command.env_clear().envs(world.home.env_vars(world.model.base_url()));
    let stdin = if args.contains(&"--input-format") { Stdio::piped() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[tokio::test]
async fn a_blank_prompt_is_answered_and_not_sent() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut session = world.start(&stream([]));
    for (prompt, is_error) in [
        (json!(" \n"), true),
        (json!("hi"), false),
        (json!([{"type": "text", "text": ""}]), true),
        (json!([]), true),
        (json!("again"), false),
    ] {
        session.write_json(&json!({"type": "user", "message": {"role": "user", "content": prompt}}));
        let result = session.wait_for_json(is_result);
        assert_eq!(result["is_error"], is_error, "{prompt}: {result}");
        if is_error {
            assert!(result["result"].as_str().unwrap().contains("The prompt is empty"), "{result}");
        }
    }
    session.finish();
    assert_eq!(world.requests().len(), 2);
    expect![[r#"
        user: hi
        assistant: One.
        user: again
    "#]]
    .assert_eq(&world.conversation());
}
