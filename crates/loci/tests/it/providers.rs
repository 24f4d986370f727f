//! Models of named providers, end to end: the configuration contract, the protocols, and what goes wrong.

mod clouds;
mod contract;
mod litellm;
mod local_model;
mod protocols;
mod secrets;

use loci_testkit::{Binary, Output, Recorded};
use serde_json::{Value, json};

use crate::support::{World, loci};

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

fn result_of(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Returns the requests of the conversation, all of them valid.
fn main_requests(world: &World) -> Vec<Recorded> {
    world.requests()
}
