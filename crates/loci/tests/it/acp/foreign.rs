//! Clients that others wrote drive our agent: the official libraries for Python and TypeScript, and acpx.
//!
//! Each is installed once under the target directory. Every line that the agent writes to the TypeScript client is also held
//! against the schema that comes with the library.

use std::path::Path;
use std::process::Command;

use super::client::acp;
use crate::support::World;
use expect_test::expect;
use loci_testkit::{Binary, NodePackages, PythonVenv, Recorded, Script, Step};
use serde_json::{Value, json};

/// Tells whether this was asked last.
fn last(text: &'static str) -> impl Fn(&Recorded) -> bool + Send + Sync + 'static {
    move |request| {
        let messages = request.json["messages"].as_array().cloned().unwrap_or_default();
        messages.last().is_some_and(|message| message.to_string().contains(text))
    }
}

/// The answers that a tour through the protocol needs, by what was asked last.
fn tour() -> Script {
    let bash = |command: &str| Step::call("Bash", json!({"command": command}));
    Script::new([])
        .answer_when(
            Step::call("Read", json!({"file_path": "a.txt"})).thinking("Hm.", "c2ln"),
            last("read it"),
        )
        .answer_when(bash("touch allowed"), last("make allowed"))
        .answer_when(bash("touch denied"), last("make denied"))
        .answer_when(bash("touch started; sleep 100"), last("wait for ever"))
        .answer_when(Step::text("First."), last("one of two"))
        .answer_when(Step::text("Second."), last("two of two"))
        .answer_when(Step::text("Hello."), last("say hello"))
        .answer_when(Step::text("It says hi."), last("tool_result"))
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/acp").join(name)
}

/// Runs a client to its end and returns what it printed, a value a line.
fn run(world: &World, command: Command) -> Vec<Value> {
    run_with(world, command, &acp([]))
}

/// The same with an agent that was given more flags.
fn run_with(world: &World, mut command: Command, agent: &Binary) -> Vec<Value> {
    command.args(agent.command_line()).current_dir(world.home.project());
    let output = command.envs(world.home.env_vars(world.model.base_url())).output().unwrap();
    let (said, printed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}\n{printed}");
    printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// What the tour comes to, whoever takes it.
fn check_tour(world: &World, told: &[Value]) {
    assert_eq!(
        told,
        [
            json!(["version", 1, "loci"]),
            json!(["new", "default", ["mode", "model"]]),
            json!(["prompt", "end_turn", "It says hi.", "Hm.", [["read", "Read a.txt", "completed"]]]),
            json!(["allow", "end_turn", [["execute", "`touch allowed`", "completed"]]]),
            json!(["deny", "end_turn", [["execute", "`touch denied`", "failed"]]]),
            json!(["cancel", "cancelled"]),
            json!(["two", "end_turn", "First.", "end_turn", "Second."]),
            json!(["mode", "plan"]),
            json!(["list", 2]),
            json!(["load", "read it", "It says hi."]),
            json!(["after load", "end_turn", "Hello."]),
        ]
    );
    let is_there = |name: &str| world.home.project().join(name).exists();
    assert_eq!((is_there("allowed"), is_there("denied"), is_there("started")), (true, false, true));
}

async fn world() -> World {
    let world = World::new(tour()).await;
    world.home.write("a.txt", "hi\n");
    world
}

#[tokio::test]
async fn official_python_library_takes_the_tour() {
    let packages = ["agent-client-protocol"];
    let Some(python) = PythonVenv::new(env!("CARGO_TARGET_TMPDIR"), "acp-python", &packages) else {
        return eprintln!("skipped: there is no python3 on this machine");
    };
    let world = world().await;
    check_tour(&world, &run(&world, python.script(script("client.py"))));
}

#[tokio::test]
async fn official_typescript_library_takes_the_tour_and_every_line_fits_its_schema() {
    let packages = ["@agentclientprotocol/sdk", "zod", "ajv"];
    let Some(node) = NodePackages::new(env!("CARGO_TARGET_TMPDIR"), "acp-typescript", 20, &packages) else {
        return eprintln!("skipped: there is no npm on this machine");
    };
    let world = world().await;
    // It lies beside the clients that import it.
    node.script(script("acp_schema.mjs"));
    check_tour(&world, &run(&world, node.script(script("client.mjs"))));
}

/// The answers that an editor with files, terminals and forms needs.
fn editor_tour() -> Script {
    let question = json!({"questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Blue", "description": ""}, {"label": "Red", "description": ""}],
    }]});
    let edit = json!({"file_path": "b.txt", "old_string": "not saved", "new_string": "saved"});
    Script::new([])
        .answer_when(Step::text("Seen."), last("look at these"))
        .answer_when(Step::call("Edit", edit), last("not saved"))
        .answer_when(Step::call("Read", json!({"file_path": "b.txt"})), last("edit it"))
        .answer_when(Step::call("Bash", json!({"command": "echo in the editor"})), last("run it"))
        .answer_when(
            Step::call("TaskCreate", json!({"subject": "Look around", "description": "Look"})),
            last("plan it"),
        )
        .answer_when(Step::call("AskUserQuestion", question), last("ask me"))
        .answer_when(Step::call("mcp__s__ask", json!({})), last("let the server ask"))
        .answer_when(Step::call("mcp__s__visit", json!({})), last("visit a page"))
        .answer_when(Step::text("Hello."), last("say hello"))
        .answer_when(Step::text("Done."), last("tool_result"))
}

