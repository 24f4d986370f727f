//! Hooks of settings, end to end: real scripts, a scripted model, and what each of them brings about.

mod answers;
mod background;
mod changes;
mod decisions;
mod deferral;
mod events;
mod faults;
pub(crate) mod handlers;
mod model_switch;
mod parity;
mod terminal;
mod verbs;

use serde_json::{Value, json};

use crate::support::{World, print};
use loci_testkit::Output;

/// Writes the user's settings with these hooks.
pub(crate) fn configure(world: &World, hooks: Value) {
    world.home.write_config("settings.json", json!({"hooks": hooks}).to_string());
}

/// One command for an event, with a matcher.
pub(crate) fn command(matcher: &str, command: &str) -> Value {
    json!([{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}])
}

/// A command that answers with an object.
pub(crate) fn answering(matcher: &str, answer: &Value) -> Value {
    command(matcher, &format!("cat >/dev/null; echo '{answer}'"))
}

/// What is specific to an event.
pub(crate) fn specific(event: &str, mut fields: Value) -> Value {
    fields["hookEventName"] = event.into();
    json!({"hookSpecificOutput": fields})
}

/// Runs one prompt with every permission given, and returns what was printed.
pub(crate) fn run(world: &World) -> Output {
    let binary = print(["go", "--permission-mode", "bypassPermissions", "--output-format", "json"]);
    let output = world.run(&binary.env("IS_SANDBOX", "1"));
    assert_eq!(output.code, Some(0), "{output:?}");
    output
}

/// Returns the payloads that a hook kept in a file, a line each.
pub(crate) fn kept(world: &World, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(world.home.project().join(file)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the last message of the last request, as text.
pub(crate) fn last_message(world: &World) -> String {
    let request = world.last_request();
    request.json["messages"].as_array().unwrap().last().unwrap().to_string()
}

/// Returns the result object that a run printed.
pub(crate) fn result(output: &Output) -> Value {
    output.json_lines().pop().unwrap()
}

/// Keeps what it reads in a file of the project.
pub(crate) const KEEP: &str = "cat >> kept.jsonl";
