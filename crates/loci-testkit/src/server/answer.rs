//! From a request to a reply: recording, the API's rules, routes, and the script.

use crate::recorded::{Face, Recorded};
use crate::rules;
use crate::script::{Playhead, Script, Step};
use crate::wire::{self, Ids, Reply};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard};
use tokio::sync::watch;

/// Where requests arrive and are answered; shared by all connections.
#[derive(Debug)]
pub(crate) struct ScriptState {
    /// Guards the script's position and the record, which must move together.
    state: Mutex<State>,
    lenient: bool,
    pub(crate) arrived: watch::Sender<usize>,
    pub(crate) hung_up: watch::Sender<usize>,
}

#[derive(Debug)]
struct State {
    playhead: Playhead,
    ids: Ids,
    requests: Vec<Recorded>,
}

impl ScriptState {
    pub(crate) fn new(script: Script) -> Self {
        let lenient = script.lenient;
        let ids = Ids::starting_at(script.first_id);
        let state = State { playhead: Playhead::new(script), ids, requests: Vec::new() };
        Self {
            state: Mutex::new(state),
            lenient,
            arrived: watch::Sender::new(0),
            hung_up: watch::Sender::new(0),
        }
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.state().requests.clone()
    }

    /// Records a request and returns its answer.
    pub(crate) fn answer(&self, mut request: Recorded) -> Reply {
        if request.is_messages() {
            request.violations = violations(&request);
        }
        let is_refused = !self.lenient && !request.violations.is_empty();
        let step = {
            let mut state = self.state();
            state.requests.push(request.clone());
            let takes_step = request.is_messages() && !is_refused;
            takes_step.then(|| state.playhead.step_for(&request))
        };
        self.arrived.send_modify(|n| *n += 1);
        // A dynamic step is the test's code: it runs without the lock, for it may ask for the requests.
        let step = step.map(|it| resolved(it, &request));
        let ids = &mut self.state().ids;
        match step {
            Some(step) => wire::reply_to(&step, &request, ids),
            None if is_refused => {
                wire::api_error(400, "invalid_request_error", &request.violations.join("; "), ids)
            }
            None => other_route(&request, ids),
        }
    }

    /// Notes that a client went away in the middle of an answer.
    pub(crate) fn note_hang_up(&self) {
        self.hung_up.send_modify(|n| *n += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }
}

fn violations(request: &Recorded) -> Vec<String> {
    let mut found = match request.face() {
        Face::Messages => rules::violations(&request.json),
        Face::Chat => rules::chat::violations(&request.json),
        Face::Responses => Vec::new(),
        Face::Bedrock | Face::Vertex => cloud_violations(request),
    };
    if request.face() == Face::Messages && request.header("anthropic-version").is_none() {
        found.push("anthropic-version: header is required".into());
    }
    found
}

/// The body of a cloud is that of the API but for the model, which is in the address.
fn cloud_violations(request: &Recorded) -> Vec<String> {
    let mut found = Vec::new();
    let version = request.json["anthropic_version"].as_str().unwrap_or_default();
    let expected = if request.face() == Face::Bedrock { "bedrock-2023-05-31" } else { "vertex-2023-10-16" };
    if version != expected {
        found.push(format!("anthropic_version: `{version}` is not `{expected}`"));
    }
    if request.json.get("model").is_some() {
        found.push("model: not part of the body".into());
    }
    let mut body = request.json.clone();
    body["model"] = "in-the-address".into();
    found.extend(rules::violations(&body));
    found
}

fn resolved(mut step: Step, request: &Recorded) -> Step {
    while let Some(dynamic) = step.dynamic.take() {
        step = (dynamic.0)(request);
    }
    step
}

fn other_route(request: &Recorded, ids: &mut Ids) -> Reply {
    let route = request.route();
    match request.method.as_str() {
        "POST" if route.ends_with("/v1/messages/count_tokens") => {
            let n_tokens = (request.body.len() / 4).max(1);
            wire::json_reply(200, &json!({"input_tokens": n_tokens}), ids)
        }
        "GET" if route.ends_with("/v1/models") => wire::json_reply(200, &models(), ids),
        "HEAD" => wire::json_reply(200, &Value::Null, ids),
        _ => wire::api_error(404, "not_found_error", &format!("no such route: {route}"), ids),
    }
}

fn models() -> Value {
    let model = |id: &str, name: &str, created: &str| json!({"type": "model", "id": id, "display_name": name, "created_at": created});
    let data = [
        model("claude-opus-4-8", "Claude Opus 4.8", "2026-05-01T00:00:00Z"),
        model("claude-sonnet-4-5-20250929", "Claude Sonnet 4.5", "2025-09-29T00:00:00Z"),
        model("claude-haiku-4-5-20251001", "Claude Haiku 4.5", "2025-10-01T00:00:00Z"),
        json!({"id": "local-7b", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": 65_536}}),
    ];
    json!({"data": data, "has_more": false, "first_id": data[0]["id"], "last_id": data[3]["id"]})
}