#[tokio::test]
async fn official_library_as_an_editor_with_files_terminals_and_forms() {
    let packages = ["@agentclientprotocol/sdk", "zod", "ajv"];
    let Some(node) = NodePackages::new(env!("CARGO_TARGET_TMPDIR"), "acp-typescript", 20, &packages) else {
        return eprintln!("skipped: there is no npm on this machine");
    };
    let world = World::new(editor_tour()).await;
    world.home.write("a.txt", "linked words\n");
    world.home.write("b.txt", "on disk\n");
    node.script(script("acp_schema.mjs"));
    let mut command = node.script(script("editor.mjs"));
    command.env("MCP_SERVER", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py"));
    let told = run_with(&world, command, &acp(["--client-terminal"]));
    let told: Vec<String> = told.iter().map(Value::to_string).collect();
    expect![[r#"
        ["able",true,{"image":true,"audio":false,"embeddedContext":true},["additionalDirectories","close","delete","list","resume"]]
        ["login",["api-key"]]
        ["authenticate",-32602]
        ["content","end_turn","Seen."]
        ["commands",true]
        ["diff","end_turn",["b.txt","not saved","saved"],"b.txt"]
        ["files",["a.txt","b.txt","b.txt"],[["b.txt","saved\n"]]]
        ["terminal","end_turn",[true],true]
        ["plan",[["Look around","pending"]]]
        ["forms","end_turn",[["form",["question_1","question_1_other"]]]]
        ["server form","end_turn",[["form",["name"]]]]
        ["page","end_turn",[["url","https://example.com/login?state=1"]],["e1"]]
        ["model",true]
        ["usage","end_turn",true,true,"USD"]
        ["resumed",false]
        ["listed",1]
        ["deleted",0]
        ["logout",{}]
    "#]]
    .assert_eq(&(told.join("\n") + "\n"));
    assert_eq!(world.home.read("b.txt"), "saved\n");
    let first = world.requests()[0].json["messages"].to_string();
    for part in ["image/png", "embedded words", "linked words"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    let models: Vec<Value> = world.requests().iter().map(|request| request.json["model"].clone()).collect();
    assert_eq!(models.last().unwrap(), "claude-haiku-5-5", "{models:?}");
}

#[tokio::test]
async fn official_python_library_as_an_editor_with_files_terminals_and_forms() {
    let packages = ["agent-client-protocol"];
    let Some(python) = PythonVenv::new(env!("CARGO_TARGET_TMPDIR"), "acp-python", &packages) else {
        return eprintln!("skipped: there is no python3 on this machine");
    };
    let world = World::new(editor_tour()).await;
    world.home.write("a.txt", "linked words\n");
    world.home.write("b.txt", "on disk\n");
    let mut command = python.script(script("editor.py"));
    command.env("MCP_SERVER", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py"));
    let told = run_with(&world, command, &acp(["--client-terminal"]));
    let told: Vec<String> = told.iter().map(Value::to_string).collect();
    expect![[r#"
        ["content","end_turn","Seen."]
        ["diff","end_turn","not saved","saved"]
        ["files",["a.txt","b.txt","b.txt"],[["b.txt","saved\n"]]]
        ["terminal","end_turn",[true]]
        ["plan",[["Look around","pending"]]]
        ["forms","end_turn",[["question_1","question_1_other"]]]
        ["server form","end_turn",[["name"]]]
        ["page","end_turn",["https://example.com/login?state=1"]]
        ["completed",["e1"]]
        ["model",true]
        ["usage","end_turn",true,"USD"]
        ["resumed",0]
        ["fork",-32601]
        ["extension",-32601]
        ["listed",1]
    "#]]
    .assert_eq(&(told.join("\n") + "\n"));
    assert_eq!(world.home.read("b.txt"), "on disk\n", "this editor has not saved");
    let first = world.requests()[0].json["messages"].to_string();
    for part in ["image/png", "embedded words", "linked words"] {
        assert!(first.contains(part), "{part}: {first}");
    }
}

#[tokio::test]
async fn acpx_drives_sessions_from_the_shell() {
    let Some(node) = NodePackages::new(env!("CARGO_TARGET_TMPDIR"), "acpx", 22, &["acpx"]) else {
        return eprintln!("skipped: there is no npm on this machine");
    };
    let world = world().await;
    let agent = acp([]).command_line().join(" ");
    let acpx = |args: &[&str]| {
        let mut command = node.program("acpx");
        command.args(["--agent", agent.as_str()]).args(args).current_dir(world.home.project());
        let output = command.envs(world.home.env_vars(world.model.base_url())).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), format!("{output:?}"))
    };
    let (code, said, all) = acpx(&["exec", "read it"]);
    assert_eq!(code, Some(0), "{all}");
    assert!(said.contains("It says hi.") && said.contains("Read a.txt"), "{all}");
    let (code, _, all) = acpx(&["--approve-all", "exec", "make allowed"]);
    assert_eq!(code, Some(0), "{all}");
    acpx(&["--deny-all", "exec", "make denied"]);
    let is_there = |name: &str| world.home.project().join(name).exists();
    assert_eq!((is_there("allowed"), is_there("denied")), (true, false), "{all}");
    // A session that it keeps: begun, gone on with by another process, set to another mode, closed.
    let before = world.home.sessions().len();
    let (code, _, all) = acpx(&["sessions", "new"]);
    assert_eq!(code, Some(0), "{all}");
    for (prompt, answer) in [("say hello", "Hello."), ("one of two", "First.")] {
        let (code, said, all) = acpx(&["--ttl", "1", "prompt", prompt]);
        assert_eq!(code, Some(0), "{all}");
        assert!(said.contains(answer), "{all}");
    }
    let (code, _, all) = acpx(&["set-mode", "plan"]);
    assert_eq!(code, Some(0), "{all}");
    let (code, _, all) = acpx(&["sessions", "close"]);
    assert_eq!(code, Some(0), "{all}");
    assert_eq!(world.home.sessions().len(), before + 1, "both prompts are one session's");
}
