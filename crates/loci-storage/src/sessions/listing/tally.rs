//! How many messages a session has and what it cost.
//!
//! Of a file that was read as a whole both are exact: messages are the user and assistant entries that people
//! see (not hidden ones, not subagents'), cost is the list price of every response once. Of a longer file the
//! number of messages is estimated from its end and the cost is left out. [`session_totals`] reads a file of any
//! length, a block at a time, for whoever wants to know.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

use loci_stdx::open_regular;

use loci_core::model::facts;
use loci_core::session::Totals;
use loci_core::usage::Usage;
use memchr::memmem;

use super::scan::{self, AssistantMessage};

/// The model of messages that no model wrote.
const SYNTHETIC: &str = "<synthetic>";

/// A number of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageCount {
    /// Every line was looked at.
    Exactly(u64),
    /// As many, if the whole file is like its end.
    About(u64),
}

impl MessageCount {
    /// Returns the number, exact or not.
    pub fn number(self) -> u64 {
        match self {
            Self::Exactly(n) | Self::About(n) => n,
        }
    }

    /// Returns true when every line was looked at.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Exactly(_))
    }
}

/// Returns what the responses in the first `n_bytes` of a session file used and cost, each counted once.
pub fn session_totals(path: &Path, n_bytes: u64) -> io::Result<Totals> {
    let mut tally = Tally::default();
    crate::sessions::session_file::each_line(&mut open_regular(path)?.take(n_bytes), |line| {
        tally.take(line.bytes);
        true
    })?;
    Ok(tally.totals)
}

/// Messages and cost of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) n_messages: u64,
    /// What the responses used, and cost as far as their models have a price.
    pub(super) totals: Totals,
    /// The blocks of one response repeat its usage.
    responses: HashSet<Box<[u8]>>,
}

impl Tally {
    /// Counts every line of a whole file.
    pub(super) fn from_bytes(file: &[u8]) -> Self {
        let mut tally = Self::default();
        for line in loci_stdx::lines(file) {
            tally.take(line.bytes);
        }
        tally
    }

    fn take(&mut self, line: &[u8]) {
        match Shape::parse(line) {
            Shape::User => self.n_messages += 1,
            Shape::Assistant(message) => {
                self.n_messages += 1;
                let answer = AssistantMessage::parse(message);
                // Without an id, each block is a response of its own.
                if answer.id.is_empty() || self.responses.insert(Box::from(answer.id)) {
                    add_usage(&answer, &mut self.totals);
                }
            }
            Shape::Nothing => {}
        }
    }
}

/// Estimates the messages of a file of `size` bytes that ends with `tail`.
pub(super) fn estimate(tail: &[u8], size: u64) -> u64 {
    let n_seen = memmem::find_iter(tail, br#""role":""#).count() as u64;
    let window = (tail.len() as u64).max(1);
    // At least one: what is longer than the window holds something.
    (n_seen.saturating_mul(size) / window).max(1)
}

/// What a line is to the tally.
enum Shape<'a> {
    User,
    /// With its message.
    Assistant(&'a [u8]),
    Nothing,
}

impl<'a> Shape<'a> {
    fn parse(line: &'a [u8]) -> Self {
        let (mut kind, mut message): (&[u8], &[u8]) = (b"", b"");
        for (key, value) in scan::fields(line) {
            match (key, value) {
                (b"isSidechain" | b"isMeta", b"true") => return Self::Nothing,
                (b"type", b"\"user\"" | b"\"assistant\"") => kind = value,
                (b"type", _) => return Self::Nothing,
                (b"message", _) => message = value,
                _ => {}
            }
            // What could make an answer invisible comes before its message.
            if kind == b"\"assistant\"" && !message.is_empty() {
                return Self::Assistant(message);
            }
        }
        if kind == b"\"user\"" { Self::User } else { Self::Nothing }
    }
}

fn add_usage(answer: &AssistantMessage<'_>, totals: &mut Totals) {
    let model = scan::as_text(answer.model).filter(|model| model != SYNTHETIC);
    let usage: Option<Usage> = model.as_ref().and_then(|_| serde_json::from_slice(answer.usage).ok());
    if let Some((model, usage)) = model.zip(usage) {
        totals.add(&model, &facts(&model), &usage);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_counted_and_responses_paid_once() {
        let answer = |id: &str| {
            json!({"parentUuid": "u", "isSidechain": false, "message": {
                "id": id, "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "\"type\":\"user\""}],
                "usage": {"input_tokens": 1_000_000, "output_tokens": 0}
            }, "type": "assistant"})
        };
        let user = |more: (&str, bool)| json!({"isSidechain": false, "type": "user", "message": {"content": "x"}, more.0: more.1});
        let lines = [
            json!({"type": "mode", "mode": "normal"}),
            user(("x", true)),
            user(("isMeta", true)),
            json!({"isSidechain": true, "type": "user"}),
            answer("m1"),
            answer("m2"),
            answer("m1"),
            json!({"type": "system", "message": {}}),
        ];
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let tally = Tally::from_bytes(text.join("\n").as_bytes());
        assert_eq!(tally.n_messages, 4);
        assert!((tally.totals.cost_usd() - 6.0).abs() < 1e-9, "{:?}", tally.totals);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, text.join("\n")).unwrap();
        assert_eq!(session_totals(&path, u64::MAX).unwrap(), tally.totals);
        let up_to_second: usize = text[..6].iter().map(|line| line.len() + 1).sum();
        let first = session_totals(&path, up_to_second as u64).unwrap();
        assert_eq!(first.by_model["claude-sonnet-4-5"].input_tokens, 2_000_000);
        assert_eq!(session_totals(&path, 0).unwrap(), Totals::default());
    }

    #[test]
    fn message_estimate_grows_with_the_file() {
        let tail = br#"{"message":{"role":"user"}}"#.repeat(10);
        assert_eq!(estimate(&tail, tail.len() as u64 * 7), 70);
        assert_eq!(estimate(b"", 17), 1);
    }
}
