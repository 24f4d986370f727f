//! Lines a client writes: prompts and control messages.

use loci_core::ids::EntryId;
use loci_core::message::Content;
use loci_engine::Prompt;
use serde::Deserialize;
use serde_json::Value;

/// One line of stream-json input.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// Begin a turn, or queue one.
    Prompt(Prompt),
    /// A request about the session itself.
    Control {
        /// The client's id for it.
        id: String,
        /// What is asked.
        request: Value,
    },
    /// The answer to a request of ours.
    Response(Response),
    /// A client withdraws its request.
    Cancel,
    /// Nothing to do.
    Ignored,
}

/// The answer to a request of ours.
#[derive(Debug, PartialEq)]
pub(crate) struct Response {
    /// Our id for it.
    pub(crate) id: String,
    /// The answer, or what went wrong.
    pub(crate) result: Result<Value, String>,
}

#[derive(Deserialize)]
struct UserLine {
    message: UserMessage,
    #[serde(default)]
    uuid: Option<String>,
}

#[derive(Deserialize)]
struct UserMessage {
    content: Content,
}

/// Reads a line; the error says what was wrong with it.
pub(crate) fn parse(line: &str) -> Result<Line, String> {
    let value: Value = serde_json::from_str(line)
        .map_err(|error| format!("A line on standard input is not JSON: {error}: `{}`", shorten(line)))?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match value.get("type").and_then(Value::as_str) {
        Some("user") => {
            let user: UserLine = serde_json::from_str(line).map_err(|error| {
                format!("A user message on standard input cannot be read: {error}: `{}`", shorten(line))
            })?;
            let id = user.uuid.filter(|id| !id.is_empty()).map(|id| EntryId::from(id.as_str()));
            Ok(Line::Prompt(Prompt::new(user.message.content, id)))
        }
        Some("control_request") => Ok(Line::Control {
            id: text(&value, "request_id").unwrap_or_default(),
            request: value.get("request").cloned().unwrap_or_default(),
        }),
        Some("control_response") => {
            let response = value.get("response").cloned().unwrap_or_default();
            let result = match text(&response, "subtype").as_deref() {
                Some("error") => Err(text(&response, "error").unwrap_or_default()),
                _ => Ok(response.get("response").cloned().unwrap_or_default()),
            };
            Ok(Line::Response(Response { id: text(&response, "request_id").unwrap_or_default(), result }))
        }
        Some("control_cancel_request") => Ok(Line::Cancel),
        _ => Ok(Line::Ignored),
    }
}

fn shorten(line: &str) -> String {
    line.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_parsed_by_its_type() {
        let prompt =
            parse(r#"{"type":"user","message":{"role":"user","content":"Hi"},"uuid":"u1","session_id":""}"#);
        assert_eq!(prompt, Ok(Line::Prompt(Prompt::new(Content::Text("Hi".to_owned()), Some("u1".into())))));
        let blocks = parse(r#"{"type":"user","message":{"content":[{"type":"text","text":"a"}]}}"#);
        assert!(matches!(blocks, Ok(Line::Prompt(Prompt { content: Content::Blocks(_), id: None, .. }))));
        assert!(matches!(
            parse(r#"{"type":"control_request","request_id":"r","request":{"subtype":"interrupt"}}"#),
            Ok(Line::Control { .. })
        ));
        assert!(matches!(
            parse(
                r#"{"type":"control_response","response":{"subtype":"error","request_id":"q","error":"no"}}"#
            ),
            Ok(Line::Response(Response { result: Err(_), .. }))
        ));
        for ignored in [r#"{"type":"keep_alive"}"#, r#"{"type":"from_the_future"}"#, "{}"] {
            assert_eq!(parse(ignored), Ok(Line::Ignored));
        }
        for bad in ["nonsense", "", r#"{"type":"user","message":5}"#] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
