//! Builds the events of an answer from the pieces of a protocol that has no blocks: text, reasoning, calls.
//!
//! What comes out is what a stream of the Messages API would have given, its own events among it where the request asked for
//! them, so that nobody behind this crate can tell the protocols apart.
//!
//! What must stay true:
//! 1. One block is open at a time, and its pieces are passed on as they come. While a call is open, whatever else begins is
//!    held back until the end, for servers may write several calls at once and never say when one is whole.
//! 2. Ids of calls are unique in the conversation, whatever the server calls them: results are matched by them.
//! 3. What the server must hear again as it said it is kept in the block under [`KEPT_WIRE`](crate::kept_wire::KEPT_WIRE).

use std::collections::VecDeque;
use std::sync::Arc;

use loci_core::ids::{MessageId, RequestId};
use loci_core::message::{Block, BlockKind};
use loci_core::raw::{RawJson, RawObject, json_string};
use loci_core::stream::{Delta, Ended, Failure, FailureKind, Started, StreamEvent};
use loci_core::usage::Usage;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::anthropic::input_object;
use crate::failure;
use crate::kept_wire::KEPT_WIRE;
use crate::request::Request;
use crate::wire_names::{fresh_call_id, is_call_id, tool_name_from_wire};

/// Returns how many of the tokens of an answer were reasoning, as usage has it; nothing, where nobody counted.
pub(crate) fn reasoning_details(tokens: Option<u64>) -> Map<String, Value> {
    let details =
        tokens.map(|tokens| ("output_tokens_details".to_owned(), json!({"thinking_tokens": tokens})));
    details.into_iter().collect()
}

/// An answer that is being put together.
#[derive(Debug)]
pub(crate) struct AnswerBuilder {
    request: Arc<Request>,
    request_id: Option<RequestId>,
    /// The provider's name, for what is kept for it.
    provider: String,
    pieces: Vec<Piece>,
    /// The piece whose block is open; those before it are done.
    live: usize,
    usage: Usage,
    has_started: bool,
    has_ended: bool,
}

/// What becomes one block.
#[derive(Debug)]
struct Piece {
    kind: PieceKind,
    /// Text, reasoning, or the arguments of a call.
    text: String,
    is_open: bool,
}

#[derive(Debug)]
enum PieceKind {
    Text,
    /// Reasoning, with what the server must hear again.
    Thinking(Option<Value>),
    Call(Call),
}

#[derive(Debug)]
struct Call {
    key: u64,
    id: String,
    name: String,
    /// What else the server must hear again.
    kept: Option<Value>,
}

impl AnswerBuilder {
    /// Makes a builder for the answer to `request`.
    pub(crate) fn new(request: &Arc<Request>, request_id: Option<RequestId>, provider: &str) -> Self {
        Self {
            request: Arc::clone(request),
            request_id,
            provider: provider.to_owned(),
            pieces: Vec::new(),
            live: 0,
            usage: Usage::default(),
            has_started: false,
            has_ended: false,
        }
    }

