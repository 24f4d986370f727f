//! From the events of a Responses stream to [`StreamEvent`]s.
//!
//! An answer is a list of items: messages, calls, reasoning. An item is added, grows by deltas, is done; then the response is
//! `completed`, `incomplete` or `failed`. What was not streamed is taken from the item when it is done. Items of other kinds
//! are kept as they are, beside reasoning without words, for the server wants to hear them again.

use std::collections::VecDeque;
use std::sync::Arc;

use loci_core::ids::RequestId;
use loci_core::stream::{Failure, StreamEvent};
use loci_core::usage::Usage;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer_builder::{AnswerBuilder, reasoning_details};
use crate::failure;
use crate::framing::Frame;
use crate::lenient_json::{HalfJoiner, parse_lenient, parse_piece};
use crate::provider::{Decode, Pulse};
use crate::request::Request;

/// Turns events into ours; one decoder for one answer.
#[derive(Debug)]
pub(crate) struct Decoder {
    answer: AnswerBuilder,
    /// Items that have said something, by their place; of calls it is [`CALLS`] and their number.
    told: Vec<u64>,
    /// The calls that have begun, in order.
    calls: Vec<BegunCall>,
    /// The place of the reasoning at hand.
    reasoning: Option<u64>,
    has_refused: bool,
    halves: HalfJoiner,
}

/// Where the places of calls begin in [`Decoder::told`].
const CALLS: u64 = 1 << 32;

/// A call that has begun. Some servers give every item the same place, so that alone does not tell them apart.
#[derive(Debug)]
struct BegunCall {
    index: u64,
    id: String,
    is_done: bool,
}

