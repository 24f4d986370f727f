//! A request as the scripted model received it, with the questions tests ask of one.

use bytes::Bytes;
use serde_json::Value;
use std::time::Instant;

/// One request, whole, as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// `GET`, `POST`, `HEAD`.
    pub method: String,
    /// Path and query, as sent.
    pub path: String,
    /// Header names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body byte for byte.
    pub body: Bytes,
    /// The body as JSON, or `null` if it is not.
    pub json: Value,
    /// When the whole request had been read.
    pub arrived: Instant,
    /// The HTTP version it came by.
    pub http_version: HttpVersion,
    /// Counts connections from 0; equal numbers mean one connection was kept alive or shared.
    pub connection: usize,
    /// What the real API would refuse about it; empty if nothing.
    pub violations: Vec<String>,
}

/// The protocols that the scripted model speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Chat Completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages, in Amazon's frames.
    Bedrock,
    /// Anthropic's Messages, at Google's address.
    Vertex,
}

/// The HTTP version a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
}

/// A `tool_result` block of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call it answers.
    pub tool_use_id: String,
    /// Its text blocks, joined by newlines.
    pub text: String,
    /// Whether it is marked as an error.
    pub is_error: bool,
}

impl Recorded {
    /// Returns the value of a header; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the path without its query.
    pub fn route(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Whether it asks a model, by whichever protocol.
    pub fn is_messages(&self) -> bool {
        let routes = [
            "/v1/messages",
            "/chat/completions",
            "/responses",
            "/invoke-with-response-stream",
            "/invoke",
            ":streamRawPredict",
            ":rawPredict",
        ];
        self.method == "POST" && routes.iter().any(|route| self.route().ends_with(route))
    }

    /// Returns the protocol it speaks.
    pub(crate) fn face(&self) -> Face {
        match self.route() {
            route if route.ends_with("/chat/completions") => Face::Chat,
            route if route.ends_with("/responses") => Face::Responses,
            route if route.contains("/invoke") => Face::Bedrock,
            route if route.ends_with("awPredict") => Face::Vertex,
            _ => Face::Messages,
        }
    }

    /// Whether it belongs to the main conversation: it offers tools.
    pub fn is_main(&self) -> bool {
        self.is_messages() && !self.array("tools").is_empty()
    }

    /// Whether it asks for a stream.
    pub fn is_streaming(&self) -> bool {
        self.route().ends_with("/invoke-with-response-stream") || self.json["stream"] == true
    }

    /// Returns the `messages`.
    pub fn messages(&self) -> &[Value] {
        self.array("messages")
    }

    /// Returns how many messages are from the assistant.
    pub fn n_assistant_turns(&self) -> usize {
        self.messages().iter().filter(|it| it["role"] == "assistant").count()
    }

    /// Returns the names of the tools on offer.
    pub fn tool_names(&self) -> Vec<&str> {
        self.array("tools").iter().filter_map(|it| it["name"].as_str()).collect()
    }

    /// Returns the system prompt, its blocks joined by newlines.
    pub fn system_text(&self) -> String {
        text_of(&self.json["system"])
    }

    /// Returns the text of the last user message, its blocks joined by newlines.
    pub fn last_user_text(&self) -> String {
        let last = self.messages().iter().rev().find(|it| it["role"] == "user");
        last.map(|it| text_of(&it["content"])).unwrap_or_default()
    }

    /// Returns the tool results of the last user message.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        let last = self.messages().iter().rev().find(|it| it["role"] == "user");
        let blocks = last.and_then(|it| it["content"].as_array()).map_or(&[][..], Vec::as_slice);
        blocks.iter().filter(|it| it["type"] == "tool_result").map(tool_result).collect()
    }

    fn array(&self, key: &str) -> &[Value] {
        self.json[key].as_array().map_or(&[], Vec::as_slice)
    }
}

fn tool_result(block: &Value) -> ToolResult {
    ToolResult {
        tool_use_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
        text: text_of(&block["content"]),
        is_error: block["is_error"] == true,
    }
}

/// Returns the text of a `content` field: a string, or the text blocks of a list.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
