//! Makes transcripts comparable: what differs from run to run becomes a placeholder.
//!
//! | what | becomes |
//! |---|---|
//! | UUIDs | `<uuid-1>`, `<uuid-2>`, .. in order of appearance |
//! | ids of the API (`msg_`, `toolu_`, `srvtoolu_`, `req_`, ..) | `<msg-1>`, `<toolu-1>`, .. |
//! | RFC 3339 timestamps | `<time>` |
//! | how long the API took (`totalAPIDuration`) | `<duration>` |
//! | the temporary home and project | `<home>`, `<project>`, also in the spelling of directory names |
//!
//! The same id always becomes the same placeholder, so a golden transcript still shows who refers to whom.

use crate::home::TestHome;
use regex::{Captures, Regex};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::Path;

/// Replaces what differs from run to run; one for all the texts that should agree on placeholders.
#[derive(Debug)]
pub struct Normaliser {
    /// What to look for literally, longest first, and its placeholder.
    literals: Vec<(String, String)>,
    patterns: Regex,
    seen: HashMap<String, String>,
    counters: HashMap<String, usize>,
}

impl Default for Normaliser {
    fn default() -> Self {
        Self::new()
    }
}

impl Normaliser {
    /// Returns a normaliser that knows no paths.
    pub fn new() -> Self {
        let patterns = concat!(
            r"(?P<uuid>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)",
            r"|(?P<time>\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2}))",
            r"|\b(?P<kind>msg|toolu|srvtoolu|mcptoolu|req)_[0-9A-Za-z]{16,}\b",
        );
        Self {
            literals: Vec::new(),
            patterns: Regex::new(patterns).expect("the pattern is valid"),
            seen: HashMap::new(),
            counters: HashMap::new(),
        }
    }

    /// Returns a normaliser that knows the paths of `home`.
    pub fn of(home: &TestHome) -> Self {
        Self::new().path(home.home(), "<home>").path(home.project(), "<project>")
    }

    /// Also replaces a path, and the directory name that stands for it under `projects/`.
    pub fn path(mut self, path: impl AsRef<Path>, placeholder: &str) -> Self {
        let path = path.as_ref().display().to_string();
        let encoded = path.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        self.literals.push((path, placeholder.to_owned()));
        self.literals.push((encoded, placeholder.to_owned()));
        self.literals.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        self
    }

    /// Also replaces a text that a test knows to differ, such as a port.
    pub fn literal(mut self, text: &str, placeholder: &str) -> Self {
        self.literals.push((text.to_owned(), placeholder.to_owned()));
        self.literals.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        self
    }

    /// Returns `text` with everything replaced.
    pub fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (literal, placeholder) in &self.literals {
            text = text.replace(literal, placeholder);
        }
        let patterns = self.patterns.clone();
        patterns.replace_all(&text, |found: &Captures<'_>| self.placeholder(found)).into_owned()
    }

    /// Returns `value` with everything replaced in its strings and keys.
    pub fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|it| self.value(it)).collect(),
            Value::Object(fields) => {
                let replace = |(key, value): (&String, &Value)| match key.as_str() {
                    "totalAPIDuration" => (key.clone(), Value::from("<duration>")),
                    _ => (self.text(key), self.value(value)),
                };
                Value::Object(fields.iter().map(replace).collect::<Map<_, _>>())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Returns a transcript as text, one normalised entry a line.
    pub fn transcript(&mut self, entries: &[Value]) -> String {
        entries.iter().map(|it| format!("{}\n", self.value(it))).collect()
    }

    fn placeholder(&mut self, found: &Captures<'_>) -> String {
        let kind = match (found.name("time"), found.name("kind")) {
            (Some(_), _) => return "<time>".into(),
            (None, Some(kind)) => kind.as_str(),
            (None, None) => "uuid",
        };
        let id = found[0].to_lowercase();
        if let Some(known) = self.seen.get(&id) {
            return known.clone();
        }
        let counter = self.counters.entry(kind.to_owned()).or_default();
        *counter += 1;
        let placeholder = format!("<{kind}-{counter}>");
        self.seen.insert(id, placeholder.clone());
        placeholder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ID: &str = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a2b";
    const OTHER: &str = "11111111-2222-4333-8444-555555555555";

    #[test]
    fn text() {
        let cases = [
            (format!("{ID} {OTHER} {ID}"), "<uuid-1> <uuid-2> <uuid-1>"),
            (format!("{} {ID}", ID.to_uppercase()), "<uuid-1> <uuid-1>"),
            (format!("/tmp/{ID}.jsonl"), "/tmp/<uuid-1>.jsonl"),
            ("at 2026-01-02T03:04:05.678Z, 2026-01-02T03:04:05+02:00".into(), "at <time>, <time>"),
            ("msg_010000000000000000000001 toolu_010000000000000000000001".into(), "<msg-1> <toolu-1>"),
            ("the msg_id and req_body stay".into(), "the msg_id and req_body stay"),
            ("2026-01-02 stays".into(), "2026-01-02 stays"),
            ("/tmp/x/home/.claude/projects/-tmp-x-project/a".into(), "<home>/.claude/projects/<project>/a"),
            ("/tmp/x/project/sub and /tmp/x".into(), "<project>/sub and /tmp/x"),
            ("http://127.0.0.1:4711/v1".into(), "<model>/v1"),
        ];
        for (text, expected) in cases {
            let mut normaliser = Normaliser::new()
                .path("/tmp/x/home", "<home>")
                .path("/tmp/x/project", "<project>")
                .literal("http://127.0.0.1:4711", "<model>");
            assert_eq!(normaliser.text(&text), expected);
        }
    }

    #[test]
    fn values_share_placeholders_and_keep_their_order() {
        let entries = [
            json!({"uuid": ID, "parentUuid": null, "n": 1, "time": "2026-01-02T03:04:05Z"}),
            json!({"uuid": OTHER, "parentUuid": ID, "list": [{ID: true}]}),
        ];
        let expected = concat!(
            r#"{"uuid":"<uuid-1>","parentUuid":null,"n":1,"time":"<time>"}"#,
            "\n",
            r#"{"uuid":"<uuid-2>","parentUuid":"<uuid-1>","list":[{"<uuid-1>":true}]}"#,
            "\n"
        );
        assert_eq!(Normaliser::new().transcript(&entries), expected);
    }
}
