//! Tools that the model looks for: what is sent of them, when, and that it stays where it was.

use loci_testkit::{Binary, Recorded, Step};
use serde_json::{Value, json};

use crate::support::{World, loci, print};

fn server(name: &str, more: Value) -> String {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py");
    let mut entry = json!({"command": "python3", "args": [script, "--tools", "echo,other"]});
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    json!({"mcpServers": {name: entry}}).to_string()
}

#[tokio::test]
async fn tool_that_asks_for_it_is_always_told_in_full() {
    let world = World::new([Step::text("Done.")]).await;
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py");
    let entry =
        json!({"command": "python3", "args": [script, "--tools", "echo,other,third", "--always", "other"]});
    let servers = json!({"mcpServers": {"s": entry}}).to_string();
    world.run(&print(["hi", "--mcp-config", &servers]).env("ENABLE_TOOL_SEARCH", "true"));
    let request = world.requests().pop().unwrap();
    let names = request.tool_names();
    let is_sent = |name: &str| names.contains(&name);
    assert_eq!(
        (is_sent("mcp__s__other"), is_sent("mcp__s__echo"), is_sent("mcp__s__third")),
        (true, false, false),
        "{names:?}"
    );
}

/// `loci -p` with one server `s`, whose calls are allowed, and tools that are looked for.
fn searching<const N: usize>(args: [&str; N]) -> Binary {
    let servers = server("s", json!({}));
    let binary = print(args).args(["--allowedTools", "mcp__s", "--mcp-config", &servers]);
    binary.env("ENABLE_TOOL_SEARCH", "true")
}

fn search(query: &str) -> Step {
    Step::call("ToolSearch", json!({"query": query}))
}

/// Returns the tools of a request, as they were sent.
fn tools(request: &Recorded) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    body["tools"].as_array().unwrap().clone()
}

fn reminders(request: &Recorded) -> String {
    Value::from(request.messages().to_vec()).to_string()
}

