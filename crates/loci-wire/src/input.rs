//! Lines a client writes: prompts and control messages.

use loci_core::ids::EntryId;
use loci_core::message::{Block, Content};
use loci_engine::Prompt;
use serde::Deserialize;
use serde_json::Value;

/// One line of stream-json input.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// Begin a turn, or queue one.
    Prompt(Prompt, Priority),
    /// A request about the session itself.
    Control {
        /// The client's id for it.
        id: String,
        /// What is asked.
        request: Value,
    },
    /// The answer to a request of ours.
    Response(Response),
    /// A client withdraws its request, by its id.
    Cancel(String),
    /// Nothing to do.
    Ignored,
}

/// When a prompt is taken up that comes while a turn is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Priority {
    /// At once: the turn is stopped.
    Now,
    /// With the next results of calls.
    Next,
    /// In a turn of its own.
    #[default]
    #[serde(other)]
    Later,
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
    #[serde(default)]
    priority: Option<Priority>,
    /// Whether the model is asked about it.
    #[serde(default, rename = "shouldQuery")]
    should_query: Option<bool>,
    /// Whether the client made it up: no commands and no mentions are looked for in it.
    #[serde(default)]
    client_composed: Option<bool>,
    /// What a person pasted, which belongs behind what she typed.
    #[serde(default)]
    pasted_content: Vec<Content>,
}

impl UserLine {
    fn into_line(self) -> Line {
        let id = self.uuid.filter(|id| !id.is_empty()).map(|id| EntryId::from(id.as_str()));
        let mut prompt = Prompt::new(with_pasted(self.message.content, &self.pasted_content), id);
        prompt.is_verbatim = self.client_composed == Some(true);
        prompt.is_unasked = self.should_query == Some(false);
        Line::Prompt(prompt, self.priority.unwrap_or_default())
    }
}

/// Puts what was pasted behind what was typed; only its text counts.
fn with_pasted(content: Content, pasted: &[Content]) -> Content {
    let texts: Vec<String> = pasted.iter().map(Content::text).filter(|text| !text.is_empty()).collect();
    match content {
        content if texts.is_empty() => content,
        Content::Text(typed) => Content::Text([vec![typed], texts].concat().join("\n\n")),
        Content::Blocks(mut blocks) => {
            blocks.extend(texts.iter().map(|text| Block::new_text(text)));
            Content::Blocks(blocks)
        }
    }
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
            Ok(user.into_line())
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
        Some("control_cancel_request") => Ok(Line::Cancel(text(&value, "request_id").unwrap_or_default())),
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
        let hi = Prompt::new(Content::Text("Hi".to_owned()), Some("u1".into()));
        assert_eq!(prompt, Ok(Line::Prompt(hi, Priority::Later)));
        let blocks = parse(r#"{"type":"user","message":{"content":[{"type":"text","text":"a"}]}}"#);
        assert!(matches!(blocks, Ok(Line::Prompt(Prompt { content: Content::Blocks(_), id: None, .. }, _))));
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
        assert_eq!(
            parse(r#"{"type":"control_cancel_request","request_id":"r"}"#),
            Ok(Line::Cancel("r".to_owned()))
        );
        for ignored in [r#"{"type":"keep_alive"}"#, r#"{"type":"from_the_future"}"#, "{}"] {
            assert_eq!(parse(ignored), Ok(Line::Ignored));
        }
        for bad in ["nonsense", "", r#"{"type":"user","message":5}"#] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn optional_fields_of_a_user_line_are_honoured_and_unknown_ones_ignored() {
        let read = |more: &str| {
            let line =
                format!(r#"{{"type":"user","message":{{"content":"/Hi"}},"from_the_future":1{more}}}"#);
            let Ok(Line::Prompt(prompt, priority)) = parse(&line) else { panic!("{line}") };
            (prompt.is_verbatim, prompt.is_unasked, priority, prompt.content.text())
        };
        let usual = |priority| (false, false, priority, "/Hi".to_owned());
        for (more, expected) in [
            ("", usual(Priority::Later)),
            (r#","priority":"next""#, usual(Priority::Next)),
            (r#","priority":"now""#, usual(Priority::Now)),
            (r#","priority":"whenever""#, usual(Priority::Later)),
            (r#","client_composed":true"#, (true, false, Priority::Later, "/Hi".to_owned())),
            (r#","shouldQuery":false"#, (false, true, Priority::Later, "/Hi".to_owned())),
            (
                r#","pasted_content":["a",[{"type":"text","text":"b"}]]"#,
                (false, false, Priority::Later, "/Hi\n\na\n\nb".to_owned()),
            ),
        ] {
            assert_eq!(read(more), expected, "{more}");
        }
    }
}
