//! The turn machine: from event to effects, with no clock, no disk and no runtime.
//!
//! A turn begins with a recorded prompt and ends with an answer, a limit, a failure or an interrupt. In between
//! it asks the model, records what was said, has the calls prepared, permitted and run, records their results, and
//! asks again. [`Turn::handle`] is the table of all that; drivers perform the effects and feed back events.
//!
//! What must stay true, whatever happens:
//! 1. Every recorded tool call gets exactly one recorded result, before the next request and before the end; but for one
//!    that is put off, which ends the turn and gets its result in another.
//! 2. A call is run at most once, and only after it was permitted.
//! 3. What the model said is recorded before anything is done about it.
//! 4. An event that comes too late (after an interrupt, from a cancelled request) changes nothing.

mod calls;
mod clumsy_calls;
mod effect;
mod event;
mod recovery;
mod repeated_calls;
mod response;
mod room;
mod structured_answer;

use loci_core::ids::ToolUseId;
use loci_core::message::{Block, BlockKind, ToolUse};
use loci_core::stream::{Ended, StreamEvent};
use loci_core::tool::ToolOutcome;

use calls::{Calls, Progress};
use clumsy_calls::ClumsyCalls;
pub use effect::{CompactionRequest, Effect, Interruption, Notice, Outcome, Record, RequestPlan, TurnEnd};
pub use event::{CallPermission, CompactionOutcome, Concurrency, Event, Objection, Preparation};
use recovery::Recovery;
pub use recovery::{OutputLimit, RetryRules};
use repeated_calls::RepeatedCalls;
use response::Response;
use room::Cause;
use structured_answer::StructuredAnswer;
pub use structured_answer::StructuredAnswerRule;

/// What bounds a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The model to ask, then those to fall back to.
    pub models: Vec<String>,
    /// Round trips to the model.
    pub max_turns: Option<u32>,
    /// US dollars, over the whole process.
    pub max_budget_usd: Option<f64>,
    /// Calls that may run at once.
    pub max_parallel: usize,
    /// How failures are retried.
    pub retry: RetryRules,
    /// Whether somebody has a say in the end of a turn.
    pub asks_before_end: bool,
    /// How often that may make it go on; zero means as often as they like.
    pub max_objections: u32,
    /// Whether somebody wants to see the results of a response before the model does.
    pub shows_batches: bool,
    /// Whether the model may not know well how to call tools, and is told.
    pub mends_calls: bool,
    /// The shape that the answer must have, if one is asked for.
    pub structured: Option<StructuredAnswerRule>,
}

/// One turn.
#[derive(Debug)]
pub struct Turn {
    limits: Limits,
    phase: Phase,
    recovery: Recovery,
    round_trips: u32,
    stop_reason: Option<String>,
    /// How often an objection has made it go on.
    n_objections: u32,
    clumsy: ClumsyCalls,
    repeated: RepeatedCalls,
    /// The answer of a given shape, where one is asked for.
    structured: Option<StructuredAnswer>,
}

#[derive(Debug)]
enum Phase {
    /// Not begun.
    Idle,
    /// Those who have a say in the prompt are asked; it is not recorded yet.
    Opening,
    /// A request is on the wire.
    Requesting(Response),
    /// A failed request will be repeated.
    Waiting,
    /// The conversation is being made shorter.
    Compacting(Cause),
    /// Calls are being prepared, permitted and run.
    Working(Calls),
    /// All calls have their results, and those who have a say in it see them.
    Showing,
    /// The answer is recorded, and those who have a say in it are asked whether the turn may end.
    Ending,
    /// Over.
    Ended,
}

impl Turn {
    /// Makes a turn that waits to begin.
    pub fn new(limits: Limits) -> Self {
        Self {
            structured: limits.structured.clone().map(StructuredAnswer::new),
            limits,
            phase: Phase::Idle,
            recovery: Recovery::new(),
            round_trips: 0,
            stop_reason: None,
            n_objections: 0,
            clumsy: ClumsyCalls::default(),
            repeated: RepeatedCalls::default(),
        }
    }

    /// Takes one event and says what must be done, in order.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        match (&mut self.phase, event) {
            (Phase::Idle, Event::Prompt) => self.open_prompt(),
            (Phase::Idle | Phase::Opening, Event::Begin) => self.ask_model(),
            (Phase::Opening, Event::PromptBlocked { reason }) => vec![self.end(Outcome::Blocked(reason))],
            (Phase::Opening, Event::NothingToAsk) => vec![self.end(Outcome::Completed)],
            (Phase::Opening, Event::CommandFailed) => vec![self.end(Outcome::CommandFailed)],
            (Phase::Opening, Event::Interrupt | Event::Abandon) => self.interrupt_opening(),
            (Phase::Idle, Event::Compact { focus }) => self.compact_manually(focus),
            (Phase::Idle, Event::TakeUp(call)) => self.prepare(vec![call]),

