//! One answer of the scripted model: content, pace, and the way it fails if it fails.
//!
//! Content is a list of Messages API content blocks. `tool_use` blocks may leave out their `id`; the server
//! then hands out the next one. Thinking always goes before the first other block, as the API has it.

use crate::gate::Gate;
use crate::recorded::Recorded;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One answer; build it with the constructors and refine it with the methods.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) content: Vec<Value>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) stop_sequence: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) applied_edits: Option<Value>,
    pub(crate) delay: Duration,
    pub(crate) chunk: usize,
    pub(crate) chunk_delay: Duration,
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) error: Option<(String, String)>,
    pub(crate) raw_body: Option<(String, Vec<u8>)>,
    pub(crate) times: usize,
    pub(crate) broken: Option<Break>,
    pub(crate) reset: bool,
    pub(crate) unknown_events: bool,
    pub(crate) gates: Vec<(GateAt, Gate)>,
    pub(crate) dynamic: Option<Dynamic>,
}

/// The token counts an answer reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to the cache.
    pub input_tokens: u64,
    /// Output tokens of the whole answer.
    pub output_tokens: u64,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// Input tokens written to the cache.
    pub cache_creation_input_tokens: u64,
}

impl Default for Usage {
    /// Fixed numbers rather than measured ones, so that snapshots do not depend on temporary paths.
    fn default() -> Self {
        Self {
            input_tokens: 100,
            output_tokens: 20,
            cache_read_input_tokens: 0,
            cache_creation_input_tokens: 0,
        }
    }
}

/// A place in the stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StreamPosition {
    /// After this many events.
    After(usize),
    /// After half of them.
    Middle,
}

/// The way an answer ends other than whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Break {
    /// Close the connection between two events.
    Cut(StreamPosition),
    /// Close the connection in the middle of an event and of an HTTP chunk.
    CutInside(StreamPosition),
    /// Send no more, but stay connected.
    Stall(StreamPosition),
    /// Send an `error` event and end the stream.
    ErrorEvent { at: StreamPosition, kind: String, message: String },
    /// Send an event whose data is not JSON, then go on.
    Malformed(StreamPosition),
    /// Never answer.
    Hang,
    /// Close the connection without answering.
    Refuse,
}

/// Where a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateAt {
    Headers,
    /// After the last delta of this block, before it is closed.
    Block(usize),
    Events(usize),
}

/// A step made from the request it answers.
#[derive(Clone)]
pub(crate) struct Dynamic(pub(crate) Arc<dyn Fn(&Recorded) -> Step + Send + Sync>);

impl fmt::Debug for Dynamic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dynamic")
    }
}

impl Default for Step {
    fn default() -> Self {
        Self::new()
    }
}

/// Content.
impl Step {
    /// Returns an answer with no content yet.
    pub fn new() -> Self {
        Self {
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: Usage::default(),
            applied_edits: None,
            delay: Duration::ZERO,
            chunk: 40,
            chunk_delay: Duration::ZERO,
            status: None,
            headers: Vec::new(),
            error: None,
            raw_body: None,
            times: 1,
            broken: None,
            reset: false,
            unknown_events: false,
            gates: Vec::new(),
            dynamic: None,
        }
    }

    /// Returns an answer that starts with a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().then_text(text)
    }

    /// Returns an answer that is one tool call; more calls follow with [`Step::tool`].
    pub fn call(name: &str, input: Value) -> Self {
        Self::new().tool(name, input)
    }

    /// Returns a step that is made from the request when it arrives.
    pub fn dynamic(make: impl Fn(&Recorded) -> Step + Send + Sync + 'static) -> Self {
        Self { dynamic: Some(Dynamic(Arc::new(make))), ..Self::new() }
    }

    /// Adds a text block.
    pub fn then_text(self, text: impl Into<String>) -> Self {
        self.raw_block(json!({"type": "text", "text": text.into()}))
    }

    /// Adds a thinking block, before the first block that is not thinking.
    pub fn thinking(mut self, thinking: impl Into<String>, signature: impl Into<String>) -> Self {
        let block = json!({
            "type": "thinking", "thinking": thinking.into(), "signature": signature.into()
        });
        let is_thinking = |it: &Value| it["type"] == "thinking" || it["type"] == "redacted_thinking";
        let at = self.content.iter().position(|it| !is_thinking(it)).unwrap_or(self.content.len());
        self.content.insert(at, block);
        for (place, _) in &mut self.gates {
            if let GateAt::Block(idx) = place
                && *idx >= at
            {
                *idx += 1;
            }
        }
        self
    }

    /// Adds a tool call; several make a parallel call.
    pub fn tool(self, name: &str, input: Value) -> Self {
        self.raw_block(json!({"type": "tool_use", "name": name, "input": input}))
    }

    /// Adds a tool call with an id of the test's own.
    pub fn tool_with_id(self, id: &str, name: &str, input: Value) -> Self {
        self.raw_block(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
    }

    /// Adds any content block as it stands, such as `server_tool_use`.
    pub fn raw_block(mut self, block: Value) -> Self {
        self.content.push(block);
        self
    }

    /// Sets the stop reason; without it, `tool_use` if a tool is called, else `end_turn`.
    pub fn stop_reason(mut self, reason: &str) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }

    /// Ends the answer with the stop reason `stop_sequence` and this sequence.
    pub fn stop_sequence(mut self, sequence: &str) -> Self {
        self.stop_sequence = Some(sequence.into());
        self.stop_reason("stop_sequence")
    }

    /// Sets the reported token counts.
    pub fn usage(mut self, input: u64, output: u64, cache_read: u64, cache_creation: u64) -> Self {
        self.usage = Usage {
            input_tokens: input,
            output_tokens: output,
            cache_read_input_tokens: cache_read,
            cache_creation_input_tokens: cache_creation,
        };
        self
    }

    /// Reports what was done to the conversation before the model read it (`context_management.applied_edits`).
    pub fn applied_edits(mut self, edits: Value) -> Self {
        self.applied_edits = Some(edits);
        self
    }
}

