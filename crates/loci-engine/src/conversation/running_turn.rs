//! What a turn has under way, and what its tasks report to its inbox.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use loci_core::entry::Attachment;
use loci_core::hooks::ToolBatchCall;
use loci_core::ids::ToolUseId;
use loci_core::permission::Classified;
use loci_core::stream::{Ended, Failure, Started, StreamEvent};
use loci_core::tool::{CallEffects, ToolOutcome};
use loci_llm::RetryPolicy;
use loci_tools::AgentReply;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::expansion::ExpandedPrompt;
use super::forked_skill::{ForkedSkill, RunningFork};
use super::mentions::Mentioned;
use super::shell_command::RunningShell;
use super::tally::Tally;
use crate::command::{Answer, Prompt, ShellCommand};
use crate::extensions::skills::layer::UsedSkill;
use crate::extensions::slash_command::CommandCall;
use crate::extensions::{AfterCall, BatchGate, CallGate, CompactionGate, PromptGate};
use crate::tools::prepared_call::PreparedCall;
use crate::turn::{CompactionOutcome, CompactionRequest, Event, Limits, RetryRules, Turn};

/// What a turn has under way. Between turns it is that of the last one, which is over.
pub(super) struct RunningTurn {
    pub(super) turn: Turn,
    pub(super) messages: UnboundedReceiver<InboxMessage>,
    pub(super) tasks: TurnTasks,
    pub(super) opening: PromptOpening,
    pub(super) answer: ArrivingAnswer,
    pub(super) calls: TurnCalls,
    pub(super) tally: Tally,
    pub(super) has_interrupted: bool,
}

/// What the tasks of a turn report to, and what ends them.
pub(crate) struct TurnTasks {
    pub(super) inbox: UnboundedSender<InboxMessage>,
    /// Which request is the current one; what others report is of the past.
    pub(super) generation: u64,
    pub(super) request: CancellationToken,
    pub(super) calls: CancellationToken,
}

/// A prompt on its way into the transcript, with what makes it and what is run in its place.
#[derive(Default)]
pub(crate) struct PromptOpening {
    /// The prompt, until it is recorded.
    pub(super) prompt: Option<Prompt>,
    /// Whether it has its id already.
    pub(super) is_named: bool,
    /// Whether it has its id already.
    /// Whether a schedule said it.
    pub(super) is_scheduled: bool,
    /// The command that makes the prompt, until it has.
    pub(super) expansion: Option<CommandCall>,
    /// The skill that is given to an agent once its prompt is recorded; and while the agent is waited for.
    pub(super) forked_skill: Option<ForkedSkill>,
    pub(super) running_fork: Option<RunningFork>,
    /// The person's command of the shell, until it runs; and while it does.
    pub(super) shell_request: Option<ShellCommand>,
    pub(super) shell: Option<RunningShell>,
}

/// The answer to the request on the wire.
#[derive(Default)]
pub(crate) struct ArrivingAnswer {
    /// The model of the request.
    pub(super) model: String,
    /// The head of the response that is arriving.
    pub(super) started: Option<Started>,
    /// What its texts say so far.
    pub(super) text: String,
    /// What of it front ends are told once hooks have seen it whole, with how long the first of it took.
    pub(super) held: Vec<(StreamEvent, Option<Duration>)>,
}

/// The calls of the response at hand.
#[derive(Default)]
pub(crate) struct TurnCalls {
    pub(super) prepared: HashMap<ToolUseId, PreparedCall>,
    pub(super) running: HashMap<ToolUseId, RunningCall>,
    /// How many calls the response makes.
    pub(super) n_calls: usize,
    /// What their results take of the window so far.
    pub(super) result_tokens: u64,
    /// Texts of skills that calls have used, until the calls' results are recorded.
    pub(super) skill_texts: HashMap<ToolUseId, String>,
    /// What hooks want recorded behind the results of calls.
    pub(super) notes: HashMap<ToolUseId, Vec<Attachment>>,
    /// The calls, for hooks that want to see them together.
    pub(super) batch: Vec<ToolBatchCall>,
}

/// What is to be seen to when a running call is done.
pub(super) struct RunningCall {
    pub(super) tool: String,
    /// The file that it reads, if that may bring instructions with it.
    pub(super) reads: Option<PathBuf>,
    pub(super) effects: CallEffects,
    /// Has it go on in the background.
    pub(super) to_background: CancellationToken,
}

/// What tasks of a turn report; a request's events count only while it is the current one.
pub(crate) enum InboxMessage {
    Request(u64, RequestEvent),
    Summary(u64, Result<(String, Ended), Failure>),
    Gate(CompactionRequest, CompactionGate),
    Collapsed(CompactionRequest),
    CompactionOver(CompactionOutcome),
    CompactionHooksDone(CompactionOutcome, Vec<Attachment>),
    Expanded(Result<Box<ExpandedPrompt>, String>),
    Mentioned(Mentioned),
    /// What a prompt mentions that waits: its id, and that.
    QueueMentioned(String, Mentioned),
    /// A command of the person has ended.
    ShellDone(Box<ToolOutcome>),
    SkillUsed(Box<UsedSkill>),
    /// What came of a typed skill that was given to an agent.
    SkillForked(Box<Result<AgentReply, String>>),
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
    DenialTold(ToolUseId, Classified, Vec<Attachment>),
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
    pub(super) fn new(limits: Limits, now: Duration) -> Self {
        let (inbox, messages) = unbounded_channel();
        let tasks = TurnTasks {
            inbox,
            generation: 0,
            request: CancellationToken::new(),
            calls: CancellationToken::new(),
        };
        Self {
            turn: Turn::new(limits),
            messages,
            tasks,
            opening: PromptOpening::default(),
            answer: ArrivingAnswer::default(),
            calls: TurnCalls::default(),
            tally: Tally::begin(now),
            has_interrupted: false,
        }
    }

    /// Stands for the turn before the first one.
    pub(super) fn idle(now: Duration) -> Self {
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
                mends_calls: false,
                structured: None,
            },
            now,
        )
    }
}

impl TurnTasks {
    /// Puts something into the inbox.
    pub(super) fn post(&self, message: InboxMessage) {
        // The receiver lives as long as the turn does.
        drop(self.inbox.send(message));
    }
}
