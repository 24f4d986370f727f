//! A request as Chat Completions have it.
//!
//! System blocks become one message. A user's message becomes a `tool` message for each result it holds, right behind the
//! calls, then one message with all else; images of results follow in it, for a `tool` message is text. Of a document the text
//! is sent, or the whole where the server takes files. Reasoning goes back to the model that wrote it and to nobody else.

use bytes::Bytes;
use loci_core::message::{Block, BlockKind, Message, Role};
use loci_core::raw::RawObject;
use serde_json::{Map, Value, json};

use super::ChatServer;
use crate::chat::pdf_text::PdfTextCache;
use crate::kept_wire::kept_for;
use crate::request::{Request, ToolSpec};
use crate::wire_names::{call_id_to_wire, tool_name_to_wire};

/// Stands in a result for the images that follow it.
const SEE_NEXT: &str = "[The image is in the next message.]";
/// Stands in a result for the documents that follow it.
const DOCUMENT_NEXT: &str = "[The document is in the next message.]";
/// What Google takes for the signature of a call that one of its models did not make.
const FOREIGN_CALL: &str = "skip_thought_signature_validator";

/// Writes the body; `provider` is whom it is for, `pdf_texts` keeps what documents say.
pub(crate) fn body(request: &Request, provider: &str, server: ChatServer, pdf_texts: &PdfTextCache) -> Bytes {
    let is_openai = server == ChatServer::OpenAi;
    let model = request.model_in(provider);
    let mut body = Map::new();
    let mut add = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    add("model", model.into());
    let limit = if is_openai { "max_completion_tokens" } else { "max_tokens" };
    add(limit, request.max_tokens.into());
    if let Some(effort) = &request.effort {
        add("reasoning_effort", effort.as_str().into());
    }
    add("stream", request.is_streaming.into());
    if request.is_streaming {
        add("stream_options", json!({"include_usage": true}));
    }
    if let Some(session) = request.session_id.as_ref().filter(|_| is_openai) {
        add("prompt_cache_key", session.as_str().into());
    }
    if !request.tools.is_empty() {
        add("tools", request.tools.iter().map(tool).collect());
    }
    let system_role = if is_openai && is_reasoning_model(model) { "developer" } else { "system" };
    let mut messages = Messages { out: Vec::new(), provider, model: &request.model, server, pdf_texts };
    messages.system(request, system_role);
    for message in &request.messages {
        messages.push(message);
    }
    if server == ChatServer::OpenRouter && wants_cache_marks(model) {
        mark_cached(&mut messages.out);
    }
    add("messages", Value::Array(messages.out));
    Bytes::from(Value::Object(body).to_string())
}

/// These cache what is marked and nothing else.
fn wants_cache_marks(model: &str) -> bool {
    model.starts_with("anthropic/") || model.starts_with("google/gemini")
}

/// Marks the system prompt and the end of the conversation, as they are marked for the Messages API.
fn mark_cached(messages: &mut [Value]) {
    let is_last = |message: &Value| message["role"] == "user" || message["role"] == "tool";
    let places = [messages.iter().position(|it| it["role"] == "system"), messages.iter().rposition(is_last)];
    for idx in places.into_iter().flatten() {
        let mut parts = match messages[idx]["content"].take() {
            Value::Array(parts) => parts,
            text => vec![json!({"type": "text", "text": text})],
        };
        // An empty text cannot be cached.
        let has_text = |part: &&mut Value| part["text"].as_str().is_some_and(|text| !text.is_empty());
        if let Some(part) = parts.iter_mut().rev().find(has_text) {
            part["cache_control"] = json!({"type": "ephemeral"});
        }
        messages[idx]["content"] = Value::Array(parts);
    }
}

/// OpenAI's models that think have another name for the system's role.
fn is_reasoning_model(model: &str) -> bool {
    let is_o = model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_o || model.starts_with("gpt-5")
}

/// A tool as the model is told of it.
fn tool(tool: &ToolSpec) -> Value {
    let (description, parameters) = tool_parts(tool);
    json!({"type": "function", "function": {
        "name": tool_name_to_wire(&tool.name), "description": description, "parameters": parameters
    }})
}