#[derive(Deserialize)]
struct WireEvent {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    delta: Value,
    #[serde(default)]
    item: Value,
    #[serde(default)]
    response: Value,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireUsage {
    input_tokens: u64,
    output_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens_details: OutputDetails,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InputDetails {
    cached_tokens: u64,
}

impl Decoder {
    /// Makes a decoder for the answer to `request`.
    pub(crate) fn new(request: &Arc<Request>, request_id: Option<RequestId>, provider: &str) -> Self {
        Self {
            answer: AnswerBuilder::new(request, request_id, provider),
            told: Vec::new(),
            calls: Vec::new(),
            reasoning: None,
            has_refused: false,
            halves: HalfJoiner::default(),
        }
    }

    fn event(&mut self, event: WireEvent, out: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        let index = event.output_index.unwrap_or(0);
        let delta = event.delta.as_str().unwrap_or_default();
        match event.kind.as_str() {
            "response.created" | "response.in_progress" => self.start(&event.response, out),
            "response.output_item.added" => {
                self.start(&Value::Null, out);
                self.add_item(index, &event.item, false, out);
            }
            "response.output_text.delta" => self.text(index, delta, out),
            "response.refusal.delta" => {
                self.has_refused = true;
                self.text(index, delta, out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(index, delta, out);
            }
            "response.reasoning_summary_part.added" if self.told.contains(&index) => {
                self.think(index, "\n\n", out);
            }
            "response.function_call_arguments.delta" => {
                if let Some(key) = self.call_at(index) {
                    self.tell(CALLS + key);
                    self.answer.arguments(key, delta, out);
                }
            }
            "response.function_call_arguments.done" => {
                self.take_arguments(index, event.arguments.as_str().unwrap_or_default(), out);
            }
            "response.output_item.done" => {
                self.start(&Value::Null, out);
                self.finish_item(index, &event.item, out);
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                return self.end(&event.response, out);
            }
            "response.failed" => {
                return Err(failure::from_stream_error(
                    &json!({"error": event.response["error"]}).to_string(),
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, response: &Value, out: &mut VecDeque<StreamEvent>) {
        self.answer.start(response["id"].as_str().unwrap_or_default(), out);
    }

    fn add_item(&mut self, index: u64, item: &Value, is_done: bool, out: &mut VecDeque<StreamEvent>) {
        match item["type"].as_str() {
            Some("function_call") => self.add_call(index, item, is_done, out),
            Some("reasoning") if self.reasoning != Some(index) => {
                self.reasoning = Some(index);
                self.answer.begin_thinking(out);
            }
            _ => {}
        }
    }

    /// Begins a call, unless the item is of one that has begun.
    fn add_call(&mut self, index: u64, item: &Value, is_done: bool, out: &mut VecDeque<StreamEvent>) {
        let text = |key: &str| item[key].as_str().unwrap_or_default();
        let id = if text("call_id").is_empty() { text("id") } else { text("call_id") };
        let begun = self.calls.iter_mut().rfind(|call| call.index == index);
        match begun.filter(|call| call.id == id || is_done && !call.is_done) {
            Some(call) => call.is_done |= is_done,
            None => {
                let key = self.calls.len() as u64;
                self.calls.push(BegunCall { index, id: id.to_owned(), is_done });
                self.answer.call(key, (id, text("name")), None, out);
            }
        }
    }

    /// Returns the call that is told of at a place: the last one that began there.
    fn call_at(&self, index: u64) -> Option<u64> {
        self.calls.iter().rposition(|call| call.index == index).map(|key| key as u64)
    }

    /// Takes the whole arguments of a call whose arguments were not streamed.
    fn take_arguments(&mut self, index: u64, arguments: &str, out: &mut VecDeque<StreamEvent>) {
        let Some(key) = self.call_at(index).filter(|key| !self.told.contains(&(CALLS + key))) else { return };
        // Some say that they are done before they say them.
        if !arguments.is_empty() {
            self.tell(CALLS + key);
            self.answer.arguments(key, arguments, out);
        }
    }

    /// Takes from an item that is done what was not streamed, and keeps reasoning as it is.
    fn finish_item(&mut self, index: u64, item: &Value, out: &mut VecDeque<StreamEvent>) {
        self.add_item(index, item, true, out);
        let is_told = self.told.contains(&index);
        match item["type"].as_str() {
            Some("function_call") => {
                self.take_arguments(index, item["arguments"].as_str().unwrap_or_default(), out);
            }
            Some("message") if is_told => {}
            Some("message") => {
                for part in item["content"].as_array().into_iter().flatten() {
                    let refusal = part["refusal"].as_str();
                    self.has_refused |= refusal.is_some();
                    self.text(index, part["text"].as_str().or(refusal).unwrap_or_default(), out);
                }
            }
            Some("reasoning") => {
                if !is_told {
                    let parts = [&item["summary"], &item["content"]].into_iter().filter_map(Value::as_array);
                    let texts: Vec<&str> = parts.flatten().filter_map(|part| part["text"].as_str()).collect();
                    self.think(index, &texts.join("\n\n"), out);
                }
                self.keep(item, out);
            }
            Some(_) => {
                self.answer.begin_thinking(out);
                self.keep(item, out);
            }
            None => {}
        }
    }

    fn keep(&mut self, item: &Value, out: &mut VecDeque<StreamEvent>) {
        let mut item = item.clone();
        if let Some(item) = item.as_object_mut() {
            // A state of the answer, not a part of what is sent.
            item.shift_remove("status");
        }
        self.answer.keep_reasoning(|kept| *kept = Some(item), out);
    }

    fn text(&mut self, index: u64, text: &str, out: &mut VecDeque<StreamEvent>) {
        self.start(&Value::Null, out);
        self.tell(index);
        self.answer.text(text, out);
    }

    fn think(&mut self, index: u64, text: &str, out: &mut VecDeque<StreamEvent>) {
        self.start(&Value::Null, out);
        self.tell(index);
        self.answer.thinking(text, out);
    }

    fn tell(&mut self, index: u64) {
        if !self.told.contains(&index) {
            self.told.push(index);
        }
    }

    fn end(&mut self, response: &Value, out: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        self.start(response, out);
        let usage: WireUsage = serde_json::from_value(response["usage"].clone()).unwrap_or_default();
        let cached = usage.input_tokens_details.cached_tokens;
        self.answer.count(&Usage {
            input_tokens: usage.input_tokens.saturating_sub(cached),
            cache_read_input_tokens: cached,
            output_tokens: usage.output_tokens,
            extra: reasoning_details(usage.output_tokens_details.reasoning_tokens),
            ..Usage::default()
        });
        let reason = match response["incomplete_details"]["reason"].as_str() {
            Some("max_output_tokens") => "max_tokens",
            Some("content_filter") => "refusal",
            _ if self.answer.has_calls() => "tool_use",
            _ if self.has_refused => "refusal",
            _ => "end_turn",
        };
        self.answer.end(reason, out)
    }
}

impl Decode for Decoder {
    fn decode(&mut self, frame: &Frame<'_>, out: &mut VecDeque<StreamEvent>) -> Result<Pulse, Failure> {
        let data = String::from_utf8_lossy(frame.data);
        let data = data.trim();
        if data == "[DONE]" {
            return Ok(Pulse::Progress);
        }
        let (mut event, has_halves): (WireEvent, bool) = match data.contains(".delta\"") {
            true => parse_piece(data),
            // Whole items: a half in them stays alone.
            false => parse_lenient(data).map(|event| (event, false)),
        }
        .map_err(|error| self.answer.malformed(&format!("an event is not the JSON we expect ({error})")))?;
        if let Value::String(delta) = &mut event.delta {
            *delta = self.halves.join(std::mem::take(delta), has_halves);
        }
        if event.kind.is_empty() {
            event.kind = frame.event.clone().into_owned();
        }
        if event.kind == "error" || event.kind.is_empty() && data.contains("\"error\"") {
            return Err(stream_error(data));
        }
        self.event(event, out)?;
        Ok(Pulse::Progress)
    }

    fn has_ended(&self) -> bool {
        self.answer.has_ended()
    }

    fn cut(&self, how: &str) -> Failure {
        self.answer.cut(how)
    }
}

/// An error in the stream has its words beside the type, or in an object of their own.
fn stream_error(data: &str) -> Failure {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    match value["error"].is_object() {
        true => failure::from_stream_error(data),
        false => failure::from_stream_error(
            &json!({"error": {"code": value["code"], "type": value["code"], "message": value["message"]}})
                .to_string(),
        ),
    }
}

/// Reads an answer that came whole.
pub(crate) fn read_whole(mut decoder: Decoder, body: &[u8]) -> Result<Vec<StreamEvent>, Failure> {
    let response: Value = parse_lenient(&String::from_utf8_lossy(body)).unwrap_or_default();
    let Some(items) = response["output"].as_array() else { return Err(failure::not_an_answer(body, None)) };
    if response["error"].is_object() {
        return Err(failure::from_stream_error(&json!({"error": response["error"]}).to_string()));
    }
    let mut out = VecDeque::new();
    decoder.start(&response, &mut out);
    for (index, item) in items.iter().enumerate() {
        decoder.finish_item(index as u64, item, &mut out);
    }
    decoder.end(&response, &mut out)?;
    Ok(out.into())
}

#[cfg(test)]
mod tests;
