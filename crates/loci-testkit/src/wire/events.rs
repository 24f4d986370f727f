//! The server-sent events of a streamed answer, in the order and shape of the Messages API:
//!
//! ```text
//! message_start, ping,
//! content_block_start, content_block_delta.., content_block_stop     for each block
//! message_delta, message_stop
//! ```
//!
//! Text, thinking and tool input come in deltas; a thinking block ends with its `signature_delta`; tool
//! input starts with an empty `input_json_delta`, which is all there is when the input is `{}`. Any other
//! block comes whole in its `content_block_start`.

use super::Ids;
use crate::recorded::Recorded;
use crate::script::{Step, Usage};
use bytes::Bytes;
use serde_json::{Value, json};

/// Stands for the name of events that have none.
const NAMELESS: &str = "chunk";

/// One server-sent event.
#[derive(Debug)]
pub(crate) struct Event {
    name: &'static str,
    data: Value,
    /// Whether it goes out in a frame of Amazon's.
    is_framed: bool,
}

impl Event {
    pub(crate) fn new(name: &'static str, data: Value) -> Self {
        Self { name, data, is_framed: false }
    }

    /// The same in a frame of Amazon's.
    pub(crate) fn framed(self) -> Self {
        Self { is_framed: true, ..self }
    }

    /// An event without a name.
    pub(crate) fn chunk(data: &Value) -> Self {
        Self::new(NAMELESS, data.clone())
    }

    /// The last event of a stream of chunks.
    pub(crate) fn done() -> Self {
        Self::new(NAMELESS, Value::Null)
    }

    pub(crate) fn error(kind: &str, message: &str) -> Self {
        Self::new("error", json!({"type": "error", "error": {"type": kind, "message": message}}))
    }

    pub(crate) fn is_delta(&self) -> bool {
        self.name == "content_block_delta" || self.name == NAMELESS
    }

    pub(crate) fn closes_block(&self, idx: usize) -> bool {
        self.name == "content_block_stop" && self.data["index"] == idx
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        if self.is_framed {
            return crate::aws::frame(&self.data).into();
        }
        // A comment line has no name; parsers must skip it.
        if self.name.is_empty() {
            return Bytes::from_static(b": keep-alive\n\n");
        }
        match (self.name, &self.data) {
            (NAMELESS, Value::Null) => Bytes::from_static(b"data: [DONE]\n\n"),
            (NAMELESS, data) => format!("data: {data}\n\n").into(),
            (name, data) => format!("event: {name}\ndata: {data}\n\n").into(),
        }
    }

    /// Returns the event with its data broken off in the middle.
    pub(crate) fn to_malformed_bytes(&self) -> Bytes {
        let data = self.data.to_string();
        let half: String = data.chars().take(data.chars().count() / 2).collect();
        match self.name {
            NAMELESS => format!("data: {half}\n\n").into(),
            name => format!("event: {name}\ndata: {half}\n\n").into(),
        }
    }
}

/// Returns all events of the streamed answer.
pub(crate) fn of_step(step: &Step, request: &Recorded, ids: &mut Ids) -> Vec<Event> {
    let mut message = message(step, request, ids);
    let content = message["content"].take();
    let stop = json!({
        "stop_reason": message["stop_reason"].take(), "stop_sequence": message["stop_sequence"].take()
    });
    message["content"] = json!([]);
    message["usage"]["output_tokens"] = step.usage.output_tokens.min(1).into();

    let mut events = vec![Event::new("message_start", json!({"type": "message_start", "message": message}))];
    events.push(ping());
    for (idx, block) in content.as_array().into_iter().flatten().enumerate() {
        events.extend(block_events(idx, block, step));
    }
    let mut delta = json!({"type": "message_delta", "delta": stop, "usage": cumulative(&step.usage)});
    if let Some(edits) = &step.applied_edits {
        delta["context_management"] = json!({"applied_edits": edits});
    }
    events.push(Event::new("message_delta", delta));
    events.push(Event::new("message_stop", json!({"type": "message_stop"})));
    if step.unknown_events { with_noise(events) } else { events }
}

