//! What a request of the revision of 2026-07-28 says in its headers: which revision it is of, which method it is and what
//! it is about, so that it can be routed without being read. A server refuses one whose headers and body differ, so they
//! are made of the body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// Where a request says which revision it is of.
pub(crate) const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Returns the headers of a message; none when it is of a revision with a handshake.
pub(super) fn routing_headers(message: &Value) -> Option<HeaderMap> {
    let params = message.get("params")?;
    let version = params.get("_meta")?.get(VERSION_META)?.as_str()?;
    let method = message.get("method")?.as_str()?;
    let name = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.get("taskId"),
        _ => None,
    };
    let pairs = [(VERSION, Some(version)), (METHOD, Some(method)), (NAME, name.and_then(Value::as_str))];
    let headers = pairs
        .into_iter()
        .filter_map(|(header, value)| Some((header, HeaderValue::from_str(&encoded_value(value?)).ok()?)));
    Some(headers.collect())
}

/// Returns a value as a header can hold it: as it is, or as the base64 of its bytes between two marks.
pub(crate) fn encoded_value(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && value.trim_matches(' ') == value
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    match is_plain {
        true => value.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_a_header_cannot_hold_are_encoded() {
        for (value, expected) in [
            ("us-west 1", "us-west 1"),
            ("", ""),
            (" padded", "=?base64?IHBhZGRlZA==?="),
            ("a\nb", "=?base64?YQpi?="),
            ("世", "=?base64?5LiW?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(encoded_value(value), expected, "{value:?}");
        }
    }

    #[test]
    fn headers_say_what_the_body_says() {
        let meta = json!({VERSION_META: "2026-07-28"});
        let check = |message: Value, expected: &[&str]| {
            let headers = routing_headers(&message).unwrap_or_default();
            let mut shown: Vec<String> =
                headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
            shown.sort();
            assert_eq!(shown, expected, "{message}");
        };
        check(
            json!({"id": 1, "method": "tools/call", "params": {"name": "größe", "_meta": meta}}),
            &[
                "mcp-method: tools/call",
                "mcp-name: =?base64?Z3LDtsOfZQ==?=",
                "mcp-protocol-version: 2026-07-28",
            ],
        );
        check(
            json!({"id": 1, "method": "resources/read", "params": {"uri": "a://b", "name": "n", "_meta": meta}}),
            &["mcp-method: resources/read", "mcp-name: a://b", "mcp-protocol-version: 2026-07-28"],
        );
        check(
            json!({"id": 1, "method": "tasks/get", "params": {"taskId": "t-1", "_meta": meta}}),
            &["mcp-method: tasks/get", "mcp-name: t-1", "mcp-protocol-version: 2026-07-28"],
        );
        check(
            json!({"id": 1, "method": "tools/list", "params": {"_meta": meta}}),
            &["mcp-method: tools/list", "mcp-protocol-version: 2026-07-28"],
        );
        check(json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}), &[]);
        check(json!({"id": 1, "result": {}}), &[]);
    }
}
