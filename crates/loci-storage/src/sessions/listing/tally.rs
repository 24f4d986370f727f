//! How many messages a session has and what it cost.
//!
//! Of a file that was read as a whole both are exact: messages are the user and assistant entries that people
//! see (not hidden ones, not subagents'), cost is what the last `cost-state` says and the list price of every response
//! behind it. Of a longer file the number of messages is estimated from its end and the cost is left out.

use std::collections::HashSet;

use loci_core::cost_state::{COST_STATE, CostState};
use loci_core::model::facts;
use loci_core::session::Totals;
use loci_core::usage::Usage;

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

/// Messages and cost of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) n_messages: u64,
    /// What the responses used, and cost as far as their models have a price.
    pub(super) totals: Totals,
    /// Whether a model without a price answered.
    pub(super) has_unpriced: bool,
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
        if scan::leading_type(line) == Some(COST_STATE.as_bytes()) {
            self.totals = CostState::parse(line).map_or_else(|| self.totals.clone(), |state| state.totals);
            return;
        }
        match Shape::parse(line) {
            Shape::User => self.n_messages += 1,
            Shape::Assistant(message) => {
                self.n_messages += 1;
                let answer = AssistantMessage::parse(message);
                // Without an id, each block is a response of its own.
                if answer.id.is_empty() || self.responses.insert(Box::from(answer.id)) {
                    self.add_usage(&answer);
                }
            }
            Shape::Nothing => {}
        }
    }

    fn add_usage(&mut self, answer: &AssistantMessage<'_>) {
        let model = scan::as_text(answer.model).filter(|model| model != SYNTHETIC);
        let usage: Option<Usage> = model.as_ref().and_then(|_| serde_json::from_slice(answer.usage).ok());
        if let Some((model, usage)) = model.zip(usage) {
            let facts = facts(&model);
            self.has_unpriced |= facts.price.is_none();
            self.totals.add(&model, &facts, &usage);
        }
    }
}

/// Estimates the messages of a file of `size` bytes that ends with `tail`.
pub(super) fn estimate(tail: &[u8], size: u64) -> u64 {
    let n_seen = scan::count_keys(tail, "role") as u64;
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
        let state = json!({"type": "cost-state", "modelUsage": {"claude-sonnet-4-5": {"costUSD": 7.5}}});
        let more = [text.join("\n"), state.to_string(), answer("m3").to_string(), answer("m1").to_string()];
        let tally = Tally::from_bytes(more.join("\n").as_bytes());
        assert_eq!(tally.n_messages, 6);
        assert!((tally.totals.cost_usd() - 10.5).abs() < 1e-9, "{:?}", tally.totals);
    }

    #[test]
    fn message_estimate_grows_with_the_file() {
        let tail = br#"{"message":{"role":"user"}}"#.repeat(10);
        assert_eq!(estimate(&tail, tail.len() as u64 * 7), 70);
        assert_eq!(estimate(b"", 17), 1);
    }
}
