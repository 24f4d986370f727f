//! Agents end to end: sent out, answering, in the background, spoken to again, forked.

mod background;
mod definitions;
mod entered;
mod fields;
mod foreground;
mod forks;
mod forwarded;
mod hooks;
mod isolated;
mod killed;
mod listed;
mod main_agent;
mod messages;
mod monitor;
mod plans;
mod resumed;
mod rewound;
mod servers;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use loci_testkit::{Recorded, Step};
use serde_json::{Value, json};

use crate::support::World;

/// How long something may take to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a request is an agent's.
fn is_agents(request: &Recorded) -> bool {
    request.header("x-claude-code-agent-id").is_some()
}

/// A call that sends an agent out.
fn agent(kind: &str, prompt: &str) -> Value {
    json!({"description": "short task", "prompt": prompt, "subagent_type": kind})
}

fn in_background(kind: &str, prompt: &str) -> Value {
    let mut call = agent(kind, prompt);
    call["run_in_background"] = json!(true);
    call
}

/// A step that makes the same call so many times.
fn many(n: usize, call: &Value) -> Step {
    (0..n).fold(Step::new(), |step, _| step.tool("Agent", call.clone()))
}

/// Writes a definition into the project.
fn define(world: &World, name: &str, fields: &str, prompt: &str) {
    let text = format!("---\nname: {name}\ndescription: Does {name} things\n{fields}---\n{prompt}\n");
    world.home.write(format!(".claude/agents/{name}.md"), text);
}

/// Returns the transcripts of agents, by path.
fn side_files(world: &World) -> Vec<PathBuf> {
    let is_agents = |path: &PathBuf| path.parent().is_some_and(|dir| dir.ends_with("subagents"));
    world.home.sessions().into_iter().filter(is_agents).collect()
}

/// Returns the lines of the only main transcript.
fn main_session(world: &World) -> Vec<Value> {
    let is_main = |path: &PathBuf| path.parent().is_some_and(|dir| !dir.ends_with("subagents"));
    let sessions: Vec<PathBuf> = world.home.sessions().into_iter().filter(is_main).collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    world.home.read_session(&sessions[0])
}

/// Whether a request has a text anywhere.
fn has(request: &Recorded, text: &str) -> bool {
    String::from_utf8_lossy(&request.body).contains(text)
}

fn wait_until(is_so: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the kinds of frames in order, as `type` or `type/subtype`, with `+` for those of an agent.
fn kinds(frames: &[Value]) -> Vec<String> {
    let kind = |frame: &Value| {
        let subtype = frame["subtype"].as_str().filter(|_| frame["type"] == "system");
        let of_agent = frame["parent_tool_use_id"].is_string();
        format!(
            "{}{}{}",
            frame["type"].as_str().unwrap_or("?"),
            subtype.map(|it| format!("/{it}")).unwrap_or_default(),
            if of_agent { "+" } else { "" }
        )
    };
    frames.iter().map(kind).filter(|kind| kind != "system/init").collect()
}

/// Returns the frames that a recorded run has, without spaces between them.
fn recorded(name: &str) -> Vec<Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns the results of the last user message of a request as one text.
fn results(request: &Recorded) -> String {
    request.tool_results().iter().map(|result| result.text.clone()).collect::<Vec<_>>().join("\n")
}
