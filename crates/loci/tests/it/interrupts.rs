//! Being stopped: by Ctrl-C, by SIGTERM, by SIGKILL, at any moment; and going on afterwards.

use crate::support::{
    Pipe, World, assert_ended, assert_fine, control, is_result, print, shape, stream, user, watched,
};
use expect_test::{Expect, expect};
use loci_testkit::{Gate, Output, Session, Step};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::File;

/// A command that starts two processes, both of which hold `alive.pipe` and one of which ignores polite signals.
const TREE: &str = "(trap '' INT TERM; sleep 600 & wait) > alive.pipe & sleep 600 > alive.pipe; wait";

/// Waits until the client has been shown text of the model.
fn wait_for_text(session: &mut Session) {
    session.wait_for_json(|frame| frame["event"]["delta"]["type"] == "text_delta");
}

/// Renders what is left after a run was stopped: frames, exit, file.
fn remains(world: &World, output: &Output) -> String {
    let frames = output.json_lines();
    let told: Vec<Value> = frames.into_iter().filter(|it| it["type"] != "stream_event").collect();
    let end = match (output.code, output.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, signal) => format!("signal {signal:?}"),
    };
    let text = format!("{}{end}\n{}", shape(&told), output.stderr);
    format!("{}--\n{}", world.normaliser().text(&text), world.sketch())
}

/// Goes on with the session and compares what the model is then sent, which the API must take.
async fn check_continues(world: World, expected: Expect) {
    let world = world.then(Step::text("Going on.")).await;
    let output = world.print(["go on", "-c"]);
    assert_fine(&output);
    assert_eq!(output.stdout, "Going on.\n");
    expected.assert_eq(&world.conversation());
    world.session();
}