            (Phase::Requesting(_), Event::Stream(event)) => self.on_stream_event(event),
            (Phase::Requesting(_), Event::Ended { ended, spent_usd }) => self.answered(ended, spent_usd),
            (Phase::Requesting(_), Event::Failed { failure, jitter }) => self.failed(failure, jitter),
            (Phase::Requesting(_), Event::Interrupt | Event::Abandon) => self.interrupt_request(),

            (Phase::Requesting(_), Event::TooLong) => self.make_room(),
            (Phase::Compacting(_), Event::Compacted { end, spent_usd }) => self.compacted(end, spent_usd),
            (Phase::Compacting(_), Event::Interrupt | Event::Abandon) => self.interrupt_compaction(),

            (Phase::Waiting, Event::WaitOver) => self.ask_again(),
            (Phase::Waiting, Event::Interrupt | Event::Abandon) => self.interrupt_wait(),

            (Phase::Working(_), Event::Prepared(calls)) => self.prepared(calls),
            (Phase::Working(_), Event::Permission { call, permission }) => self.permission(&call, permission),
            (Phase::Working(_), Event::Finished { call, outcome }) => self.finished(&call, outcome),
            (Phase::Working(_), Event::Interrupt) => self.interrupt_calls(),
            (Phase::Working(_), Event::Abandon) => self.abandon_calls(),

            (Phase::Working(_), Event::Halt { reason }) => self.halt_calls(reason),

            (Phase::Showing, Event::BatchSeen { halt }) => self.batch_seen(halt),
            (Phase::Showing, Event::Halt { reason }) => vec![self.end_halted(reason)],
            (Phase::Showing, Event::Interrupt | Event::Abandon) => self.interrupt_end(),

            (Phase::Ending, Event::MayEnd { objection }) => self.may_end(objection),
            (Phase::Ending, Event::Interrupt | Event::Abandon) => self.interrupt_end(),

