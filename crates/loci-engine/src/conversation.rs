//! One conversation with the model: the driver of the turn machine.
//!
//! The main line of a session is one, and so is every agent that works beside it: retry, compaction, asking, hooks and
//! limits are the same for all of them. The driver holds no rules of its own. It performs what [`Turn`] asks for, in
//! order ([`effects`]), and feeds back what comes of it: the request's stream, permissions, outcomes, the user's will.
//!
//! Tasks of a turn report to its inbox. Whoever owns the conversation calls [`Conversation::begin`] and then
//! [`Conversation::advance`] until there is a report; between two steps it may interrupt, or hand in answers.

mod agent_requests;
mod checkpoints;
mod collapse;
mod compaction;
mod compaction_gate;
pub(crate) mod context;
mod context_sources;
mod context_usage;
mod deferred;
mod directories;
mod effects;
mod expansion;
mod fork;
mod forked_skill;
mod helpers;
mod hook_events;
pub(crate) mod host;
mod instructions;
mod local_command;
mod mentions;
mod model_switch;
mod permission;
mod permits;
pub(crate) mod plan;
mod prompt_queue;
mod questions;
pub(crate) mod recorder;
pub(crate) mod request_base;
mod requests;
mod running_turn;
mod scope;
mod served_call;
mod settings_gate;
mod shell_command;
mod stall;
mod style_reminder;
mod summary_request;
mod tally;
mod tool_changes;
mod tool_search;
mod tool_set;
mod trace;
mod turn_start;

use context_sources::ContextSources;
use scope::ConversationScope;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_core::agent::AskedMode;
use loci_core::entry::Entry;
use loci_core::message::Message;
use loci_core::permission::{Isolation, Mode};
use loci_core::tool::PathEffect;
use loci_storage::memory::Author;
use loci_tools::Toolbox;
use tokio_util::sync::CancellationToken;

use crate::agents::AgentWork;
use crate::agents::background::Policy;
use crate::conversation::recorder::Recorder;
use crate::conversation::request_base::RequestBase;
use crate::event::{AgentRef, EngineEvent, EventSink, TurnReport};
use crate::extensions::hooks::classifier_notes_in;
use crate::extensions::skills::use_skill::TurnGrants;
use crate::extensions::{AfterCall, BatchGate};
use crate::session::config::{CompactionConfig, ModelConfig, TurnLimits};
use crate::session::file_history::Checkpoints;
use crate::tools::calls::layers;
use crate::turn::{Event, Outcome, TurnEnd};
use compaction::Compactor;
use permits::Permits;
use prompt_queue::PromptQueue;
use tool_set::ToolSet;

pub(crate) use context::SessionContext;
pub(crate) use context_usage::tool_category;
pub(crate) use fork::{AgentSetup, ForkPoint};
pub(crate) use helpers::Helpers;
use host::ConversationHost;
pub(crate) use instructions::{InstructionState, Prelude};
pub(crate) use running_turn::{InboxMessage, RequestEvent};
use running_turn::{RunningCall, RunningTurn};
pub use served_call::Consent;
pub(crate) use served_call::{ServedCheck, ServedGate};
use tool_search::searchable;
use trace::{EffectText, EventText};
pub(crate) use turn_start::TurnInput;

/// How long what could not be saved waits before the disk is tried again, should nothing else happen.
const SAVE_AGAIN: Duration = Duration::from_millis(500);

/// A conversation, its transcript and whatever a turn of it has under way.
pub(crate) struct Conversation {
    pub(crate) scope: ConversationScope,
    pub(crate) recorder: Recorder,
    pub(crate) sources: ContextSources,
    pub(crate) tools: ToolSet,
    pub(crate) permits: Permits,
    compaction: Compactor,
    pub(crate) checkpoints: Checkpoints,
    /// Agents that work for this conversation, beside it.
    pub(crate) helpers: Helpers,
    /// Prompts that wait while a turn is under way.
    pub(crate) queue: PromptQueue,
    run: RunningTurn,
}

/// What a conversation is made from.
pub(crate) struct ConversationParts {
    pub(crate) ctx: Arc<SessionContext>,
    pub(crate) agent: Option<AgentRef>,
    pub(crate) events: EventSink,
    pub(crate) recorder: Recorder,
    pub(crate) host: Arc<ConversationHost>,
    pub(crate) toolbox: Toolbox,
    pub(crate) base: Arc<RequestBase>,
    pub(crate) model: ModelConfig,
    pub(crate) limits: TurnLimits,
    pub(crate) asks: bool,
    pub(crate) policy: Option<Policy>,
    /// Whose hand memories are written in.
    pub(crate) author: Author,
    pub(crate) compaction: CompactionConfig,
    pub(crate) instructions: InstructionState,
    pub(crate) prelude: Prelude,
    pub(crate) past: Option<Vec<Arc<Entry>>>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) helpers: Helpers,
}

