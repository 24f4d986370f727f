//! A model that makes the same calls over and over though each of them fails: nothing it is told changes what it does, and every
//! round costs money. After many such rounds in a row the turn ends.

use loci_core::message::ToolUse;
use loci_core::stream::{Failure, FailureKind};
use loci_core::tool::ToolOutcome;
use serde_json::Value;

use super::{Effect, Outcome, Record, Turn, refuse_all};

/// So many rounds of the same failing calls end a turn. Whoever waits for something by asking again has that many attempts.
const MOST_ROUNDS: u32 = 30;

/// How often the calls at hand were made, and failed, in a row.
#[derive(Debug, Default)]
pub(super) struct RepeatedCalls {
    /// Names and arguments of the calls of the last response.
    last: Vec<(String, Value)>,
    /// Whether one of them has come to anything.
    has_succeeded: bool,
    /// How often they have failed before.
    n_rounds: u32,
}

impl RepeatedCalls {
    /// Takes note of the calls of a response; tells whether the same ones have failed too often.
    fn note_calls(&mut self, calls: &[ToolUse]) -> bool {
        let calls: Vec<(String, Value)> =
            calls.iter().map(|call| (call.name.clone(), call.input.clone())).collect();
        let is_same = calls == self.last && !self.has_succeeded;
        self.n_rounds = if is_same { self.n_rounds + 1 } else { 0 };
        (self.last, self.has_succeeded) = (calls, false);
        self.n_rounds >= MOST_ROUNDS
    }

    /// Takes note of what came of calls.
    pub(super) fn note_results(&mut self, effects: &[Effect]) {
        self.has_succeeded |= effects.iter().any(|effect| {
            matches!(effect, Effect::Record(Record::ToolResult { outcome, .. }) if !outcome.is_failure())
        });
    }
}

impl Turn {
    /// Ends a turn whose model makes calls again that have failed in the same way many times.
    pub(super) fn stop_repeated_calls(&mut self, calls: &[ToolUse]) -> Option<Vec<Effect>> {
        if calls.is_empty() || !self.repeated.note_calls(calls) {
            return None;
        }
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        let message = format!(
            "The model made the same failing call {MOST_ROUNDS} times in a row ({}), so the turn was ended",
            names.join(", ")
        );
        let failure = Failure::new(FailureKind::Malformed, message)
            .with_hint("Say what it should do instead, or choose another model.");
        let outcome = ToolOutcome::refusal("Not run: the same call has failed too often in a row.");
        let mut effects = refuse_all(calls.to_vec(), &outcome);
        effects.push(Effect::Record(Record::ApiError(failure.clone())));
        effects.push(self.end(Outcome::ApiError(failure)));
        Some(effects)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_same_calls_that_all_fail_count() {
        let call = |input: Value| ToolUse { id: "c".into(), name: "Read".to_owned(), input };
        let result = |outcome| [Effect::Record(Record::ToolResult { call: "c".into(), outcome })];
        let failed = || result(ToolOutcome::error("no"));
        let mut repeated = RepeatedCalls::default();
        let mut round = |input: Value, results: &[Effect]| {
            let is_over = repeated.note_calls(&[call(input)]);
            repeated.note_results(results);
            is_over
        };
        let same = || json!({"file_path": "/none"});
        for n in 0..MOST_ROUNDS {
            assert!(!round(same(), &failed()), "{n}");
        }
        assert!(round(same(), &failed()), "one round too many");
        assert!(!round(json!({"file_path": "/other"}), &failed()), "another call begins anew");
        for _ in 0..2 * MOST_ROUNDS {
            assert!(!round(same(), &result(ToolOutcome::text("there", Value::Null))), "one that works");
        }
    }
}
