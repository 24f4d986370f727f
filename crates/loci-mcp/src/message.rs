//! JSON-RPC 2.0 as MCP speaks it: what is said between a client and a server, without saying how it travels.
//!
//! A message is one JSON object. One revision of the protocol also allows a list of them, which is read as its parts.
//! What is no message is an error with what it was, so that whoever reads can note it and go on.

use loci_stdx::truncate_chars;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::names::visible_text;

/// The most characters of what an error says.
const MOST_SAID: usize = 20_000;
/// The code of an error that says that a method is not known.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The code of an error that says that parameters are wrong.
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// The code of an error that says that a revision of the protocol is not spoken.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
/// Revisions with a handshake that we speak, the newest first.
pub(crate) const HANDSHAKE_REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision without a handshake that we speak.
pub(crate) const STATELESS_REVISION: &str = "2026-07-28";

/// Tells whether a revision has neither handshake nor session.
pub(crate) fn is_stateless(revision: &str) -> bool {
    revision == STATELESS_REVISION
}

/// Something the other side says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// It asks; an answer with this id is owed.
    Request {
        /// The asker's id, a number or a text.
        id: Value,
        method: String,
        params: Value,
    },
    /// It tells.
    Notification { method: String, params: Value },
    /// It answers.
    Response { id: u64, result: Result<Value, RpcError> },
}

/// An error of the other side.
#[derive(Debug, Clone, PartialEq, Deserialize, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// Its kind.
    #[serde(default)]
    pub code: i64,
    /// What it says.
    #[serde(default)]
    pub message: String,
    /// More about it.
    #[serde(default)]
    pub data: Value,
}

impl RpcError {
    /// Makes an error.
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// Reads an error wherever one is told.
    pub(crate) fn read(error: Value) -> Self {
        match serde_json::from_value::<Self>(error.clone()) {
            // It is shown to people and to the model.
            Ok(error) => Self { message: visible_text(truncate_chars(&error.message, MOST_SAID)), ..error },
            Err(_) => Self { code: 0, message: error.to_string(), data: Value::Null },
        }
    }

    /// Reads an error that answers nothing in particular: one without an id.
    pub(crate) fn without_id(text: &[u8]) -> Option<Self> {
        let wire: Wire = serde_json::from_slice(text).ok()?;
        let is_unaddressed = wire.id.is_none_or(|id| id.is_null()) && wire.method.is_none();
        // What stands before a server has errors of its own, without a code.
        let is_of_protocol = |error: &Value| error.get("code").is_some_and(Value::is_i64);
        wire.error.filter(|error| is_unaddressed && is_of_protocol(error)).map(Self::read)
    }
}

#[derive(Deserialize)]
struct Wire {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Value>,
}

impl Message {
    /// Reads what the other side wrote; a list has several parts.
    pub(crate) fn parse(text: &[u8]) -> Result<Vec<Self>, String> {
        if text.trim_ascii_start().first() == Some(&b'[') {
            let parts: Vec<Wire> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
            return parts.into_iter().map(Self::from_wire).collect();
        }
        let wire: Wire = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        Ok(vec![Self::from_wire(wire)?])
    }

    /// Reads a message that is a value already.
    pub(crate) fn from_value(value: Value) -> Result<Self, String> {
        serde_json::from_value(value).map_err(|error| error.to_string()).and_then(Self::from_wire)
    }

    fn from_wire(wire: Wire) -> Result<Self, String> {
        let Wire { id, method, params, result, error } = wire;
        match (method, id) {
            (Some(method), None | Some(Value::Null)) => Ok(Self::Notification { method, params }),
            (Some(method), Some(id)) => Ok(Self::Request { id, method, params }),
            (None, id) => {
                let result = match error {
                    Some(error) => Err(RpcError::read(error)),
                    None => Ok(result),
                };
                let number = id.as_ref().and_then(response_id);
                number.map(|id| Self::Response { id, result }).ok_or_else(|| match id {
                    Some(id) => format!("an answer with the id {id}, which nobody asked with"),
                    None => "neither a request nor an answer".to_owned(),
                })
            }
        }
    }
}

/// Our ids are numbers; some servers send them back as text.
fn response_id(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

/// Returns a request.
pub(crate) fn request(id: u64, method: &str, params: Map<String, Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Returns a notification; parameters that are null are left out.
pub(crate) fn notification(method: &str, params: Value) -> Value {
    match params {
        Value::Null => json!({"jsonrpc": "2.0", "method": method}),
        params => json!({"jsonrpc": "2.0", "method": method, "params": params}),
    }
}

/// Returns the answer to a request.
pub(crate) fn response(id: &Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message, data }) => {
            let mut error = json!({"code": code, "message": message});
            if !data.is_null() {
                error["data"] = data;
            }
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match Message::parse(text.as_bytes()) {
            Ok(messages) => messages.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>().join("; "),
            Err(_) => "rubbish".to_owned(),
        };
        assert!(shown.starts_with(expected) && expected.is_empty() == shown.is_empty(), "{text}: {shown}");
    }

    #[test]
    fn messages_are_told_apart() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "Response { id: 1, result: Ok("),
            (r#"{"jsonrpc":"2.0","id":"7","result":null}"#, "Response { id: 7, result: Ok(Null) }"),
            (
                r#"{"id":1,"error":{"code":-3,"message":"no"}}"#,
                "Response { id: 1, result: Err(RpcError { code: -3",
            ),
            (r#"{"id":1,"error":"no"}"#, "Response { id: 1, result: Err(RpcError { code: 0"),
            (r#"{"id":"x","method":"ping"}"#, "Request { id: String(\"x\"), method: \"ping\""),
            (r#"{"id":0,"method":"ping"}"#, "Request { id: Number(0), method: \"ping\""),
            (
                r#"{"method":"notifications/progress","params":{"progress":1}}"#,
                "Notification { method: \"not",
            ),
            (r#"{"id":null,"method":"n"}"#, "Notification { method: \"n\""),
            (r#"[{"id":1,"result":1},{"method":"n"}]"#, "Response { id: 1, result: Ok(Number(1)) }; Notif"),
            ("[]", ""),
            ("{}", "rubbish"),
            (r#"{"id":{"a":1},"result":1}"#, "rubbish"),
            ("Server running on stdio", "rubbish"),
            ("\u{0}\u{1}", "rubbish"),
            ("", "rubbish"),
        ] {
            check(text, expected);
        }
    }
}