/// What an agent that was sent out may do, beside the session's rules.
#[derive(Debug, Default)]
pub(crate) struct AgentLimits {
    /// The permission mode it asks for.
    pub(crate) mode: Option<AskedMode>,
    /// Where it keeps memories of its own.
    pub(crate) memory_dir: Option<PathBuf>,
    /// The worktree that keeps it apart, where it or whoever sent it out has one.
    pub(crate) isolation: Option<Isolation>,
    /// What the skill that it was given changes about its turns.
    pub(crate) grants: TurnGrants,
}

impl Conversation {
    /// Makes a conversation; nothing happens until a turn begins.
    pub(crate) fn new(parts: ConversationParts) -> Self {
        let env = parts.ctx.services.env.clone();
        parts.host.set_searchable(searchable(&parts.toolbox));
        let notes = classifier_notes_in(parts.past.as_deref().unwrap_or_default());
        Self {
            run: RunningTurn::idle(env.clock.monotonic()),
            tools: ToolSet::new(parts.toolbox, layers(&parts.ctx, parts.author)),
            sources: ContextSources::new(parts.base, parts.instructions, parts.prelude, parts.past),
            permits: Permits::new(notes),
            compaction: Compactor::new(parts.compaction),
            recorder: parts.recorder,
            checkpoints: parts.checkpoints,
            helpers: parts.helpers,
            queue: PromptQueue::default(),
            scope: ConversationScope {
                ctx: parts.ctx,
                host: parts.host,
                env,
                agent: parts.agent,
                events: parts.events,
                asks: parts.asks,
                policy: parts.policy,
                agent_limits: AgentLimits::default(),
                work: None,
                model: parts.model,
                chosen_planner: None,
                limits: parts.limits,
            },
        }
    }

    /// Returns the files that calls of this turn have changed.
    pub(crate) fn written(&self) -> &[PathEffect] {
        &self.run.tally.written
    }

    /// Waits for the next thing that concerns the turn and sees to it; the report, when that ended the turn. May be
    /// dropped at any moment and called again.
    pub(crate) async fn advance(&mut self) -> Option<TurnReport> {
        tokio::select! {
            message = self.run.messages.recv() => message.and_then(|message| self.receive(message)),
            update = self.checkpoints.next() => {
                self.recorder.record_checkpoint(&self.scope, update);
                None
            }
            () = pause_before_saving(self.recorder.has_unsaved()) => {
                self.recorder.retry_save(&self.scope);
                None
            }
        }
    }

    /// Runs a turn to its end; `cancel` interrupts it.
    pub(crate) async fn run_turn(&mut self, input: TurnInput, cancel: &CancellationToken) -> TurnReport {
        tokio::select! {
            () = self.sources.begin_agent_hooks(&self.scope, &mut self.recorder) => {}
            () = cancel.cancelled() => {}
        }
        let mut report = self.begin(input);
        loop {
            if let Some(report) = report {
                return report;
            }
            let (patience, time_left) = (self.stall_limit(), self.time_left());
            report = tokio::select! {
                report = self.advance() => report,
                () = cancel.cancelled(), if !self.run.has_interrupted => self.interrupt(),
                () = stall::silence(patience) => self.give_up(),
                () = stall::silence(time_left) => None,
            };
            if report.is_none() {
                report = self.stop_at_cap();
            }
        }
    }

    /// Waits, between turns, for something of the conversation's own to do; for ever, when nothing is left.
    pub(crate) async fn idle(&mut self) {
        pause_before_saving(self.recorder.has_unsaved()).await;
        self.recorder.retry_save(&self.scope);
    }

    /// Stops the turn; said twice, what runs is not waited for.
    pub(crate) fn interrupt(&mut self) -> Option<TurnReport> {
        if std::mem::replace(&mut self.run.has_interrupted, true) {
            return self.handle(Event::Abandon);
        }
        // What it printed is recorded, and then the turn is over.
        if self.run.opening.stop_shell() || self.run.opening.stop_forked_skill() {
            return None;
        }
        self.permits.withdraw_questions(&self.scope);
        self.handle(Event::Interrupt)
    }

