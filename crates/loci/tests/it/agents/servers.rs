//! MCP servers that definitions bring along: started for the agent, ended with it, held back where nobody trusts the folder.

use loci_testkit::{Recorded, Script, Step};
use serde_json::{Value, json};

use super::{agent, define, is_agents};
use crate::mcp::{config, entry, mcp_tools};
use crate::settings::trust;
use crate::support::{World, assert_fine, print};

/// A conversation that sends out `db`, which asks its server something.
fn script() -> Script {
    Script::new([Step::call("Agent", agent("db", "x")), Step::text("ok")]).route(
        [Step::call("mcp__s__echo", json!({"text": "hello"})), Step::text("It said hello.")],
        is_agents,
    )
}

fn given(servers: Value) -> String {
    json!({"db": {"description": "d", "prompt": "You ask.", "tools": ["Read"], "mcpServers": servers}})
        .to_string()
}

fn of_agent(world: &World) -> Vec<Recorded> {
    world.model.requests().into_iter().filter(is_agents).collect()
}

#[tokio::test]
async fn agent_has_its_own_server_as_long_as_it_works_and_nobody_else_has() {
    let world = World::new(script()).await;
    let started = world.home.project().join("started");
    let servers = json!([{"s": entry(&["--tools", "echo", "--started", &started.display().to_string()])}]);
    let output = world.run(&print(["go", "--agents", &given(servers), "--allowedTools", "mcp__s"]));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let asked = of_agent(&world);
    assert_eq!(asked[0].tool_names(), ["Read", "mcp__s__echo"], "its list need not name them");
    assert!(asked[1].tool_results()[0].text.contains("hello"));
    let main: Vec<_> = world.requests().into_iter().filter(|it| !is_agents(it)).collect();
    assert!(main.iter().all(|request| mcp_tools(request).is_empty()));
    let pids = std::fs::read_to_string(&started).unwrap();
    assert_eq!(pids.lines().count(), 1, "started once");
    let pid = pids.trim();
    assert!(!std::path::Path::new("/proc").join(pid).exists(), "{pid} has ended");
}

#[tokio::test]
async fn server_of_a_project_file_waits_for_trust() {
    let world = World::new(script()).await;
    let started = world.home.project().join("started");
    let Value::Object(server) = entry(&["--tools", "echo", "--started", &started.display().to_string()])
    else {
        panic!()
    };
    define(&world, "db", &format!("mcpServers:\n  - s: {}\n", Value::Object(server)), "You ask.");
    let output = world.run(&print(["go", "--allowedTools", "mcp__s"]));
    assert!(output.stderr.contains("`mcpServers` wait until this folder is trusted"), "{}", output.stderr);
    assert!(!started.exists() && mcp_tools(&of_agent(&world)[0]).is_empty());
    trust(&world);
    let world = world.then(script()).await;
    assert_fine(&world.run(&print(["go", "--allowedTools", "mcp__s"])));
    assert!(started.exists());
    assert_eq!(mcp_tools(&of_agent(&world)[0]), ["mcp__s__echo"]);
    let world = world.then(script()).await;
    let output = world.run(&print(["go", "--strict-mcp-config"]));
    assert!(output.stderr.contains("`s` are not started: only those of"), "{}", output.stderr);
    let world = world.then(script()).await;
    let denied = json!({"deniedMcpServers": [{"serverName": "s"}]}).to_string();
    let output = world.run(&print(["go", "--settings", &denied]));
    assert!(output.stderr.contains("The agent `db`:") && output.stderr.contains('s'), "{}", output.stderr);
    assert!(mcp_tools(&of_agent(&world)[0]).is_empty());
}

#[tokio::test]
async fn names_are_servers_of_the_session_and_those_that_are_not_there_are_told() {
    let world = World::new(script()).await;
    let servers = config(json!({"s": entry(&["--tools", "echo"]), "t": entry(&["--tools", "other"])}));
    let output = world.run(
        &print(["go", "--agents", &given(json!(["s", "gone"])), "--allowedTools", "mcp__s"])
            .args(["--mcp-config", &servers]),
    );
    assert!(output.stderr.contains("without the MCP server `gone`"), "{}", output.stderr);
    assert_eq!(of_agent(&world)[0].tool_names(), ["Read", "mcp__s__echo"]);
    assert!(of_agent(&world)[1].tool_results()[0].text.contains("hello"));
}

#[tokio::test]
async fn main_conversation_has_the_servers_and_only_the_tools_of_the_agent_it_runs_as() {
    let world = World::new([Step::call("mcp__s__echo", json!({})), Step::text("ok")]).await;
    let own = given(json!([{"s": entry(&["--tools", "echo"])}]));
    let others = config(json!({"t": entry(&["--tools", "other"])}));
    let output = world.run(
        &print(["go", "--agents", &own, "--agent", "db", "--allowedTools", "mcp__s"])
            .args(["--mcp-config", &others]),
    );
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert_eq!(world.last_request().tool_names(), ["Read", "mcp__s__echo"]);
    assert_eq!(world.last_request().tool_results()[0].text, "{}");
}

#[tokio::test]
async fn agent_whose_server_cannot_be_started_works_without() {
    let world = World::new(
        Script::new([Step::call("Agent", agent("db", "x")), Step::text("ok")])
            .route([Step::text("Without.")], is_agents),
    )
    .await;
    let servers = json!([{"s": {"command": "/nonexistent/server"}}]);
    let output = world.run(&print(["go", "--agents", &given(servers)]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("works without the MCP server `s`"), "{}", output.stderr);
    assert_eq!(of_agent(&world)[0].tool_names(), ["Read"]);
}
