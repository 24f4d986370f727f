//! One conversation with the model: the driver of the turn machine.
//!
//! The main line of a session is one, and so is every agent that works beside it: retry, compaction, asking, hooks and
//! limits are the same for all of them. The driver holds no rules of its own. It performs what [`Turn`] asks for, in
//! order ([`effects`]), and feeds back what comes of it: the request's stream, permissions, outcomes, the user's will.
//!
//! Tasks of a turn report to its inbox. Whoever owns the conversation calls [`Conversation::begin`] and then
//! [`Conversation::advance`] until there is a report; between two steps it may interrupt, or hand in answers.

mod checkpoints;
mod collapse;
mod compaction;
mod compaction_gate;
pub(crate) mod context;
mod deferred;
mod directories;
mod effects;
mod expansion;
mod fork;
mod helpers;
mod hook_events;
pub(crate) mod host;
mod instructions;
mod permission;
mod plan;
mod prompt_queue;
mod questions;
mod requests;
mod settings_gate;
mod summary_request;
mod tally;
mod tool_changes;
mod trace;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_context::join_messages;
use loci_core::entry::Entry;
use loci_core::hooks::{HookEvent, ToolBatchCall};
use loci_core::ids::{PromptId, ToolUseId};
use loci_core::message::{Block, Message};
use loci_core::model::facts;
use loci_core::permission::{Classified, Mode};
use loci_core::stream::{Ended, Failure, FailureKind, Started, StreamEvent};
use loci_core::tool::{CallEffects, PathEffect};
use loci_llm::RetryPolicy;
use loci_stdx::Env;
use loci_storage::memory::Author;
use loci_tools::{Host as _, Toolbox};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::agents::{AgentWork, notification_text};
use crate::background::Policy;
use crate::calls::{CallLayer, layers};
use crate::command::{Answer, Prompt, QueuedPrompt, ToolChanges};
use crate::config::{CompactionConfig, ModelConfig, ReloadPoint, TurnLimits};
use crate::event::{AgentRef, EngineEvent, EventSink, TurnReport, TurnStart};
use crate::extension::{
    AfterCall, AfterCompaction, BatchGate, CallGate, ClassifierNote, CompactionGate, PromptGate,
};
use crate::file_history::Checkpoints;
use crate::mcp::McpConfig;
use crate::prepared_call::PreparedCall;
use crate::recorder::Recorder;
use crate::request::RequestBase;
use crate::skills::layer::UsedSkill;
use crate::skills::use_skill::TurnGrants;
use crate::slash_command::{CommandAction, CommandCall};
use crate::state::change;
use crate::turn::{CompactionOutcome, CompactionRequest, Event, Limits, Outcome, RetryRules, Turn, TurnEnd};
use compaction::{Compactor, PendingCompaction};
pub(crate) use context::SessionContext;
use expansion::ExpandedPrompt;
pub(crate) use fork::{AgentSetup, ForkPoint};
pub(crate) use helpers::Helpers;
use host::ConversationHost;
pub(crate) use instructions::{InstructionState, Prelude};
use tally::Tally;
use trace::{EffectText, EventText};

/// How long what could not be saved waits before the disk is tried again, should nothing else happen.
const SAVE_AGAIN: Duration = Duration::from_millis(500);
const BLANK: &str = "The prompt is empty. Send some text, or a picture.";
const NOTHING_OPEN: &str = "There is nothing to go on with. Send a prompt.";