    /// Sees to one message of the inbox.
    fn receive(&mut self, message: InboxMessage) -> Option<TurnReport> {
        match message {
            InboxMessage::Request(generation, _) | InboxMessage::Summary(generation, _)
                if generation != self.run.tasks.generation => {}
            InboxMessage::Request(_, event) => {
                let event = self.run.answer.account(
                    &mut self.scope,
                    &self.recorder,
                    &self.sources,
                    &mut self.compaction,
                    &mut self.run.tally,
                    event,
                );
                return self
                    .run
                    .answer
                    .filter_before_display(&self.scope, &self.recorder, &mut self.run.tasks, event)
                    .and_then(|event| self.handle(event));
            }
            InboxMessage::Shown(event, text) => {
                self.run.answer.release_stream(&self.scope, text.as_deref());
                self.run.tally.shown_text = text;
                return self.handle(event);
            }
            InboxMessage::Summary(_, said) => self.summarised(said),
            InboxMessage::Gate(request, gate) => self.gate_passed(request, gate),
            InboxMessage::Collapsed(request) => self.collapsed(request),
            InboxMessage::CompactionHooksDone(end, attachments) => {
                attachments.into_iter().for_each(|attachment| self.recorder.attachment(attachment));
                self.run.tasks.post(InboxMessage::CompactionOver(end));
            }
            InboxMessage::CompactionOver(end) => {
                let spent_usd = self.scope.ctx.spent_usd();
                return self.handle(Event::Compacted { end, spent_usd });
            }
            InboxMessage::Expanded(expanded) => self.expanded(expanded),
            InboxMessage::Mentioned(mentioned) => self.mentioned(mentioned),
            InboxMessage::QueueMentioned(id, mentioned) => {
                self.queue.queue_mentioned(&self.scope, &id, mentioned);
            }
            InboxMessage::ShellDone(outcome) => self.shell_done(&outcome),
            InboxMessage::SkillUsed(used) => {
                self.permits.skill_called(&self.scope, &self.recorder, &mut self.run.calls, *used);
            }
            InboxMessage::SkillForked(reply) => self.forked_skill_done(*reply),
            InboxMessage::PromptGate(gate) => {
                tracing::debug!(target: "loci::hooks", "prompt hooks answered");
                let event = self.prompt_gate_passed(gate)?;
                return self.handle(event);
            }
            InboxMessage::CallGate(call, gate) => {
                tracing::debug!(target: "loci::hooks", %call, verdict = gate.verdict.is_some(), "call hooks answered");
                self.call_gate_passed(&call, gate);
            }
            InboxMessage::CallDone(call, AfterCall { outcome, halt, classifier_note }) => {
                self.permits.note_for_classifier(&self.scope, &self.run.calls, &call, classifier_note);
                let halted = halt.and_then(|reason| self.handle(Event::Halt { reason }));
                return self.handle(Event::Finished { call, outcome }).or(halted);
            }
            InboxMessage::BatchGate(BatchGate { attachments, halt }) => {
                attachments.into_iter().for_each(|attachment| self.recorder.attachment(attachment));
                return self.handle(Event::BatchSeen { halt });
            }
            InboxMessage::HookReply(question, reply) => self.hook_replied(&question, reply),
            InboxMessage::Classified(call, said) => self.classified(&call, said),
            InboxMessage::SettingsDecided(call) => self.settings_decided(call.as_ref()),
            InboxMessage::DenialTold(call, said, notes) => {
                self.run.calls.notes.entry(call.clone()).or_default().extend(notes);
                self.follow_classifier(&call, Some(said));
            }
            InboxMessage::Answered(question, answer) => self.answered(&question, answer),
            InboxMessage::Machine(event) => return self.handle(event),
        }
        None
    }

    /// Lets the machine hear of an event and performs what it wants done.
    fn handle(&mut self, event: Event) -> Option<TurnReport> {
        tracing::debug!(target: "loci::engine", agent = self.scope.agent_id(), "event {}", EventText(&event));
        let effects = self.run.turn.handle(event);
        let mut end = None;
        for effect in effects {
            tracing::debug!(target: "loci::engine", agent = self.scope.agent_id(), "effect {}", EffectText(&effect));
            end = self.perform(effect).or(end);
        }
        end.map(|end| self.finish(end))
    }

