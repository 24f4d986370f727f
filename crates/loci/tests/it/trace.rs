//! `--debug`: a line for everything that happens, so that "it hung" can be answered, and nothing secret.

use crate::support::{Pipe, World, assert_fine, control, is_result, print, stream, user};
use expect_test::expect;
use loci_testkit::{Gate, Step};
use serde_json::json;
use std::time::Duration;

/// Renders a trace without times, ids and numbers that differ.
fn render_trace(world: &World, trace: &str) -> String {
    let lines = trace.lines().map(|line| {
        let (_, rest) = line.split_once(' ').unwrap();
        let words = rest.split(' ').map(|word| match word.split_once('=') {
            Some((name @ ("pid" | "n_bytes" | "after_ms" | "request_id"), _)) => format!("{name}=*"),
            _ => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ") + "\n"
    });
    world.normaliser().text(&lines.collect::<String>())
}

#[tokio::test]
async fn each_step_of_a_call_is_a_line_of_its_category() {
    let world = World::new([Step::call("Bash", json!({"command": "echo hi"})), Step::text("Done.")]).await;
    let path = world.path("trace.txt");
    let output = world.run(&print(["hi", "--debug=!engine,!control", "--debug-file", &path]));
    assert_fine(&output);
    expect![[r#"
        [api] request agent=main model=claude-sonnet-4-5 n_messages=1 generation=1
        [api] credential asked for
        [api] request sent n_bytes=*
        [api] head of the answer status=200 request_id=* after_ms=*
        [permissions] verdict call=<toolu-1> tool=Bash verdict=Allow reason=it only reads, inside the working directories
        [tools] call begun call=<toolu-1> tool=Bash
        [process] bash started pid=* n_bytes=*
        [process] bash ended pid=* status=exit status: 0
        [tools] call ended call=<toolu-1> is_error=false after_ms=*
        [api] request agent=main model=claude-sonnet-4-5 n_messages=3 generation=2
        [api] credential asked for
        [api] request sent n_bytes=*
        [api] head of the answer status=200 request_id=* after_ms=*
    "#]].assert_eq(&render_trace(&world, &world.home.read("trace.txt")));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}

/// What the machine hears and wants done, what a client asks and what hooks are asked, in the order in which it happened.
#[tokio::test]
async fn events_effects_hooks_and_control_requests_are_lines() {
    let world = World::new([Step::call("Bash", json!({"command": "echo hi"})), Step::text("Done.")]).await;
    let hook = json!({"matcher": "Bash", "hooks": [{"type": "command", "command": "cat > /dev/null"}]});
    world.home.write_config("settings.json", json!({"hooks": {"PreToolUse": [hook]}}).to_string());
    let path = world.path("trace.txt");
    let mut session = world.start(&stream(["--debug=engine,hooks,control", "--debug-file", &path]));
    session.write_json(&control("r1", json!({"subtype": "set_permission_mode", "mode": "plan"})));
    session.wait_for_json(|it| it["type"] == "control_response");
    session.write_json(&user("hi"));
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    let trace = world.home.read("trace.txt");
    let mut rest = trace.as_str();
    for line in [
        "[control] request r1",
        "[engine] event prompt",
        "[engine] effect ",
        "[engine] event response ended",
        "[hooks] call hooks asked",
        "[hooks] hook started",
        "[hooks] hook ended",
        "[hooks] call hooks answered",
        "[engine] effect run ",
        "[engine] event finished ",
    ] {
        let at = rest.find(line).unwrap_or_else(|| panic!("no `{line}` where it should be in {trace}"));
        rest = &rest[at + line.len()..];
    }
}

/// A hook that never ends is the last that the trace tells of.
#[tokio::test]
async fn hung_hook_is_visible() {
    let world = World::new([Step::call("Bash", json!({"command": "echo hi"})), Step::text("Done.")]).await;
    let held = Pipe::new(&world.home, "held.pipe");
    let hook = json!({"matcher": "Bash", "hooks": [{"type": "command", "command": "cat held.pipe"}]});
    world.home.write_config("settings.json", json!({"hooks": {"PreToolUse": [hook]}}).to_string());
    let path = world.path("trace.txt");
    let mut session = world.start(&stream(["--debug", "--debug-file", &path]));
    session.write_json(&user("hi"));
    let writer = held.reader_came();
    let trace = trace_with(&world, "[hooks] hook started");
    assert!(!trace.contains("hook ended") && !trace.contains("call begun"), "{trace}");
    drop(writer);
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
}

#[tokio::test]
async fn trace_goes_to_the_session_file_or_stderr_and_is_off_by_default() {
    let world = World::new(["one", "two", "three"].map(Step::text)).await;
    assert_fine(&world.run(&print(["hi"])));
    let dir = world.home.config_home().join("debug");
    assert!(!dir.exists());
    assert_fine(&world.run(&print(["hi", "--debug"])));
    let files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(std::fs::read_to_string(file).unwrap().contains("[engine] event response ended"));
    let session = file.file_stem().unwrap().to_string_lossy().into_owned();
    assert!(world.home.sessions().iter().any(|it| it.to_string_lossy().contains(&session)));
    let output = world.run(&print(["hi", "--debug-to-stderr", "--debug=api"]));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "three\n"));
    assert!(output.stderr.lines().all(|line| line.contains(" [api] ")), "{}", output.stderr);
    assert!(output.stderr.contains("head of the answer status=200"), "{}", output.stderr);
}

#[tokio::test]
async fn no_secret_is_in_the_trace() {
    let secrets = ["sk-ant-test-0123456789abcdef", "bearer-token-0123456789", "swordfish-swordfish"];
    let command = format!("echo {} | wc -c; echo Authorization: Bearer {}", secrets[2], secrets[1]);
    let calls = Step::call("Bash", json!({"command": command}))
        .tool("Read", json!({"file_path": format!("/nowhere/{}", secrets[2])}));
    let world = World::new([calls, Step::text(secrets[2])]).await;
    let path = world.path("trace.txt");
    let rule = format!("Bash(echo {} *)", secrets[2]);
    let binary = print([secrets[2], "--debug-file", &path, "--disallowedTools", &rule])
        .env("ANTHROPIC_API_KEY", secrets[0])
        .env("ANTHROPIC_AUTH_TOKEN", secrets[1])
        .env("MY_PASSWORD", secrets[2]);
    let output = world.run(&binary);
    assert_eq!(output.code, Some(0), "{output:?}");
    let trace = world.home.read("trace.txt");
    assert!(trace.contains("verdict"), "{trace}");
    for secret in secrets {
        assert!(!trace.contains(secret), "{secret}: {trace}");
    }
}

/// Waits until the trace has a line that says so, and returns all of it.
fn trace_with(world: &World, needle: &str) -> String {
    for _ in 0..3_000 {
        let path = world.home.project().join("trace.txt");
        let trace = std::fs::read_to_string(path).unwrap_or_default();
        if trace.contains(needle) {
            return trace;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the trace never has {needle}");
}

#[tokio::test]
async fn hung_command_and_hung_request_are_visible() {
    let gate = Gate::new();
    let calls = Step::call("Bash", json!({"command": "cat held.pipe"}));
    let world = World::new([calls, Step::text("Done.").wait_for(gate.clone())]).await;
    let held = Pipe::new(&world.home, "held.pipe");
    let path = world.path("trace.txt");
    let mut session = world.start(&stream(["--debug", "--debug-file", &path]));
    session.write_json(&user("hi"));
    let writer = held.reader_came();
    let trace = trace_with(&world, "[process] bash started");
    assert!(trace.contains("[tools] call begun"), "{trace}");
    assert!(!trace.contains("call ended") && !trace.contains("bash ended"), "{trace}");
    drop(writer);
    gate.reached().await;
    let trace = trace_with(&world, "[tools] call ended");
    assert_eq!(trace.matches("[api] request agent=").count(), 2, "{trace}");
    assert_eq!(trace.matches("response ended").count(), 1, "the second has not come: {trace}");
    gate.release();
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
}

#[tokio::test]
async fn level_of_the_environment_leaves_failures_only() {
    let world =
        World::new([Step::status(400).error("invalid_request_error", "no"), Step::text("fine")]).await;
    let path = world.path("trace.txt");
    let binary = print(["hi", "--debug-file", &path]).env("CLAUDE_CODE_DEBUG_LOG_LEVEL", "warn");
    world.run(&binary);
    let trace = world.home.read("trace.txt");
    let lines: Vec<_> = trace.lines().collect();
    assert!(matches!(lines[..], [line] if line.contains("[api] failure")), "{trace}");
}