/// A conversation, its transcript and whatever a turn of it has under way.
pub(crate) struct Conversation {
    /// What all conversations of a session share.
    pub(crate) ctx: Arc<SessionContext>,
    env: Env,
    /// Whose it is; nobody's but the person's, for the main line.
    agent: Option<AgentRef>,
    events: EventSink,
    pub(crate) recorder: Recorder,
    pub(crate) host: Arc<ConversationHost>,
    toolbox: Toolbox,
    /// Tools that came or went since the last request.
    tool_changes: Vec<ToolChanges>,
    base: Arc<RequestBase>,
    model: ModelConfig,
    limits: TurnLimits,
    /// Whether people are asked what the rules leave open.
    asks: bool,
    /// What its calls may do at most, before the rules have their say.
    policy: Option<Policy>,
    compaction: CompactionConfig,
    compactor: Compactor,
    instructions: InstructionState,
    /// What stands before its own entries in every request.
    prelude: Prelude,
    /// What came before this process, until the first call needs to know what was read.
    past: Option<Vec<Arc<Entry>>>,
    /// What wraps every call, outermost first.
    layers: Arc<[Arc<dyn CallLayer>]>,
    checkpoints: Checkpoints,
    /// Agents that work for this conversation, beside it.
    pub(crate) helpers: Helpers,
    /// What makes it an agent's that was sent out.
    agent_limits: AgentLimits,
    /// What the agent has done so far.
    work: Option<AgentWork>,
    /// Prompts that wait while a turn is under way.
    pub(crate) queued: VecDeque<QueuedPrompt>,
    /// Where the shell stood when hooks were last told.
    told_cwd: Option<PathBuf>,
    /// What hooks said of results, for the classifier of later calls.
    classifier_notes: Vec<ClassifierNote>,
    /// Whether hooks were told that an agent begins.
    has_told_begin: bool,
    /// What skills change about the turn at hand.
    grants: TurnGrants,
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
    pub(crate) mode: Option<Mode>,
    /// Where it keeps memories of its own.
    pub(crate) memory_dir: Option<PathBuf>,
}

/// What a turn begins with.
#[derive(Debug, Clone)]
pub(crate) enum TurnInput {
    /// A person, or a program, asks.
    Prompt(Prompt),
    /// Whoever sent an agent out says what it is to do.
    Instruction(String),
    /// A conversation tells the agent it sent out what to do.
    Task {
        text: String,
        /// The prompt that the work is for; that of the last task, where it is empty.
        prompt: PromptId,
        /// Answers to calls that come first, in a fork.
        results: Vec<Block>,
    },
    /// Work beside the conversation has ended.
    TaskNews,
    /// Nothing new was said.
    GoOn,
    /// A call that an earlier run put off is taken up again.
    Deferred,
}

/// Why a turn is over before it began.
enum NoTurn {
    /// The prompt cannot be sent; this is why.
    Refused(String),
    /// There is nothing to ask the model.
    Over(Box<TurnEnd>),
}

impl TurnInput {
    /// A further message to an agent.
    pub(crate) fn message(text: String) -> Self {
        Self::Task { text, prompt: PromptId::new(""), results: Vec::new() }
    }
}

/// What a turn has under way. Between turns it is that of the last one, which is over.
struct RunningTurn {
    turn: Turn,
    inbox: UnboundedSender<InboxMessage>,
    messages: UnboundedReceiver<InboxMessage>,
    generation: u64,
    request: CancellationToken,
    calls: CancellationToken,
    /// The model of the request on the wire.
    asked_model: String,
    /// The head of the response that is arriving.
    answering: Option<Started>,
    /// What its texts say so far.
    answer_text: String,
    /// The prompt, until it is recorded.
    prompt: Option<Prompt>,
    /// The command that makes the prompt, until it has.
    expansion: Option<CommandCall>,
    /// Texts of skills that calls have used, until the calls' results are recorded.
    skill_texts: HashMap<ToolUseId, String>,
    prepared: HashMap<ToolUseId, PreparedCall>,
    running: HashMap<ToolUseId, RunningCall>,
    /// What the results of the calls at hand take of the window so far.
    result_tokens: u64,
    questions: HashMap<String, PreparedCall>,
    /// Ends whatever waits beside an open question, when it is closed.
    beside_questions: HashMap<String, CancellationToken>,
    /// How many calls the response at hand makes.
    n_calls: usize,
    /// What hooks want recorded behind the results of calls.
    call_notes: HashMap<ToolUseId, Vec<Value>>,
    /// The calls of the response at hand, for hooks that want to see them together.
    batch: Vec<ToolBatchCall>,
    tally: Tally,
    has_interrupted: bool,
    /// The compaction whose summary is being written.
    pending: Option<PendingCompaction>,
    /// What a compaction made, for those who want to know.
    compacted: Option<AfterCompaction>,
}

/// What is to be seen to when a running call is done.
struct RunningCall {
    tool: String,
    /// The file that it reads, if that may bring instructions with it.
    reads: Option<PathBuf>,
    effects: CallEffects,
    /// Has it go on in the background.
    to_background: CancellationToken,
}

