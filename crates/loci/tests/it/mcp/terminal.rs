//! Servers at the terminal: their questions, their prompts' arguments, and calls that take too long.

use loci_testkit::{Screen, Step};
use serde_json::json;

use super::{config, entry, mcp_tools};
use crate::settings::{tool_result, trust};
use crate::support::World;

fn leave(mut screen: Screen) {
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    assert_eq!(screen.finish().output.code, Some(0));
}

/// The terminal does not wait for servers, so the model does.
fn wait() -> Step {
    Step::call("WaitForMcpServers", json!({}))
}

/// Starts the terminal with one server `s` whose calls are allowed, and has the model call a tool of it.
async fn calling(tool: &str, variables: &[(&str, &str)]) -> (World, Screen) {
    let call = Step::call(&format!("mcp__s__{tool}"), json!({}));
    let world = World::new([wait(), call, Step::text("Thank you.")]).await;
    let servers = config(json!({"s": entry(&["--all"])}));
    let args = ["--mcp-config", &servers, "--allowedTools", "mcp__s"];
    let mut screen = world.start_interface_with(args, variables, (100, 30));
    screen.wait_for("for shortcuts");
    screen.type_text("hi\r");
    (world, screen)
}

#[tokio::test]
async fn form_of_a_server_is_filled_in_at_the_terminal() {
    let (world, mut screen) = calling("ask", &[]).await;
    screen.wait_for("Who are you?");
    screen.wait_for("The MCP server `s` asks");
    screen.wait_for("name *:");
    // It takes keys once the typing has paused.
    screen.wait_for("Enter next");
    screen.type_text("Ada");
    screen.wait_for("name *: Ada");
    screen.type_text("\r\r");
    screen.wait_for("Thank you.");
    assert_eq!(tool_result(&world), r#"{"action": "accept", "content": {"name": "Ada"}}"#);
    leave(screen);
}

#[tokio::test]
async fn page_of_a_server_is_opened_in_a_browser_when_the_user_says_so() {
    let world = World::new([]).await;
    let opened = world.home.project().with_file_name("opened");
    let browser =
        world.home.write_home("browser", format!("#!/bin/sh\necho \"$1\" > '{}'\n", opened.display()));
    make_executable(&browser);
    let (world, mut screen) = calling("visit", &[("BROWSER", &browser.display().to_string())]).await;
    screen.wait_for("Log in there");
    screen.wait_for("https://example.com/login?state=1");
    assert!(!opened.exists(), "nothing is opened unasked");
    screen.wait_for("Enter to choose");
    screen.type_text("1");
    screen.wait_for("Thank you.");
    assert_eq!(tool_result(&world), r#"{"action": "accept"}"#);
    leave(screen);
    assert_eq!(std::fs::read_to_string(&opened).unwrap(), "https://example.com/login?state=1\n");
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn prompts_of_a_server_are_commands_as_soon_as_it_is_connected_and_it_completes_their_arguments() {
    let world = World::new([Step::text("Reviewed.")]).await;
    // It connects once this has been typed.
    let servers = config(json!({"s": entry(&["--all", "--delay", "1"])}));
    let mut screen = world.start_interface(["--mcp-config", &servers], (100, 30));
    screen.wait_for("for shortcuts");
    screen.type_text("/mcp__s__rev");
    screen.wait_for("/mcp__s__review <what> [how]");
    screen.type_text("\t");
    screen.type_text("ma");
    screen.wait_for("main.rs");
    screen.type_text("\t");
    screen.wait_for("/mcp__s__review main.rs");
    screen.type_text("ho");
    screen.wait_for("how-main.rs");
    screen.type_text("\t\r");
    screen.wait_for("Reviewed.");
    let asked = world.last_request().last_user_text();
    assert!(asked.contains(r#"Review: {"what": "main.rs", "how": "how-main.rs"}"#), "{asked}");
    leave(screen);
}

#[tokio::test]
async fn servers_of_a_project_are_approved_one_by_one_at_the_terminal() {
    let world = World::new([wait(), Step::text("Hello.")]).await;
    trust(&world);
    let servers = json!({"one": entry(&["--tools", "a"]), "two": entry(&["--tools", "b"])});
    world.home.write(".mcp.json", config(servers));
    let mut screen = world.start_interface([], (100, 40));
    screen.wait_for("This project has MCP servers of its own");
    screen.wait_for("☐ two");
    screen.wait_for("Space to tick");
    screen.type_text("2");
    screen.wait_for("☒ two");
    screen.type_text("3");
    screen.wait_for("for shortcuts");
    screen.type_text("hi\r");
    screen.wait_for("Hello.");
    assert_eq!(mcp_tools(&world.last_request()), ["mcp__two__b"]);
    leave(screen);
    let kept: serde_json::Value =
        serde_json::from_str(&world.home.read(".claude/settings.local.json")).unwrap();
    assert_eq!(kept, json!({"enabledMcpjsonServers": ["two"], "disabledMcpjsonServers": ["one"]}));
    // What was decided is not asked again, and counts without a terminal, too.
    let world = world.then([Step::text("Hello.")]).await;
    world.run(&crate::support::print(["hi"]));
    assert_eq!(mcp_tools(&world.last_request()), ["mcp__two__b"]);
}

#[tokio::test]
async fn long_call_goes_on_in_the_background_and_its_end_is_told() {
    let world = World::new([]).await;
    let gate = world.home.project().with_file_name("gate");
    let call = Step::call("mcp__s__gated", json!({"file": gate}));
    let world = world.then([wait(), call, Step::text("I wait."), Step::text("It is open.")]).await;
    let servers = config(json!({"s": entry(&[])}));
    let args = ["--mcp-config", &servers, "--allowedTools", "mcp__s"];
    let variables = [("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", "200")];
    let mut screen = world.start_interface_with(args, &variables, (100, 30));
    screen.wait_for("for shortcuts");
    screen.type_text("hi\r");
    screen.wait_for("I wait.");
    let told = tool_result(&world);
    assert!(told.contains("After 0.2 s the call goes on in the background as task"), "{told}");
    std::fs::write(&gate, "").unwrap();
    screen.wait_for("It is open.");
    let news = world.last_request().messages().last().unwrap().to_string();
    assert!(news.contains("task-notification") && news.contains("the gate is open"), "{news}");
    assert!(news.contains("image/png") && news.contains(".png"), "a picture is a file there: {news}");
    leave(screen);
}

#[tokio::test]
async fn call_of_a_run_without_a_terminal_is_waited_for() {
    let world = World::new([]).await;
    let gate = world.home.write("gate", "");
    let call = Step::call("mcp__s__gated", json!({"file": gate}));
    let world = world.then([call, Step::text("Done.")]).await;
    let servers = config(json!({"s": entry(&[])}));
    let run = crate::support::print(["hi", "--allowedTools", "mcp__s", "--mcp-config", &servers]);
    world.run(&run.env("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", "1"));
    let message = world.last_request().messages().last().unwrap().to_string();
    assert!(message.contains("the gate is open") && !message.contains("background"), "{message}");
}