            // Whatever else arrives is late: from a cancelled request, a timer, a call given up.
            (_, _late) => Vec::new(),
        }
    }

    /// Tells whether somebody wants to see the results of a response before the model does.
    pub fn shows_batches(&self) -> bool {
        self.limits.shows_batches
    }

    /// Returns true when nothing more will come of it.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    fn open_prompt(&mut self) -> Vec<Effect> {
        self.phase = Phase::Opening;
        vec![Effect::OpenPrompt]
    }

    /// A prompt that is taken back before it was recorded leaves no trace.
    fn interrupt_opening(&mut self) -> Vec<Effect> {
        vec![Effect::CancelRequest, self.end(Outcome::Interrupted(Interruption::Streaming))]
    }

    fn ask_model(&mut self) -> Vec<Effect> {
        self.round_trips += 1;
        if let Some(limit) = self.limits.max_turns.filter(|limit| self.round_trips > *limit) {
            return vec![Effect::Record(Record::MaxTurns { limit }), self.end(Outcome::MaxTurns(limit))];
        }
        self.ask_again()
    }

    fn ask_again(&mut self) -> Vec<Effect> {
        self.phase = Phase::Requesting(Response::default());
        vec![Effect::Tell(Notice::Requesting), Effect::Request(self.recovery.plan(&self.limits))]
    }

    fn on_stream_event(&mut self, event: StreamEvent) -> Vec<Effect> {
        let Phase::Requesting(response) = &mut self.phase else { return Vec::new() };
        response.on_stream_event(&event);
        vec![Effect::Tell(Notice::Stream(event))]
    }

    fn answered(&mut self, ended: Ended, spent_usd: f64) -> Vec<Effect> {
        let Phase::Requesting(response) = std::mem::replace(&mut self.phase, Phase::Waiting) else {
            return Vec::new();
        };
        self.recovery.succeeded();
        self.stop_reason.clone_from(&ended.stop_reason);
        let stop = ended.stop_reason.as_deref().unwrap_or("end_turn").to_owned();
        let is_silent = response.is_silent();
        let is_written_call = self.limits.mends_calls && response.has_written_call();
        let (mut effects, calls) = record_response(response, Some(ended), &stop);
        match self.over_budget(spent_usd) {
            Some(limit) => effects.extend(self.stop_at_budget(calls, limit)),
            None if is_written_call && calls.is_empty() && stop == "end_turn" => {
                effects.extend(self.remind_of_calls());
            }
            None => effects.extend(self.go_on(calls, &stop, is_silent)),
        }
        effects
    }

    /// Decides what a recorded response leads to.
    fn go_on(&mut self, calls: Vec<ToolUse>, stop: &str, is_silent: bool) -> Vec<Effect> {
        if self.limits.mends_calls
            && let Some(effects) = self.stop_bad_arguments(&calls)
        {
            return effects;
        }
        if let Some(effects) = self.stop_repeated_calls(&calls) {
            return effects;
        }
        if !calls.is_empty() {
            return self.prepare(calls);
        }
        match stop {
            "max_tokens" => self.continue_after_output_limit(),
            "pause_turn" => self.ask_model(),
            "refusal" => {
                vec![Effect::Record(Record::Refusal), self.end(Outcome::Refused)]
            }
            _ if is_silent => self.ask_for_words(),
            _ => self.complete(),
        }
    }

    /// The model has answered: the turn is over, unless somebody has a say in that.
    fn complete(&mut self) -> Vec<Effect> {
        if let Some(structured) = self.structured.as_mut().filter(|it| it.answer().is_none()) {
            let reminder = structured.missed();
            return self.ask_for_answer(reminder);
        }
        if !self.limits.asks_before_end {
            return vec![self.end_answered()];
        }
        self.phase = Phase::Ending;
        vec![Effect::AskBeforeEnd { has_gone_on: self.n_objections > 0 }]
    }

    /// Asks again for an answer that must have a shape; after too many attempts the turn fails.
    fn ask_for_answer(&mut self, reminder: Option<Effect>) -> Vec<Effect> {
        if let Some(outcome) = self.structured.as_ref().and_then(StructuredAnswer::given_up) {
            return vec![self.end(outcome)];
        }
        let mut effects: Vec<Effect> = reminder.into_iter().collect();
        effects.extend(self.ask_model());
        effects
    }

    /// All results are there and were seen: the model is asked next, unless one of them was the answer.
    fn after_calls(&mut self) -> Vec<Effect> {
        match self.structured.as_ref().and_then(StructuredAnswer::answer) {
            Some(_) => self.complete(),
            None => self.ask_for_answer(None),
        }
    }

    /// The turn is over, with an answer. The call that gave it counts as a round trip that was not needed.
    fn end_answered(&mut self) -> Effect {
        let answer = self.structured.as_ref().and_then(StructuredAnswer::answer).cloned();
        match answer {
            None => self.end(Outcome::Completed),
            Some(answer) => {
                self.round_trips += 1;
                self.end(Outcome::Structured(answer))
            }
        }
    }

    fn may_end(&mut self, objection: Option<Objection>) -> Vec<Effect> {
        let limit = self.limits.max_objections;
        let objection = objection.filter(|_| limit == 0 || self.n_objections < limit);
        let Some(objection) = objection else { return vec![self.end_answered()] };
        self.n_objections += 1;
        let mut effects = vec![Effect::Record(Record::Objection(objection))];
        effects.extend(self.ask_model());
        effects
    }

    /// The answer is there; whoever stops now wants nothing to follow it.
    fn interrupt_end(&mut self) -> Vec<Effect> {
        vec![
            Effect::CancelRequest,
            Effect::Record(Record::Interrupted(Interruption::Streaming)),
            self.end(Outcome::Interrupted(Interruption::Streaming)),
        ]
    }

    fn prepare(&mut self, calls: Vec<ToolUse>) -> Vec<Effect> {
        if let Some(structured) = &mut self.structured {
            structured.note_calls(&calls);
        }
        self.phase = Phase::Working(Calls::new(&calls, self.limits.max_parallel));
        vec![Effect::Prepare(calls)]
    }

    fn prepared(&mut self, preparations: Vec<Preparation>) -> Vec<Effect> {
        self.with_calls(|calls| calls.prepared(preparations))
    }

    fn permission(&mut self, call: &ToolUseId, permission: CallPermission) -> Vec<Effect> {
        self.with_calls(|calls| calls.permission(call, permission))
    }

    fn finished(&mut self, call: &ToolUseId, outcome: ToolOutcome) -> Vec<Effect> {
        self.with_calls(|calls| calls.finished(call, outcome))
    }

    fn halt_calls(&mut self, reason: String) -> Vec<Effect> {
        self.with_calls(|calls| calls.halt(reason))
    }

    /// The model is asked next, once those who have a say in it have seen what it will be told.
    fn show_batch(&mut self) -> Vec<Effect> {
        if !self.limits.shows_batches {
            return self.after_calls();
        }
        self.phase = Phase::Showing;
        vec![Effect::ShowBatch]
    }

    fn batch_seen(&mut self, halt: Option<String>) -> Vec<Effect> {
        match halt {
            Some(reason) => vec![self.end_halted(reason)],
            None => self.after_calls(),
        }
    }

    fn interrupt_calls(&mut self) -> Vec<Effect> {
        self.with_calls(Calls::interrupt)
    }

    fn abandon_calls(&mut self) -> Vec<Effect> {
        self.with_calls(Calls::abandon)
    }

    /// Lets the calls move on, and the turn with them when they are all done.
    fn with_calls(&mut self, step: impl FnOnce(&mut Calls) -> Progress) -> Vec<Effect> {
        let Phase::Working(calls) = &mut self.phase else { return Vec::new() };
        let progress = step(calls);
        if let Some(effects) = progress.effects() {
            self.repeated.note_results(effects);
        }
        if let (Some(structured), Some(effects)) = (&mut self.structured, progress.effects()) {
            structured.note_results(effects);
        }
        match progress {
            Progress::Working(effects) => effects,
            Progress::Done(mut effects) => {
                effects.extend(self.show_batch());
                effects
            }
            Progress::Deferred(call) => {
                self.stop_reason = Some("tool_deferred".to_owned());
                vec![Effect::Record(Record::Deferred(call.clone())), self.end(Outcome::Deferred(call))]
            }
            Progress::Halted(mut effects, reason) => {
                effects.push(self.end_halted(reason));
                effects
            }
            Progress::Stopped(mut effects) => {
                effects.push(Effect::Record(Record::Interrupted(Interruption::Tools)));
                effects.push(self.end(Outcome::Interrupted(Interruption::Tools)));
                effects
            }
        }
    }

    fn interrupt_request(&mut self) -> Vec<Effect> {
        let Phase::Requesting(response) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return Vec::new();
        };
        let mut effects = vec![Effect::CancelRequest];
        let partial = response.partial_text();
        let (recorded, calls) = record_response(response, None, "interrupted");
        effects.extend(recorded);
        // Results come right after their calls, so that the text does not part them.
        effects.extend(refuse_all(calls, &not_run_outcome()));
        effects.extend(partial.map(|text| Effect::Record(Record::PartialText(text))));
        effects.push(Effect::Record(Record::Interrupted(Interruption::Streaming)));
        effects.push(self.end(Outcome::Interrupted(Interruption::Streaming)));
        effects
    }

    fn interrupt_wait(&mut self) -> Vec<Effect> {
        vec![
            Effect::Record(Record::Interrupted(Interruption::Streaming)),
            self.end(Outcome::Interrupted(Interruption::Streaming)),
        ]
    }

    /// Returns the spending limit, where it is reached.
    fn over_budget(&self, spent_usd: f64) -> Option<f64> {
        self.limits.max_budget_usd.filter(|limit| spent_usd >= *limit)
    }

    fn stop_at_budget(&mut self, calls: Vec<ToolUse>, limit: f64) -> Vec<Effect> {
        let outcome =
            ToolOutcome::refusal("Not run: the spending limit of this session was reached before this call.");
        let mut effects = refuse_all(calls, &outcome);
        effects.push(self.end(Outcome::MaxBudget(limit)));
        effects
    }

    /// Somebody wants the turn to end behind its calls, which count as a round trip of their own.
    fn end_halted(&mut self, reason: String) -> Effect {
        self.round_trips += 1;
        self.end(Outcome::Halted(reason))
    }

    fn end(&mut self, outcome: Outcome) -> Effect {
        self.phase = Phase::Ended;
        Effect::End(TurnEnd { outcome, round_trips: self.round_trips, stop_reason: self.stop_reason.clone() })
    }
}