/// Returns a tool's description and the schema of its arguments, without what strict servers refuse.
pub(crate) fn tool_parts(tool: &ToolSpec) -> (Value, Value) {
    let mut value: Value = tool.json.read().unwrap_or_default();
    let description = value.get_mut("description").map(Value::take).unwrap_or_default();
    let mut schema = value.get_mut("input_schema").map(Value::take).unwrap_or_else(|| json!({}));
    if let Some(schema) = schema.as_object_mut() {
        schema.shift_remove("$schema");
        // Some servers want it even where there is nothing to say.
        schema.entry("type").or_insert_with(|| "object".into());
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    (description, schema)
}

struct Messages<'a> {
    out: Vec<Value>,
    provider: &'a str,
    /// The model's full name.
    model: &'a str,
    server: ChatServer,
    pdf_texts: &'a PdfTextCache,
}

impl Messages<'_> {
    fn system(&mut self, request: &Request, role: &str) {
        let texts: Vec<&str> = request.system.iter().map(|block| block.text.as_str()).collect();
        if !texts.is_empty() {
            self.out.push(json!({"role": role, "content": texts.join("\n\n")}));
        }
    }

    fn push(&mut self, message: &Message) {
        match message.role {
            Role::Assistant => self.assistant(&message.content),
            // Templates of local models refuse a system message in the middle.
            Role::User | Role::System => self.user(&message.content),
        }
    }

    fn assistant(&mut self, blocks: &[Block]) {
        let mut text = String::new();
        let mut calls: Vec<Value> = Vec::new();
        let mut reasoning = Map::new();
        for block in blocks {
            match block.kind() {
                BlockKind::Text => text.push_str(&block.text().unwrap_or_default()),
                BlockKind::ToolUse => calls.extend(self.call(block)),
                BlockKind::Thinking => {
                    if let Some(Value::Object(kept)) = kept_for(block, self.provider, self.model) {
                        super::reasoning::join(&mut reasoning, kept);
                    }
                }
                BlockKind::RedactedThinking
                | BlockKind::ToolResult
                | BlockKind::Image
                | BlockKind::Document
                | BlockKind::Other => {}
            }
        }
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        message.insert("content".to_owned(), if text.is_empty() { Value::Null } else { text.into() });
        message.extend(reasoning);
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        self.out.push(Value::Object(message));
    }

    /// Says a call, with what this very model said beside it.
    fn call(&self, block: &Block) -> Option<Value> {
        let object = RawObject::parse(block.json().as_str()).ok()?;
        let (id, name): (String, String) = (object.read("id")?, object.read("name")?);
        let arguments = object.get("input").map_or("{}", |input| input.get());
        let mut call = json!({"id": call_id_to_wire(&id), "type": "function",
            "function": {"name": tool_name_to_wire(&name), "arguments": arguments}});
        match kept_for(block, self.provider, self.model) {
            Some(Value::Object(kept)) => kept.into_iter().for_each(|(name, value)| call[name] = value),
            _ if self.server == ChatServer::Google => {
                call["extra_content"] = json!({"google": {"thought_signature": FOREIGN_CALL}});
            }
            _ => {}
        }
        Some(call)
    }

    fn user(&mut self, blocks: &[Block]) {
        let mut parts: Vec<Part> = Vec::new();
        for block in blocks.iter().filter(|block| block.kind() == BlockKind::ToolResult) {
            let Some(result) = result_parts(block) else { continue };
            let takes_files = self.server.takes_files();
            let (follow, mut texts): (Vec<Part>, Vec<Part>) =
                result.parts.into_iter().partition(|part| match part {
                    Part::Image(_) => true,
                    Part::Document(..) => takes_files,
                    Part::Text(_) => false,
                });
            let has_image = follow.iter().any(|part| matches!(part, Part::Image(_)));
            let has_document = follow.iter().any(|part| matches!(part, Part::Document(..)));
            for (has, notice) in [(has_image, SEE_NEXT), (has_document, DOCUMENT_NEXT)] {
                texts.extend(has.then(|| Part::Text(notice.to_owned())));
            }
            let texts: Vec<String> = texts.into_iter().map(|part| part.into_text(self.pdf_texts)).collect();
            let error = if result.is_error { "Error:\n" } else { "" };
            self.out.push(json!({
                "role": "tool",
                "tool_call_id": call_id_to_wire(&result.id),
                "content": format!("{error}{}", texts.join("\n")),
            }));
            parts.extend(follow);
        }
        parts.extend(blocks.iter().filter(|block| block.kind() != BlockKind::ToolResult).filter_map(part));
        if !parts.is_empty() {
            self.push_user(parts);
        }
    }

    /// Adds a user's words; to the user's last message where nothing stands between, for templates want roles in turn.
    fn push_user(&mut self, parts: Vec<Part>) {
        let takes_files = self.server.takes_files();
        let mut parts: Vec<Value> =
            parts.into_iter().map(|part| part.into_chat(takes_files, self.pdf_texts)).collect();
        if let Some(last) = self.out.last_mut().filter(|last| last["role"] == "user") {
            let before = match last["content"].take() {
                Value::Array(before) => before,
                text => vec![json!({"type": "text", "text": text})],
            };
            parts = before.into_iter().chain(parts).collect();
            self.out.pop();
        }
        let content = match parts.as_slice() {
            [only] if only["type"] == "text" => only["text"].clone(),
            _ => Value::Array(parts),
        };
        self.out.push(json!({"role": "user", "content": content}));
    }
}