#[tokio::test]
async fn interrupt_during_streaming_ends_the_turn() {
    let gate = Gate::new();
    let step =
        Step::text("So far so good").chunk(4).wait_for(gate.clone()).tool("Bash", json!({"command": "ls"}));
    let world = World::new(step).await;
    let mut session = world.start_closed(&watched(["hi", "--include-partial-messages"]));
    gate.reached().await;
    session.wait_for_json(|frame| frame["event"]["delta"]["text"] == "od");
    session.interrupt();
    let output = session.finish();
    world.model.wait_for_hang_ups(1).await;
    expect![[r#"
        system init
        system status requesting
        assistant So far so good
        user [Request interrupted by user]
        result error_during_execution (error) aborted_streaming
        exit 1
        --
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: assistant (synthetic) So far so good
        4 <- 3: user [Request interrupted by user]
        5 last-prompt -> 4
    "#]]
    .assert_eq(&remains(&world, &output));
    check_continues(
        world,
        expect![[r#"
        user: hi
        assistant: So far so good
        user: [Request interrupted by user]
        assistant: No response requested.
        user: go on
    "#]],
    )
    .await;
}

#[tokio::test]
async fn interrupt_after_a_complete_call_does_not_run_it() {
    let gate = Gate::new();
    let step = Step::call("Bash", json!({"command": "touch ran"})).then_text("And").wait_for(gate.clone());
    let world = World::new(step).await;
    let mut session =
        world.start_closed(&watched(["hi", "--allowedTools", "Bash", "--include-partial-messages"]));
    wait_for_text(&mut session);
    session.interrupt();
    let output = session.finish();
    expect![[r#"
        system init
        system status requesting
        assistant Bash {"command":"touch ran"} <toolu-1>
        user <toolu-1> error: Not run: the user interrupted before this call began.
        assistant And
        user [Request interrupted by user]
        result error_during_execution (error) aborted_streaming
        exit 1
        --
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: assistant calls Bash #1
        4 <- 3: user answers #1 (error) Not run: the user interrupted before this call began.
        5 <- 4: assistant (synthetic) And
        6 <- 5: user [Request interrupted by user]
        7 last-prompt -> 6
    "#]]
    .assert_eq(&remains(&world, &output));
    assert!(!world.home.project().join("ran").exists());
    check_continues(
        world,
        expect![[r#"
        user: hi
        assistant: Bash {"command":"touch ran"} <toolu-1>
        user: <toolu-1> error: Not run: the user interrupted before this call began.
        assistant: And
        user: [Request interrupted by user]
        assistant: No response requested.
        user: go on
    "#]],
    )
    .await;
}

#[tokio::test]
async fn interrupt_before_the_response_ends_the_turn() {
    let gate = Gate::new();
    let world = World::new(Step::text("late").wait_before_headers(gate.clone())).await;
    let session = world.start_closed(&watched(["hi"]));
    gate.reached().await;
    session.interrupt();
    let output = session.finish();
    expect![[r#"
        system init
        user [Request interrupted by user]
        result error_during_execution (error) aborted_streaming
        exit 1
        --
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: user [Request interrupted by user]
        4 last-prompt -> 3
    "#]]
    .assert_eq(&remains(&world, &output));
    check_continues(
        world,
        expect![[r#"
        user: hi
        user: [Request interrupted by user]
        assistant: No response requested.
        user: go on
    "#]],
    )
    .await;
}

#[tokio::test]
async fn interrupt_during_retry_backoff_ends_the_turn() {
    let world = World::new(Step::status(529).header("retry-after", "100")).await;
    let mut session = world.start_closed(&watched(["hi"]));
    session.wait_for_json(|frame| frame["subtype"] == "api_retry");
    session.interrupt();
    let output = session.finish();
    expect![[r#"
        system init
        system api_retry 1/10 status 529 overloaded
        user [Request interrupted by user]
        result error_during_execution (error) aborted_streaming
        exit 1
        --
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: user [Request interrupted by user]
        4 last-prompt -> 3
    "#]]
    .assert_eq(&remains(&world, &output));
    check_continues(
        world,
        expect![[r#"
        user: hi
        user: [Request interrupted by user]
        assistant: No response requested.
        user: go on
    "#]],
    )
    .await;
}

/// Starts a turn whose second call runs [`TREE`], and hands over when it runs; standard input stays open.
async fn with_running_tree() -> (World, Session, File) {
    let step = Step::text("Running.")
        .tool("Read", json!({"file_path": "notes.txt"}))
        .tool("Bash", json!({"command": TREE}))
        .tool("Bash", json!({"command": "touch never"}));
    let world = World::new(step).await;
    world.home.write("notes.txt", "one\n");
    let alive = Pipe::new(&world.home, "alive.pipe");
    let mut session = world.start(&stream(["--dangerously-skip-permissions"]).env("IS_SANDBOX", "1"));
    session.write_json(&user("hi"));
    let alive = alive.writer_came();
    session.wait_for_json(|frame| frame["type"] == "user");
    (world, session, alive)
}

#[tokio::test]
async fn interrupt_during_a_command_kills_it() {
    let (world, session, alive) = with_running_tree().await;
    session.interrupt();
    let output = ended(session);
    assert_ended(alive);
    expect![[r#"
        system init
        assistant Running.
        assistant Read {"file_path":"notes.txt"} <toolu-1>
        assistant Bash {"command":"(trap '' INT TERM; sleep 600 & wait) > alive.pipe & sleep 600 > alive.pipe; wait"} <toolu-2>
        assistant Bash {"command":"touch never"} <toolu-3>
        user <toolu-1>: 1	one
        2	
        user <toolu-3> error: Not run: the user interrupted before this call began.
        user <toolu-2> error: The command was interrupted before it ended.
        user [Request interrupted by user for tool use]
        result error_during_execution (error) aborted_tools
        exit 1
        --
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: assistant Running.
        4 <- 3: assistant calls Read #1
        5 <- 4: assistant calls Bash #2
        6 <- 5: assistant calls Bash #3
        7 <- 4: user answers #1 1	one
        8 <- 6: user answers #3 (error) Not run: the user interrupted before this call began.
        9 <- 5: user answers #2 (error) The command was interrupted before it ended.
        10 <- 9: user [Request interrupted by user for tool use]
        11 cost-state
        12 last-prompt -> 10
    "#]].assert_eq(&remains(&world, &output));
    assert!(!world.home.project().join("never").exists());
    check_continues(world, expect![[r#"
        user: hi
        assistant: Running.
        assistant: Read {"file_path":"notes.txt"} <toolu-1>
        assistant: Bash {"command":"(trap '' INT TERM; sleep 600 & wait) > alive.pipe & sleep 600 > alive.pipe; wait"} <toolu-2>
        assistant: Bash {"command":"touch never"} <toolu-3>
        user: <toolu-1>: 1	one
        2	
        user: <toolu-3> error: Not run: the user interrupted before this call began.
        user: <toolu-2> error: The command was interrupted before it ended.
        user: [Request interrupted by user for tool use]
        assistant: No response requested.
        user: go on
    "#]]).await;
}

/// Waits for the end of a program whose standard input is still open.
fn ended(mut session: Session) -> Output {
    while session.next_line().is_some() {}
    session.finish()
}

#[tokio::test]
async fn second_interrupt_leaves_a_resumable_session() {
    let (world, mut session, alive) = with_running_tree().await;
    session.interrupt();
    // What had not begun is answered at once: the first signal was heard.
    session.wait_for_json(|frame| frame["type"] == "user");
    session.interrupt();
    let output = ended(session);
    assert_ended(alive);
    assert_eq!((output.code, output.signal), (Some(1), None), "{output:?}");
    world.session();
    let world = world.then(Step::text("Going on.")).await;
    assert_fine(&world.print(["go on", "-c"]));
    world.requests();
}

/// The result is there, and a hook of the session's end goes on for ever: signals end the run, and the hook with it.
#[tokio::test]
async fn signals_end_a_run_that_hangs_after_its_result() {
    let signals = [
        &[Signal::TERM][..],
        &[Signal::TERM, Signal::INT],
        &[Signal::INT, Signal::TERM],
        &[Signal::INT, Signal::HUP],
    ];
    for (signals, code) in signals.into_iter().zip([143, 143, 143, 129]) {
        let world = World::new(Step::text("Done.")).await;
        let alive = Pipe::new(&world.home, "alive.pipe");
        let command = "trap '' INT TERM HUP; exec > alive.pipe; while :; do sleep 600; done";
        let hook = json!({"hooks": [{"type": "command", "command": command, "timeout": 3_600}]});
        world.home.write_config("settings.json", json!({"hooks": {"SessionEnd": [hook]}}).to_string());
        let mut session = world.start_closed(&watched(["hi"]));
        session.wait_for_json(is_result);
        let alive = alive.writer_came();
        signals.iter().for_each(|signal| session.signal(*signal));
        let output = session.finish();
        assert_ended(alive);
        assert_eq!((output.code, output.signal), (Some(code), None), "{signals:?} {output:?}");
        assert!(world.sketch().contains("assistant Done."), "{}", world.sketch());
    }
}

#[tokio::test]
async fn signal_with_queued_prompts_starts_no_further_turn() {
    for signal in [Signal::INT, Signal::TERM] {
        let (world, mut session, alive) = with_running_tree().await;
        session.write_json(&user("and then this"));
        // The answer comes after the prompt before it was taken in.
        session.write_json(&control("ping", json!({"subtype": "mcp_status"})));
        session.wait_for_json(|frame| frame["type"] == "control_response");
        session.signal(signal);
        let output = ended(session);
        assert_ended(alive);
        assert_eq!(world.requests().len(), 1, "{signal:?} starts nothing new: {output:?}");
        assert_eq!(output.code, Some(if signal == Signal::INT { 1 } else { 143 }));
    }
}

#[tokio::test]
async fn signal_while_idle_ends_the_run() {
    let world = World::new([]).await;
    for (signal, code) in [(Signal::INT, 0), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut session = world.start(&stream([]));
        session.write_json(&user("hi"));
        session.wait_for_json(is_result);
        session.signal(signal);
        let output = ended(session);
        assert_eq!((output.code, output.stderr.as_str()), (Some(code), ""), "{signal:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn signal_before_the_first_line_ends_the_run_as_when_idle() {
    let world = World::new([]).await;
    for (signal, code) in [(Signal::INT, 0), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let session = world.start(&stream([]));
        wait_until_caught(session.id(), signal);
        session.signal(signal);
        let output = ended(session);
        assert_eq!((output.code, output.stderr.as_str()), (Some(code), ""), "{signal:?}");
    }
}

/// Waits until a process catches a signal, which it says nothing about.
#[cfg(target_os = "linux")]
fn wait_until_caught(process: u32, signal: Signal) {
    let bit = 1_u64 << (signal.as_raw() - 1);
    for _ in 0..3_000 {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() & bit != 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{signal:?} is not caught");
}

#[tokio::test]
async fn sigterm_during_a_command_kills_it() {
    let (world, session, alive) = with_running_tree().await;
    session.terminate();
    let output = ended(session);
    assert_ended(alive);
    assert_eq!(output.code, Some(143));
    assert!(!output.json_lines().iter().any(is_result), "no result is written");
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: assistant Running.
        4 <- 3: assistant calls Read #1
        5 <- 4: assistant calls Bash #2
        6 <- 5: assistant calls Bash #3
        7 <- 4: user answers #1 1	one
        8 <- 6: user answers #3 (error) Not run: the user interrupted before this call began.
        9 <- 5: user answers #2 (error) The user interrupted before this call was done. It may have taken effect in part; check before relying on it.
        10 <- 9: user [Request interrupted by user for tool use]
        11 cost-state
        12 last-prompt -> 10
    "#]].assert_eq(&world.sketch());
    check_continues(world, expect![[r#"
        user: hi
        assistant: Running.
        assistant: Read {"file_path":"notes.txt"} <toolu-1>
        assistant: Bash {"command":"(trap '' INT TERM; sleep 600 & wait) > alive.pipe & sleep 600 > alive.pipe; wait"} <toolu-2>
        assistant: Bash {"command":"touch never"} <toolu-3>
        user: <toolu-1>: 1	one
        2	
        user: <toolu-3> error: Not run: the user interrupted before this call began.
        user: <toolu-2> error: The user interrupted before this call was done. It may have taken effect in part; check before relying on it.
        user: [Request interrupted by user for tool use]
        assistant: No response requested.
        user: go on
    "#]]).await;
}

#[tokio::test]
async fn sigterm_during_streaming_ends_the_run() {
    let gate = Gate::new();
    let world = World::new(Step::text("So far").wait_for(gate.clone())).await;
    let mut session = world.start_closed(&watched(["hi", "--include-partial-messages"]));
    wait_for_text(&mut session);
    session.terminate();
    let output = session.finish();
    assert_eq!(output.code, Some(143));
    assert!(!output.json_lines().iter().any(is_result), "no result is written");
    check_continues(
        world,
        expect![[r#"
        user: hi
        assistant: So far
        user: [Request interrupted by user]
        assistant: No response requested.
        user: go on
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sigterm_in_text_mode_ends_the_run() {
    let gate = Gate::new();
    let world = World::new(Step::text("So far").wait_for(gate.clone())).await;
    let session = world.start_closed(&print(["hi"]));
    gate.reached().await;
    session.terminate();
    let output = session.finish();
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (Some(143), "", ""));
}

#[tokio::test]
async fn crash_during_streaming_can_be_resumed() {
    let gate = Gate::new();
    let step = Step::call("Bash", json!({"command": "ls"})).then_text("And").wait_for(gate.clone());
    let world = World::new(step).await;
    let mut session = world.start_closed(&watched(["hi", "--include-partial-messages"]));
    wait_for_text(&mut session);
    session.crash();
    check_continues(
        world,
        expect![[r#"
        user: hi
        assistant: No response requested.
        user: go on
    "#]],
    )
    .await;
}

/// Invariant 8 of `docs/design/session-log.md`.
#[tokio::test]
async fn crash_during_commands_can_be_resumed() {
    let step = Step::text("Three.")
        .tool("Read", json!({"file_path": "notes.txt"}))
        .tool("Bash", json!({"command": "cat held.pipe"}))
        .tool("Bash", json!({"command": "touch never"}));
    let world = World::new(step).await;
    world.home.write("notes.txt", "one\n");
    let held = Pipe::new(&world.home, "held.pipe");
    let mut session = world.start_closed(&watched(["hi", "--allowedTools", "Bash"]));
    let writer = held.reader_came();
    session.wait_for_json(|frame| frame["type"] == "user");
    session.crash();
    drop(writer);
    let world = world.then(Step::text("Going on.")).await;
    assert_fine(&world.print(["go on", "-c"]));
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: assistant Three.
        4 <- 3: assistant calls Read #1
        5 <- 4: assistant calls Bash #2
        6 <- 5: assistant calls Bash #3
        7 <- 4: user answers #1 1	one
        8 queue-operation enqueue
        9 queue-operation dequeue
        10 last-prompt -> 5
        11 <- 5: user answers #2 (error) The session ended before the result of this call was recorded. The call may or may not have run, in whole or in part; check before relying on it or repeating it.
        12 <- 6: user answers #3 (error) The session ended before the result of this call was recorded. The call may or may not have run, in whole or in part; check before relying on it or repeating it.
        13 <- 12: user (isMeta) Continue from where you left off.
        14 <- 13: assistant (synthetic) No response requested.
        15 <- 14: user go on
        16 <- 15: assistant Going on.
        17 cost-state
        18 last-prompt -> 16
    "#]].assert_eq(&world.sketch());
    expect![[r#"
        user: hi
        assistant: Three.
        assistant: Read {"file_path":"notes.txt"} <toolu-1>
        assistant: Bash {"command":"cat held.pipe"} <toolu-2>
        assistant: Bash {"command":"touch never"} <toolu-3>
        user: <toolu-1>: 1	one
        2	
        user: <toolu-2> error: The session ended before the result of this call was recorded. The call may or may not have run, in whole or in part; check before relying on it or repeating it.
        user: <toolu-3> error: The session ended before the result of this call was recorded. The call may or may not have run, in whole or in part; check before relying on it or repeating it.
        user: Continue from where you left off.
        assistant: No response requested.
        user: go on
    "#]].assert_eq(&world.conversation());
}

#[tokio::test]
async fn crash_before_the_response_can_be_resumed() {
    let gate = Gate::new();
    let world = World::new(Step::text("late").wait_before_headers(gate.clone())).await;
    let session = world.start_closed(&watched(["hi"]));
    gate.reached().await;
    session.crash();
    check_continues(
        world,
        expect![[r#"
        user: hi
        assistant: No response requested.
        user: go on
    "#]],
    )
    .await;
}

#[tokio::test]
async fn crash_between_requests_can_be_resumed() {
    let gate = Gate::new();
    let calls = Step::call("Bash", json!({"command": "ls"}));
    let world = World::new([calls, Step::text("late").wait_before_headers(gate.clone())]).await;
    let session = world.start_closed(&watched(["hi"]));
    gate.reached().await;
    session.crash();
    check_continues(
        world,
        expect![[r#"
        user: hi
        assistant: Bash {"command":"ls"} <toolu-1>
        user: <toolu-1>: (no output)
        user: Continue from where you left off.
        assistant: No response requested.
        user: go on
    "#]],
    )
    .await;
}

#[tokio::test]
async fn interrupt_is_reported_in_text_mode() {
    let gate = Gate::new();
    let world = World::new(Step::text("So far").wait_for(gate.clone())).await;
    let session = world.start_closed(&print(["hi"]));
    gate.reached().await;
    session.interrupt();
    let output = session.finish();
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (Some(1), "Interrupted\n", ""));
}
