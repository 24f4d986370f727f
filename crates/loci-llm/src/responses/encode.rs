//! A request as Responses have it: a list of items, in the order in which they were said.

use std::collections::HashMap;

use bytes::Bytes;
use loci_core::message::{Block, BlockKind, Message, Role};
use loci_core::raw::RawObject;
use serde_json::{Map, Value, json};

use crate::chat::{Part, part, result_parts, tool_parts};
use crate::kept_wire::kept_for;
use crate::request::{Request, ToolSpec};
use crate::wire_names::{answer_id, call_id_to_wire, digest, tool_name_to_wire};

/// Writes the body; `provider` is whom it is for.
pub(crate) fn body(request: &Request, provider: &str) -> Bytes {
    let mut body = Map::new();
    let mut add = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    add("model", request.model_in(provider).into());
    add("max_output_tokens", request.max_tokens.into());
    if let Some(effort) = &request.effort {
        add("reasoning", json!({"effort": effort}));
    }
    add("stream", request.is_streaming.into());
    add("store", false.into());
    add("include", json!(["reasoning.encrypted_content"]));
    if let Some(session) = &request.session_id {
        add("prompt_cache_key", session.as_str().into());
    }
    let system: Vec<&str> = request.system.iter().map(|block| block.text.as_str()).collect();
    if !system.is_empty() {
        add("instructions", system.join("\n\n").into());
    }
    if !request.tools.is_empty() {
        add("tools", request.tools.iter().map(tool).collect());
    }
    let mut answers = AnswerIds::default();
    let items = request.messages.iter().flat_map(|message| match message.role {
        Role::Assistant => assistant(message, provider, &request.model, &mut answers),
        Role::User | Role::System => user(message),
    });
    add("input", items.collect());
    Bytes::from(Value::Object(body).to_string())
}

fn tool(tool: &ToolSpec) -> Value {
    let (description, parameters) = tool_parts(tool);
    json!({"type": "function", "name": tool_name_to_wire(&tool.name), "description": description,
        "parameters": parameters, "strict": false})
}

/// Ids of past answers, which strict servers insist on. They are made of what was said and how often it was said before, so
/// that they are the same in every later request, also of a session that was resumed.
#[derive(Default)]
struct AnswerIds(HashMap<u64, u64>);

impl AnswerIds {
    fn next(&mut self, text: &str) -> String {
        let digest = digest(text);
        let n_before = self.0.entry(digest).or_default();
        let id = answer_id(digest, *n_before);
        *n_before += 1;
        id
    }
}

/// Each block is an item of its own; reasoning of this very model stands right before what it led to.
fn assistant(message: &Message, provider: &str, model: &str, answers: &mut AnswerIds) -> Vec<Value> {
    let items = message.content.iter().filter_map(|block| match block.kind() {
        BlockKind::Text => {
            let text = block.text().filter(|text| !text.is_empty())?;
            Some(json!({"type": "message", "id": answers.next(&text), "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}))
        }
        BlockKind::ToolUse => call(block),
        // Reasoning, and items of kinds that we do not know.
        BlockKind::Thinking => kept_for(block, provider, model).filter(|it| it["type"].is_string()),
        BlockKind::RedactedThinking
        | BlockKind::ToolResult
        | BlockKind::Image
        | BlockKind::Document
        | BlockKind::Other => None,
    });
    items.collect()
}

fn call(block: &Block) -> Option<Value> {
    let object = RawObject::parse(block.json().as_str()).ok()?;
    let (id, name): (String, String) = (object.read("id")?, object.read("name")?);
    let arguments = object.get("input").map_or("{}", |input| input.get());
    Some(json!({"type": "function_call", "call_id": call_id_to_wire(&id),
        "name": tool_name_to_wire(&name), "arguments": arguments}))
}

fn user(message: &Message) -> Vec<Value> {
    let results = message.content.iter().filter(|block| block.kind() == BlockKind::ToolResult);
    let mut items: Vec<Value> = results.filter_map(result).collect();
    let others = message.content.iter().filter(|block| block.kind() != BlockKind::ToolResult);
    let parts: Vec<Value> = others.filter_map(part).map(content).collect();
    if !parts.is_empty() {
        items.push(json!({"type": "message", "role": "user", "content": parts}));
    }
    items
}

fn result(block: &Block) -> Option<Value> {
    let result = result_parts(block)?;
    let error = if result.is_error { "Error:\n" } else { "" };
    let is_text = result.parts.iter().all(|part| matches!(part, Part::Text(_)));
    let output = match is_text {
        true => {
            let texts = result.parts.into_iter().map(|part| match part {
                Part::Text(text) => text,
                Part::Image(_) | Part::Document(..) => String::new(),
            });
            Value::from(format!("{error}{}", texts.collect::<Vec<_>>().join("\n")))
        }
        false => {
            let error = (!error.is_empty()).then(|| content(Part::Text("Error:".to_owned())));
            error.into_iter().chain(result.parts.into_iter().map(content)).collect()
        }
    };
    Some(json!({"type": "function_call_output", "call_id": call_id_to_wire(&result.id), "output": output}))
}

fn content(part: Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Image(url) => json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        Part::Document(kind, data) => json!({"type": "input_file", "filename": "document",
            "file_data": format!("data:{kind};base64,{data}")}),
    }
}

#[cfg(test)]
mod tests;
