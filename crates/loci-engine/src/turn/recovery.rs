//! Getting over failures: retries, the fallback model, the output limit.

use std::time::Duration;

use loci_core::stream::{Failure, FailureKind};
use loci_llm::{RetryPolicy, delay};

use super::effect::{Effect, Notice, Outcome, Record, RequestPlan};
use super::response::Response;
use super::{Limits, Phase, Turn, record_response};

/// Overloads in a row after which a waiting fallback model is taken.
const OVERLOADS_BEFORE_FALLBACK: u32 = 3;
/// Broken streams in a row after which the answer is asked for in one piece.
const BREAKS_BEFORE_ONE_PIECE: u32 = 2;
/// How often a turn asks the model to go on after its output limit, an empty answer or a broken stream.
const MAX_NUDGES: u32 = 3;
/// The least output worth asking for.
const LEAST_OUTPUT: u64 = 3_000;

const GO_ON_AFTER_LIMIT: &str = "Your answer reached the output limit and was cut there. Go on exactly where it \
     stopped; do not repeat or apologise. If a tool call was cut, make it again in smaller pieces.";
const GO_ON_AFTER_BREAK: &str = "The connection broke in the middle of your answer. Go on from where it stopped; do not repeat what was said.";
const SAY_SOMETHING: &str = "Your answer had no text and no tool calls. If the work is done, say in a sentence what \
     came of it; otherwise go on.";

/// How failures are retried.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryRules {
    /// Which failures are worth repeating, and how often.
    pub policy: RetryPolicy,
    /// Whether a stream that keeps breaking may be replaced by an answer in one piece.
    pub allows_one_piece: bool,
}

/// How much the model may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLimit {
    /// What the model's facts say.
    Usual,
    /// As much as the model can.
    Raised,
    /// Halved so many times, to fit a full context.
    Halved(u32),
}

impl OutputLimit {
    /// Returns the limit in tokens.
    pub fn tokens(self, usual: u64, most: u64) -> u64 {
        match self {
            Self::Usual => usual,
            Self::Raised => most,
            Self::Halved(times) => (usual >> times).max(LEAST_OUTPUT),
        }
    }
}

#[derive(Debug)]
pub(super) struct Recovery {
    model_idx: usize,
    attempt: u32,
    breaks: u32,
    overloads: u32,
    nudges: u32,
    output: OutputLimit,
    /// Whether the conversation was compacted for the request at hand.
    has_compacted: bool,
    /// Whether the server was asked to edit nothing, because it refused to.
    has_stopped_edits: bool,
}

impl Recovery {
    pub(super) fn new() -> Self {
        Self {
            model_idx: 0,
            attempt: 0,
            breaks: 0,
            overloads: 0,
            nudges: 0,
            output: OutputLimit::Usual,
            has_compacted: false,
            has_stopped_edits: false,
        }
    }

    pub(super) fn plan(&self, limits: &Limits) -> RequestPlan {
        RequestPlan {
            model: limits.models.get(self.model_idx).cloned().unwrap_or_default(),
            output: self.output,
            is_streaming: !(limits.retry.allows_one_piece && self.breaks >= BREAKS_BEFORE_ONE_PIECE),
            may_compact: !self.has_compacted,
        }
    }

    pub(super) fn may_compact(&self) -> bool {
        !self.has_compacted
    }

    pub(super) fn compacts(&mut self) {
        self.has_compacted = true;
    }

    pub(super) fn succeeded(&mut self) {
        self.attempt = 0;
        self.breaks = 0;
        self.overloads = 0;
        self.has_compacted = false;
    }

    fn count(&mut self, failure: &Failure, response: &Response) {
        self.attempt += 1;
        let is_break =
            matches!(failure.kind, FailureKind::Cut | FailureKind::Stalled | FailureKind::Malformed);
        self.breaks += u32::from(is_break && response.has_begun());
        self.overloads = if failure.allows_fallback() { self.overloads + 1 } else { 0 };
    }

    fn take_nudge(&mut self) -> bool {
        self.nudges += 1;
        self.nudges <= MAX_NUDGES
    }
}

impl Turn {
    pub(super) fn failed(&mut self, failure: Failure, jitter: f64) -> Vec<Effect> {
        let Phase::Requesting(response) = std::mem::replace(&mut self.phase, Phase::Waiting) else {
            return Vec::new();
        };
        self.recovery.count(&failure, &response);
        if response.has_call() {
            return self.keep_complete_calls(response, failure);
        }
        if response.has_text() {
            return self.keep_complete_text(response, failure, jitter);
        }
        if let Some(effects) = self.stop_edits_after(&failure) {
            return effects;
        }
        if let Some(effects) = self.make_room_after(&failure) {
            return effects;
        }
        if let Some(effects) = self.fall_back(&failure) {
            return effects;
        }
        if failure.kind == FailureKind::OutputTooLong
            && let Some(effects) = self.ask_for_less()
        {
            return effects;
        }
        if self.limits.retry.policy.allows(&failure, self.recovery.attempt) {
            return self.retry(failure, jitter);
        }
        vec![Effect::Record(Record::ApiError(failure.clone())), self.end(Outcome::ApiError(failure))]
    }