/// What tasks of a turn report; a request's events count only while it is the current one.
pub(crate) enum InboxMessage {
    Request(u64, RequestEvent),
    Summary(u64, Result<(String, Ended), Failure>),
    Gate(CompactionRequest, CompactionGate),
    Collapsed(CompactionRequest),
    CompactionOver(CompactionOutcome),
    CompactionHooksDone(CompactionOutcome, Vec<Value>),
    Expanded(Result<Box<ExpandedPrompt>, String>),
    SkillUsed(Box<UsedSkill>),
    PromptGate(PromptGate),
    CallGate(ToolUseId, CallGate),
    CallDone(ToolUseId, AfterCall),
    BatchGate(BatchGate),
    HookReply(String, Option<Answer>),
    /// A response is complete, and this is shown in the place of its text.
    Shown(Event, Option<String>),
    /// Hooks have decided which changed settings count; the call that waits for it, or the prompt.
    SettingsDecided(Option<ToolUseId>),
    /// Hooks were told that the classifier refused a call; what they add stands behind its result.
    DenialTold(ToolUseId, Classified, Vec<Value>),
    Classified(ToolUseId, Option<Classified>),
    Answered(String, Answer),
    Machine(Event),
}

/// What comes of a request, before it is accounted for.
pub(crate) enum RequestEvent {
    Stream(StreamEvent),
    Failed(Failure),
    WaitOver,
}

impl RunningTurn {
    fn new(limits: Limits, now: Duration) -> Self {
        let (inbox, messages) = unbounded_channel();
        Self {
            turn: Turn::new(limits),
            inbox,
            messages,
            generation: 0,
            request: CancellationToken::new(),
            calls: CancellationToken::new(),
            asked_model: String::new(),
            answering: None,
            answer_text: String::new(),
            prompt: None,
            expansion: None,
            skill_texts: HashMap::new(),
            prepared: HashMap::new(),
            running: HashMap::new(),
            result_tokens: 0,
            questions: HashMap::new(),
            beside_questions: HashMap::new(),
            n_calls: 0,
            call_notes: HashMap::new(),
            batch: Vec::new(),
            tally: Tally::begin(now),
            has_interrupted: false,
            pending: None,
            compacted: None,
        }
    }

    /// Stands for the turn before the first one.
    fn idle(now: Duration) -> Self {
        let retry = RetryRules { policy: RetryPolicy::default(), allows_one_piece: false };
        let models = Vec::new();
        Self::new(
            Limits {
                models,
                max_turns: None,
                max_budget_usd: None,
                max_parallel: 1,
                retry,
                asks_before_end: false,
                max_objections: 0,
                shows_batches: false,
            },
            now,
        )
    }

    /// Puts something into the inbox.
    fn post(&self, message: InboxMessage) {
        // The receiver lives as long as the turn does.
        drop(self.inbox.send(message));
    }
}

impl Conversation {
    /// Makes a conversation; nothing happens until a turn begins.
    pub(crate) fn new(parts: ConversationParts) -> Self {
        let env = parts.ctx.env.clone();
        Self {
            layers: layers(&parts.ctx, parts.author),
            run: RunningTurn::idle(env.clock.monotonic()),
            env,
            ctx: parts.ctx,
            agent: parts.agent,
            events: parts.events,
            recorder: parts.recorder,
            host: parts.host,
            toolbox: parts.toolbox,
            tool_changes: Vec::new(),
            base: parts.base,
            model: parts.model,
            limits: parts.limits,
            asks: parts.asks,
            policy: parts.policy,
            compaction: parts.compaction,
            compactor: Compactor::default(),
            instructions: parts.instructions,
            prelude: parts.prelude,
            past: parts.past,
            checkpoints: parts.checkpoints,
            helpers: parts.helpers,
            agent_limits: AgentLimits::default(),
            work: None,
            queued: VecDeque::new(),
            told_cwd: None,
            has_told_begin: false,
            grants: TurnGrants::default(),
            classifier_notes: Vec::new(),
        }
    }

    /// Makes it the conversation of an agent that was sent out.
    pub(crate) fn set_agent_limits(&mut self, limits: AgentLimits, work: AgentWork) {
        self.agent_limits = limits;
        self.work = Some(work);
    }

    /// Returns what the agent has done so far.
    pub(crate) fn agent_work(&self) -> Option<&AgentWork> {
        self.work.as_ref()
    }