    /// Makes a turn's work safe on disk and tells how it went.
    fn finish(&mut self, end: TurnEnd) -> TurnReport {
        self.checkpoints.record_background(&self.scope);
        match &end.outcome {
            Outcome::ApiError(failure) => {
                self.scope.tell_hooks_of_failure(&self.recorder, &self.run.tally, failure);
            }
            Outcome::Halted(reason) => {
                self.run.tally.text.clear();
                self.scope.tell(EngineEvent::Warning(format!("A hook ended the turn: {reason}")));
            }
            _ => {}
        }
        let is_answer = matches!(end.outcome, Outcome::Completed | Outcome::Structured(_));
        let has_answered = is_answer && end.round_trips > 0;
        self.recorder.settle_turn(&self.scope);
        self.recorder.tell_warnings(&self.scope);
        let denials = self.scope.ctx.state.get().permission.denials.clone();
        let identity = self.scope.ctx.identity.get();
        let now = self.scope.env.clock.monotonic();
        let totals = self.scope.ctx.totals();
        let report = TurnReport {
            is_saved: !self.recorder.has_unsaved(),
            ..self.run.tally.report(
                end,
                denials,
                &identity,
                totals,
                self.compaction.fullness(&self.scope, &self.recorder, &self.sources),
                now,
            )
        };
        self.scope.tell(EngineEvent::TurnEnded(Box::new(report.clone())));
        self.helpers.consider_notes(&self.scope, &self.recorder, &self.sources, &self.tools, None);
        self.helpers.consider_summary(
            &self.scope,
            &self.recorder,
            &self.sources,
            &self.tools,
            &self.compaction,
            None,
        );
        if has_answered {
            self.helpers.consider_memories(&self.scope, &self.recorder, &self.sources, &self.tools);
        }
        report
    }
}

impl ConversationScope {
    /// Makes it the conversation of an agent that was sent out.
    pub(crate) fn set_agent_limits(&mut self, limits: AgentLimits, work: AgentWork) {
        self.agent_limits = limits;
        self.work = Some(work);
    }

    /// Returns what the agent has done so far.
    pub(crate) fn agent_work(&self) -> Option<&AgentWork> {
        self.work.as_ref()
    }

    /// Returns the model to ask: in plan mode the one that plans, where there is one.
    pub(crate) fn current_model(&self) -> String {
        let (work, planner) = self.models_in_use();
        planner.filter(|_| self.ctx.mode() == Mode::Plan).unwrap_or(work)
    }

    /// Returns the model that does the work, and the one that plans: the session's own choice over the configured ones.
    fn models_in_use(&self) -> (String, Option<String>) {
        if self.agent.is_some() {
            return (self.model.main.clone(), None);
        }
        match self.ctx.state.get().model.session_override.clone() {
            Some(chosen) => (chosen, self.chosen_planner.clone()),
            None => (self.model.main.clone(), self.model.planner.clone()),
        }
    }

    /// Tells whether what a model costs can be held against the budget, if there is one.
    pub(crate) fn can_keep_budget(&self, model: &str) -> bool {
        self.limits.max_budget_usd.is_none() || self.model.catalog.facts(model).price.is_some()
    }

    /// Whose conversation this is, for the trace.
    fn agent_id(&self) -> &str {
        self.agent.as_ref().map_or("main", |agent| agent.id.as_str())
    }

    pub(crate) fn tell(&self, event: EngineEvent) {
        if self.is_main() {
            self.ctx.usage.timeline.take(&event, self.env.clock.monotonic());
        }
        self.events.send(event);
    }
}

impl Recorder {
    /// Marks where the conversation stands and what the session used, and makes all of it safe on disk.
    pub(crate) fn settle_turn(&mut self, scope: &ConversationScope) {
        let cost = scope.ctx.cost_state().filter(|_| scope.agent.is_none());
        self.settle(cost.as_ref());
    }

    pub(crate) fn retry_save(&mut self, scope: &ConversationScope) {
        self.save_again();
        self.tell_warnings(scope);
    }

    pub(crate) fn tell_warnings(&mut self, scope: &ConversationScope) {
        for warning in self.take_warnings() {
            scope.tell(EngineEvent::Warning(warning));
        }
    }
}

impl ContextSources {
    /// Returns the conversation as the next request would send it.
    pub(crate) fn messages(&self, recorder: &Recorder) -> Vec<Message> {
        match &self.prelude {
            Prelude::Opening(opening) => recorder.messages(opening.as_ref().map(|it| it.block())),
            Prelude::Fork { .. } => self.prelude.before(recorder.messages(None)),
        }
    }
}

/// Ends when it is time to try the disk again; never, when nothing waits for it.
async fn pause_before_saving(has_unsaved: bool) {
    match has_unsaved {
        true => tokio::time::sleep(SAVE_AGAIN).await,
        false => std::future::pending().await,
    }
}
