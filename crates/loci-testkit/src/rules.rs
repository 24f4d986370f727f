//! The rules of the Messages API that matter to us: what it refuses with 400.
//!
//! The scripted model holds every request to them, so that any test that drives a turn also shows that
//! the conversation it sent was one the real API takes. Words follow the API's own messages.

pub(crate) mod chat;

use serde_json::Value;
use std::collections::HashSet;

/// Returns what the API would refuse about a `POST /v1/messages` body; empty if nothing.
pub fn violations(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if !body.is_object() {
        found.push("The request body is not valid JSON".to_owned());
        return found;
    }
    required_fields(body, &mut found);
    thinking_budget(body, &mut found);
    tools(body, &mut found);
    cache_marks(body, &mut found);
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    message_order(messages, &mut found);
    for (idx, message) in messages.iter().enumerate() {
        let is_final = idx + 1 == messages.len();
        content(idx, message, is_final, &mut found);
    }
    tool_pairs(messages, &mut found);
    references(body, messages, &mut found);
    found
}

/// A result may refer to a tool only if the request has it, marked as one that is looked for, or has what looks for it.
fn references(body: &Value, messages: &[Value], found: &mut Vec<String>) {
    let tools = || body["tools"].as_array().into_iter().flatten();
    let results = messages.iter().flat_map(|it| it["content"].as_array().into_iter().flatten());
    let parts = results.flat_map(|it| it["content"].as_array().into_iter().flatten());
    for part in parts.filter(|it| it["type"] == "tool_reference") {
        let name = &part["tool_name"];
        if !tools().any(|tool| tool["name"] == *name) {
            found.push(format!("Tool reference {name} not found in available tools"));
        }
    }
    if tools().next().is_some() && tools().all(|tool| tool["defer_loading"] == true) {
        found.push("At least one tool must have defer_loading=false".to_owned());
    }
}

fn required_fields(body: &Value, found: &mut Vec<String>) {
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("model: Field required".into());
    }
    match body["max_tokens"].as_u64() {
        None => found.push("max_tokens: Field required".into()),
        Some(0) => found.push("max_tokens: Input should be greater than or equal to 1".into()),
        Some(_) => {}
    }
    match body["messages"].as_array() {
        None => found.push("messages: Field required".into()),
        Some(messages) if messages.is_empty() => {
            found.push("messages: at least one message is required".into());
        }
        Some(_) => {}
    }
}

fn thinking_budget(body: &Value, found: &mut Vec<String>) {
    if body["thinking"]["type"] != "enabled" {
        return;
    }
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or_default();
    if budget < 1024 {
        found.push("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024".into());
    }
    if body["max_tokens"].as_u64().is_some_and(|max| budget >= max) {
        found.push("`max_tokens` must be greater than `thinking.budget_tokens`".into());
    }
    if body["temperature"].as_f64().is_some_and(|it| it != 1.0) {
        found.push("`temperature` may only be set to 1 when thinking is enabled".into());
    }
}