/// Pace.
impl Step {
    /// Waits this long before the first byte of the answer.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the number of characters in a delta (40 unless told).
    pub fn chunk(mut self, chars: usize) -> Self {
        self.chunk = chars.max(1);
        self
    }

    /// Waits this long after each delta.
    pub fn chunk_delay(mut self, delay: Duration) -> Self {
        self.chunk_delay = delay;
        self
    }

    /// Holds the answer here: after the last delta of the block added before, while that block is open.
    ///
    /// With no block before it, it holds the answer before its headers. Calls after it go on behind the
    /// gate: `Step::text("so far").wait_for(gate).tool("Read", input)`.
    pub fn wait_for(mut self, gate: Gate) -> Self {
        let at = match self.content.len() {
            0 => GateAt::Headers,
            n => GateAt::Block(n - 1),
        };
        self.gates.push((at, gate));
        self
    }

    /// Holds the answer after this many events have been sent.
    pub fn wait_after_events(mut self, n_events: usize, gate: Gate) -> Self {
        self.gates.push((GateAt::Events(n_events), gate));
        self
    }

    /// Holds the answer before its headers.
    pub fn wait_before_headers(mut self, gate: Gate) -> Self {
        self.gates.push((GateAt::Headers, gate));
        self
    }
}

/// Failure.
impl Step {
    /// Returns an answer with an HTTP error status and the API's error body for it.
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::new() }
    }

    /// Adds a response header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_lowercase(), value.into()));
        self
    }

    /// Sets the type and message of the error body.
    pub fn error(mut self, kind: &str, message: &str) -> Self {
        self.error = Some((kind.into(), message.into()));
        self
    }

    /// Replaces the body of a [`Step::status`] answer, as a gateway that speaks HTML would.
    pub fn raw_body(mut self, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        self.raw_body = Some((content_type.into(), body.as_ref().to_vec()));
        self
    }

    /// Plays the step this many times before the script goes on.
    pub fn times(mut self, n: usize) -> Self {
        self.times = n;
        self
    }

    /// Closes the connection after this many events, inside the HTTP body.
    pub fn cut_after_events(self, n_events: usize) -> Self {
        self.breaks(Break::Cut(StreamPosition::After(n_events)))
    }

    /// Closes the connection inside an event: the one after an earlier `cut_after_events`, else the middle.
    pub fn cut_mid_event(self) -> Self {
        let place = match self.broken {
            Some(Break::Cut(place)) => place,
            _ => StreamPosition::Middle,
        };
        self.breaks(Break::CutInside(place))
    }

    /// Stops sending after this many events, but stays connected until the client goes away.
    pub fn stall_after_events(self, n_events: usize) -> Self {
        self.breaks(Break::Stall(StreamPosition::After(n_events)))
    }

    /// Sends an `error` event after half of the events and ends the stream there.
    pub fn error_event(self, kind: &str, message: &str) -> Self {
        self.breaks(Break::ErrorEvent {
            at: StreamPosition::Middle,
            kind: kind.into(),
            message: message.into(),
        })
    }

    /// Sends an `error` event after this many events and ends the stream there.
    pub fn error_event_after(self, n_events: usize, kind: &str, message: &str) -> Self {
        let at = StreamPosition::After(n_events);
        self.breaks(Break::ErrorEvent { at, kind: kind.into(), message: message.into() })
    }

    /// Sends an event whose data is not JSON in the middle of the stream.
    pub fn malformed_sse(self) -> Self {
        self.breaks(Break::Malformed(StreamPosition::Middle))
    }

    /// Strews in what a client must ignore: unknown events, unknown deltas, comments and pings.
    pub fn unknown_events(mut self) -> Self {
        self.unknown_events = true;
        self
    }

    /// Takes the request and never answers.
    pub fn hang_before_headers(self) -> Self {
        self.breaks(Break::Hang)
    }

    /// Takes the request and closes the connection without answering.
    pub fn refuse(self) -> Self {
        self.breaks(Break::Refuse)
    }

    /// Makes a cut or refusal a TCP reset rather than an orderly close.
    pub fn reset(mut self) -> Self {
        self.reset = true;
        self
    }

    fn breaks(mut self, broken: Break) -> Self {
        self.broken = Some(broken);
        self
    }

    /// Whether the client ends up with a whole assistant message.
    pub(crate) fn is_whole_answer(&self) -> bool {
        self.status.is_none() && self.broken.is_none()
    }
}
