//! From the frames of a Messages API stream to [`StreamEvent`]s.
//!
//! The wire says `message_start`, then for each block `content_block_start`, `content_block_delta`s and
//! `content_block_stop`, then `message_delta` (stop reason, usage) and `message_stop`; `ping` and `error` may
//! come at any time. Events and deltas we do not know are left out; blocks we do not know pass through.

use std::borrow::Cow;
use std::collections::VecDeque;

use loci_core::ids::{MessageId, RequestId};
use loci_core::raw::RawJson;
use loci_core::stream::{Ended, Failure, FailureKind, Started, StreamEvent};
use loci_core::usage::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::block::{OpenBlock, on_one_line};
use crate::failure;
use crate::framing::Frame;
use crate::lenient_json::whole_characters;
use crate::provider::{Decode, Pulse};

/// Turns frames into events; one decoder for one answer.
#[derive(Debug)]
pub(crate) struct Decoder {
    wants_wire_events: bool,
    request_id: Option<RequestId>,
    /// What the model is called, where that is not what the server calls it.
    model: Option<String>,
    blocks: Vec<(usize, OpenBlock)>,
    usage: Usage,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
    context_management: Option<Value>,
    has_started: bool,
    has_ended: bool,
}

/// The top level of every event; which fields there are depends on the type.
#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    /// A number in the events we know; read as a value so that an unknown event may call anything so.
    #[serde(default)]
    index: Value,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    usage: Option<Value>,
    context_management: Option<Value>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct BlockHead {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
}

#[derive(Deserialize)]
struct MessageHead {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
}

impl Decoder {
    /// Makes a decoder for one answer; `request_id` is the one of the answer's headers.
    pub(crate) fn new(wants_wire_events: bool, request_id: Option<RequestId>) -> Self {
        Self {
            wants_wire_events,
            request_id,
            model: None,
            blocks: Vec::new(),
            usage: Usage::default(),
            stop_reason: None,
            stop_sequence: None,
            context_management: None,
            has_started: false,
            has_ended: false,
        }
    }

    /// Calls the model by this name, whatever the server calls it.
    pub(crate) fn called(mut self, model: Option<String>) -> Self {
        self.model = model;
        self
    }

    fn apply(&mut self, kind: &str, event: WireEvent<'_>) -> Result<Vec<StreamEvent>, Failure> {
        let index = event.index.as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(0);
        match kind {
            "message_start" => self.start_message(event.message).map(|event| vec![event]),
            "content_block_start" => self.start_block(index, event.content_block).map(|event| vec![event]),
            "content_block_delta" => self.grow_block(index, event.delta).map(Vec::from_iter),
            "content_block_stop" => self.stop_block(index).map(Vec::from_iter),
            "message_delta" => {
                self.change_message(event.delta, event.usage);
                self.context_management = event.context_management.or(self.context_management.take());
                Ok(Vec::new())
            }
            "message_stop" => self.stop_message(),
            _ => Ok(Vec::new()),
        }
    }

    fn start_message(&mut self, message: Option<&RawValue>) -> Result<StreamEvent, Failure> {
        let head: MessageHead = self.read(message, "message_start has no message")?;
        self.usage.update(&read_usage(head.usage));
        self.has_started = true;
        Ok(StreamEvent::Started(Started {
            message_id: MessageId::new(head.id),
            model: self.model.clone().unwrap_or(head.model),
            usage: self.usage.clone(),
            request_id: self.request_id.clone(),
            rate_limits: None,
        }))
    }

    fn start_block(&mut self, index: usize, block: Option<&RawValue>) -> Result<StreamEvent, Failure> {
        let head: BlockHead = self.read(block, "content_block_start has no block")?;
        let start = self.keep(&whole_characters(block.map_or("null", RawValue::get)))?;
        self.blocks.retain(|(open, _)| *open != index);
        self.blocks.push((index, OpenBlock::new(start)));
        Ok(StreamEvent::BlockStarted { index, kind: head.kind, name: head.name })
    }

    fn grow_block(&mut self, index: usize, delta: Option<&RawValue>) -> Result<Option<StreamEvent>, Failure> {
        let block = self.blocks.iter_mut().find(|(open, _)| *open == index);
        let (Some((_, block)), Some(delta)) = (block, delta) else {
            return Err(self.malformed(&format!("a delta belongs to no block (index {index})")));
        };
        match block.add(delta) {
            Ok(delta) => Ok(delta.map(|delta| StreamEvent::Delta { index, delta })),
            Err(error) => Err(self.malformed(&format!("a delta is not the JSON we expect ({error})"))),
        }
    }

