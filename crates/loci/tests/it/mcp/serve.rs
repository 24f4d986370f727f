//! `loci mcp serve`: our tools for other programs, behind the same rules.

use std::path::Path;

use loci_testkit::{PythonVenv, Session};
use serde_json::{Value, json};

use crate::support::{World, loci};

/// Says that it is there and waits for another to be, for eight seconds.
const MEET: &str = r#"touch "$1.here"
n=0
until [ -e "$2.here" ] || [ $n -gt 400 ]; do sleep 0.02; n=$((n+1)); done
ls "$2.here"
"#;

/// Writes what the rules of the project's owner are.
fn rules(world: &World, rules: Value) {
    world.home.write_config("settings.json", json!({"permissions": rules}).to_string());
}

fn stateless(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    stateless(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn serve(world: &World) -> Session {
    world.start(&loci().args(["mcp", "serve"]))
}

/// Sends a request and returns its answer.
fn ask(session: &mut Session, message: Value) -> Value {
    let id = message["id"].clone();
    session.write_json(&message);
    session.wait_for_json(|frame| frame["id"] == id)
}

/// Waits for the file that a command makes when it begins.
fn until_begun(world: &World) {
    let file = world.home.project().join("begun");
    for _ in 0..1500 {
        if file.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the command never began");
}

/// Uses the server with the official client in one way of beginning.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
async fn check_official(mode: &str) {
    let Some(python) = PythonVenv::new(env!("CARGO_TARGET_TMPDIR"), "mcp-sdk", &["mcp"]) else {
        eprintln!("skipped: there is no python3 on this machine");
        return;
    };
    let world = World::new([]).await;
    world.home.write("a.txt", "hello\n");
    world.home.write("meet.sh", MEET);
    rules(&world, json!({"allow": ["Bash(sh meet.sh *)"], "deny": ["Bash(rm *)"]}));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/serve_client.py");
    let mut command = python.script(script);
    command.args([env!("CARGO_BIN_EXE_loci"), mode]).current_dir(world.home.project());
    let output = command.envs(world.home.env_vars(world.model.base_url())).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let steps: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let step = |name: &str| &steps.iter().find(|step| step[0] == name).unwrap()[1];
    let tools = step("tools").to_string();
    for name in ["\"Bash\"", "\"Edit\"", "\"Glob\"", "\"Grep\"", "\"Read\"", "\"Write\""] {
        assert!(tools.contains(name), "{tools}");
    }
    for name in ["Agent", "AskUserQuestion", "ExitPlanMode", "CronCreate", "ToolSearch"] {
        assert!(!tools.contains(&format!("\"{name}\"")), "{tools}");
    }
    assert_eq!(step("read"), &json!(["ok", "1\thello\n2\t"]));
    assert_eq!(step("missing")[0], "error");
    assert_eq!(step("write"), &json!("ok"), "the host has asked");
    assert_eq!(step("denied"), &json!(["error", true]));
    assert_eq!(step("together"), &json!({"one": ["ok", "two.here"], "two": ["ok", "one.here"]}));
    assert_eq!(world.home.sessions().len(), 0, "nothing is recorded");
}

#[tokio::test]
async fn official_client_uses_the_tools_after_a_handshake() {
    check_official("legacy").await;
}

#[tokio::test]
async fn official_client_uses_the_tools_without_a_handshake() {
    check_official("auto").await;
}

#[tokio::test]
async fn cancelled_command_is_stopped_and_deny_rules_hold() {
    let world = World::new([]).await;
    rules(
        &world,
        json!({"allow": ["Bash(touch *)", "Bash(sleep *)"], "deny": ["Read(./secret.txt)", "Write"]}),
    );
    world.home.write("secret.txt", "hidden\n");
    let mut session = serve(&world);
    let listed = ask(&mut session, stateless(1, "tools/list", json!({})));
    let names = listed["result"]["tools"].to_string();
    assert!(
        names.contains("\"Edit\"") && !names.contains("\"Write\""),
        "a tool that is denied is not offered"
    );
    let read = ask(&mut session, call(2, "Read", json!({"file_path": "secret.txt"})));
    let text = read["result"]["content"][0]["text"].to_string();
    assert!(read["result"]["isError"] == true && !text.contains("hidden"), "{text}");
    session.write_json(&call(3, "Bash", json!({"command": "touch begun; sleep 1000; touch done"})));
    until_begun(&world);
    session.write_json(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}),
    );
    let fine = ask(&mut session, call(4, "Bash", json!({"command": "touch after"})));
    assert_eq!(fine["result"]["isError"], false, "{fine}");
    session.close_stdin();
    let output = session.finish();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!world.home.project().join("done").exists());
    assert!(!output.stdout.contains("\"id\":3"), "a cancelled call has no answer: {}", output.stdout);
}

