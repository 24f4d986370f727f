//! An answer of a given shape: the call that gives it, and how often the model may miss.
//!
//! A call of the tool that fits is the answer, and ends the turn without another request. One that does not fit, and an
//! end of the turn without a call, are failed attempts; after the last of them the turn fails.

use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use serde_json::Value;

use super::Outcome;
use super::effect::{Effect, Record};

/// What the model is told when it ends its turn without the call.
const REMINDER: &str = "Your answer has not been given yet: it is read from a call of the StructuredOutput tool and from \
                        nowhere else. Call it now, with the whole answer as its input.";

/// What is asked of the answer of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructuredAnswerRule {
    /// The tool whose call is the answer.
    pub tool: String,
    /// After how many failed attempts the turn fails.
    pub max_attempts: u32,
}

/// How far the model is with it.
#[derive(Debug)]
pub(super) struct StructuredAnswer {
    rule: StructuredAnswerRule,
    /// Calls of the tool whose results are not there yet.
    calls: Vec<ToolUseId>,
    n_failed: u32,
    answer: Option<Value>,
}

impl StructuredAnswer {
    pub(super) fn new(rule: StructuredAnswerRule) -> Self {
        Self { rule, calls: Vec::new(), n_failed: 0, answer: None }
    }

    /// Notes which calls of a response would be the answer.
    pub(super) fn note_calls(&mut self, calls: &[ToolUse]) {
        let ours = calls.iter().filter(|call| call.name == self.rule.tool);
        self.calls.extend(ours.map(|call| call.id.clone()));
    }

    /// Notes what came of them. The first that fits is the answer.
    pub(super) fn note_results(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Record(Record::ToolResult { call, outcome }) = effect else { continue };
            let Some(at) = self.calls.iter().position(|ours| ours == call) else { continue };
            self.calls.remove(at);
            match outcome.is_failure() {
                true => self.n_failed += 1,
                false => _ = self.answer.get_or_insert_with(|| outcome.structured.clone()),
            }
        }
    }

    /// Returns the answer, once it is there.
    pub(super) fn answer(&self) -> Option<&Value> {
        self.answer.as_ref()
    }

    /// Returns how the turn ends for want of an answer, if it has missed too often.
    pub(super) fn given_up(&self) -> Option<Outcome> {
        let is_over = self.answer.is_none() && self.n_failed >= self.rule.max_attempts;
        is_over.then_some(Outcome::MaxStructuredAttempts(self.rule.max_attempts))
    }

    /// The model ends its turn without the call: returns what it is told, unless that was once too often.
    pub(super) fn missed(&mut self) -> Option<Effect> {
        self.n_failed += 1;
        self.given_up().is_none().then_some(Effect::Record(Record::Nudge(REMINDER)))
    }
}

#[cfg(test)]
mod tests {
    use loci_core::tool::ToolOutcome;
    use serde_json::json;

    use super::*;

    fn result(id: &str, outcome: ToolOutcome) -> Effect {
        Effect::Record(Record::ToolResult { call: id.into(), outcome })
    }

    #[test]
    fn calls_of_other_tools_and_late_calls_change_nothing() {
        let rule = StructuredAnswerRule { tool: "Answer".to_owned(), max_attempts: 2 };
        let mut answer = StructuredAnswer::new(rule);
        let call = |id: &str, name: &str| ToolUse { id: id.into(), name: name.to_owned(), input: json!({}) };
        answer.note_calls(&[call("a", "Read"), call("b", "Answer"), call("c", "Answer")]);
        answer.note_results(&[result("a", ToolOutcome::error("no"))]);
        assert_eq!((answer.n_failed, answer.answer()), (0, None));
        answer.note_results(&[result("b", ToolOutcome::invalid_input("no"))]);
        assert_eq!((answer.n_failed, answer.given_up()), (1, None));
        let fits = |n: u32| ToolOutcome::text("ok", json!({"n": n}));
        answer.note_results(&[result("c", fits(1)), result("c", fits(2))]);
        assert_eq!(answer.answer(), Some(&json!({"n": 1})));
        assert_eq!(answer.given_up(), None);
    }

    #[test]
    fn ends_without_a_call_are_attempts() {
        let rule = StructuredAnswerRule { tool: "Answer".to_owned(), max_attempts: 2 };
        let mut answer = StructuredAnswer::new(rule);
        assert!(answer.missed().is_some());
        assert!(answer.missed().is_none());
        assert_eq!(answer.given_up(), Some(Outcome::MaxStructuredAttempts(2)));
    }
}