/// Returns the whole message, as a request without `stream` gets it.
pub(crate) fn message(step: &Step, request: &Recorded, ids: &mut Ids) -> Value {
    let content: Vec<Value> = step.content.iter().map(|block| with_id(block.clone(), request, ids)).collect();
    let calls_tool = content.iter().any(|it| it["type"] == "tool_use");
    let stop_reason = step.stop_reason.as_deref().unwrap_or(if calls_tool { "tool_use" } else { "end_turn" });
    json!({
        "id": ids.message(),
        "type": "message",
        "role": "assistant",
        "model": request.json["model"].as_str().unwrap_or("claude-of-the-cloud"),
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": step.stop_sequence,
        "usage": full_usage(&step.usage),
    })
}

fn full_usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_creation_input_tokens,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output_tokens,
        "service_tier": "standard",
    })
}

fn cumulative(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "output_tokens": usage.output_tokens,
    })
}

/// Gives a tool call an id if the script left it to the server; `id` comes second, as the API writes it.
fn with_id(block: Value, request: &Recorded, ids: &mut Ids) -> Value {
    let prefix = match block["type"].as_str() {
        Some("tool_use") => "toolu",
        Some("server_tool_use") => "srvtoolu",
        _ => return block,
    };
    let Value::Object(fields) = block else { return block };
    if fields.contains_key("id") {
        return Value::Object(fields);
    }
    let mut ordered = serde_json::Map::new();
    ordered.insert("type".into(), fields["type"].clone());
    ordered.insert("id".into(), ids.tool_use(prefix, &request.body).into());
    ordered.extend(fields.into_iter().filter(|(key, _)| key != "type"));
    Value::Object(ordered)
}

fn block_events(idx: usize, block: &Value, step: &Step) -> Vec<Event> {
    let (opening, deltas) = match block["type"].as_str() {
        Some("text") => {
            let deltas = pieces(&block["text"], step.chunk);
            let deltas = deltas.into_iter().map(|it| json!({"type": "text_delta", "text": it}));
            (blanked(block, &[("text", json!(""))]), deltas.collect())
        }
        Some("thinking") => {
            let mut deltas: Vec<Value> = pieces(&block["thinking"], step.chunk)
                .into_iter()
                .map(|it| json!({"type": "thinking_delta", "thinking": it}))
                .collect();
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            (blanked(block, &[("thinking", json!("")), ("signature", json!(""))]), deltas)
        }
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
            (blanked(block, &[("input", json!({}))]), input_deltas(&block["input"], step.chunk))
        }
        _ => (block.clone(), Vec::new()),
    };
    let start = json!({"type": "content_block_start", "index": idx, "content_block": opening});
    let mut events = vec![Event::new("content_block_start", start)];
    events.extend(deltas.into_iter().map(|delta| delta_event(idx, delta)));
    events.push(Event::new("content_block_stop", json!({"type": "content_block_stop", "index": idx})));
    events
}

fn delta_event(idx: usize, delta: Value) -> Event {
    let data = json!({"type": "content_block_delta", "index": idx, "delta": delta});
    Event::new("content_block_delta", data)
}

fn input_deltas(input: &Value, chunk: usize) -> Vec<Value> {
    let is_empty = input.as_object().is_some_and(|it| it.is_empty());
    let text = if is_empty { Value::Null } else { json!(input.to_string()) };
    let parts = std::iter::once(String::new()).chain(pieces(&text, chunk));
    parts.map(|it| json!({"type": "input_json_delta", "partial_json": it})).collect()
}

fn blanked(block: &Value, fields: &[(&str, Value)]) -> Value {
    let mut block = block.clone();
    for (key, value) in fields {
        block[*key] = value.clone();
    }
    block
}

/// Cuts a string value into pieces of `chunk` characters.
pub(crate) fn pieces(text: &Value, chunk: usize) -> Vec<String> {
    let chars: Vec<char> = text.as_str().unwrap_or_default().chars().collect();
    chars.chunks(chunk).map(|it| it.iter().collect()).collect()
}

fn ping() -> Event {
    Event::new("ping", json!({"type": "ping"}))
}

/// Puts something to be ignored before every event but the first.
fn with_noise(events: Vec<Event>) -> Vec<Event> {
    let mut noisy = Vec::new();
    for (n, event) in events.into_iter().enumerate() {
        if n > 0 {
            noisy.push(Event::new("", Value::Null));
            noisy.push(ping());
            noisy.push(Event::new("future_event", json!({"type": "future_event", "detail": {"n": n}})));
        }
        if event.is_delta() {
            let idx = event.data["index"].as_u64().unwrap_or_default() as usize;
            noisy.push(delta_event(idx, json!({"type": "future_delta", "future": n})));
        }
        noisy.push(event);
    }
    noisy
}
