//! How many messages a session has and what it cost.
//!
//! Of a file that was read as a whole both are exact: messages are the user and assistant entries that people
//! see (not hidden ones, not subagents'), cost is the list price of every response once. Of a longer file the
//! number of messages is estimated from its end and the cost is left out.

use loci_core::model::facts;
use loci_core::usage::Usage;
use memchr::memmem;

use super::scan;

/// A number of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Every line was looked at.
    Exactly(u64),
    /// As many, if the whole file is like its end.
    About(u64),
}

impl Count {
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

/// Messages and cost of a whole file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) n_messages: u64,
    /// What the responses cost, as far as their models have a price.
    pub(super) cost_usd: f64,
}

impl Tally {
    /// Counts every line of a whole file.
    pub(super) fn of(file: &[u8]) -> Self {
        let mut tally = Self::default();
        let mut response = None;
        for line in loci_stdx::lines(file) {
            match Shape::of(line.bytes) {
                Shape::User => tally.n_messages += 1,
                Shape::Assistant(message) => {
                    tally.n_messages += 1;
                    let answer = Answer::of(message);
                    // The blocks of one response repeat its usage.
                    if answer.id.is_none() || answer.id != response {
                        tally.cost_usd += answer.cost_usd();
                    }
                    response = answer.id;
                }
                Shape::Nothing => {}
            }
        }
        tally
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
    fn of(line: &'a [u8]) -> Self {
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

#[derive(Default)]
struct Answer<'a> {
    id: Option<&'a [u8]>,
    model: &'a [u8],
    usage: &'a [u8],
}

impl<'a> Answer<'a> {
    fn of(message: &'a [u8]) -> Self {
        let mut answer = Self::default();
        for (key, value) in scan::fields(message) {
            match key {
                b"id" => answer.id = Some(value),
                b"model" => answer.model = value,
                b"usage" => answer.usage = value,
                _ => {}
            }
        }
        answer
    }

    fn cost_usd(&self) -> f64 {
        let price = scan::as_text(self.model).and_then(|model| facts(&model).price);
        let usage: Option<Usage> = price.and_then(|_| serde_json::from_slice(self.usage).ok());
        price.zip(usage).map_or(0.0, |(price, usage)| usage.cost_usd(&price))
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
            answer("m1"),
            answer("m2"),
            json!({"type": "system", "message": {}}),
        ];
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let tally = Tally::of(text.join("\n").as_bytes());
        assert_eq!(tally.n_messages, 4);
        assert!((tally.cost_usd - 6.0).abs() < 1e-9, "{}", tally.cost_usd);
    }

    #[test]
    fn estimates_grow_with_the_file() {
        let tail = br#"{"message":{"role":"user"}}"#.repeat(10);
        assert_eq!(estimate(&tail, tail.len() as u64 * 7), 70);
        assert_eq!(estimate(b"", 17), 1);
    }
}
