//! Servers and hooks that ask for a sandbox of their own beside their command.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::{config, entry};
use crate::sandbox::has_full;
use crate::settings::tool_result;
use crate::support::{World, print};

/// Has a server with this sandbox try to write; returns what it could.
async fn written(sandbox: Value, files: &[&str]) -> Option<String> {
    let world = World::new([]).await;
    if !has_full(&world) {
        return None;
    }
    let world = world.then([Step::call("mcp__s__write", json!({"files": files})), Step::text("Done.")]).await;
    let mut server = entry(&[]);
    server["sandbox"] = sandbox;
    let servers = config(json!({"s": server}));
    let output = world.run(&print(["hi", "--allowedTools", "mcp__s", "--mcp-config", &servers]));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    Some(tool_result(&world))
}

#[tokio::test]
async fn sandboxed_server_writes_where_its_profile_says() {
    let files = ["in-project", "$TMPDIR/own", "$HOME/at-home"];
    let Some(nowhere) = written(json!({"enabled": true}), &files).await else { return };
    assert_eq!(nowhere, "OSError yes OSError", "nothing but its own temporary directory");
    let project = written(json!({"allowWrite": ["."]}), &["in-project", "$HOME/at-home", ".mcp.json"]).await;
    assert_eq!(project.unwrap(), "yes OSError PermissionError", "what steers tools stays shut");
    assert_eq!(written(json!({"enabled": false}), &["in-project"]).await.unwrap(), "yes");
}

#[tokio::test]
async fn server_whose_sandbox_cannot_be_read_is_not_started() {
    let world = World::new(Step::text("Done.")).await;
    let started = world.home.project().join("started");
    let mut server = entry(&["--started", &started.display().to_string()]);
    server["sandbox"] = json!({"enabled": true, "network": "everywhere"});
    let output = world.run(&print(["hi", "--mcp-config", &config(json!({"s": server}))]));
    assert!(output.stderr.contains("`network` of its `sandbox`"), "{}", output.stderr);
    assert!(!started.exists(), "it was not started");
}

#[tokio::test]
async fn sandboxed_hook_runs_and_cannot_write_elsewhere() {
    let world = World::new(Step::text("Done.")).await;
    if !has_full(&world) {
        return;
    }
    let project = world.home.project();
    let script = "touch in-project; touch allowed/file; touch $TMPDIR/own && echo from the sandbox";
    std::fs::create_dir(project.join("allowed")).unwrap();
    let hook = json!({"type": "command", "command": script, "sandbox": {"allowWrite": ["allowed"]}});
    let hooks = json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}});
    world.home.write_config("settings.json", hooks.to_string());
    let output = world.run(&print(["hi"]));
    assert_eq!(output.stdout, "Done.\n", "{output:?}");
    let asked = world.last_request().messages().last().unwrap().to_string();
    assert!(asked.contains("from the sandbox"), "its output counts: {asked}");
    assert!(!project.join("in-project").exists() && project.join("allowed/file").exists());
}
