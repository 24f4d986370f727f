//! JSON-RPC 2.0, one message a line: what a line is, and how ours are written.
//!
//! Parsing never fails without saying what to answer: a line that is no message is answered with an error, under its id
//! where it has one. A response that cannot be read is dropped, since an answer to an answer helps nobody.
//! (`docs/design/acp.md` says why the protocol's own crates are not used.)

use serde_json::{Map, Value, json};

/// The code of a line that is not JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// The code of JSON that is no message.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// The code of a method that there is none of.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// The code of parameters that cannot be.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// The code of whatever went wrong here.
pub(super) const INTERNAL_ERROR: i64 = -32603;
/// The code of a request that was called off.
pub(super) const REQUEST_CANCELLED: i64 = -32800;
/// ACP: somebody has to log in first.
pub(super) const AUTH_REQUIRED: i64 = -32000;
/// ACP: there is no such thing.
pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    /// One of the codes.
    pub(super) code: i64,
    /// What is wrong, for people.
    pub(super) message: String,
    /// What more is known.
    pub(super) data: Option<Value>,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The parameters cannot be.
    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// It went wrong here.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    fn to_value(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }

    fn parse(value: &Value) -> Self {
        Self {
            code: value["code"].as_i64().unwrap_or(INTERNAL_ERROR),
            message: value["message"].as_str().unwrap_or("no reason was given").to_owned(),
            data: value.get("data").cloned(),
        }
    }
}

/// A message of the other side.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// It wants an answer.
    Request {
        /// Its id for the answer: a number, a text or null.
        id: Value,
        /// What it wants.
        method: String,
        /// With what; an object.
        params: Value,
    },
    /// It wants none.
    Notification {
        /// What happened.
        method: String,
        /// With what; an object.
        params: Value,
    },
    /// It answers us.
    Response {
        /// Our id.
        id: Value,
        /// What it says.
        result: Result<Value, RpcError>,
    },
    /// It is no message; this is what to answer.
    Invalid(Value),
    /// It says nothing, and nothing is answered.
    Nothing,
}

/// Reads a line.
pub(super) fn parse(line: &str) -> Message {
    if line.trim().is_empty() {
        return Message::Nothing;
    }
    let value: Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => return invalid(Value::Null, PARSE_ERROR, format!("This is not JSON: {error}")),
    };
    let Value::Object(mut fields) = value else {
        // ACP has no batches.
        return invalid(Value::Null, INVALID_REQUEST, "A message is an object, one a line");
    };
    let id = fields.remove("id");
    let is_id = |id: &Value| id.is_null() || id.is_string() || id.is_i64() || id.is_u64();
    let known_id = id.clone().filter(|id| is_id(id)).unwrap_or_default();
    match fields.remove("method") {
        None => response(id, fields),
        Some(_) if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") => {
            invalid(known_id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\"")
        }
        Some(_) if id.as_ref().is_some_and(|id| !is_id(id)) => {
            invalid(Value::Null, INVALID_REQUEST, "`id` must be a number, a text or null")
        }
        Some(Value::String(method)) => match fields.remove("params").unwrap_or_else(|| json!({})) {
            Value::Null => message(id, method, json!({})),
            params @ Value::Object(_) => message(id, method, params),
            _ if id.is_none() => Message::Nothing,
            _ => invalid(known_id, INVALID_PARAMS, "`params` must be an object"),
        },
        Some(_) => invalid(known_id, INVALID_REQUEST, "`method` must be a text"),
    }
}

fn message(id: Option<Value>, method: String, params: Value) -> Message {
    match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    }
}

fn response(id: Option<Value>, mut fields: Map<String, Value>) -> Message {
    let result = match (fields.remove("error"), fields.remove("result")) {
        (Some(error), _) if !error.is_null() => Err(RpcError::parse(&error)),
        (_, Some(result)) => Ok(result),
        _ => return invalid(id.unwrap_or_default(), INVALID_REQUEST, "`method` is missing"),
    };
    match id {
        Some(id) => Message::Response { id, result },
        None => Message::Nothing,
    }
}

fn invalid(id: Value, code: i64, message: impl Into<String>) -> Message {
    Message::Invalid(answer(&id, Err(RpcError::new(code, message))))
}

/// Answers a request.
pub(super) fn answer(id: &Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error.to_value()}),
    }
}

/// Asks something.
pub(super) fn request(id: i64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Tells something.
pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders what a line is.
    fn shape(line: &str) -> String {
        match parse(line) {
            Message::Request { id, method, params } => format!("request {id} {method} {params}"),
            Message::Notification { method, params } => format!("notification {method} {params}"),
            Message::Response { id, result } => match result {
                Ok(value) => format!("result {id} {value}"),
                Err(error) => format!("error {id} {} {}", error.code, error.message),
            },
            Message::Invalid(answer) => format!("{} {}", answer["id"], answer["error"]["code"]),
            Message::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn lines_are_messages_or_are_answered_with_an_error() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#, r#"request 1 m {"a":1}"#),
            (r#"{"jsonrpc":"2.0","id":"x","method":"m"}"#, r#"request "x" m {}"#),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m","params":null}"#, "request null m {}"),
            (r#"{"jsonrpc":"2.0","method":"m","params":{}}"#, "notification m {}"),
            (r#"{"jsonrpc":"2.0","method":"m","params":[1]}"#, "nothing"),
            (r#"{"jsonrpc":"2.0","id":7,"result":null}"#, "result 7 null"),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32800,"message":"no"}}"#, "error 7 -32800 no"),
            (r#"{"id":7,"error":null,"result":{}}"#, "result 7 {}"),
            (r#"{"jsonrpc":"2.0","result":{}}"#, "nothing"),
            ("", "nothing"),
            ("  \t", "nothing"),
            ("{", "null -32700"),
            ("nonsense", "null -32700"),
            ("[]", "null -32600"),
            ("3", "null -32600"),
            ("{}", "null -32600"),
            (r#"{"jsonrpc":"2.0","id":4}"#, "4 -32600"),
            (r#"{"jsonrpc":"1.0","id":4,"method":"m"}"#, "4 -32600"),
            (r#"{"id":4,"method":"m"}"#, "4 -32600"),
            (r#"{"jsonrpc":"2.0","id":4,"method":5}"#, "4 -32600"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "null -32600"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, "null -32600"),
            (r#"{"jsonrpc":"2.0","id":4,"method":"m","params":[1]}"#, "4 -32602"),
        ] {
            assert_eq!(shape(line), expected, "{line}");
        }
    }
}
