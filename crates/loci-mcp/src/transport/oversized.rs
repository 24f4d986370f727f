//! A line that is longer than a message may be: what it was is told from its two ends, so that whoever waits for an answer
//! hears that none will come. The id of an answer stands before its result, or behind it.

use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// How much of either end is kept.
const END: usize = 1 << 10;

/// The ends of a line that is too long to be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OversizedLine {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// How many bytes it has in all.
    pub(crate) n_bytes: u64,
}

/// What such a line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OversizedMessage {
    /// The answer to a request, where it says which.
    Answer(Option<u64>),
    /// Something that nobody waits for.
    Other,
}

impl OversizedLine {
    /// Takes in more of the line.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let n_head = (END - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..n_head]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(END)..]);
        self.tail.drain(..self.tail.len().saturating_sub(END));
        self.n_bytes += bytes.len() as u64;
    }

    /// Tells what it was.
    pub(crate) fn message(&self) -> OversizedMessage {
        let mut start = Start::default();
        let mut reader = serde_json::Deserializer::from_slice(&self.head);
        // It ends in the middle of something; what came before is what is wanted.
        drop(reader.deserialize_map(&mut start));
        match start {
            Start { has_method: true, .. } => OversizedMessage::Other,
            Start { id: Some(id), .. } => OversizedMessage::Answer(Some(id)),
            Start { id: None, .. } => OversizedMessage::Answer(id_at_the_end(&self.tail)),
        }
    }
}

/// What the beginning of a message says.
#[derive(Default)]
struct Start {
    id: Option<u64>,
    has_method: bool,
}

impl<'de> Visitor<'de> for &mut Start {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key::<String>()? {
            match key.as_str() {
                "id" => self.id = number(&fields.next_value()?),
                "method" => {
                    self.has_method = true;
                    fields.next_value::<IgnoredAny>()?;
                }
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

fn number(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

/// Reads `"id": 7}` at the end of a message; the version of the protocol may stand behind it.
fn id_at_the_end(tail: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(tail);
    let text = text.trim_end().strip_suffix('}')?.trim_end();
    let text = match text.rfind(",\"jsonrpc\"").or_else(|| text.rfind(", \"jsonrpc\"")) {
        Some(at) if !text[at + 1..].contains([',', '{', '}']) => &text[..at],
        _ => text,
    };
    let (before, id) = text.trim_end().rsplit_once(':')?;
    let is_id = before.trim_end().ends_with("\"id\"");
    serde_json::from_str::<Value>(id.trim()).ok().filter(|_| is_id).as_ref().and_then(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_that_an_answer_belongs_to_is_told_from_its_ends() {
        use OversizedMessage::{Answer, Other};
        let long = "x".repeat(4 * END);
        for (line, expected) in [
            (format!(r#"{{"jsonrpc": "2.0", "id": 7, "result": {{"text": "{long}"}}}}"#), Answer(Some(7))),
            (format!(r#"{{"id":"8","result":{{"text":"{long}"}}}}"#), Answer(Some(8))),
            (format!(r#"{{"result":{{"text":"{long}"}},"id":9}}"#), Answer(Some(9))),
            (format!(r#"{{"result": {{"text": "{long}"}}, "id": 9, "jsonrpc": "2.0"}} "#), Answer(Some(9))),
            (format!(r#"{{"result":{{"text":"{long}","x":{{"id":5}}}}}}"#), Answer(None)),
            (format!(r#"{{"result":{{"text":"{long}\"id\":5"}}}}"#), Answer(None)),
            (format!(r#"[{{"id":1,"result":"{long}"}}]"#), Answer(None)),
            (format!(r#"{{"jsonrpc":"2.0","method":"x","params":"{long}"}}"#), Other),
            (format!(r#"{{"jsonrpc":"2.0","id":3,"method":"x","params":"{long}"}}"#), Other),
            (long, Answer(None)),
        ] {
            for chunk in [700, 5000] {
                let mut oversized = OversizedLine::default();
                line.as_bytes().chunks(chunk).for_each(|bytes| oversized.push(bytes));
                assert_eq!(oversized.message(), expected, "{}", &line[..40]);
                assert_eq!(oversized.n_bytes, line.len() as u64);
            }
        }
    }
}
