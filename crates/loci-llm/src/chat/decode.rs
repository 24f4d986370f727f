//! From the chunks of a Chat Completions stream to [`StreamEvent`]s.
//!
//! A chunk is `{"id", "choices": [{"delta": {…}, "finish_reason"}], "usage"}`; the stream ends with `[DONE]`, or not at all.
//! Servers differ in many small ways, and each is met here: see [`Decoder::call`] for calls, [`Chunk`] for the rest.

use std::collections::VecDeque;
use std::sync::Arc;

use loci_core::ids::RequestId;
use loci_core::stream::{Failure, StreamEvent};
use loci_core::usage::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::reasoning;
use super::think_tags::{Split, ThinkTags};
use crate::answer_builder::{AnswerBuilder, reasoning_details};
use crate::failure;
use crate::framing::Frame;
use crate::lenient_json::{HalfJoiner, parse_lenient, parse_piece, without_stand_ins};
use crate::provider::{Decode, Pulse};
use crate::request::Request;

/// Turns chunks into events; one decoder for one answer.
#[derive(Debug)]
pub(crate) struct Decoder {
    answer: AnswerBuilder,
    calls: Vec<OpenCall>,
    think_tags: Option<ThinkTags>,
    finish_reason: Option<String>,
    has_refused: bool,
    content_halves: HalfJoiner,
    reasoning_halves: HalfJoiner,
}

/// A call as far as the server has named it.
#[derive(Debug)]
struct OpenCall {
    key: u64,
    index: Option<u64>,
    id: String,
    name: String,
    halves: HalfJoiner,
    /// Arguments that came before the name.
    early: String,
    /// What the server must hear again with the call.
    kept: Map<String, Value>,
    has_begun: bool,
}

/// Everything may be missing or `null`; what we do not know is passed over.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    /// Named `message` in an answer that is not streamed.
    #[serde(default, alias = "message")]
    delta: Option<WireDelta>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct WireDelta {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Value,
    #[serde(default)]
    reasoning_details: Option<Vec<Value>>,
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
}

