//! What MCP servers may not do: become something else unnoticed, pass for a built-in tool, go around a person,
//! see what is not theirs.

use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use super::{config, entry, mcp_tools, with_server};
use crate::settings::{tool_result, trust};
use crate::support::{World, is_result, loci, print, stream, user};

/// Runs `-p` and returns the MCP tools of its request, and what was said.
fn run(world: &World, binary: &Binary) -> (Vec<String>, String) {
    let output = world.run(binary);
    assert_eq!(output.code, Some(0), "{output:?}");
    (mcp_tools(&world.last_request()), output.stderr)
}

#[tokio::test]
async fn changed_definition_of_a_project_server_waits_for_approval() {
    let world = World::new(Step::text("Done.")).await;
    trust(&world);
    let write = |world: &World, tools: &str| {
        world.home.write(
            ".mcp.json",
            config(json!({"p": entry(&["--tools", tools]), "q": entry(&["--tools", "z"])})),
        );
    };
    write(&world, "a");
    let both = vec!["mcp__p__a".to_owned(), "mcp__q__z".to_owned()];
    assert_eq!(run(&world, &print(["hi"])), (both, String::new()));
    write(&world, "b");
    let world = world.then(Step::text("Done.")).await;
    let output = world.run(&print(["hi", "--output-format", "stream-json", "--verbose"]));
    assert_eq!(mcp_tools(&world.last_request()), ["mcp__q__z"], "the other one is as it was");
    assert!(output.stderr.contains("has changed since it was approved"), "{}", output.stderr);
    assert!(output.stderr.contains("`loci mcp approve p`"), "{}", output.stderr);
    let init = output.json_lines().into_iter().find(|frame| frame["subtype"] == "init").unwrap();
    assert_eq!(init["mcp_server_errors"][0]["type"], "changed_definition", "{init}");
    let mcp = |args: &[&str]| world.run(&loci().arg("mcp").args(args.iter().copied()));
    assert!(mcp(&["list", "--no-check"]).stdout.contains("needs your approval"));
    assert_eq!(mcp(&["approve", "none"]).code, Some(1));
    assert_eq!(mcp(&["approve", "p"]).stdout, "Approved of what is written down now: p\n");
    let world = world.then(Step::text("Done.")).await;
    assert_eq!(run(&world, &print(["hi"])).0, ["mcp__p__b", "mcp__q__z"]);
    // A file that says nothing readable approves of nothing.
    world.home.write_config("loci/mcp-approvals.json", "{");
    let world = world.then(Step::text("Done.")).await;
    let (tools, said) = run(&world, &print(["hi"]));
    assert!(tools.is_empty() && said.contains("Failed to parse approvals"), "{tools:?} {said}");
}

#[tokio::test]
async fn changed_tools_of_a_project_server_are_told() {
    let world = World::new(Step::text("Done.")).await;
    trust(&world);
    world.home.write(".mcp.json", config(json!({"p": entry(&["--tools", "${TOOLS}"])})));
    let (tools, said) = run(&world, &print(["hi"]).env("TOOLS", "a,b"));
    assert_eq!((tools.len(), said.as_str()), (2, ""), "what it is at first is what it is");
    let world = world.then(Step::text("Done.")).await;
    let (_, said) = run(&world, &print(["hi"]).env("TOOLS", "a,c"));
    assert!(said.contains("`p` of this project is not what it was"), "{said}");
    assert!(said.contains("new tools `mcp__p__c`; tools that are gone `mcp__p__b`"), "{said}");
    let world = world.then(Step::text("Done.")).await;
    assert_eq!(run(&world, &print(["hi"]).env("TOOLS", "a,c")).1, "", "once is enough");
}

#[tokio::test]
async fn tool_that_wants_a_person_is_asked_about_whatever_rules_and_modes_say() {
    let call = || [Step::call("mcp__s__confirm", json!({})), Step::text("Done.")];
    let world = World::new(call()).await;
    let run = with_server(&[]).args(["--permission-mode", "acceptEdits", "--output-format", "json"]);
    let output = world.run(&run);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(result["permission_denials"][0]["tool_name"], "mcp__s__confirm", "{output:?}");
    let world = world.then(call()).await;
    let servers = config(json!({"s": entry(&[])}));
    let flags = ["--allowedTools", "mcp__s", "--permission-prompt-tool", "stdio", "--mcp-config", &servers];
    let mut session = world.start(&stream(flags));
    session.write_json(&user("go"));
    let asked = session.wait_for_json(|frame| frame["request"]["subtype"] == "can_use_tool");
    assert_eq!(asked["request"]["tool_name"], "mcp__s__confirm");
    assert!(asked["request"]["permission_suggestions"].as_array().is_none_or(Vec::is_empty), "{asked}");
    session.write_json(&json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": asked["request_id"],
        "response": {"behavior": "allow", "updatedInput": {}},
    }}));
    session.wait_for_json(is_result);
    session.close_stdin();
    session.finish();
    assert_eq!(tool_result(&world), "confirm");
}

