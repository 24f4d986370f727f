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
