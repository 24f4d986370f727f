//! How a step looks on the wire: pure functions from a step and a request to a [`Reply`].
//!
//! A reply is a head and a list of [`Act`]s; a transport performs them one by one. Faults are acts too, so
//! that what goes wrong, and where, is decided here and not in the code that owns the socket.

mod chat;
mod events;
mod ids;
mod responses;

pub(crate) use ids::Ids;

use crate::gate::Gate;
use crate::recorded::{Face, Recorded};
use crate::script::{Break, GateAt, Step, StreamPosition};
use bytes::Bytes;
use events::Event;
use serde_json::{Value, json};
use std::time::Duration;

/// An answer ready to be performed.
#[derive(Debug)]
pub(crate) struct Reply {
    /// What happens before the head is sent.
    pub(crate) before: Vec<Act>,
    pub(crate) status: u16,
    /// Without framing headers; the transport adds those.
    pub(crate) headers: Vec<(String, String)>,
    /// The announced length of the body; a stream has none.
    pub(crate) length: Option<usize>,
    pub(crate) body: Vec<Act>,
}

/// One thing a transport does while it answers.
#[derive(Debug)]
pub(crate) enum Act {
    Send(Bytes),
    /// Announce the whole and send only the first `keep` bytes of it.
    Torn {
        whole: Bytes,
        keep: usize,
    },
    Pause(Duration),
    Wait(Gate),
    /// Nothing more, until the client goes away.
    Stall,
    /// Close the connection; abruptly if `reset`.
    Cut {
        reset: bool,
    },
}

/// Returns the reply that plays `step` as the answer to `request`.
pub(crate) fn reply_to(step: &Step, request: &Recorded, ids: &mut Ids) -> Reply {
    let mut reply = match (step.status, request.is_streaming()) {
        (Some(status), _) => error_reply(status, step, ids),
        (None, true) => stream_reply(step, request, ids),
        (None, false) => message_reply(step, request, ids),
    };
    reply.headers.extend(step.headers.iter().cloned());
    reply.before = before_headers(step);
    reply
}

/// Returns a JSON reply that goes out whole.
pub(crate) fn json_reply(status: u16, body: &Value, ids: &mut Ids) -> Reply {
    whole_reply(status, "application/json", body.to_string(), ids.request())
}

/// Returns an error reply in the API's shape.
pub(crate) fn api_error(status: u16, kind: &str, message: &str, ids: &mut Ids) -> Reply {
    let request_id = ids.request();
    let body = json!({
        "type": "error", "error": {"type": kind, "message": message}, "request_id": request_id
    });
    whole_reply(status, "application/json", body.to_string(), request_id)
}

fn whole_reply(status: u16, content_type: &str, body: impl Into<Bytes>, request_id: String) -> Reply {
    let body = body.into();
    Reply {
        before: Vec::new(),
        status,
        headers: vec![("content-type".into(), content_type.into()), ("request-id".into(), request_id)],
        length: Some(body.len()),
        body: vec![Act::Send(body)],
    }
}

fn before_headers(step: &Step) -> Vec<Act> {
    let mut acts = Vec::new();
    if !step.delay.is_zero() {
        acts.push(Act::Pause(step.delay));
    }
    let gates = step.gates.iter().filter(|(at, _)| *at == GateAt::Headers);
    acts.extend(gates.map(|(_, gate)| Act::Wait(gate.clone())));
    match step.broken {
        Some(Break::Hang) => acts.push(Act::Stall),
        Some(Break::Refuse) => acts.push(Act::Cut { reset: step.reset }),
        _ => {}
    }
    acts
}

fn error_reply(status: u16, step: &Step, ids: &mut Ids) -> Reply {
    if let Some((content_type, body)) = &step.raw_body {
        return whole_reply(status, content_type, body.clone(), ids.request());
    }
    let (kind, message) = match &step.error {
        Some((kind, message)) => (kind.as_str(), message.as_str()),
        None => default_error(status),
    };
    api_error(status, kind, message, ids)
}

/// Returns the API's own error type and words for a status.
fn default_error(status: u16) -> (&'static str, &'static str) {
    match status {
        400 => ("invalid_request_error", "Invalid request"),
        401 => ("authentication_error", "invalid x-api-key"),
        403 => ("permission_error", "Permission denied"),
        404 => ("not_found_error", "Not found"),
        413 => ("request_too_large", "Request exceeds the maximum size"),
        429 => ("rate_limit_error", "Number of requests has exceeded your rate limit"),
        504 => ("timeout_error", "Request timed out"),
        529 => ("overloaded_error", "Overloaded"),
        _ => ("api_error", "Internal server error"),
    }
}

