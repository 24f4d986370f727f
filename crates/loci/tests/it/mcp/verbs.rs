//! `loci mcp`: entries that are written, listed and taken away, beside whatever else the files hold.

use loci_testkit::{Output, Step};
use serde_json::{Value, json};

use super::entry;
use crate::settings::trust;
use crate::support::{World, loci};

async fn world() -> World {
    World::new(Step::text("x")).await
}

fn mcp(world: &World, args: &[&str]) -> Output {
    world.run(&loci().arg("mcp").args(args.iter().copied()))
}

fn state(world: &World) -> Value {
    serde_json::from_str(&std::fs::read_to_string(world.home.home().join(".claude.json")).unwrap()).unwrap()
}

#[tokio::test]
async fn servers_are_added_to_their_scope_and_other_keys_stay() {
    let world = world().await;
    world.home.write_home(".claude.json", r#"{"unknown": [1], "mcpServers": {"old": {"command": "x"}}}"#);
    world.home.write(".mcp.json", r#"{"theirs": true, "mcpServers": {}}"#);
    for args in [
        &["add", "-e", "A=1", "-e", "B=x=y", "prog", "--", "npx", "-y", "--flag", "thing"][..],
        &["add", "-s", "user", "-t", "http", "-H", "X-Key: a:b", "web", "https://example.com/mcp"],
        // Options behind the address, and several variables at once.
        &["add", "-t", "http", "late", "https://example.com/late", "--header", "A: b", "--scope", "user"],
        &["add", "--env", "A=1", "B=2", "--transport", "stdio", "pairs", "--", "npx", "-y"],
        &["add-json", "-s", "project", "shared", r#"{"type":"sse","url":"https://example.com/sse"}"#],
    ] {
        let output = mcp(&world, args);
        assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
    }
    let state = state(&world);
    let project = world.home.project().display().to_string();
    let local = json!({"type": "stdio", "command": "npx", "args": ["-y", "--flag", "thing"], "env": {"A": "1", "B": "x=y"}});
    assert_eq!(state["projects"][&project]["mcpServers"]["prog"], local);
    let web = json!({"type": "http", "url": "https://example.com/mcp", "headers": {"X-Key": "a:b"}});
    assert_eq!((&state["mcpServers"]["web"], &state["unknown"]), (&web, &json!([1])));
    assert_eq!(state["mcpServers"]["old"], json!({"command": "x"}));
    assert_eq!(state["mcpServers"]["late"]["headers"], json!({"A": "b"}));
    assert_eq!(state["projects"][&project]["mcpServers"]["pairs"]["env"], json!({"A": "1", "B": "2"}));
    let file: Value = serde_json::from_str(&world.home.read(".mcp.json")).unwrap();
    assert_eq!((&file["theirs"], &file["mcpServers"]["shared"]["type"]), (&json!(true), &json!("sse")));
}

#[tokio::test]
async fn servers_of_claude_desktop_are_copied_and_bad_ones_are_named() {
    let world = world().await;
    let file = match cfg!(target_os = "macos") {
        true => "Library/Application Support/Claude/claude_desktop_config.json",
        false => ".config/Claude/claude_desktop_config.json",
    };
    let output = mcp(&world, &["add-from-claude-desktop"]);
    assert!(output.code == Some(1) && output.stderr.contains(file), "{output:?}");
    let good = json!({"command": "npx", "args": ["-y", "x"]});
    let servers = json!({"good": good, "workspace": {"command": "x"}, "bad": {"args": []}});
    world.home.write_home(file, json!({"mcpServers": servers, "theme": 1}).to_string());
    let output = mcp(&world, &["add-from-claude-desktop", "-s", "user"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    for said in ["Added `good`", "Left out `workspace`", "Left out `bad`"] {
        assert!(output.stdout.contains(said), "{said}: {}", output.stdout);
    }
    assert_eq!(state(&world)["mcpServers"], json!({"good": good}));
}

#[tokio::test]
async fn bad_names_and_entries_are_refused_and_change_nothing() {
    let world = world().await;
    assert_eq!(mcp(&world, &["add", "taken", "--", "x"]).code, Some(0));
    for (args, said) in [
        (&["add", "taken", "--", "x"][..], "already"),
        (&["add", "workspace", "--", "x"], "reserved"),
        (&["add", "a b", "--", "x"], "Not a name"),
        (&["add", "-e", "novalue", "n", "--", "x"], "Not a variable"),
        (&["add", "-t", "http", "n", "nonsense"], "no address"),
        (&["add-json", "n", "{"], "not valid JSON"),
        (&["add-json", "n", "{}"], "no `command`"),
        (&["remove", "none"], "No MCP server is called"),
        (&["get", "none"], "No MCP server is called"),
    ] {
        let output = mcp(&world, args);
        assert!(output.code == Some(1) && output.stderr.contains(said), "{args:?}: {output:?}");
    }
    let denied = json!({"deniedMcpServers": [{"serverName": "never"}]}).to_string();
    world.home.write_config("settings.json", denied);
    let output = mcp(&world, &["add", "never", "--", "x"]);
    assert!(output.code == Some(1) && output.stderr.contains("settings forbid it"), "{output:?}");
    let project = world.home.project().display().to_string();
    assert_eq!(state(&world)["projects"][&project]["mcpServers"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn server_in_two_scopes_is_removed_from_the_one_that_is_named() {
    let world = world().await;
    mcp(&world, &["add", "s", "--", "x"]);
    mcp(&world, &["add", "-s", "user", "s", "--", "x"]);
    let output = mcp(&world, &["remove", "s"]);
    assert!(output.code == Some(1) && output.stderr.contains("-s local"), "{output:?}");
    assert_eq!(mcp(&world, &["remove", "s", "-s", "user"]).code, Some(0));
    assert_eq!(mcp(&world, &["remove", "s"]).code, Some(0));
    assert_eq!(mcp(&world, &["remove", "s"]).code, Some(1));
}

#[tokio::test]
async fn list_and_get_say_whether_servers_can_be_used_and_logs_why_not() {
    let world = world().await;
    assert!(mcp(&world, &["list"]).stdout.contains("No MCP servers are configured"));
    mcp(&world, &["add-json", "good", &entry(&["--tools", "a"]).to_string()]);
    mcp(&world, &["add", "bad", "--", "sh", "-c", "echo broken >&2; exit 4"]);
    world.home.write(".mcp.json", json!({"mcpServers": {"p": entry(&[])}}).to_string());
    let listed = mcp(&world, &["list"]).stdout;
    for part in ["good: python3", "(local) - ✓ connected, 1 tools", "✗ cannot be used", "not trusted"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let got = mcp(&world, &["get", "good"]).stdout;
    assert!(got.contains("Status: ✓ connected") && got.contains("Tools: mcp__good__a"), "{got}");
    assert!(mcp(&world, &["logs", "bad"]).stdout.contains("broken"), "{:?}", mcp(&world, &["logs", "bad"]));
    assert!(mcp(&world, &["logs", "never"]).stdout.contains("has no log"));
}

#[tokio::test]
async fn choices_about_a_project_are_forgotten() {
    let world = world().await;
    trust(&world);
    world.home.write(".mcp.json", json!({"mcpServers": {"p": entry(&["--tools", "a"])}}).to_string());
    world.home.write(
        ".claude/settings.local.json",
        json!({"disabledMcpjsonServers": ["p"], "model": "opus"}).to_string(),
    );
    assert!(mcp(&world, &["list", "--no-check"]).stdout.contains("✗ rejected"));
    assert_eq!(mcp(&world, &["reset-project-choices"]).code, Some(0));
    let settings: Value = serde_json::from_str(&world.home.read(".claude/settings.local.json")).unwrap();
    assert_eq!(settings, json!({"model": "opus"}));
    assert!(mcp(&world, &["list", "--no-check"]).stdout.contains("⏸ needs your approval"));
}

#[tokio::test]
async fn servers_of_a_project_are_approved_and_rejected_by_name() {
    let world = world().await;
    let started = world.home.project().join("started");
    let server = entry(&["--tools", "a", "--started", &started.display().to_string()]);
    world.home.write(".mcp.json", json!({"mcpServers": {"p": server, "q": server}}).to_string());
    let refused = mcp(&world, &["approve", "p"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("not trusted"), "{refused:?}");
    trust(&world);
    let listed = mcp(&world, &["list"]).stdout;
    assert_eq!(listed.matches("⏸ needs your approval").count(), 2, "{listed}");
    assert!(!started.exists(), "nobody approved of them, so a look does not start them");
    assert!(mcp(&world, &["approve", "none"]).stderr.contains("No MCP server of this project"));
    assert_eq!(mcp(&world, &["approve", "p"]).stdout, "Approved of what is written down now: p\n");
    assert_eq!(mcp(&world, &["reject", "q"]).stdout, "Not used in this project from now on: q\n");
    let listed = mcp(&world, &["list"]).stdout;
    assert!(listed.contains("✓ connected, 1 tools") && listed.contains("✗ rejected"), "{listed}");
    assert!(mcp(&world, &["get", "q"]).stdout.contains("Status: ✗ rejected"));
    world.run(&crate::support::print(["hi"]));
    assert_eq!(
        super::mcp_tools(&world.last_request()),
        ["mcp__p__a"],
        "a rejection counts without a terminal"
    );
    // What another file rejects cannot be approved here.
    world.home.write_config("settings.json", json!({"disabledMcpjsonServers": ["q"]}).to_string());
    let refused = mcp(&world, &["approve", "q"]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("Another settings file rejects"),
        "{refused:?}"
    );
    assert!(mcp(&world, &["reject", "p"]).code == Some(0));
    let settings: Value = serde_json::from_str(&world.home.read(".claude/settings.local.json")).unwrap();
    assert_eq!(settings, json!({"enabledMcpjsonServers": ["q"], "disabledMcpjsonServers": ["p"]}));
}
