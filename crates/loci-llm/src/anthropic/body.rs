//! The body of a Messages API request, written from kept bytes.
//!
//! The server caches prompts by prefix, so the body is laid out for it: what never changes comes first
//! (`model, max_tokens, thinking, context_management, output_config, metadata, stream, system, tools`), and
//! `messages` last. Blocks and tools are copied from the text they came as and never serialised again.
//! So, cache marks aside, each body is the previous one plus new messages, byte for byte (a property test).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use loci_core::message::Message;
use loci_core::raw::{RawObject, json_string};
use memchr::memmem::Finder;
use serde_json::{Map, Value, json};

use super::Addressee;
use super::cache::Marks;
use super::features::Features;
use crate::kept_wire::plain_block;
use crate::request::{Request, Thinking};

/// Made once: every block of every request is looked through.
static FOREIGN_MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"cache_control\""));

/// How a body is written for whom.
#[derive(Clone, Copy)]
pub(crate) struct Wording<'a> {
    pub(crate) features: Features,
    pub(crate) addressee: &'a Addressee,
    /// What settings call our ids at the server.
    pub(crate) overrides: &'a BTreeMap<String, String>,
    /// Beta features that stand in the body.
    pub(crate) betas: &'a [String],
    /// What marks the end of a cached prefix, with the brace that ends the object it stands in; none, if nothing is cached.
    pub(crate) cache_mark: Option<&'static str>,
}

/// Writes the body.
pub(crate) fn write(request: &Request, wording: Wording<'_>) -> Bytes {
    let marks = wording.cache_mark.map_or_else(Marks::none, |mark| Marks::plan(request, mark));
    let mut extra = request.extra_body.clone().unwrap_or_default();
    // Whole lists of ours may be replaced, but not what the request is about and how it is answered.
    let (system, tools) = (extra.shift_remove("system"), extra.shift_remove("tools"));
    extra.retain(|name, _| name != "messages" && name != "stream");

    let mut out = String::with_capacity(size_hint(request));
    out.push('{');
    for (name, value) in merged(head(request, wording), extra) {
        push_field(&mut out, &name, &value.to_string());
    }
    match system {
        Some(system) => push_field(&mut out, "system", &system.to_string()),
        None => push_system(&mut out, request, &marks),
    }
    match tools {
        Some(tools) => push_field(&mut out, "tools", &tools.to_string()),
        None => push_tools(&mut out, request),
    }
    push_messages(&mut out, &request.messages, &marks);
    out.push('}');
    Bytes::from(out)
}

/// Returns all fields but the long lists, in order.
fn head(request: &Request, wording: Wording<'_>) -> Map<String, Value> {
    let Wording { features, addressee, overrides, betas, .. } = wording;
    let mut head = Map::new();
    let mut add = |name: &str, value: Value| head.insert(name.to_owned(), value);
    match addressee {
        Addressee::Api(ids) => add("model", ids.id(overrides, request.model_and_window().0).into()),
        Addressee::Named(provider) => add("model", request.model_in(provider).into()),
        Addressee::Bedrock => add("anthropic_version", "bedrock-2023-05-31".into()),
        Addressee::Vertex => add("anthropic_version", "vertex-2023-10-16".into()),
    };
    if !betas.is_empty() {
        add("anthropic_beta", betas.into());
    }
    add("max_tokens", request.max_tokens.into());
    if let Some(thinking) = thinking(request) {
        add("thinking", thinking);
    }
    let edits = features.context_edits(request);
    if !edits.is_empty() {
        add("context_management", json!({"edits": edits}));
    }
    let output = output_config(request, features);
    if !output.is_empty() {
        add("output_config", Value::Object(output));
    }
    if let Some(user_id) = &request.user_id {
        add("metadata", json!({"user_id": user_id}));
    }
    if *addressee != Addressee::Bedrock {
        add("stream", request.is_streaming.into());
    }
    head
}

/// Says how the model is asked to think.
fn thinking(request: &Request) -> Option<Value> {
    let mut thinking = match request.thinking {
        Thinking::Adaptive => json!({"type": "adaptive"}),
        Thinking::Budget(tokens) => json!({"type": "enabled", "budget_tokens": tokens}),
        Thinking::Disabled => return Some(json!({"type": "disabled"})),
        Thinking::Unset => return None,
    };
    if let Some(display) = &request.thinking_display {
        thinking["display"] = json!(display);
    }
    Some(thinking)
}