    /// Begins a turn; the report, when it is over at once.
    pub(crate) fn begin(&mut self, input: TurnInput) -> Option<TurnReport> {
        self.take_up_settings();
        self.take_up_skills();
        self.grants = TurnGrants::default();
        self.run = RunningTurn::new(self.turn_limits(), self.env.clock.monotonic());
        self.start_turn();
        match self.open(input) {
            Ok(event) => self.handle(event),
            Err(NoTurn::Refused(text)) => Some(self.refuse_prompt(text)),
            Err(NoTurn::Over(end)) => Some(self.finish(*end)),
        }
    }

    /// Ends a turn in which nothing is to be done.
    pub(crate) fn begin_and_end(&mut self) -> TurnReport {
        self.take_up_settings();
        self.run = RunningTurn::new(self.turn_limits(), self.env.clock.monotonic());
        self.start_turn();
        self.finish(TurnEnd { outcome: Outcome::Completed, round_trips: 0, stop_reason: None })
    }

    /// Waits for the next thing that concerns the turn and sees to it; the report, when that ended the turn. May be
    /// dropped at any moment and called again.
    pub(crate) async fn advance(&mut self) -> Option<TurnReport> {
        tokio::select! {
            message = self.run.messages.recv() => message.and_then(|message| self.receive(message)),
            update = self.checkpoints.next() => {
                self.record_checkpoint(update);
                None
            }
            () = pause_before_saving(self.recorder.has_unsaved()) => {
                self.save_again();
                None
            }
        }
    }

    /// Runs a turn to its end; `cancel` interrupts it.
    pub(crate) async fn run_turn(&mut self, input: TurnInput, cancel: &CancellationToken) -> TurnReport {
        tokio::select! {
            () = self.begin_agent_hooks() => {}
            () = cancel.cancelled() => {}
        }
        let mut report = self.begin(input);
        loop {
            if let Some(report) = report {
                return report;
            }
            report = tokio::select! {
                report = self.advance() => report,
                () = cancel.cancelled(), if !self.run.has_interrupted => self.interrupt(),
            };
        }
    }

    /// Waits, between turns, for something of the conversation's own to do; for ever, when nothing is left.
    pub(crate) async fn idle(&mut self) {
        pause_before_saving(self.recorder.has_unsaved()).await;
        self.save_again();
    }

    /// Stops the turn; said twice, what runs is not waited for.
    pub(crate) fn interrupt(&mut self) -> Option<TurnReport> {
        if std::mem::replace(&mut self.run.has_interrupted, true) {
            return self.handle(Event::Abandon);
        }
        self.withdraw_questions();
        self.handle(Event::Interrupt)
    }

    pub(crate) fn current_model(&self) -> String {
        let chosen = self.ctx.state.get().model.session_override.clone();
        chosen.filter(|_| self.agent.is_none()).unwrap_or_else(|| self.model.main.clone())
    }

    /// Tells whether what a model costs can be held against the budget, if there is one.
    pub(crate) fn can_keep_budget(&self, model: &str) -> bool {
        self.limits.max_budget_usd.is_none() || facts(model).price.is_some()
    }