    fn stop_block(&mut self, index: usize) -> Result<Option<StreamEvent>, Failure> {
        let Some(position) = self.blocks.iter().position(|(open, _)| *open == index) else { return Ok(None) };
        let (_, mut block) = self.blocks.remove(position);
        match block.finish() {
            Ok(block) => Ok(Some(StreamEvent::BlockDone { index, block })),
            Err(error) => Err(self.malformed(&format!("a block is not the JSON we expect ({error})"))),
        }
    }

    fn change_message(&mut self, delta: Option<&RawValue>, usage: Option<Value>) {
        if let Some(delta) = delta.and_then(|delta| serde_json::from_str::<MessageDelta>(delta.get()).ok()) {
            self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
            self.stop_sequence = delta.stop_sequence.or(self.stop_sequence.take());
        }
        self.usage.update(&read_usage(usage));
    }

    /// Ends the answer; a block the server forgot to close is closed first.
    fn stop_message(&mut self) -> Result<Vec<StreamEvent>, Failure> {
        if !self.has_started {
            return Err(self.malformed("the answer ends before it began"));
        }
        let open: Vec<usize> = self.blocks.iter().map(|(index, _)| *index).collect();
        let mut events = Vec::with_capacity(open.len() + 1);
        for index in open {
            events.extend(self.stop_block(index)?);
        }
        self.has_ended = true;
        events.push(StreamEvent::Ended(Ended {
            stop_reason: self.stop_reason.take(),
            stop_sequence: self.stop_sequence.take(),
            usage: self.usage.clone(),
            context_management: self.context_management.take().map(Box::new),
        }));
        Ok(events)
    }

    fn read<T: for<'de> Deserialize<'de>>(
        &self,
        json: Option<&RawValue>,
        missing: &str,
    ) -> Result<T, Failure> {
        let json = json.ok_or_else(|| self.malformed(missing))?;
        serde_json::from_str(json.get())
            .map_err(|error| self.malformed(&format!("an event is not the JSON we expect ({error})")))
    }

    fn keep(&self, json: &str) -> Result<RawJson, Failure> {
        serde_json::from_str(&on_one_line(json)).map_err(|error| self.malformed(&error.to_string()))
    }

    fn failed(&self, data: &str) -> Failure {
        let mut failure = failure::from_stream_error(data);
        failure.request_id = failure.request_id.or_else(|| self.request_id.clone());
        failure
    }

    fn malformed(&self, what: &str) -> Failure {
        let mut failure = failure::malformed(&format!("The answer's stream is broken: {what}"));
        failure.request_id = self.request_id.clone();
        failure
    }
}

impl Decode for Decoder {
    fn decode(&mut self, frame: &Frame<'_>, out: &mut VecDeque<StreamEvent>) -> Result<Pulse, Failure> {
        let data = std::str::from_utf8(frame.data).map_err(|_| self.malformed("an event is not UTF-8"))?;
        if frame.event == "ping" {
            return Ok(Pulse::Ping);
        }
        // Servers that also speak another protocol end their streams with this line.
        if data.trim() == "[DONE]" {
            return Ok(Pulse::Progress);
        }
        let event: WireEvent<'_> = serde_json::from_str(data)
            .map_err(|error| self.malformed(&format!("an event is not the JSON we expect ({error})")))?;
        let kind = if event.kind.is_empty() { frame.event.clone() } else { event.kind.clone() };
        match kind.as_ref() {
            "ping" => return Ok(Pulse::Ping),
            "error" => return Err(self.failed(data)),
            "" if event.error.is_some() => return Err(self.failed(data)),
            _ => {}
        }
        let wire = match self.wants_wire_events && is_known(&kind) {
            true => Some(StreamEvent::Wire(self.keep(data)?)),
            false => None,
        };
        // What was shown must have been heard: an interrupt between the two would cut the transcript short.
        let is_heard_first = kind == "content_block_delta";
        let events = self.apply(&kind, event)?;
        match is_heard_first {
            true => out.extend(events.into_iter().chain(wire)),
            false => out.extend(wire.into_iter().chain(events)),
        }
        Ok(Pulse::Progress)
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn cut(&self, how: &str) -> Failure {
        let when = if self.has_started { "in the middle of the answer" } else { "before the answer began" };
        let mut failure = Failure::new(FailureKind::Cut, format!("The connection broke {when}: {how}"))
            .with_hint("Try again; if it happens often, look at the network and at proxies on the way.");
        failure.request_id = self.request_id.clone();
        failure
    }
}

fn is_known(kind: &str) -> bool {
    matches!(
        kind,
        "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
    )
}

/// Reads usage as well as it can be read: gateways leave fields out or send `null` for them.
pub(crate) fn read_usage(usage: Option<Value>) -> Usage {
    let Some(Value::Object(mut usage)) = usage else { return Usage::default() };
    usage.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(usage)).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests;
