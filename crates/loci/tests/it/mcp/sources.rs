//! Where servers are written down, which of them count, and what is said of the others.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::{config, entry, mcp_tools};
use crate::settings::trust;
use crate::support::{World, print, stream};

/// Writes a project's file with one server.
fn write_project(world: &World, name: &str, args: &[&str]) {
    world.home.write(".mcp.json", config(json!({name: entry(args)})));
}

#[tokio::test]
async fn servers_of_a_folder_that_is_not_trusted_are_not_started() {
    let world = World::new(Step::text("Done.")).await;
    let started = world.home.project().join("started");
    write_project(&world, "p", &["--started", &started.display().to_string()]);
    // A repository cannot approve of itself.
    world.home.write(".claude/settings.json", json!({"enableAllProjectMcpServers": true}).to_string());
    let output = world.run(&print(["hi", "--output-format", "stream-json", "--verbose"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stderr.contains("not trusted") && output.stderr.contains("loci config trust"),
        "{}",
        output.stderr
    );
    assert!(!started.exists() && mcp_tools(&world.last_request()).is_empty());
    let init = output.json_lines().into_iter().find(|frame| frame["subtype"] == "init").unwrap();
    assert_eq!(init["mcp_server_errors"][0]["type"], "untrusted_folder", "{init}");
    trust(&world);
    let world = world.then(Step::text("Done.")).await;
    let output = world.run(&print(["hi"]));
    assert_eq!(output.stderr, "");
    assert!(started.exists() && !mcp_tools(&world.last_request()).is_empty());
}

#[tokio::test]
async fn project_file_is_found_from_a_sub_directory_and_the_nearer_one_wins() {
    let world = World::with_git([Step::text("Done.")]).await;
    trust(&world);
    let server = |tool: &str| entry(&["--tools", tool]);
    world.home.write(".mcp.json", config(json!({"a": server("root"), "b": server("root")})));
    world.home.write("deep/er/file", "");
    world.home.write("deep/.mcp.json", config(json!({"b": server("deep")})));
    let output = world.run(&print(["hi"]).cwd(world.home.project().join("deep/er")));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert_eq!(mcp_tools(&world.last_request()), ["mcp__a__root", "mcp__b__deep"]);
}

#[tokio::test]
async fn scopes_win_as_wholes_and_strict_leaves_the_flag_alone() {
    let world = World::new(Step::text("Done.")).await;
    let server = |tool: &str| entry(&["--tools", tool]);
    let project = world.home.project().display().to_string();
    world.home.write(
        ".mcp.json",
        config(json!({"b": server("project"), "c": server("project"), "d": server("project")})),
    );
    let state = json!({
        "mcpServers": {"a": server("user"), "b": server("user"), "c": server("user"), "d": server("user")},
        "projects": {project: {
            "hasTrustDialogAccepted": true, "mcpServers": {"c": server("local"), "d": server("local")},
            "disabledMcpServers": ["e"],
        }},
    });
    world.home.write_home(".claude.json", state.to_string());
    let flag = config(json!({"d": server("flag"), "e": server("never")}));
    world.run(&print(["hi", "--mcp-config", &flag]));
    assert_eq!(
        mcp_tools(&world.last_request()),
        ["mcp__a__user", "mcp__b__project", "mcp__c__local", "mcp__d__flag"]
    );
    let world = world.then(Step::text("Done.")).await;
    world.run(&print(["hi", "--strict-mcp-config", "--mcp-config", &flag]));
    assert_eq!(mcp_tools(&world.last_request()), ["mcp__d__flag"]);
    let world = world.then(Step::text("Done.")).await;
    world.run(&print(["hi", "--setting-sources", "user"]));
    assert_eq!(
        mcp_tools(&world.last_request()),
        ["mcp__a__user", "mcp__b__user", "mcp__c__local", "mcp__d__local"]
    );
    let world = world.then(Step::text("Done.")).await;
    world.run(&print(["hi", "--bare"]));
    assert!(mcp_tools(&world.last_request()).is_empty());
}

#[tokio::test]
async fn rejected_and_forbidden_servers_are_not_used() {
    let world = World::new(Step::text("Done.")).await;
    trust(&world);
    world.home.write(".mcp.json", config(json!({"no": entry(&[]), "yes": entry(&["--tools", "a"])})));
    world.home.write(".claude/settings.json", json!({"disabledMcpjsonServers": ["no"]}).to_string());
    let denied = json!({"deniedMcpServers": [{"serverName": "never"}]}).to_string();
    world.home.write_config("settings.json", denied);
    let flag = config(json!({"never": entry(&[])}));
    let output = world.run(&print(["hi", "--mcp-config", &flag]));
    assert_eq!(mcp_tools(&world.last_request()), ["mcp__yes__a"]);
    assert!(output.stderr.contains("`never`: settings forbid it"), "{}", output.stderr);
}

#[tokio::test]
async fn variables_are_filled_in_and_a_project_cannot_reach_our_key() {
    let world = World::new([
        Step::call("mcp__p__env", json!({"name": "A"})),
        Step::call("mcp__p__env", json!({"name": "KEY"})),
        Step::text("Done."),
    ])
    .await;
    trust(&world);
    let mut server = entry(&[]);
    server["env"] = json!({"A": "${HOME}/${NONE:-default}", "KEY": "${ANTHROPIC_API_KEY}"});
    world.home.write(".mcp.json", config(json!({"p": server})));
    let output = world.run(&print(["hi", "--allowedTools", "mcp__p"]));
    assert!(output.stderr.contains("the variable `ANTHROPIC_API_KEY` is not set"), "{}", output.stderr);
    let results: Vec<String> =
        world.requests().iter().flat_map(|it| it.tool_results()).map(|it| it.text).collect();
    assert_eq!(results[0], format!("{}/default", world.home.home().display()));
    assert_eq!(results.last().unwrap(), "${ANTHROPIC_API_KEY}");
}

#[tokio::test]
async fn broken_flag_ends_the_run_and_a_broken_project_file_does_not() {
    let world = World::new(Step::text("Done.")).await;
    for (flag, said) in [
        ("{", "Not valid JSON"),
        ("{}", "no `mcpServers`"),
        ("missing.json", "Failed to read MCP configuration"),
    ] {
        let output = world.run(&print(["hi", "--mcp-config", flag]));
        assert!(output.code == Some(1) && output.stderr.contains(said), "{flag}: {output:?}");
    }
    trust(&world);
    world.home.write(".mcp.json", "{\n  \"mcpServers\": {oops\n");
    let output = world.run(&print(["hi"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains(".mcp.json`: it cannot be read: line 2"), "{}", output.stderr);
}

#[tokio::test]
async fn clearing_the_conversation_keeps_the_servers() {
    let world = World::new([Step::text("a"), Step::text("b")]).await;
    let started = world.home.project().join("started");
    let servers = config(json!({"s": entry(&["--tools", "a", "--started", &started.display().to_string()])}));
    let lines = ["one", "/clear", "two"].map(crate::support::user);
    let lines: String = lines.iter().map(|line: &Value| format!("{line}\n")).collect();
    let output = world.run_with_stdin(&stream(["--mcp-config", &servers]), &lines);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(std::fs::read_to_string(&started).unwrap().lines().count(), 1, "it was started once");
    let offered: Vec<_> = world.requests().iter().map(mcp_tools).collect();
    assert_eq!(offered, [["mcp__s__a"], ["mcp__s__a"]]);
}