fn tools(body: &Value, found: &mut Vec<String>) {
    let mut names = HashSet::new();
    for (idx, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 128 || !name.chars().all(is_fine) {
            found.push(format!(
                "tools.{idx}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if !names.insert(name) {
            found.push("tools: Tool names must be unique".into());
        }
        // Tools of the API's own carry a type and no schema.
        let is_custom = tool["type"].as_str().is_none_or(|it| it == "custom");
        if is_custom && !tool["input_schema"].is_object() {
            found.push(format!("tools.{idx}.custom.input_schema: Field required"));
        }
    }
}

/// Counts cache marks in the places that may hold one: tools, system blocks, message blocks.
fn cache_marks(body: &Value, found: &mut Vec<String>) {
    let n = ["tools", "system", "messages"].iter().map(|key| n_cache_marks(&body[*key])).sum::<usize>();
    if n > 4 {
        found.push(format!("A maximum of 4 blocks with cache_control may be provided. Found {n}."));
    }
}

fn n_cache_marks(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(n_cache_marks).sum(),
        Value::Object(fields) => {
            let own = usize::from(fields.get("cache_control").is_some_and(|it| !it.is_null()));
            own + fields.get("content").map_or(0, n_cache_marks)
        }
        _ => 0,
    }
}

fn message_order(messages: &[Value], found: &mut Vec<String>) {
    if messages.first().is_some_and(|it| it["role"] != "user") {
        found.push("messages: first message must use the \"user\" role".into());
    }
    for (idx, message) in messages.iter().enumerate() {
        // `system` in the middle of a conversation is a beta of the API that we use.
        if !matches!(message["role"].as_str(), Some("user" | "assistant" | "system")) {
            found.push(format!("messages.{idx}.role: Input should be 'user' or 'assistant'"));
        }
    }
}

fn content(idx: usize, message: &Value, is_final: bool, found: &mut Vec<String>) {
    let is_prefill = is_final && message["role"] == "assistant";
    match &message["content"] {
        Value::String(text) => plain_text(idx, text, is_prefill, found),
        Value::Array(blocks) if blocks.is_empty() && !is_prefill => found.push(empty_message(idx)),
        Value::Array(blocks) => {
            for (n, it) in blocks.iter().enumerate() {
                block(&format!("messages.{idx}.content.{n}"), it, found);
            }
            if is_prefill && let Some(text) = blocks.last().and_then(|it| it["text"].as_str()) {
                no_trailing_space(text, found);
            }
        }
        _ => found.push(format!("messages.{idx}.content: Field required")),
    }
}

fn plain_text(idx: usize, text: &str, is_prefill: bool, found: &mut Vec<String>) {
    if text.is_empty() && !is_prefill {
        found.push(empty_message(idx));
    } else if text.trim().is_empty() && !text.is_empty() {
        found.push("messages: text content blocks must contain non-whitespace text".into());
    }
    if is_prefill {
        no_trailing_space(text, found);
    }
}

fn empty_message(idx: usize) -> String {
    format!(
        "messages.{idx}: all messages must have non-empty content except for the optional final assistant \
         message"
    )
}

fn no_trailing_space(text: &str, found: &mut Vec<String>) {
    if text.ends_with(char::is_whitespace) {
        found.push("messages: final assistant content cannot end with trailing whitespace".into());
    }
}

fn block(place: &str, block: &Value, found: &mut Vec<String>) {
    match block["type"].as_str() {
        Some("text") => text_block(place, block, found),
        Some("thinking") => {
            if block["signature"].as_str().is_none() {
                found.push(format!("{place}.thinking.signature: Field required"));
            }
            no_cache_mark(place, block, found);
        }
        Some("redacted_thinking") => no_cache_mark(place, block, found),
        Some("tool_result") => tool_result_block(place, block, found),
        Some("tool_use") if !block["input"].is_object() => {
            found.push(format!("{place}.tool_use.input: Input should be a valid dictionary"));
        }
        Some(_) => {}
        None => found.push(format!("{place}.type: Field required")),
    }
}

fn text_block(place: &str, block: &Value, found: &mut Vec<String>) {
    match block["text"].as_str() {
        None => found.push(format!("{place}.text.text: Field required")),
        Some("") => found.push(format!("{place}: text content blocks must be non-empty")),
        Some(text) if text.trim().is_empty() => {
            found.push(format!("{place}: text content blocks must contain non-whitespace text"));
        }
        Some(_) => {}
    }
}

fn no_cache_mark(place: &str, block: &Value, found: &mut Vec<String>) {
    if block.get("cache_control").is_some() {
        found.push(format!("{place}.thinking.cache_control: Extra inputs are not permitted"));
    }
}

fn tool_result_block(place: &str, result: &Value, found: &mut Vec<String>) {
    let is_empty = match &result["content"] {
        Value::String(text) => text.is_empty(),
        Value::Array(blocks) => blocks.is_empty(),
        _ => true,
    };
    if result["is_error"] == true && is_empty {
        found.push(format!("{place}.tool_result: content cannot be empty if `is_error` is true"));
    }
    for (n, it) in result["content"].as_array().into_iter().flatten().enumerate() {
        block(&format!("{place}.tool_result.content.{n}"), it, found);
    }
}

/// Every call has its result at the head of the very next message, and no result stands alone.
fn tool_pairs(messages: &[Value], found: &mut Vec<String>) {
    let mut seen = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (idx, message) in messages.iter().enumerate() {
        let results = ids_of(message, "tool_result", "tool_use_id");
        missing_results(idx, &open, message, found);
        stray_results(idx, &open, &results, found);
        open = if message["role"] == "assistant" { ids_of(message, "tool_use", "id") } else { Vec::new() };
        for id in &open {
            if !seen.insert(*id) {
                found.push(format!("messages.{idx}: `tool_use` ids must be unique: {id}"));
            }
        }
    }
    if !open.is_empty() {
        found.push(unanswered(messages.len() - 1, &open));
    }
}

fn missing_results(idx: usize, open: &[&str], message: &Value, found: &mut Vec<String>) {
    let leading = leading_results(message);
    let missing: Vec<&str> = open.iter().copied().filter(|it| !leading.contains(it)).collect();
    if !missing.is_empty() {
        found.push(unanswered(idx - 1, &missing));
    }
}

fn stray_results(idx: usize, open: &[&str], results: &[&str], found: &mut Vec<String>) {
    let mut answered = HashSet::new();
    for id in results {
        if !open.contains(id) {
            found.push(format!(
                "messages.{idx}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ));
        } else if !answered.insert(*id) {
            found.push(format!(
                "messages.{idx}: each tool_use must have a single result. Found multiple `tool_result` \
                 blocks with id: {id}"
            ));
        }
    }
}

fn unanswered(idx: usize, ids: &[&str]) -> String {
    format!(
        "messages.{idx}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
         `tool_use` block must have a corresponding `tool_result` block in the next message.",
        ids.join(", ")
    )
}

fn ids_of<'a>(message: &'a Value, kind: &str, key: &str) -> Vec<&'a str> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.filter(|it| it["type"] == kind).map(|it| it[key].as_str().unwrap_or_default()).collect()
}

/// Returns the ids of the results at the head of a user message; other content may only follow them.
fn leading_results(message: &Value) -> Vec<&str> {
    if message["role"] != "user" {
        return Vec::new();
    }
    let blocks = message["content"].as_array().into_iter().flatten();
    let results = blocks.take_while(|it| it["type"] == "tool_result");
    results.map(|it| it["tool_use_id"].as_str().unwrap_or_default()).collect()
}