fn stream_reply(step: &Step, request: &Recorded, ids: &mut Ids) -> Reply {
    let events = match request.face() {
        Face::Messages => events::of_step(step, request, ids),
        Face::Chat => chat::of_step(step, request, ids),
        Face::Responses => responses::of_step(step, request, ids),
        Face::Vertex => events::of_step(step, request, ids),
        Face::Bedrock => events::of_step(step, request, ids).into_iter().map(Event::framed).collect(),
    };
    let kind = match request.face() {
        Face::Bedrock => "application/vnd.amazon.eventstream",
        Face::Messages | Face::Chat | Face::Responses | Face::Vertex => "text/event-stream; charset=utf-8",
    };
    Reply {
        before: Vec::new(),
        status: 200,
        headers: vec![
            ("content-type".into(), kind.into()),
            ("cache-control".into(), "no-cache".into()),
            ("request-id".into(), ids.request()),
        ],
        length: None,
        body: stream_acts(step, &events),
    }
}

/// Lays out events, pauses, gates and the break in the order in which they happen.
fn stream_acts(step: &Step, events: &[Event]) -> Vec<Act> {
    let mut acts = Vec::new();
    for (idx, event) in events.iter().enumerate() {
        acts.extend(gates_before(step, idx, event));
        match break_before(step, idx, event, events.len()) {
            Broken::No => acts.push(Act::Send(event.to_bytes())),
            Broken::Instead(act) => acts.push(act),
            Broken::Last(last) => {
                acts.extend(last);
                return acts;
            }
        }
        if event.is_delta() && !step.chunk_delay.is_zero() {
            acts.push(Act::Pause(step.chunk_delay));
        }
    }
    acts.extend(gates_at_end(step, events.len()));
    acts
}

/// What the break of a step does at one event.
enum Broken {
    No,
    Instead(Act),
    Last(Vec<Act>),
}

fn break_before(step: &Step, idx: usize, event: &Event, n_events: usize) -> Broken {
    let is_here = |place: StreamPosition| {
        let after = match place {
            StreamPosition::After(n) => n.min(n_events - 1),
            StreamPosition::Middle => n_events / 2,
        };
        idx == after
    };
    let cut = Act::Cut { reset: step.reset };
    match &step.broken {
        Some(Break::Cut(at)) if is_here(*at) => Broken::Last(vec![cut]),
        Some(Break::CutInside(at)) if is_here(*at) => {
            let whole = event.to_bytes();
            let keep = whole.len() / 2;
            Broken::Last(vec![Act::Torn { whole, keep }, cut])
        }
        Some(Break::Stall(at)) if is_here(*at) => Broken::Last(vec![Act::Stall]),
        Some(Break::ErrorEvent { at, kind, message }) if is_here(*at) => {
            Broken::Last(vec![Act::Send(Event::error(kind, message).to_bytes())])
        }
        Some(Break::Malformed(at)) if is_here(*at) => Broken::Instead(Act::Send(event.to_malformed_bytes())),
        _ => Broken::No,
    }
}

fn gates_before<'a>(step: &'a Step, idx: usize, event: &'a Event) -> impl Iterator<Item = Act> + 'a {
    let is_here = move |at: &GateAt| match at {
        GateAt::Headers => false,
        GateAt::Block(block) => event.closes_block(*block),
        GateAt::Events(n) => *n == idx,
    };
    step.gates.iter().filter(move |(at, _)| is_here(at)).map(|(_, gate)| Act::Wait(gate.clone()))
}

fn gates_at_end(step: &Step, n_events: usize) -> impl Iterator<Item = Act> + '_ {
    let is_here = move |at: &GateAt| matches!(at, GateAt::Events(n) if *n >= n_events);
    step.gates.iter().filter(move |(at, _)| is_here(at)).map(|(_, gate)| Act::Wait(gate.clone()))
}

/// The answer to a request that did not ask for a stream.
///
/// The breaks keep their sense: what cuts or stalls a stream in the middle does so in the middle of the
/// body, and an error event becomes an error status.
fn message_reply(step: &Step, request: &Recorded, ids: &mut Ids) -> Reply {
    if let Some(Break::ErrorEvent { kind, message, .. }) = &step.broken {
        return api_error(status_of(kind), kind, message, ids);
    }
    let whole = match request.face() {
        Face::Messages | Face::Bedrock | Face::Vertex => events::message(step, request, ids),
        Face::Chat => chat::whole(step, request, ids),
        Face::Responses => responses::whole(step, request, ids),
    };
    let whole = Bytes::from(whole.to_string());
    let keep = whole.len() / 2;
    let (length, body) = match &step.broken {
        Some(Break::Cut(_) | Break::CutInside(_)) => {
            (whole.len(), vec![Act::Torn { whole, keep }, Act::Cut { reset: step.reset }])
        }
        Some(Break::Stall(_)) => (whole.len(), vec![Act::Torn { whole, keep }, Act::Stall]),
        Some(Break::Malformed(_)) => (keep, vec![Act::Send(whole.slice(..keep))]),
        Some(Break::ErrorEvent { .. } | Break::Hang | Break::Refuse) | None => {
            (whole.len(), vec![Act::Send(whole)])
        }
    };
    Reply {
        before: Vec::new(),
        status: 200,
        headers: vec![
            ("content-type".into(), "application/json".into()),
            ("request-id".into(), ids.request()),
        ],
        length: Some(length),
        body,
    }
}

fn status_of(error_kind: &str) -> u16 {
    match error_kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}
