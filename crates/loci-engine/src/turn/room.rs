//! Making room: compaction before a request that would not fit, after one that did not, or at the user's request.

use loci_context::{KeepRecent, Trigger};
use loci_core::stream::{Failure, FailureKind};

use super::effect::{CompactionRequest, Effect, Interruption, Outcome, Record};
use super::event::CompactionOutcome;
use super::{Phase, Turn};

/// Why a compaction is under way.
#[derive(Debug)]
pub(super) enum Cause {
    /// The next request would not fit.
    Full,
    /// The server refused a request for its length.
    Refused(Failure),
    /// The user asked for it, and for nothing else.
    Manual,
}

impl Turn {
    /// The user asks for a compaction and nothing else.
    pub(super) fn compact_manually(&mut self, focus: Option<String>) -> Vec<Effect> {
        let request = self.compaction_request(Trigger::Manual, KeepRecent::LastRound);
        self.compact(Cause::Manual, CompactionRequest { focus, ..request })
    }

    /// The request was not sent because it would not fit.
    pub(super) fn make_room(&mut self) -> Vec<Effect> {
        let request = self.compaction_request(Trigger::Auto, KeepRecent::LastRound);
        self.compact(Cause::Full, request)
    }

    /// The server refused the request for its length, in tokens or in bytes; `None` when compacting did not help already.
    pub(super) fn make_room_after(&mut self, failure: &Failure) -> Option<Vec<Effect>> {
        let keep = match failure.kind {
            FailureKind::PromptTooLong => KeepRecent::NewerHalf,
            // Pictures are small in tokens and large in bytes, so no count says how much may stay.
            FailureKind::TooLarge => KeepRecent::LastRound,
            _ => return None,
        };
        self.recovery.may_compact().then(|| {
            let refusal = Some(failure.message.clone());
            let request = CompactionRequest { refusal, ..self.compaction_request(Trigger::Auto, keep) };
            self.compact(Cause::Refused(failure.clone()), request)
        })
    }

    /// Returns a request for the model that is asked next: after a fallback its window may be smaller.
    fn compaction_request(&self, trigger: Trigger, keep: KeepRecent) -> CompactionRequest {
        let model = self.recovery.plan(&self.limits).model;
        CompactionRequest { trigger, keep, focus: None, refusal: None, model }
    }

    fn compact(&mut self, cause: Cause, request: CompactionRequest) -> Vec<Effect> {
        self.recovery.compacts();
        self.phase = Phase::Compacting(cause);
        vec![Effect::Compact(request)]
    }

    pub(super) fn compacted(&mut self, end: CompactionOutcome, spent_usd: f64) -> Vec<Effect> {
        let Phase::Compacting(cause) = std::mem::replace(&mut self.phase, Phase::Waiting) else {
            return Vec::new();
        };
        // What a summary cost may be all there was to spend.
        if let Some(limit) = self.over_budget(spent_usd).filter(|_| end == CompactionOutcome::Done) {
            return vec![self.end(Outcome::MaxBudget(limit))];
        }
        match (cause, end) {
            // A hook that says no is no failure; the reason is told where the compaction is.
            (
                Cause::Manual,
                CompactionOutcome::Done | CompactionOutcome::NothingToDo | CompactionOutcome::Blocked(_),
            ) => {
                vec![self.end(Outcome::Completed)]
            }
            (Cause::Manual, CompactionOutcome::Failed(failure)) => self.give_up(failure),
            // What does not fit by our count may fit by the server's.
            (Cause::Full, _) | (Cause::Refused(_), CompactionOutcome::Done) => self.ask_again(),
            (Cause::Refused(failure), CompactionOutcome::NothingToDo | CompactionOutcome::Blocked(_)) => {
                self.give_up(failure)
            }
            (Cause::Refused(failure), CompactionOutcome::Failed(why)) => {
                let message = format!("{}; compacting it failed too: {}", failure.message, why.message);
                self.give_up(Failure { message, ..failure })
            }
        }
    }

    fn give_up(&mut self, failure: Failure) -> Vec<Effect> {
        vec![Effect::Record(Record::ApiError(failure.clone())), self.end(Outcome::ApiError(failure))]
    }

    /// A compaction that is stopped leaves the conversation as it was.
    pub(super) fn interrupt_compaction(&mut self) -> Vec<Effect> {
        let Phase::Compacting(cause) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return Vec::new();
        };
        let mut effects = vec![Effect::CancelRequest];
        if !matches!(cause, Cause::Manual) {
            effects.push(Effect::Record(Record::Interrupted(Interruption::Streaming)));
        }
        effects.push(self.end(Outcome::Interrupted(Interruption::Streaming)));
        effects
    }
}