#[derive(Deserialize)]
struct WireCall {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<WireFunction>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// What stands beside a call and must stand there again: Google's models refuse a call without the signature in it, and
/// LiteLLM has it by another name.
const KEPT_FIELDS: [&str; 2] = ["extra_content", "provider_specific_fields"];

#[derive(Deserialize, Default)]
struct WireFunction {
    #[serde(default)]
    name: Option<String>,
    /// Text by the protocol; some servers send the object itself.
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl Decoder {
    /// Makes a decoder for the answer to `request`.
    pub(crate) fn new(
        request: &Arc<Request>,
        request_id: Option<RequestId>,
        provider: &str,
        splits_thinking: bool,
    ) -> Self {
        Self {
            answer: AnswerBuilder::new(request, request_id, provider),
            calls: Vec::new(),
            think_tags: splits_thinking.then(ThinkTags::new),
            finish_reason: None,
            has_refused: false,
            content_halves: HalfJoiner::default(),
            reasoning_halves: HalfJoiner::default(),
        }
    }

    fn chunk(&mut self, data: &str, out: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        let (chunk, has_halves): (Chunk, bool) = parse_piece(data).map_err(|error| {
            self.answer.malformed(&format!("a chunk is not the JSON we expect ({error})"))
        })?;
        if chunk.error.as_ref().is_some_and(|error| !error.is_null()) {
            return Err(failure::from_stream_error(data));
        }
        if let Some(usage) = &chunk.usage {
            self.answer.count(&usage.counted());
        }
        // One answer is asked for.
        let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() else { return Ok(()) };
        if let Some(error) = choice.error.filter(|error| !error.is_null()) {
            return Err(failure::from_stream_error(&serde_json::json!({"error": error}).to_string()));
        }
        self.answer.start(chunk.id.as_deref().unwrap_or_default(), out);
        if let Some(mut delta) = choice.delta {
            self.join_halves(&mut delta, has_halves);
            self.delta(delta, has_halves, out);
        }
        self.finish_reason = choice.finish_reason.filter(|it| !it.is_empty()).or(self.finish_reason.take());
        Ok(())
    }

    /// Makes characters whole whose halves came in two pieces; some servers cut text so.
    fn join_halves(&mut self, delta: &mut WireDelta, has_halves: bool) {
        if let Some(text) = text_of(&delta.content) {
            delta.content = self.content_halves.join(text, has_halves).into();
        }
        if let Some(text) = &mut delta.reasoning_content {
            *text = self.reasoning_halves.join(std::mem::take(text), has_halves);
        } else if let Value::String(text) = &mut delta.reasoning {
            *text = self.reasoning_halves.join(std::mem::take(text), has_halves);
        }
        if !has_halves {
            return;
        }
        delta.refusal = delta.refusal.as_deref().map(without_stand_ins);
        let details =
            delta.reasoning_details.as_ref().and_then(|details| serde_json::to_string(details).ok());
        if let Some(details) = details.and_then(|it| serde_json::from_str(&without_stand_ins(&it)).ok()) {
            delta.reasoning_details = Some(details);
        }
    }

    fn delta(&mut self, delta: WireDelta, has_halves: bool, out: &mut VecDeque<StreamEvent>) {
        self.reasoning(&delta, out);
        if let Some(text) = text_of(&delta.content) {
            self.text(&text, out);
        }
        if let Some(refusal) = delta.refusal.filter(|text| !text.is_empty()) {
            self.has_refused = true;
            self.answer.text(&refusal, out);
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.call(call, has_halves, out);
        }
    }

    fn reasoning(&mut self, delta: &WireDelta, out: &mut VecDeque<StreamEvent>) {
        let plain = delta.reasoning.as_str();
        let named = [("reasoning_content", delta.reasoning_content.as_deref()), ("reasoning", plain)];
        // Servers that send both say the same twice.
        if let Some((field, text)) = named.into_iter().find_map(|(field, text)| Some((field, text?)))
            && !text.is_empty()
        {
            self.answer.thinking(text, out);
            self.answer.keep_reasoning(|kept| reasoning::add_text(kept, field, text), out);
        }
        if let Some(details) = delta.reasoning_details.as_ref().filter(|details| !details.is_empty()) {
            self.answer.keep_reasoning(|kept| reasoning::add_details(kept, details), out);
        }
    }

    fn text(&mut self, text: &str, out: &mut VecDeque<StreamEvent>) {
        match &mut self.think_tags {
            None => self.answer.text(text, out),
            Some(tags) => {
                let splits = tags.push(text);
                self.sorted(splits, out);
            }
        }
    }

    fn sorted(&mut self, splits: impl IntoIterator<Item = Split>, out: &mut VecDeque<StreamEvent>) {
        for split in splits {
            match split {
                Split::Thinking(text) => self.answer.thinking(&text, out),
                Split::Text(text) => self.answer.text(&text, out),
            }
        }
    }

    /// Adds a piece of a call. Which call it belongs to is said by `index`; some servers leave it out, or say 0 each time.
    /// Then another id is another call, and no id means the last one.
    fn call(&mut self, piece: WireCall, has_halves: bool, out: &mut VecDeque<StreamEvent>) {
        let function = piece.function.unwrap_or_default();
        let id = piece.id.filter(|id| !id.is_empty());
        let found = self.calls.iter().rposition(|call| {
            let is_same_index = piece.index.is_none() || call.index == piece.index;
            let is_same_id = id.as_ref().is_none_or(|id| call.id.is_empty() || call.id == *id);
            is_same_index && is_same_id
        });
        // Without either, a name behind finished arguments is another call.
        let is_new_name = piece.index.is_none()
            && id.is_none()
            && function.name.as_ref().is_some_and(|name| !name.is_empty())
            && found.is_some_and(|idx| !self.answer.arguments_of(self.calls[idx].key).is_empty());
        let idx = match found.filter(|_| !is_new_name) {
            Some(idx) => idx,
            None => {
                let key = self.calls.len() as u64;
                self.calls.push(OpenCall {
                    key,
                    index: piece.index,
                    id: String::new(),
                    name: String::new(),
                    halves: HalfJoiner::default(),
                    early: String::new(),
                    kept: Map::new(),
                    has_begun: false,
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[idx];
        if let Some(id) = id {
            call.id = id;
        }
        if let Some(name) = function.name.filter(|name| !call.has_begun && *name != call.name) {
            call.name.push_str(&name);
        }
        let kept = piece.more.into_iter();
        call.kept.extend(kept.filter(|(name, it)| KEPT_FIELDS.contains(&name.as_str()) && !it.is_null()));
        let arguments = call.halves.join(arguments_text(&function.arguments), has_halves);
        if !call.has_begun && call.name.is_empty() {
            call.early.push_str(&arguments);
            return;
        }
        if !call.has_begun {
            // A name that comes in pieces is whole when the arguments begin.
            if arguments.is_empty() && call.early.is_empty() && call.id.is_empty() {
                return;
            }
            call.has_begun = true;
            let early = std::mem::take(&mut call.early);
            let (key, id, name) = (call.key, call.id.clone(), call.name.clone());
            self.answer.call(key, (&id, &name), None, out);
            self.answer.arguments(key, &early, out);
        }
        let key = self.calls[idx].key;
        self.answer.arguments(key, &arguments, out);
    }

    /// Ends the answer, if there is one.
    fn end(&mut self, out: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        if let Some(half) = self.content_halves.rest() {
            self.text(half.encode_utf8(&mut [0; 4]), out);
        }
        if let Some(split) = self.think_tags.as_mut().and_then(ThinkTags::end) {
            self.sorted([split], out);
        }
        for call in self.calls.iter().filter(|call| call.has_begun && !call.kept.is_empty()) {
            self.answer.keep_in_call(call.key, call.kept.clone().into());
        }
        // Calls that have a name and nothing else take no arguments.
        for call in self.calls.iter_mut().filter(|call| !call.has_begun && !call.name.is_empty()) {
            call.has_begun = true;
            let kept = (!call.kept.is_empty()).then(|| call.kept.clone().into());
            self.answer.call(call.key, (&call.id, &call.name), kept, out);
            self.answer.arguments(call.key, &call.early, out);
        }
        if self.calls.iter().any(|call| !call.has_begun) {
            return Err(self.answer.malformed("a call names no tool"));
        }
        let reason = self.stop_reason();
        self.answer.end(reason, out)
    }

    /// Calls win: some servers say `stop` beside them. A cut is a cut whatever was called.
    fn stop_reason(&self) -> &'static str {
        match self.finish_reason.as_deref() {
            Some("length" | "max_tokens") => "max_tokens",
            Some("content_filter" | "refusal") => "refusal",
            _ if self.answer.has_calls() => "tool_use",
            _ if self.has_refused => "refusal",
            _ => "end_turn",
        }
    }
}

impl Decode for Decoder {
    fn decode(&mut self, frame: &Frame<'_>, out: &mut VecDeque<StreamEvent>) -> Result<Pulse, Failure> {
        let data = String::from_utf8_lossy(frame.data);
        let data = data.trim();
        if data == "[DONE]" {
            self.end(out)?;
            return Ok(Pulse::Progress);
        }
        if frame.event == "error" && !data.contains("\"error\"") {
            return Err(failure::from_stream_error(data));
        }
        self.chunk(data, out)?;
        Ok(Pulse::Progress)
    }

    fn has_ended(&self) -> bool {
        self.answer.has_ended()
    }

    fn end_of_stream(&mut self, out: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        match self.finish_reason.is_some() && !self.answer.has_ended() {
            true => self.end(out),
            false => Ok(()),
        }
    }

    fn cut(&self, how: &str) -> Failure {
        self.answer.cut(how)
    }
}

/// Reads an answer that came whole: it is one chunk, and the end.
pub(crate) fn read_whole(mut decoder: Decoder, body: &[u8]) -> Result<Vec<StreamEvent>, Failure> {
    let text = String::from_utf8_lossy(body);
    // Gateways that ignore `stream: false` send events all the same; that is another shape.
    if parse_lenient::<Chunk>(&text).is_err() {
        return Err(failure::not_an_answer(body, None));
    }
    let mut out = VecDeque::new();
    decoder.chunk(&text, &mut out)?;
    if !decoder.answer.has_started() {
        return Err(failure::not_an_answer(body, None));
    }
    decoder.end(&mut out)?;
    Ok(out.into())
}

impl WireUsage {
    /// What was read from the cache is part of the prompt here, and stands beside it with us.
    fn counted(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens).unwrap_or(0);
        let written = self.completion_tokens_details.as_ref();
        Usage {
            input_tokens: self.prompt_tokens.unwrap_or(0).saturating_sub(cached),
            cache_read_input_tokens: cached,
            output_tokens: self.completion_tokens.unwrap_or(0),
            extra: reasoning_details(written.and_then(|details| details.reasoning_tokens)),
            ..Usage::default()
        }
    }
}

/// Content is text, or parts with text in them.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        _ => None,
    }
}

fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
