//! Making room: compaction before a request that would not fit, after one that did not, or at the user's wish.

use loci_context::{KeepRecent, Trigger};
use loci_core::stream::{Failure, FailureKind};

use super::effect::{CompactionWish, Effect, Interruption, Outcome, Record};
use super::event::Compacted;
use super::{Phase, Turn};

/// Why a compaction is under way.
#[derive(Debug)]
pub(super) enum Cause {
    /// The next request would not fit.
    Full,
    /// The server refused a request for its length.
    Refused(Failure),
    /// The user asked for it, and for nothing else.
    Wish,
}

impl Turn {
    /// The user asks for a compaction and nothing else.
    pub(super) fn compact_at_wish(&mut self, focus: Option<String>) -> Vec<Effect> {
        let wish = self.wish(Trigger::Manual, KeepRecent::LastRound);
        self.compact(Cause::Wish, CompactionWish { focus, ..wish })
    }

    /// The request was not sent because it would not fit.
    pub(super) fn make_room(&mut self) -> Vec<Effect> {
        let wish = self.wish(Trigger::Auto, KeepRecent::LastRound);
        self.compact(Cause::Full, wish)
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
            let wish = CompactionWish { refusal, ..self.wish(Trigger::Auto, keep) };
            self.compact(Cause::Refused(failure.clone()), wish)
        })
    }

    /// Returns a wish for the model that is asked next: after a fallback its window may be smaller.
    fn wish(&self, trigger: Trigger, keep: KeepRecent) -> CompactionWish {
        let model = self.recovery.plan(&self.limits).model;
        CompactionWish { trigger, keep, focus: None, refusal: None, model }
    }

    fn compact(&mut self, cause: Cause, wish: CompactionWish) -> Vec<Effect> {
        self.recovery.compacts();
        self.phase = Phase::Compacting(cause);
        vec![Effect::Compact(wish)]
    }

    pub(super) fn compacted(&mut self, end: Compacted, spent_usd: f64) -> Vec<Effect> {
        let Phase::Compacting(cause) = std::mem::replace(&mut self.phase, Phase::Waiting) else {
            return Vec::new();
        };
        // What a summary cost may be all there was to spend.
        if let Some(limit) = self.over_budget(spent_usd).filter(|_| end == Compacted::Done) {
            return vec![self.end(Outcome::MaxBudget(limit))];
        }
        match (cause, end) {
            (Cause::Wish, Compacted::Done | Compacted::NothingToDo) => vec![self.end(Outcome::Completed)],
            (Cause::Wish, Compacted::Failed(failure)) => self.give_up(failure),
            (Cause::Wish, Compacted::Blocked(reason)) => {
                let message = format!("The compaction was blocked: {reason}");
                self.give_up(Failure::new(FailureKind::InvalidRequest, message))
            }
            // What does not fit by our count may fit by the server's.
            (Cause::Full, _) | (Cause::Refused(_), Compacted::Done) => self.ask_again(),
            (Cause::Refused(failure), Compacted::NothingToDo | Compacted::Blocked(_)) => {
                self.give_up(failure)
            }
            (Cause::Refused(failure), Compacted::Failed(why)) => {
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
        if !matches!(cause, Cause::Wish) {
            effects.push(Effect::Record(Record::Interrupted(Interruption::Streaming)));
        }
        effects.push(self.end(Outcome::Interrupted(Interruption::Streaming)));
        effects
    }
}