/// Says how hard the model works, and how much it may spend.
fn output_config(request: &Request, features: Features) -> Map<String, Value> {
    let effort = features.effort(request).map(|effort| ("effort".to_owned(), json!(effort)));
    let budget = request
        .task_budget
        .map(|total| ("task_budget".to_owned(), json!({"type": "tokens", "total": total})));
    effort.into_iter().chain(budget).collect()
}

/// Lays extra fields over ours; two objects of one name are joined, anything else is replaced.
fn merged(mut head: Map<String, Value>, extra: Map<String, Value>) -> Map<String, Value> {
    for (name, value) in extra {
        match (head.get_mut(&name), value) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => ours.extend(theirs),
            (_, value) => {
                head.insert(name, value);
            }
        }
    }
    head
}

fn push_field(out: &mut String, name: &str, json: &str) {
    out.push_str(&json_string(name));
    out.push(':');
    out.push_str(json);
    out.push(',');
}

fn push_system(out: &mut String, request: &Request, marks: &Marks) {
    if request.system.is_empty() {
        return;
    }
    out.push_str("\"system\":");
    push_list(out, request.system.iter().enumerate(), |out, (idx, block)| {
        let json = format!("{{\"type\":\"text\",\"text\":{}}}", json_string(&block.text));
        push_block(out, &json, marks.on_system(idx));
    });
    out.push(',');
}

fn push_tools(out: &mut String, request: &Request) {
    if request.tools.is_empty() {
        return;
    }
    out.push_str("\"tools\":");
    push_list(out, request.tools.iter(), |out, tool| push_block(out, tool.json.as_str(), None));
    out.push(',');
}

fn push_messages(out: &mut String, messages: &[Message], marks: &Marks) {
    out.push_str("\"messages\":");
    // What another protocol's reasoning leaves empty is left out: nothing was said there.
    let said = messages.iter().enumerate().filter(|(_, message)| {
        message.content.is_empty() || message.content.iter().any(|block| plain_block(block).is_some())
    });
    push_list(out, said, |out, (message_idx, message)| {
        out.push_str("{\"role\":\"");
        out.push_str(message.role.as_str());
        out.push_str("\",\"content\":");
        let blocks = message.content.iter().enumerate();
        let blocks = blocks.filter_map(|(idx, block)| Some((idx, plain_block(block)?)));
        push_list(out, blocks, |out, (block_idx, block)| {
            push_block(out, &block, marks.on_block(message_idx, block_idx));
        });
        out.push('}');
    });
}

fn push_list<T>(out: &mut String, items: impl Iterator<Item = T>, push: impl Fn(&mut String, T)) {
    out.push('[');
    for (idx, item) in items.enumerate() {
        if idx > 0 {
            out.push(',');
        }
        push(out, item);
    }
    out.push(']');
}

/// Copies an object, with the cache mark before its last brace if it gets one.
fn push_block(out: &mut String, json: &str, mark: Option<&str>) {
    let json = without_foreign_mark(json);
    match (json.trim_end().strip_suffix('}'), mark) {
        (Some(body), Some(mark)) => {
            out.push_str(body);
            out.push_str(mark);
        }
        _ => out.push_str(&json),
    }
}

/// Takes off a cache mark that somebody else left on a stored block: only four are allowed, and we place them.
fn without_foreign_mark(json: &str) -> Cow<'_, str> {
    // Inside a JSON string the quotes would be escaped, so ordinary text is never taken for a mark.
    if FOREIGN_MARK.find(json.as_bytes()).is_none() {
        return Cow::Borrowed(json);
    }
    match RawObject::parse(json) {
        Ok(mut object) if object.get("cache_control").is_some() => {
            object.remove("cache_control");
            Cow::Owned(object.to_json())
        }
        _ => Cow::Borrowed(json),
    }
}

fn size_hint(request: &Request) -> usize {
    let system: usize = request.system.iter().map(|block| block.text.len() + 80).sum();
    let tools: usize = request.tools.iter().map(|tool| tool.json.as_str().len() + 1).sum();
    let blocks = request.messages.iter().flat_map(|message| message.content.iter());
    let blocks: usize = blocks.map(|block| block.json().as_str().len() + 1).sum();
    // System text grows by its escapes; the rest is small change.
    1024 + system + system / 8 + tools + blocks + 40 * request.messages.len()
}

#[cfg(test)]
mod tests;