    fn retry(&mut self, failure: Failure, jitter: f64) -> Vec<Effect> {
        let attempt = self.recovery.attempt;
        let wait: Duration = delay(attempt, failure.retry_after, jitter);
        let max_retries = self.limits.retry.policy.max_retries;
        vec![Effect::Tell(Notice::Retry { attempt, max_retries, delay: wait, failure }), Effect::Wait(wait)]
    }

    /// The server does not edit conversations: it is asked the same without, once.
    fn stop_edits_after(&mut self, failure: &Failure) -> Option<Vec<Effect>> {
        let is_news = failure.kind == FailureKind::EditingRefused && !self.recovery.has_stopped_edits;
        is_news.then(|| {
            self.recovery.has_stopped_edits = true;
            let mut effects = vec![Effect::StopEdits(failure.clone())];
            effects.extend(self.ask_again());
            effects
        })
    }

    /// A response that broke after complete calls: they are kept and run, and the model goes on from there.
    fn keep_complete_calls(&mut self, response: Response, failure: Failure) -> Vec<Effect> {
        let (mut effects, calls) = record_response(response, None, "cut");
        effects.push(Effect::Record(Record::Incomplete(failure)));
        effects.extend(self.prepare(calls));
        effects
    }

    /// A response that broke after text that people have read: it is kept, and after the usual wait the model is
    /// asked to go on. Asking for all of it again would say the same twice.
    fn keep_complete_text(&mut self, response: Response, failure: Failure, jitter: f64) -> Vec<Effect> {
        let (mut effects, _) = record_response(response, None, "cut");
        let may_retry = self.limits.retry.policy.allows(&failure, self.recovery.attempt);
        if !(may_retry && self.recovery.take_nudge()) {
            effects.push(Effect::Record(Record::ApiError(failure.clone())));
            effects.push(self.end(Outcome::ApiError(failure)));
            return effects;
        }
        effects.push(Effect::Record(Record::Incomplete(failure.clone())));
        effects.push(Effect::Record(Record::Nudge(GO_ON_AFTER_BREAK)));
        effects.extend(self.retry(failure, jitter));
        effects
    }

    /// Takes the next model when this one is overloaded for too long or out of retries.
    fn fall_back(&mut self, failure: &Failure) -> Option<Vec<Effect>> {
        let recovery = &self.recovery;
        let worn_out = recovery.overloads >= OVERLOADS_BEFORE_FALLBACK
            || !self.limits.retry.policy.allows(failure, recovery.attempt);
        let next = self.limits.models.get(recovery.model_idx + 1)?;
        if !failure.allows_fallback() || !worn_out {
            return None;
        }
        let from = self.limits.models.get(recovery.model_idx).cloned().unwrap_or_default();
        let notice = Notice::Fallback { from, to: next.clone(), failure: failure.clone() };
        self.recovery.model_idx += 1;
        self.recovery.succeeded();
        let mut effects = vec![Effect::Tell(notice)];
        effects.extend(self.ask_again());
        Some(effects)
    }

    /// The prompt fits, but not with so much output: ask for half.
    fn ask_for_less(&mut self) -> Option<Vec<Effect>> {
        const MOST_HALVINGS: u32 = 4;
        let times = match self.recovery.output {
            OutputLimit::Usual | OutputLimit::Raised => 1,
            OutputLimit::Halved(times) => times + 1,
        };
        (times <= MOST_HALVINGS).then(|| {
            self.recovery.output = OutputLimit::Halved(times);
            self.ask_again()
        })
    }

    /// The answer was cut at the output limit: raise it and ask to go on, a few times.
    pub(super) fn continue_after_output_limit(&mut self) -> Vec<Effect> {
        if !self.recovery.take_nudge() {
            let failure = Failure::new(
                FailureKind::InvalidRequest,
                "The answer reached the output limit again and again",
            )
            .with_hint("Ask for the work in smaller steps.");
            return vec![
                Effect::Record(Record::ApiError(failure.clone())),
                self.end(Outcome::ApiError(failure)),
            ];
        }
        if self.recovery.output == OutputLimit::Usual {
            self.recovery.output = OutputLimit::Raised;
        }
        let mut effects = vec![Effect::Record(Record::Nudge(GO_ON_AFTER_LIMIT))];
        effects.extend(self.ask_model());
        effects
    }

    /// The answer was empty: ask for one, a few times, then take the silence for an answer.
    pub(super) fn ask_for_words(&mut self) -> Vec<Effect> {
        if !self.recovery.take_nudge() {
            return vec![self.end(Outcome::Completed)];
        }
        let mut effects = vec![Effect::Record(Record::Nudge(SAY_SOMETHING))];
        effects.extend(self.ask_model());
        effects
    }
}