/// A piece of what a user, or a tool, says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// Text.
    Text(String),
    /// An image's address, which may be its data.
    Image(String),
    /// A document: its type and data.
    Document(String, String),
}

impl Part {
    fn into_text(self, pdf_texts: &PdfTextCache) -> String {
        match self {
            Self::Text(text) => text,
            Self::Image(_) => SEE_NEXT.to_owned(),
            Self::Document(kind, data) => document_text(&kind, &data, pdf_texts),
        }
    }

    fn into_chat(self, takes_files: bool, pdf_texts: &PdfTextCache) -> Value {
        match self {
            Self::Image(url) => json!({"type": "image_url", "image_url": {"url": url, "detail": "auto"}}),
            Self::Document(kind, data) if takes_files => json!({"type": "file", "file": {
                "filename": "document.pdf", "file_data": format!("data:{kind};base64,{data}")}}),
            other => json!({"type": "text", "text": other.into_text(pdf_texts)}),
        }
    }
}

/// Returns the text of a document.
fn document_text(kind: &str, data: &str, pdf_texts: &PdfTextCache) -> String {
    match (kind == "application/pdf").then(|| pdf_texts.text(data)).flatten() {
        Some(text) => format!("[The text of a PDF document:]\n{text}"),
        None => format!(
            "[A document was here ({kind}) in which no text was found; this model takes text and images alone.]"
        ),
    }
}

/// What a call's result says.
pub(crate) struct ResultParts {
    pub(crate) id: String,
    pub(crate) is_error: bool,
    pub(crate) parts: Vec<Part>,
}

/// Reads the result of a call.
pub(crate) fn result_parts(block: &Block) -> Option<ResultParts> {
    let result = block.tool_result()?;
    let parts = match &result.content {
        Value::String(text) => vec![Part::Text(text.clone())],
        Value::Array(parts) => parts.iter().filter_map(part_of_value).collect(),
        _ => Vec::new(),
    };
    Some(ResultParts { id: result.tool_use_id.to_string(), is_error: result.is_error == Some(true), parts })
}

/// Reads a block of a user's message; blank text is left out, for servers refuse it.
pub(crate) fn part(block: &Block) -> Option<Part> {
    part_of_value(&block.to_value()).filter(|part| *part != Part::Text(String::new()))
}

fn part_of_value(value: &Value) -> Option<Part> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    match value["type"].as_str()? {
        "text" => text("text").map(Part::Text),
        "image" => image_url(&value["source"]).map(Part::Image),
        "document" => document(&value["source"]),
        "tool_reference" => text("tool_name").map(Part::Text),
        // Kinds of block that only their own API knows say nothing here.
        _ => None,
    }
}

/// Returns the address of an image.
fn image_url(source: &Value) -> Option<String> {
    match source["type"].as_str()? {
        "base64" => {
            Some(format!("data:{};base64,{}", source["media_type"].as_str()?, source["data"].as_str()?))
        }
        "url" => source["url"].as_str().map(str::to_owned),
        _ => None,
    }
}

fn document(source: &Value) -> Option<Part> {
    let data = source["data"].as_str().unwrap_or_default().to_owned();
    match source["type"].as_str()? {
        "text" => Some(Part::Text(data)),
        "content" => source["content"].as_str().map(|text| Part::Text(text.to_owned())),
        _ => Some(Part::Document(source["media_type"].as_str().unwrap_or("file").to_owned(), data)),
    }
}

#[cfg(test)]
mod tests;
