//! Monitor end to end: lines are told as they come, within a turn and between turns; its end is told once.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::{has, main_session};
use crate::support::{Pipe, World, assert_fine, is_result, print, stream, user};

fn watch(command: &str) -> Step {
    Step::call("Monitor", json!({"command": command, "description": "the log"}))
}

#[tokio::test]
async fn idle_session_is_woken_by_each_line_and_by_the_end() {
    let world =
        World::new([watch("cat lines"), Step::text("Watching."), Step::text("Heard.").times(3)]).await;
    let pipe = Pipe::new(&world.home, "lines");
    let mut session = world.start(&stream(["--allowedTools", "Bash(cat:*)"]));
    session.write_json(&user("watch it"));
    assert_eq!(session.wait_for_json(is_result)["result"], "Watching.");
    let mut lines = pipe.reader_came();
    std::io::Write::write_all(&mut lines, b"ERROR one\n").unwrap();
    assert_eq!(session.wait_for_json(is_result)["result"], "Heard.");
    assert!(has(&world.last_request(), "ERROR one"));
    drop(lines);
    let ended = session.wait_for_json(|frame| frame["subtype"] == "task_notification");
    assert_eq!(ended["status"], "completed");
    assert_eq!(session.wait_for_json(is_result)["result"], "Heard.");
    let output = session.finish();
    assert_fine(&output);
    let started: Vec<Value> =
        output.json_lines().into_iter().filter(|it| it["subtype"] == "task_started").collect();
    assert_eq!((started.len(), &started[0]["task_type"]), (1, &json!("monitor")));
    let told: Vec<String> = main_session(&world)
        .iter()
        .filter(|it| it["origin"]["kind"] == "task-notification")
        .map(|it| it["message"]["content"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(told.iter().filter(|text| text.contains("<status>completed</status>")).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|text| text.contains("ERROR one")).count(), 1, "{told:?}");
}

#[tokio::test]
async fn rules_for_bash_govern_monitors() {
    for (flags, is_denied) in [
        (&["--allowedTools", "Bash(true:*)"][..], false),
        (&["--allowedTools", "Monitor"], false),
        (&[], true),
        (&["--allowedTools", "Monitor", "--disallowedTools", "Bash(true:*)"], true),
    ] {
        let world = World::new([watch("true"), Step::text("ok").times(3)]).await;
        let output = world.run(&print(["go", "--output-format", "json"]).args(flags.iter().copied()));
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        let denied = result["permission_denials"].as_array().unwrap();
        assert_eq!(!denied.is_empty(), is_denied, "{flags:?}: {denied:?}");
    }
}

#[tokio::test]
async fn monitor_that_ended_with_its_session_is_told_when_that_goes_on() {
    let world = World::new([watch("echo seen; sleep 600"), Step::text("Watching.").times(2)]).await;
    let mut session = world.start(&stream(["--allowedTools", "Bash"]));
    session.write_json(&user("watch it"));
    session.wait_for_json(is_result);
    session.wait_for_json(is_result);
    session.crash();
    let world = world.then([Step::text("I see.")]).await;
    assert_eq!(world.run(&print(["-c", "and?"])).code, Some(0));
    let request = world.last_request();
    assert!(has(&request, "Not running any more") && has(&request, "echo seen; sleep 600"));
}

/// Starts a feed; returns it and its port.
fn feed() -> (std::process::Child, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agents/socket_feed.py");
    let mut feed = std::process::Command::new("python3")
        .arg(script)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("python3 is there");
    let mut port = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(feed.stdout.as_mut().unwrap()), &mut port)
        .unwrap();
    (feed, port.trim().to_owned())
}

#[tokio::test]
async fn socket_is_asked_about_and_its_messages_are_told() {
    let (mut feed, port) = feed();
    let call = json!({"ws": {"url": format!("ws://127.0.0.1:{port}/feed")}, "description": "the builds"});
    let world = World::new([Step::call("Monitor", call), Step::text("Heard.").times(4)]).await;
    // A rule names the host, for it is a private one; the rule for the tool does not keep people from being asked.
    let flags = ["--permission-prompt-tool", "stdio", "--allowedTools", "Monitor,WebFetch(domain:127.0.0.1)"];
    let mut session = world.start(&stream(flags));
    session.write_json(&user("watch the builds"));
    let question = session.wait_for_json(|frame| frame["request"]["subtype"] == "can_use_tool");
    assert_eq!(question["request"]["tool_name"], "Monitor");
    let suggestions = question["request"]["permission_suggestions"].as_array();
    assert!(suggestions.is_none_or(Vec::is_empty), "{question}");
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}});
    session.write_json(&json!({"type": "control_response", "response": response}));
    session.wait_for_json(|frame| frame["subtype"] == "task_notification");
    session.wait_for_json(is_result);
    let output = session.finish();
    assert_fine(&output);
    feed.kill().unwrap();
    feed.wait().unwrap();
    let told = serde_json::to_string(&main_session(&world)).unwrap();
    for part in ["build 7 failed", "in the linter", "[binary frame, 5 bytes]", "code 4001: enough"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[tokio::test]
async fn socket_on_this_machine_is_refused_unless_a_rule_names_it() {
    let call = json!({"ws": {"url": "ws://127.0.0.1:1/"}, "description": "d"});
    let world = World::new([Step::call("Monitor", call), Step::text("I see.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("watch"));
    let question = session.wait_for_json(|frame| frame["request"]["subtype"] == "can_use_tool");
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}});
    session.write_json(&json!({"type": "control_response", "response": response}));
    session.wait_for_json(is_result);
    session.finish();
    assert!(has(&world.last_request(), "a private network"));
}

#[tokio::test]
async fn socket_to_a_host_that_may_not_be_fetched_from_is_denied_unasked() {
    let call = json!({"ws": {"url": "wss://feed.bad.test/"}, "description": "d"});
    let world = World::new([Step::call("Monitor", call), Step::text("I see.")]).await;
    let flags = ["--permission-prompt-tool", "stdio", "--disallowedTools", "WebFetch(domain:*.bad.test)"];
    let mut session = world.start(&stream(flags));
    session.write_json(&user("watch"));
    let result = session.wait_for_json(is_result);
    session.finish();
    assert_eq!(result["permission_denials"][0]["tool_name"], "Monitor", "{result}");
    assert!(world.last_request().tool_results()[0].is_error);
}