#[tokio::test]
async fn end_of_input_ends_commands_that_run() {
    let world = World::new([]).await;
    rules(&world, json!({"allow": ["Bash(touch *)", "Bash(sleep *)"]}));
    let mut session = serve(&world);
    session.write_json(&call(1, "Bash", json!({"command": "touch begun; sleep 1000; touch done"})));
    until_begun(&world);
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
    assert!(!world.home.project().join("done").exists());
}

#[tokio::test]
async fn hooks_have_their_say_in_served_calls() {
    let world = World::new([]).await;
    let hook = json!({"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [
        {"type": "command", "command": "echo 'not this one' >&2; exit 2"}]}]}});
    world.home.write_config("settings.json", hook.to_string());
    world.home.write("a.txt", "hello\n");
    let mut session = serve(&world);
    let read = ask(&mut session, call(1, "Read", json!({"file_path": "a.txt"})));
    let text = read["result"]["content"][0]["text"].to_string();
    assert!(read["result"]["isError"] == true && text.contains("not this one"), "{read}");
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
}

/// That its host calls a tool is the consent of its user; what rules and hooks keep back is kept back all the same.
#[tokio::test]
async fn host_that_calls_a_tool_has_asked_its_user() {
    let world = World::new([]).await;
    rules(&world, json!({"deny": ["Bash(rm *)"], "ask": ["Bash(git push *)"]}));
    let write = |name: &str| ("Write", json!({"file_path": name, "content": "x"}));
    let bash = |command: &str| ("Bash", json!({"command": command}));
    let edit = ("Edit", json!({"file_path": "b.txt", "old_string": "x", "new_string": "y"}));
    let calls = [
        (write("b.txt"), true),
        (edit, true),
        (bash("touch made && echo x > other"), true),
        (bash("rm b.txt"), false),
        (bash("$(echo rm) b.txt"), false),
        (bash("git push origin"), false),
        (bash("rm -rf ~"), false),
        (write(".git/config"), false),
    ];
    let mut session = serve(&world);
    for (id, ((tool, input), runs)) in (1..).zip(calls) {
        let answer = ask(&mut session, call(id, tool, input.clone()));
        assert_eq!(answer["result"]["isError"], !runs, "{input} {answer}");
    }
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
    let project = world.home.project();
    assert_eq!(std::fs::read_to_string(project.join("b.txt")).unwrap(), "y");
    assert!(project.join("made").exists() && project.join("other").exists());
}

/// Whoever chooses a mode is held to it: the host's word counts for nothing then.
#[tokio::test]
async fn chosen_mode_and_allow_rules_say_what_served_calls_may() {
    for (mode, writes, touches) in [
        ("default", false, false),
        ("acceptEdits", true, true),
        ("plan", false, false),
        ("dontAsk", false, false),
    ] {
        let world = World::new([]).await;
        let args = ["mcp", "serve", "--permission-mode", mode, "--allowedTools", "Bash(make *)"];
        let mut session = world.start(&loci().args(args));
        let answer = ask(&mut session, call(1, "Write", json!({"file_path": "b.txt", "content": "x"})));
        assert_eq!(answer["result"]["isError"], !writes, "{mode} {answer}");
        let answer = ask(&mut session, call(2, "Bash", json!({"command": "touch made"})));
        assert_eq!(answer["result"]["isError"], !touches, "{mode} {answer}");
        let answer = ask(&mut session, call(3, "Bash", json!({"command": "make --version"})));
        assert!(
            !answer["result"]["content"][0]["text"].to_string().contains("not granted"),
            "{mode} {answer}"
        );
        session.close_stdin();
        assert_eq!(session.finish().code, Some(0));
    }
}