/// Records a response and returns its calls. A call that the output limit cut short is left out: it was never
/// complete, so it is neither recorded nor run.
fn record_response(response: Response, ended: Option<Ended>, stop: &str) -> (Vec<Effect>, Vec<ToolUse>) {
    let (started, mut blocks) = response.into_parts();
    if stop == "max_tokens" && blocks.last().is_some_and(|block| block.kind() == BlockKind::ToolUse) {
        blocks.pop();
    }
    let calls = blocks.iter().filter_map(Block::tool_use).collect();
    match started {
        Some(started) if !blocks.is_empty() || ended.is_some() => {
            (vec![Effect::Record(Record::Response { started, blocks, ended })], calls)
        }
        _ => (Vec::new(), Vec::new()),
    }
}

fn refuse_all(calls: Vec<ToolUse>, outcome: &ToolOutcome) -> Vec<Effect> {
    calls
        .into_iter()
        .map(|call| Effect::Record(Record::ToolResult { call: call.id, outcome: outcome.clone() }))
        .collect()
}

/// What a call that an interrupt stopped answers.
fn interrupted_outcome() -> ToolOutcome {
    let text = "The user interrupted before this call was done. It may have taken effect in part; check before \
                relying on it.";
    ToolOutcome { structured: "User rejected tool use".into(), ..ToolOutcome::error(text) }
}

/// What a call answers that an interrupt forestalled.
fn not_run_outcome() -> ToolOutcome {
    let text = "Not run: the user interrupted before this call began.";
    ToolOutcome { structured: "User rejected tool use".into(), ..ToolOutcome::error(text) }
}

#[cfg(test)]
mod tests;
