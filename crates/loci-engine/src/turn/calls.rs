//! The calls of one response: which may run now, which must wait.
//!
//! A run of shared-concurrency calls goes together, up to a bound; any other call goes alone, in its place. Each call
//! is queued, then judged, then running, then gone; it leaves with exactly one result.

use std::collections::VecDeque;

use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use loci_core::tool::ToolOutcome;

use super::effect::{Effect, Record};
use super::event::{CallPermission, Concurrency, Preparation};
use super::{interrupted_outcome, not_run_outcome};

/// The calls of one response that have no result yet.
#[derive(Debug)]
pub(super) struct Calls {
    unprepared: Vec<ToolUseId>,
    queue: VecDeque<(ToolUseId, Concurrency)>,
    active: Vec<Active>,
    max_parallel: usize,
    is_stopping: bool,
    /// Why the turn ends when these are done, if it does.
    halt: Option<String>,
    /// The call, where there is but one: it alone can be put off.
    only: Option<ToolUse>,
}

#[derive(Debug)]
struct Active {
    call: ToolUseId,
    concurrency: Concurrency,
    is_running: bool,
}

/// What a step came to.
#[derive(Debug, PartialEq)]
pub(super) enum Progress {
    /// Calls are still under way.
    Working(Vec<Effect>),
    /// Every call has its result.
    Done(Vec<Effect>),
    /// Every call has its result, and the user wanted it to stop.
    Stopped(Vec<Effect>),
    /// Every call has its result, and somebody who has a say in it wanted the turn to end.
    Halted(Vec<Effect>, String),
    /// The one call there was waits for another run.
    Deferred(ToolUse),
}

impl Progress {
    /// Returns what is to be done.
    pub(super) fn effects(&self) -> Option<&[Effect]> {
        match self {
            Self::Working(effects)
            | Self::Done(effects)
            | Self::Stopped(effects)
            | Self::Halted(effects, _) => Some(effects),
            Self::Deferred(_) => None,
        }
    }
}

impl Calls {
    pub(super) fn new(calls: &[ToolUse], max_parallel: usize) -> Self {
        Self {
            unprepared: calls.iter().map(|call| call.id.clone()).collect(),
            queue: VecDeque::new(),
            active: Vec::new(),
            max_parallel: max_parallel.max(1),
            is_stopping: false,
            halt: None,
            only: <[ToolUse; 1]>::try_from(calls.to_vec()).ok().map(|[call]| call),
        }
    }

    pub(super) fn prepared(&mut self, preparations: Vec<Preparation>) -> Progress {
        let mut effects = Vec::new();
        for preparation in preparations {
            match preparation {
                Preparation::Ready { call, concurrency } => self.queue.push_back((call, concurrency)),
                Preparation::Refused { call, outcome } => effects.push(result(call, outcome)),
            }
        }
        self.unprepared.clear();
        self.advance(effects)
    }

    pub(super) fn permission(&mut self, call: &ToolUseId, permission: CallPermission) -> Progress {
        let Some(at) = self.active.iter().position(|active| active.call == *call && !active.is_running)
        else {
            return Progress::Working(Vec::new());
        };
        match permission {
            CallPermission::Run => {
                self.active[at].is_running = true;
                Progress::Working(vec![Effect::Run(call.clone())])
            }
            CallPermission::Refuse(outcome) => {
                self.active.remove(at);
                self.advance(vec![result(call.clone(), outcome)])
            }
            CallPermission::Defer => match self.only.take() {
                Some(call) => Progress::Deferred(call),
                None => {
                    self.active.remove(at);
                    let why =
                        "Not run: a hook put this call off, which it cannot while others wait beside it.";
                    self.advance(vec![result(call.clone(), ToolOutcome::refusal(why))])
                }
            },
            CallPermission::Stop(outcome) => {
                self.active.remove(at);
                let first = result(call.clone(), outcome);
                self.stop(vec![first])
            }
        }
    }

    pub(super) fn finished(&mut self, call: &ToolUseId, outcome: ToolOutcome) -> Progress {
        let Some(at) = self.active.iter().position(|active| active.call == *call && active.is_running) else {
            return Progress::Working(Vec::new());
        };
        self.active.remove(at);
        self.advance(vec![result(call.clone(), outcome)])
    }

    /// Lets what runs come to its end, and begins nothing more.
    pub(super) fn halt(&mut self, reason: String) -> Progress {
        self.halt.get_or_insert(reason);
        let queued = self.queue.drain(..).map(|(call, _)| call);
        let outcome = ToolOutcome::refusal("Not run: a hook ended the turn before this call began.");
        let effects = queued.map(|call| result(call, outcome.clone())).collect();
        self.advance(effects)
    }

    /// Stops: what waits is given up now, what runs is cancelled and leaves its own result.
    pub(super) fn interrupt(&mut self) -> Progress {
        self.stop(Vec::new())
    }

    /// Stops without waiting for what runs.
    pub(super) fn abandon(&mut self) -> Progress {
        let mut effects = self.give_up_waiting();
        effects.extend(self.active.drain(..).map(|active| result(active.call, interrupted_outcome())));
        self.advance(effects)
    }

    fn stop(&mut self, mut effects: Vec<Effect>) -> Progress {
        effects.extend(self.give_up_waiting());
        self.advance(effects)
    }

    /// Cancels what runs, and answers for what has not begun.
    fn give_up_waiting(&mut self) -> Vec<Effect> {
        self.is_stopping = true;
        let (running, judging): (Vec<Active>, Vec<Active>) =
            self.active.drain(..).partition(|active| active.is_running);
        let mut effects: Vec<Effect> =
            (!running.is_empty()).then_some(Effect::CancelCalls).into_iter().collect();
        self.active = running;
        let queued = self.queue.drain(..).map(|(call, _)| call);
        let judging = judging.into_iter().map(|active| active.call);
        let given_up: Vec<ToolUseId> = self.unprepared.drain(..).chain(judging).chain(queued).collect();
        effects.extend(given_up.into_iter().map(|call| result(call, not_run_outcome())));
        effects
    }

    /// Starts what may start now.
    fn advance(&mut self, mut effects: Vec<Effect>) -> Progress {
        while let Some((call, concurrency)) = self.queue.pop_front_if(|(_, concurrency)| {
            let n_working =
                self.active.iter().filter(|active| active.concurrency != Concurrency::Unbounded).count();
            let fits = match concurrency {
                Concurrency::Shared => n_working < self.max_parallel,
                Concurrency::Unbounded => true,
                Concurrency::Exclusive => false,
            };
            let is_alone = |active: &Active| active.concurrency == Concurrency::Exclusive;
            self.active.is_empty() || (fits && !self.active.iter().any(is_alone))
        }) {
            effects.push(Effect::CheckPermission(call.clone()));
            self.active.push(Active { call, concurrency, is_running: false });
        }
        if !(self.active.is_empty() && self.queue.is_empty() && self.unprepared.is_empty()) {
            return Progress::Working(effects);
        }
        match (self.is_stopping, self.halt.take()) {
            (true, _) => Progress::Stopped(effects),
            (false, Some(reason)) => Progress::Halted(effects, reason),
            (false, None) => Progress::Done(effects),
        }
    }
}

fn result(call: ToolUseId, outcome: ToolOutcome) -> Effect {
    Effect::Record(Record::ToolResult { call, outcome })
}