#[tokio::test]
async fn deferred_tools_are_named_then_found_then_called() {
    let world = World::new([
        Step::call("mcp__s__other", json!({})),
        search("select:mcp__s__echo"),
        Step::call("mcp__s__echo", json!({"x": 1})),
        search("notebook"),
        Step::text("Done."),
    ])
    .await;
    let output = world.run(&searching(["hi"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = world.requests();
    let names = requests[0].tool_names();
    for name in ["Bash", "Read", "Edit", "Write", "Grep", "Agent", "ToolSearch"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for name in ["mcp__s__echo", "TaskCreate", "NotebookEdit", "CronCreate"] {
        assert!(!names.contains(&name) && reminders(&requests[0]).contains(name), "{name}: {names:?}");
    }
    assert!(requests[0].header("anthropic-beta").unwrap().contains("advanced-tool-use"));
    let refused = reminders(&requests[1]);
    assert!(refused.contains("has not been looked for yet"), "{refused}");
    // What was found comes behind the others, in the order it was found, and nothing else moves.
    let found = tools(&requests[3]);
    assert_eq!(found[..found.len() - 1], tools(&requests[0])[..]);
    assert_eq!(
        (&found[found.len() - 1]["name"], &found[found.len() - 1]["defer_loading"]),
        (&json!("mcp__s__echo"), &json!(true))
    );
    let result = &requests[2].messages().last().unwrap()["content"][0];
    assert_eq!(requests[2].messages().len(), 5);
    assert_eq!(
        result["content"],
        json!([{"type": "tool_reference", "tool_name": "mcp__s__echo"}]),
        "{result}"
    );
    assert!(reminders(&requests[3]).contains(r#"{\"x\": 1}"#));
    let last = tools(&requests[4]);
    assert_eq!(last[..found.len()], found[..]);
    assert_eq!(last[found.len()]["name"], "NotebookEdit");
}

#[tokio::test]
async fn resumed_session_sends_the_same_bytes() {
    let world = World::new([search("select:mcp__s__other,TaskList"), Step::text("One.")]).await;
    world.run(&searching(["hi"]));
    let before = world.requests().pop().unwrap();
    let world = world.then([Step::text("Two.")]).await;
    world.run(&searching(["-c", "again"]));
    let after = world.requests().pop().unwrap();
    assert_eq!(tools(&before), tools(&after));
    let n = before.messages().len() - 1;
    assert_eq!(before.messages()[..n], after.messages()[..n]);
    // Without the server its tool cannot be referred to any more; what was said stays valid.
    let world = world.then([Step::text("Three.")]).await;
    world.run(&print(["-c", "and again"]).env("ENABLE_TOOL_SEARCH", "true"));
    let gone = world.requests().pop().unwrap();
    assert!(reminders(&gone).contains("mcp__s__other was found here and is not there any more"), "{gone:?}");
    let world = world.then([Step::text("Four.")]).await;
    world.run(&searching(["-c", "once more"]).env("ENABLE_TOOL_SEARCH", "false"));
    let plain = world.requests().pop().unwrap();
    assert!(!reminders(&plain).contains("\"tool_reference\"") && plain.tool_names().contains(&"TaskList"));
}

#[tokio::test]
async fn found_tools_outlast_a_compaction() {
    let world = World::new([
        search("select:mcp__s__echo"),
        Step::text("One."),
        Step::text("<summary>Looked for a tool.</summary>"),
        Step::call("mcp__s__echo", json!({"y": 2})),
        Step::text("Two."),
    ])
    .await;
    world.run(&searching(["hi"]));
    world.run(&searching(["-c", "/compact"]));
    world.run(&searching(["-c", "go on"]));
    let requests = world.requests();
    let after = requests.last().unwrap();
    let echo = tools(after).into_iter().find(|tool| tool["name"] == "mcp__s__echo").unwrap();
    assert_eq!(echo.get("defer_loading"), None, "nothing is cached any more, so it is an ordinary tool");
    assert!(reminders(after).contains("looked for earlier") && reminders(after).contains(r#"{\"y\": 2}"#));
    let world = world.then([Step::text("Three.")]).await;
    world.run(&searching(["-c", "and on"]));
    assert_eq!(tools(after), tools(world.requests().last().unwrap()), "a resume sends the same");
}

#[tokio::test]
async fn tool_search_follows_variable_rules_and_entries() {
    let with = |variable: &str, more: Value, args: &[&str]| {
        print(["hi", "--mcp-config", &server("s", more)])
            .args(args.iter().copied())
            .env("ENABLE_TOOL_SEARCH", variable)
    };
    for (binary, is_on, sends_server) in [
        // Requests go to a server of the user's own choice here.
        (print(["hi", "--mcp-config", &server("s", json!({}))]), false, true),
        (with("false", json!({}), &[]), false, true),
        (with("auto", json!({}), &[]), false, true),
        (with("auto:0", json!({}), &[]), true, false),
        (with("true", json!({"alwaysLoad": true}), &[]), true, true),
        (with("true", json!({}), &["--disallowedTools", "ToolSearch"]), false, true),
        (
            loci()
                .args([
                    "-p",
                    "hi",
                    "--model",
                    "claude-3-5-haiku-latest",
                    "--mcp-config",
                    &server("s", json!({})),
                ])
                .env("ENABLE_TOOL_SEARCH", "true"),
            false,
            true,
        ),
        (with("true", json!({}), &[]).env("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"), false, true),
    ] {
        let world = World::new([Step::text("Done.")]).await;
        let output = world.run(&binary);
        let request = world.requests().pop().unwrap();
        let names = request.tool_names();
        let found = (names.contains(&"ToolSearch"), names.contains(&"mcp__s__echo"));
        assert_eq!(found, (is_on, sends_server), "{:?} {output:?}", binary.command_line());
        assert_eq!(names.contains(&"TaskCreate"), !is_on);
    }
}