    /// Sees to one message of the inbox.
    fn receive(&mut self, message: InboxMessage) -> Option<TurnReport> {
        match message {
            InboxMessage::Request(generation, _) | InboxMessage::Summary(generation, _)
                if generation != self.run.generation => {}
            InboxMessage::Request(_, event) => {
                let event = self.account(event);
                return self.shown_first(event).and_then(|event| self.handle(event));
            }
            InboxMessage::Shown(event, text) => {
                self.run.tally.shown_text = text;
                return self.handle(event);
            }
            InboxMessage::Summary(_, said) => self.summarised(said),
            InboxMessage::Gate(request, gate) => self.gate_passed(request, gate),
            InboxMessage::Collapsed(request) => self.collapsed(request),
            InboxMessage::CompactionHooksDone(end, attachments) => {
                attachments.into_iter().for_each(|attachment| self.recorder.attachment(attachment));
                self.run.post(InboxMessage::CompactionOver(end));
            }
            InboxMessage::CompactionOver(end) => {
                let spent_usd = self.ctx.spent_usd();
                return self.handle(Event::Compacted { end, spent_usd });
            }
            InboxMessage::Expanded(expanded) => self.expanded(expanded),
            InboxMessage::SkillUsed(used) => self.skill_called(*used),
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
                self.note_for_classifier(&call, classifier_note);
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
                self.run.call_notes.entry(call.clone()).or_default().extend(notes);
                self.follow_classifier(&call, Some(said));
            }
            InboxMessage::Answered(question, answer) => self.answered(&question, answer),
            InboxMessage::Machine(event) => return self.handle(event),
        }
        None
    }

    /// Whose conversation this is, for the trace.
    fn agent_id(&self) -> &str {
        self.agent.as_ref().map_or("main", |agent| agent.id.as_str())
    }

    /// Lets the machine hear of an event and performs what it wants done.
    fn handle(&mut self, event: Event) -> Option<TurnReport> {
        tracing::debug!(target: "loci::engine", agent = self.agent_id(), "event {}", EventText(&event));
        let effects = self.run.turn.handle(event);
        let mut end = None;
        for effect in effects {
            tracing::debug!(target: "loci::engine", agent = self.agent_id(), "effect {}", EffectText(&effect));
            end = self.perform(effect).or(end);
        }
        end.map(|end| self.finish(end))
    }

    /// Takes up what changed in the settings, and in the definitions of agents, since the last turn.
    fn take_up_settings(&mut self) {
        if self.agent.is_none() {
            self.ctx.reload_settings(ReloadPoint::Prompt);
            if let Some(changes) = self.host.reload_agents() {
                self.recorder.add_before_prompt(vec![changes]);
            }
            self.note_moment();
        }
    }

    /// Tells that a turn begins.
    fn start_turn(&mut self) {
        if self.agent.is_none() {
            change(&self.ctx.state, |state| state.permission.denials.clear());
        }
        if let Some(branch) = loci_storage::project::head_branch(&self.env.cwd) {
            self.recorder.set_branch(branch);
        }
        self.make_opening();
        self.tell(EngineEvent::TurnStarted(TurnStart {
            session: self.ctx.identity.get().id().clone(),
            cwd: self.env.cwd.clone(),
            model: self.current_model(),
            mode: self.ctx.mode(),
            tools: self.toolbox.available().map(|descriptor| descriptor.name.clone()).collect(),
            agents: self.host.agent_names(),
            mcp_servers: self.ctx.mcp.as_ref().map(McpConfig::states).unwrap_or_default(),
            mcp_errors: self.ctx.mcp.as_ref().map(McpConfig::errors).unwrap_or_default(),
            commands: self.ctx.slash_commands.get(),
            api_key_source: self.ctx.api_key_source.clone(),
            memory_dir: self.ctx.memory.as_ref().map(|memory| memory.dir().to_owned()),
        }));
    }

    /// Returns the first event of a turn; the error says why there is no turn.
    fn open(&mut self, input: TurnInput) -> Result<Event, NoTurn> {
        let prompt = match input {
            TurnInput::Prompt(prompt) => prompt,
            TurnInput::Instruction(text) => {
                self.recorder.instruction(&text);
                return Ok(Event::Begin);
            }
            TurnInput::Task { text, prompt, results } => {
                let entry = self.recorder.task(&text, &prompt, &results);
                self.tell_task(entry.as_deref(), &text);
                return Ok(Event::Begin);
            }
            TurnInput::TaskNews => {
                let tasks = self.host.tasks().drain_finished();
                if tasks.is_empty() {
                    return Err(NoTurn::Refused(NOTHING_OPEN.to_owned()));
                }
                self.run.tally.origin = Some("task-notification");
                let mode = self.ctx.mode();
                self.recorder.notification(&notification_text(&tasks), mode.as_str());
                return Ok(Event::Begin);
            }
            TurnInput::Deferred => return self.take_up_deferred(),
            TurnInput::GoOn if self.recorder.is_open() => return Ok(Event::Begin),
            TurnInput::GoOn => return Err(NoTurn::Refused(NOTHING_OPEN.to_owned())),
        };
        if prompt.content.is_blank() {
            return Err(NoTurn::Refused(BLANK.to_owned()));
        }
        match self.slash_command(&prompt).map(|call| (call.command.action, call.argument)) {
            Some((CommandAction::Compact, focus)) => {
                if !self.recorder.path().is_empty() {
                    self.recorder.command(&prompt.content.text());
                }
                return Ok(Event::Compact { focus });
            }
            Some((CommandAction::Clear | CommandAction::Skill | CommandAction::McpPrompt, _)) | None => {}
        }
        if let Some(text) = self.refusal_of_prompts() {
            return Err(NoTurn::Refused(text));
        }
        self.run.expansion =
            self.slash_command(&prompt).filter(|call| call.command.action == CommandAction::Skill);
        self.run.prompt = Some(prompt);
        Ok(Event::Prompt)
    }

    /// Ends a turn whose prompt cannot be made; nothing is asked and nothing recorded.
    pub(crate) fn begin_refused(&mut self, text: String) -> TurnReport {
        self.take_up_settings();
        self.run = RunningTurn::new(self.turn_limits(), self.env.clock.monotonic());
        self.start_turn();
        self.refuse_prompt(text)
    }

    /// Tells whether a turn would begin with a slash command that does this.
    pub(crate) fn asks_for(&self, input: &TurnInput, action: CommandAction) -> bool {
        matches!(input, TurnInput::Prompt(prompt)
            if self.slash_command(prompt).is_some_and(|call| call.command.action == action))
    }

    fn slash_command(&self, prompt: &Prompt) -> Option<CommandCall> {
        self.ctx.slash_commands.get().parse(prompt)
    }

    /// Ends a turn whose prompt the model would refuse: nothing is asked and nothing recorded.
    fn refuse_prompt(&mut self, text: String) -> TurnReport {
        self.run.tally.text.clone_from(&text);
        let failure = Failure::new(FailureKind::InvalidRequest, text);
        self.finish(TurnEnd { outcome: Outcome::ApiError(failure), round_trips: 0, stop_reason: None })
    }

    fn turn_limits(&self) -> Limits {
        let main = self.current_model();
        let spare = self.model.fallbacks.iter().filter(|model| **model != main).cloned();
        let models = std::iter::once(main.clone()).chain(spare).collect();
        Limits {
            models,
            max_turns: self.limits.max_turns,
            max_budget_usd: self.limits.max_budget_usd,
            max_parallel: if self.limits.max_parallel == 0 { 10 } else { self.limits.max_parallel },
            retry: RetryRules { policy: self.limits.retry, allows_one_piece: self.limits.allows_one_piece },
            asks_before_end: self.stop_event().is_some_and(|event| self.ctx.listeners(event).is_some()),
            max_objections: self.ctx.max_objections,
            shows_batches: self.is_told_to_hooks() && self.ctx.listeners(HookEvent::PostToolBatch).is_some(),
        }
    }

    /// Makes a turn's work safe on disk and tells how it went.
    fn finish(&mut self, end: TurnEnd) -> TurnReport {
        self.record_background();
        match &end.outcome {
            Outcome::ApiError(failure) => self.tell_hooks_of_failure(failure),
            Outcome::Halted(reason) => {
                self.run.tally.text.clear();
                self.tell(EngineEvent::Warning(format!("A hook ended the turn: {reason}")));
            }
            _ => {}
        }
        let has_answered = end.outcome == Outcome::Completed && end.round_trips > 0;
        self.settle();
        self.tell_warnings();
        let denials = self.ctx.state.get().permission.denials.clone();
        let identity = self.ctx.identity.get();
        let now = self.env.clock.monotonic();
        let totals = self.ctx.totals();
        let report = TurnReport {
            is_saved: !self.recorder.has_unsaved(),
            ..self.run.tally.report(end, denials, &identity, totals, self.fullness(), now)
        };
        self.tell(EngineEvent::TurnEnded(Box::new(report.clone())));
        self.consider_notes(None);
        self.consider_summary(None);
        if has_answered {
            self.consider_memories();
        }
        report
    }

    /// Marks where the conversation stands and what the session used, and makes all of it safe on disk.
    pub(crate) fn settle(&mut self) {
        let cost = self.ctx.cost_state().filter(|_| self.agent.is_none());
        self.recorder.settle(cost.as_ref());
    }

    /// Returns the conversation as the next request would send it.
    pub(crate) fn messages(&self) -> Vec<Message> {
        match &self.prelude {
            Prelude::Opening(opening) => self.recorder.messages(opening.as_ref().map(|it| it.block())),
            Prelude::Fork { messages, .. } => join_messages(messages, self.recorder.messages(None)),
        }
    }

    /// Returns the files that calls of this turn have changed.
    pub(crate) fn written(&self) -> &[PathEffect] {
        &self.run.tally.written
    }

    pub(crate) fn save_again(&mut self) {
        self.recorder.save_again();
        self.tell_warnings();
    }

    pub(crate) fn tell(&self, event: EngineEvent) {
        self.events.send(event);
    }

    pub(crate) fn tell_warnings(&mut self) {
        for warning in self.recorder.take_warnings() {
            self.tell(EngineEvent::Warning(warning));
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