    /// Begins the answer, once; `id` is the server's, which need not be unique.
    pub(crate) fn start(&mut self, id: &str, out: &mut VecDeque<StreamEvent>) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        let n_messages = self.request.messages.len();
        let id = if id.is_empty() { format!("msg-{n_messages}") } else { format!("{id}-{n_messages}") };
        self.wire(out, || {
            json!({"type": "message_start", "message": {
                "id": id, "type": "message", "role": "assistant", "model": self.request.model, "content": [],
                "stop_reason": null, "stop_sequence": null,
                "usage": {"input_tokens": 0, "output_tokens": 0}
            }})
        });
        out.push_back(StreamEvent::Started(Started {
            message_id: MessageId::new(id),
            model: self.request.model.clone(),
            usage: Usage::default(),
            request_id: self.request_id.clone(),
            rate_limits: None,
        }));
    }

    /// Adds text of the answer.
    pub(crate) fn text(&mut self, text: &str, out: &mut VecDeque<StreamEvent>) {
        let is_last = matches!(self.pieces.last(), Some(Piece { kind: PieceKind::Text, .. }));
        self.grow(text, is_last, || PieceKind::Text, out);
    }

    /// Adds reasoning.
    pub(crate) fn thinking(&mut self, text: &str, out: &mut VecDeque<StreamEvent>) {
        let is_last = matches!(self.pieces.last(), Some(Piece { kind: PieceKind::Thinking(_), .. }));
        self.grow(text, is_last, || PieceKind::Thinking(None), out);
    }

    /// Begins another block of reasoning, even if it stays without words.
    pub(crate) fn begin_thinking(&mut self, out: &mut VecDeque<StreamEvent>) {
        self.push(PieceKind::Thinking(None), out);
    }

    /// Keeps what the server must hear again beside the reasoning at hand; where there is none, it gets a block without words.
    pub(crate) fn keep_reasoning(
        &mut self,
        change: impl FnOnce(&mut Option<Value>),
        out: &mut VecDeque<StreamEvent>,
    ) {
        // A block that is done cannot grow any more.
        let found = self.pieces[self.live..].iter_mut().rev().find_map(|piece| match &mut piece.kind {
            PieceKind::Thinking(kept) => Some(kept),
            PieceKind::Text | PieceKind::Call(_) => None,
        });
        match found {
            Some(kept) => change(kept),
            None => {
                let mut kept = None;
                change(&mut kept);
                self.push(PieceKind::Thinking(kept), out);
            }
        }
    }

    /// Begins a call, or finds the one that has begun.
    pub(crate) fn call(
        &mut self,
        key: u64,
        (id, name): (&str, &str),
        kept: Option<Value>,
        out: &mut VecDeque<StreamEvent>,
    ) {
        if self.find_call(key).is_none() {
            let id = self.unique_id(id);
            let name = tool_name_from_wire(name, &self.request.tools);
            self.push(PieceKind::Call(Call { key, id, name, kept }), out);
        }
    }

    /// Keeps what the server must hear again beside a call that has begun: its block is done at the end of the answer.
    pub(crate) fn keep_in_call(&mut self, key: u64, kept: Value) {
        let piece = self.find_call(key).and_then(|idx| self.pieces.get_mut(idx));
        if let Some(Piece { kind: PieceKind::Call(call), .. }) = piece {
            call.kept = Some(kept);
        }
    }

    /// Adds to the arguments of a call that has begun.
    pub(crate) fn arguments(&mut self, key: u64, text: &str, out: &mut VecDeque<StreamEvent>) {
        let Some(idx) = self.find_call(key).filter(|_| !text.is_empty()) else { return };
        self.pieces[idx].text.push_str(text);
        if idx == self.live {
            self.tell_delta(idx, text, out);
        }
    }

    /// Returns the arguments of a call so far.
    pub(crate) fn arguments_of(&self, key: u64) -> &str {
        self.find_call(key).map_or("", |idx| &self.pieces[idx].text)
    }

    /// Tells whether the answer makes calls.
    pub(crate) fn has_calls(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece.kind, PieceKind::Call(_)))
    }

    /// Tells whether the answer has begun.
    pub(crate) fn has_started(&self) -> bool {
        self.has_started
    }

    /// Tells whether the answer is complete.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes what the server counted.
    pub(crate) fn count(&mut self, usage: &Usage) {
        self.usage.update(usage);
    }

    /// Ends the answer: blocks that were held back come out, then its end. A server that counted nothing is counted for.
    pub(crate) fn end(&mut self, stop_reason: &str, out: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        if !self.has_started || self.pieces.is_empty() && self.usage == Usage::default() {
            return Err(failure::malformed("The answer is empty"));
        }
        while self.live < self.pieces.len() {
            let idx = self.live;
            if !self.pieces[idx].is_open {
                self.open(idx, out);
            }
            self.close(idx, out)?;
        }
        if self.usage.input_tokens + self.usage.output_tokens + self.usage.cache_read_input_tokens == 0 {
            self.usage = self.estimated_usage();
        }
        let usage = self.usage.clone();
        self.wire(out, || {
            json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null},
                "usage": usage})
        });
        self.wire(out, || json!({"type": "message_stop"}));
        self.has_ended = true;
        out.push_back(StreamEvent::Ended(Ended {
            stop_reason: Some(stop_reason.to_owned()),
            stop_sequence: None,
            usage,
            context_management: None,
        }));
        Ok(())
    }

    /// Says that the connection broke.
    pub(crate) fn cut(&self, how: &str) -> Failure {
        let when = if self.has_started { "in the middle of the answer" } else { "before the answer began" };
        let mut failure = Failure::new(FailureKind::Cut, format!("The connection broke {when}: {how}"))
            .with_hint("Try again; if it happens often, look at the network and at proxies on the way.");
        failure.request_id = self.request_id.clone();
        failure
    }

    /// Says that the server breaks the protocol.
    pub(crate) fn malformed(&self, what: &str) -> Failure {
        let mut failure = failure::malformed(&format!("The answer's stream is broken: {what}"));
        failure.request_id = self.request_id.clone();
        failure
    }

    fn grow(
        &mut self,
        text: &str,
        is_last: bool,
        kind: impl FnOnce() -> PieceKind,
        out: &mut VecDeque<StreamEvent>,
    ) {
        // Some servers write NUL where a token has no text.
        let text = text.replace('\0', "");
        if text.is_empty() {
            return;
        }
        if !is_last {
            self.push(kind(), out);
        }
        let idx = self.pieces.len() - 1;
        self.pieces[idx].text.push_str(&text);
        if idx == self.live {
            self.tell_delta(idx, &text, out);
        }
    }

    /// Begins a piece; it is open at once unless a call is.
    fn push(&mut self, kind: PieceKind, out: &mut VecDeque<StreamEvent>) {
        let is_call_open = matches!(self.pieces.get(self.live), Some(Piece { kind: PieceKind::Call(_), .. }));
        if !is_call_open && self.live < self.pieces.len() {
            let idx = self.live;
            // Text and reasoning always make a block.
            drop(self.close(idx, out));
        }
        self.pieces.push(Piece { kind, text: String::new(), is_open: false });
        if self.live == self.pieces.len() - 1 {
            self.open(self.live, out);
        }
    }

    fn find_call(&self, key: u64) -> Option<usize> {
        self.pieces.iter().rposition(|piece| match &piece.kind {
            PieceKind::Call(call) => call.key == key,
            PieceKind::Text | PieceKind::Thinking(_) => false,
        })
    }

    fn open(&mut self, index: usize, out: &mut VecDeque<StreamEvent>) {
        self.pieces[index].is_open = true;
        let piece = &self.pieces[index];
        let (kind, name, start) = match &piece.kind {
            PieceKind::Text => ("text", None, json!({"type": "text", "text": ""})),
            PieceKind::Thinking(_) => ("thinking", None, json!({"type": "thinking", "thinking": ""})),
            PieceKind::Call(call) => (
                "tool_use",
                Some(call.name.clone()),
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}),
            ),
        };
        self.wire(out, || json!({"type": "content_block_start", "index": index, "content_block": start}));
        out.push_back(StreamEvent::BlockStarted { index, kind: kind.to_owned(), name });
        // What came while it was held back.
        if !piece.text.is_empty() {
            let text = piece.text.clone();
            self.tell_delta(index, &text, out);
        }
    }

    fn tell_delta(&self, index: usize, text: &str, out: &mut VecDeque<StreamEvent>) {
        let (delta, wire) = match &self.pieces[index].kind {
            PieceKind::Text => (Delta::Text(text.to_owned()), json!({"type": "text_delta", "text": text})),
            PieceKind::Thinking(_) => {
                (Delta::Thinking(text.to_owned()), json!({"type": "thinking_delta", "thinking": text}))
            }
            PieceKind::Call(_) => {
                (Delta::InputJson(text.to_owned()), json!({"type": "input_json_delta", "partial_json": text}))
            }
        };
        out.push_back(StreamEvent::Delta { index, delta });
        self.wire(out, || json!({"type": "content_block_delta", "index": index, "delta": wire}));
    }

    fn close(&mut self, index: usize, out: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        let block = self.block(index).map_err(|error| self.malformed(&error.to_string()))?;
        self.wire(out, || json!({"type": "content_block_stop", "index": index}));
        out.push_back(StreamEvent::BlockDone { index, block });
        self.live = index + 1;
        Ok(())
    }

    fn block(&self, index: usize) -> Result<Block, serde_json::Error> {
        let piece = &self.pieces[index];
        let (mut value, kept) = match &piece.kind {
            PieceKind::Text => return Ok(Block::new_text(&piece.text)),
            PieceKind::Thinking(kept) => {
                (json!({"type": "thinking", "thinking": piece.text}).to_string(), kept)
            }
            PieceKind::Call(call) => {
                let input = input_object(if piece.text.trim().is_empty() { "{}" } else { &piece.text })?;
                let json = format!(
                    r#"{{"type":"tool_use","id":{},"name":{},"input":{}}}"#,
                    json_string(&call.id),
                    json_string(&call.name),
                    input.get()
                );
                (json, &call.kept)
            }
        };
        let is_thinking = matches!(piece.kind, PieceKind::Thinking(_));
        if is_thinking || kept.is_some() {
            let mut object = RawObject::parse(&value)?;
            let (provider, model) = (&self.provider, &self.request.model);
            object.set(KEPT_WIRE, &json!({"provider": provider, "model": model, "raw": kept}))?;
            value = object.to_json();
        }
        Block::from_json(serde_json::from_str(&value)?)
    }

    /// Returns the server's id for a call if it can be used and nobody else has it, else one of ours.
    fn unique_id(&self, id: &str) -> String {
        let n_calls = self.pieces.len();
        let mut candidate = match is_call_id(id) {
            true => id.to_owned(),
            false => fresh_call_id(id, self.request.messages.len(), n_calls),
        };
        let mut attempt = n_calls;
        while self.is_taken(&candidate) {
            attempt += 1;
            candidate = fresh_call_id(id, self.request.messages.len(), attempt);
        }
        candidate
    }

    fn is_taken(&self, id: &str) -> bool {
        #[derive(Deserialize)]
        struct Id {
            id: String,
        }
        let is_here = self.pieces.iter().any(|piece| match &piece.kind {
            PieceKind::Call(call) => call.id == id,
            PieceKind::Text | PieceKind::Thinking(_) => false,
        });
        let mut earlier = self.request.messages.iter().flat_map(|message| message.content.iter());
        is_here
            || earlier.any(|block| {
                block.kind() == BlockKind::ToolUse
                    && block.json().as_str().contains(id)
                    && block.json().read::<Id>().is_ok_and(|it| it.id == id)
            })
    }

    /// Counts for a server that does not: about four bytes make a token.
    fn estimated_usage(&self) -> Usage {
        let blocks = self.request.messages.iter().flat_map(|message| message.content.iter());
        let input: usize = blocks.map(|block| block.json().as_str().len()).sum::<usize>()
            + self.request.system.iter().map(|block| block.text.len()).sum::<usize>()
            + self.request.tools.iter().map(|tool| tool.json.as_str().len()).sum::<usize>();
        let output: usize = self.pieces.iter().map(|piece| piece.text.len()).sum();
        let mut usage = Usage {
            input_tokens: (input / 4) as u64,
            output_tokens: (output / 4).max(1) as u64,
            ..Usage::default()
        };
        usage.extra.insert("estimated".to_owned(), Value::Bool(true));
        usage
    }

    fn wire(&self, out: &mut VecDeque<StreamEvent>, event: impl FnOnce() -> Value) {
        if self.request.wants_wire_events
            && let Ok(json) = RawJson::from_value(&event())
        {
            out.push_back(StreamEvent::Wire(json));
        }
    }
}