#[tokio::test]
async fn tool_that_is_called_like_a_built_in_one_is_neither_it_nor_covered_by_its_rules() {
    let world = World::new([Step::call("mcp__s__Bash", json!({})), Step::text("Done.")]).await;
    let servers = config(json!({"s": entry(&["--tools", "Bash,Read"])}));
    let output = world.run(&print([
        "hi",
        "--output-format",
        "json",
        "--allowedTools",
        "Bash,Read",
        "--mcp-config",
        &servers,
    ]));
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(result["permission_denials"][0]["tool_name"], "mcp__s__Bash", "{output:?}");
    let names: Vec<String> = world.requests()[0].tool_names().into_iter().map(str::to_owned).collect();
    assert_eq!(names.iter().filter(|name| *name == "Bash").count(), 1, "the built-in one is alone");
    assert!(names.contains(&"mcp__s__Read".to_owned()));
}

#[tokio::test]
async fn server_does_not_see_what_is_another_servers() {
    let asks = |name: &str| Step::call("mcp__b__env", json!({"name": name}));
    let world = World::new([asks("SECRET_OF_A"), asks("OWN"), Step::text("Done.")]).await;
    let [mut a, mut b] = [entry(&[]), entry(&[])];
    a["env"] = json!({"SECRET_OF_A": "hidden"});
    b["env"] = json!({"OWN": "mine"});
    world.run(&print(["hi", "--allowedTools", "mcp__b", "--mcp-config", &config(json!({"a": a, "b": b}))]));
    let results: Vec<String> =
        world.requests().iter().flat_map(|it| it.tool_results()).map(|it| it.text).collect();
    assert_eq!((results.first().unwrap().as_str(), results.last().unwrap().as_str()), ("(unset)", "mine"));
}

/// The entry of a server that is not there, with a helper that leaves its environment in a file.
fn with_helper(file: &std::path::Path) -> Value {
    let helper = format!("(pwd; env) > '{}'; echo '{{}}'", file.display());
    json!({"type": "http", "url": "http://127.0.0.1:9/mcp", "headersHelper": helper})
}

#[tokio::test]
async fn helper_of_a_project_runs_without_credentials_and_only_where_the_folder_itself_is_trusted() {
    let world = World::new(Step::text("Done.")).await;
    let seen = world.home.project().join("seen");
    world.home.write(".mcp.json", config(json!({"p": with_helper(&seen)})));
    let around = world.home.project().parent().unwrap().display().to_string();
    let state = json!({"projects": {around: {"hasTrustDialogAccepted": true}}});
    world.home.write_home(".claude.json", state.to_string());
    let binary = print(["hi"]).env("MY_TOKEN", "t0ken").env("HARMLESS", "1").env("MCP_TIMEOUT", "5000");
    let output = world.run(&binary);
    assert!(output.stderr.contains("`p`: its headersHelper is not run"), "{}", output.stderr);
    assert!(!seen.exists());
    trust(&world);
    let world = world.then(Step::text("Done.")).await;
    let output = world.run(&binary);
    assert!(!output.stderr.contains("not run"), "{}", output.stderr);
    let env = std::fs::read_to_string(&seen).unwrap();
    assert!(env.contains("HARMLESS=1") && env.contains("CLAUDE_CODE_MCP_SERVER_NAME=p"), "{env}");
    assert!(!env.contains("t0ken") && !env.contains("ANTHROPIC_API_KEY"), "{env}");
    assert!(env.starts_with(&world.home.project().display().to_string()), "{env}");
}

#[tokio::test]
async fn helper_of_the_user_has_their_variables_and_runs_in_the_config_home() {
    let world = World::new(Step::text("Done.")).await;
    let seen = world.home.project().join("seen");
    world.home.write_home(".claude.json", config(json!({"u": with_helper(&seen)})));
    world.run(&print(["hi"]).env("MY_TOKEN", "t0ken").env("MCP_TIMEOUT", "5000"));
    let env = std::fs::read_to_string(&seen).unwrap();
    assert!(env.contains("MY_TOKEN=t0ken"), "{env}");
    assert!(env.starts_with(&world.home.config_home().display().to_string()), "{env}");
}
