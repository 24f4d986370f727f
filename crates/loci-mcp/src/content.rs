//! What a call, a resource or a prompt brings: parts of several kinds, as the protocol has them.

use serde_json::Value;

use crate::names::stripped_text;

/// One part of what a server sends.
#[derive(Debug, Clone, PartialEq)]
pub enum ContentPart {
    /// Text, without what could talk to a terminal.
    Text(String),
    /// A picture, as base64.
    Image {
        /// Its type, as the server says.
        mime_type: String,
        /// Its bytes.
        base64: String,
    },
    /// Bytes that are no picture, as base64: sound, or a resource that is no text.
    Blob {
        /// Its type, as the server says.
        mime_type: String,
        /// Its bytes.
        base64: String,
        /// Where it comes from, where it has an address.
        uri: Option<String>,
    },
    /// Something that can be read by its address.
    Link {
        /// The address.
        uri: String,
        /// What it is called.
        name: String,
        /// What it is.
        description: Option<String>,
    },
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallResult {
    /// Its parts, in order.
    pub parts: Vec<ContentPart>,
    /// The same as data, where the tool gives it.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// More about it, for programs.
    pub meta: Option<Value>,
}

impl CallResult {
    /// Reads the result of `tools/call`.
    pub(crate) fn parse(result: &Value) -> Self {
        let parts = result.get("content").and_then(Value::as_array).into_iter().flatten();
        Self {
            parts: parts.map(ContentPart::parse).collect(),
            structured: result.get("structuredContent").filter(|value| !value.is_null()).cloned(),
            is_error: result.get("isError").and_then(Value::as_bool).unwrap_or(false),
            meta: result.get("_meta").cloned(),
        }
    }

    /// Returns its texts, one behind the other.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ContentPart::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl ContentPart {
    /// Reads one part; what is of no known kind is shown as the JSON it is.
    pub(crate) fn parse(part: &Value) -> Self {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let mime = || text("mimeType").unwrap_or("application/octet-stream").to_owned();
        match (text("type"), text("data")) {
            (Some("text"), _) if text("text").is_some() => {
                Self::Text(stripped_text(text("text").unwrap_or_default().to_owned()))
            }
            (Some("image"), Some(data)) => Self::Image { mime_type: mime(), base64: data.to_owned() },
            (Some("audio"), Some(data)) => {
                Self::Blob { mime_type: mime(), base64: data.to_owned(), uri: None }
            }
            (Some("resource_link"), _) if text("uri").is_some() => {
                let uri = stripped_text(text("uri").unwrap_or_default().to_owned());
                Self::Link {
                    name: stripped_text(text("name").unwrap_or(&uri).to_owned()),
                    description: text("description").map(|text| stripped_text(text.to_owned())),
                    uri,
                }
            }
            (Some("resource"), _) => match part.get("resource") {
                Some(resource) => Self::parse_resource(resource),
                None => Self::Text(stripped_text(part.to_string())),
            },
            _ => Self::Text(stripped_text(part.to_string())),
        }
    }

    /// Reads the contents of a resource.
    pub(crate) fn parse_resource(resource: &Value) -> Self {
        let text = |key: &str| resource.get(key).and_then(Value::as_str).map(str::to_owned);
        match (text("text"), text("blob")) {
            (Some(content), _) => Self::Text(stripped_text(content)),
            (None, Some(base64)) => {
                let mime_type = text("mimeType").unwrap_or_else(|| "application/octet-stream".to_owned());
                match mime_type.starts_with("image/") {
                    true => Self::Image { mime_type, base64 },
                    false => Self::Blob { mime_type, base64, uri: text("uri") },
                }
            }
            (None, None) => Self::Text(stripped_text(resource.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_every_kind_are_read_and_unknown_ones_are_shown() {
        let result = CallResult::parse(&json!({
            "content": [
                {"type": "text", "text": "a\u{1b}b"},
                {"type": "image", "data": "aQ==", "mimeType": "image/png"},
                {"type": "audio", "data": "YQ==", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///x", "name": "x"},
                {"type": "resource", "resource": {"uri": "file:///y", "text": "y"}},
                {"type": "resource", "resource": {"uri": "file:///z", "blob": "eg=="}},
                {"type": "hologram", "data": "?"},
                3,
            ],
            "structuredContent": {"n": 1},
            "isError": true,
        }));
        assert!(result.is_error && result.structured == Some(json!({"n": 1})));
        let kinds: Vec<&str> = result
            .parts
            .iter()
            .map(|part| match part {
                ContentPart::Text(text) => text,
                ContentPart::Image { .. } => "<image>",
                ContentPart::Blob { uri, .. } => uri.as_deref().unwrap_or("<blob>"),
                ContentPart::Link { name, .. } => name,
            })
            .collect();
        assert_eq!(
            kinds,
            ["ab", "<image>", "<blob>", "x", "y", "file:///z", r#"{"type":"hologram","data":"?"}"#, "3"]
        );
        assert_eq!(CallResult::parse(&json!({})), CallResult::default());
    }
}
