//! Models of named providers, end to end: the configuration contract, the protocols, and what goes wrong.

mod cloud_faults;
mod clouds;
mod contract;
mod listing;
mod litellm;
mod local_model;
mod protocols;
mod secrets;
mod small_windows;

use loci_testkit::{Binary, Output, Recorded};
use serde_json::{Value, json};

use crate::support::{World, is_result, loci, user};

/// An entry for the scripted model of a world.
fn entry(world: &World, protocol: &str) -> Value {
    json!({"protocol": protocol, "baseUrl": format!("{}/v1", world.model.base_url())})
}

/// Writes the user's settings.
fn configure(world: &World, providers: Value) {
    world.home.write_config("settings.json", json!({"providers": providers}).to_string());
}

/// `loci -p` with a model of a named provider, and no key for the first.
fn ask(model: &str) -> Binary {
    let binary = loci().args(["-p", "hello", "--model", model, "--output-format", "json"]);
    binary.env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_BASE_URL", "")
}

/// `loci -p` that is spoken to in lines, with a model of a named provider, and no key for the first.
fn talk(model: &str) -> Binary {
    let binary = loci().args(["-p", "--model", model, "--input-format", "stream-json"]);
    let binary = binary.args(["--output-format", "stream-json", "--verbose"]);
    binary.env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_BASE_URL", "")
}

/// Says two prompts in one session, and returns what came of the second.
fn second_result(world: &World, binary: &Binary, prompt: &str) -> Value {
    let mut session = world.start(binary);
    session.write_json(&user(prompt));
    session.wait_for_json(is_result);
    session.write_json(&user(prompt));
    let result = session.wait_for_json(is_result);
    session.finish();
    result
}

fn result_of(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Returns the requests of the conversation, all of them valid.
fn main_requests(world: &World) -> Vec<Recorded> {
    world.requests()
}
