//! What front ends hear of a session.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_context::Fullness;
use loci_core::ids::{EntryId, ToolUseId};
use loci_core::permission::Mode;
use loci_core::stream::{Failure, StreamEvent};
use loci_core::task_list::Task;
use loci_sandbox::SandboxStatus;
use loci_tools::{TaskNews, ToolProgress};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

pub use loci_protocol::event::{
    AgentLimit, AgentRef, AssistantBlock, HookRunEnded, HookRunProgress, HookRunStarted, ResumedHistory,
    TurnReport, TurnStart, UserMessage,
};
pub use loci_protocol::files::FilesRewound;
pub use loci_protocol::model::ModelChoice;
pub use loci_protocol::prompt::ShellOutput;
pub use loci_protocol::question::{Question, QuestionKind, ToolServer};

use crate::command::QueuedPrompt;
use crate::extensions::local_command::LocalCommandOutput;
use crate::extensions::slash_command::CommandRegistry;
use crate::session::goal::{Goal, GoalVerdict};
use crate::snapshot::SessionSnapshot;

/// News of a session, in the order it happened. What concerns an agent's conversation comes wrapped in
/// [`EngineEvent::Agent`]; everything else is the main line's, or the session's.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineEvent {
    /// A session goes on; the first event of one that does.
    Resumed(ResumedHistory),
    /// News of an agent's conversation.
    Agent {
        /// Whose.
        agent: AgentRef,
        /// What.
        event: Box<EngineEvent>,
    },
    /// Work beside a conversation begins, gets on, moves to the background, ends: commands, agents, whatever there is.
    Task(TaskNews),
    /// What a task was to be stopped for is done; the answer to [`crate::Command::StopTask`].
    StopAnswered {
        /// The request's id.
        request: String,
    },
    /// No agent was sent out, though one was asked for: a limit is reached.
    AgentRefused(AgentLimit),
    /// An agent was spoken to, or why not; the answer to [`crate::Command::MessageAgent`].
    AgentMessaged {
        /// The request's id.
        request: String,
        /// What becomes of it, for people.
        outcome: Result<String, String>,
    },
    /// The goal of the session was looked at before a turn ended, or could not be.
    GoalChecked {
        /// The goal as it is now.
        goal: Goal,
        /// What is said of it.
        verdict: GoalVerdict,
        /// Why.
        reason: String,
    },
    /// Another goal is worked towards, or none any more.
    GoalChanged(Option<Goal>),
    /// A turn begins.
    TurnStarted(TurnStart),
    /// A prompt was recorded.
    PromptRecorded {
        /// Its entry.
        entry: EntryId,
        /// The message object.
        message: Value,
        /// When.
        timestamp: String,
        /// What was attached to it, in a few words each.
        attached: Vec<String>,
    },
    /// A prompt that was queued has been taken up: the model hears it next.
    Dequeued {
        /// Its id.
        id: String,
        /// What it says.
        text: String,
        /// Whether the turn at hand goes on with it; else a turn of its own begins.
        is_injected: bool,
        /// What was attached to it, in a few words each, where the turn at hand goes on with it.
        attached: Vec<String>,
    },
    /// What was queued is taken back; the answer to [`crate::Command::TakeBackQueue`].
    QueueTakenBack(Vec<QueuedPrompt>),
    /// A request goes out.
    Requesting,
    /// The model says something; the first of a response says how long that took.
    Stream {
        /// What.
        event: StreamEvent,
        /// From request to first event, with the first.
        first_after: Option<Duration>,
    },
    /// A block is complete.
    Assistant(AssistantBlock),
    /// Something was said in the user's name: a tool result, an interruption.
    User(UserMessage),
    /// A failed request will be repeated.
    Retry {
        /// Counted from one.
        attempt: u32,
        /// How many there may be.
        max_retries: u32,
        /// How long from now.
        delay: Duration,
        /// What failed.
        failure: Failure,
    },
    /// Another model takes over for this turn.
    Fallback {
        /// The model that failed.
        from: String,
        /// The one that takes over.
        to: String,
        /// What failed.
        failure: Failure,
    },
    /// Nothing more will be asked of the model; what is done beside the conversation may go on.
    TurnsOver {
        /// The permission mode at the end.
        mode: Mode,
    },
    /// Old results of calls are sent as a short marker from now on; the transcript keeps them.
    ResultsCleared {
        /// How many results.
        n_results: usize,
        /// About how many tokens that frees.
        freed_tokens: u64,
    },
    /// The conversation is being made shorter.
    Compacting,
    /// The conversation begins with a summary now.
    Compacted {
        /// What the transcript says about it.
        metadata: Value,
    },
    /// The compaction is over.
    CompactionEnded {
        /// Why it did not work, if it did not.
        failure: Option<String>,
    },
    /// The context has come to another level.
    Context(Fullness),
    /// May this call run? Answer with [`crate::Command::Answer`].
    QuestionAsked(Question),
    /// A call was refused without anybody being asked.
    PermissionDenied {
        /// The tool.
        tool: String,
        /// The call.
        call: ToolUseId,
        /// Why, in one word.
        reason_kind: &'static str,
        /// What the model is told.
        message: String,
    },
    /// The question is withdrawn.
    QuestionWithdrawn {
        /// The question's id.
        question: String,
    },
    /// Files went back, or would, or cannot; the answer to [`crate::Command::RewindFiles`].
    FilesRewound {
        /// The request's id.
        request: String,
        /// What came of it.
        outcome: Result<FilesRewound, String>,
    },
    /// A directory belongs to the session now, or cannot; the answer to [`crate::Command::AddDirectory`].
    DirectoryAdded {
        /// The request's id.
        request: String,
        /// The directory as the rules have it, or why not.
        outcome: Result<PathBuf, String>,
    },
    /// What the model says to a question beside the conversation, or why it says nothing; the answer to
    /// [`crate::Command::AskOnTheSide`].
    SideAnswered {
        /// The request's id.
        request: String,
        /// What came of it.
        outcome: Result<String, String>,
    },
    /// What came of a wish about MCP servers; the answer to [`crate::Command::Mcp`].
    McpAnswered {
        /// The request's id.
        request: String,
        /// What came of it.
        outcome: Result<Option<Value>, String>,
    },
    /// How the session stands; the answer to [`crate::Command::Snapshot`].
    Snapshot {
        /// The request's id.
        request: String,
        /// How.
        snapshot: Arc<SessionSnapshot>,
    },
    /// A command that needs no model has been carried out.
    LocalCommand(LocalCommandOutput),
    /// A call reports how it is getting on.
    Progress {
        /// Which.
        call: ToolUseId,
        /// What it says.
        progress: ToolProgress,
    },
    /// A command of the person runs; what it prints is its [`EngineEvent::Progress`].
    ShellStarted {
        /// An id to speak of it by.
        call: ToolUseId,
        /// The command.
        command: String,
    },
    /// A command of the person has ended, or goes on in the background.
    ShellEnded {
        /// Which.
        call: ToolUseId,
        /// What it printed.
        output: ShellOutput,
    },
    /// The task list is another now; all of it, as the conversation sees it.
    TasksChanged(Vec<Task>),
    /// The slash commands are others now, between two turns or during one: a server has told its prompts.
    CommandsChanged(Arc<CommandRegistry>),
    /// What a server had somebody do at a page is done, it says.
    ElicitationCompleted {
        /// The server.
        server: String,
        /// What it called the question.
        id: String,
    },
    /// The permission mode changed.
    ModeChanged(Mode),
    /// The model changed.
    ModelChanged(String),
    /// Another model is asked from now on, or why not; the answer to [`crate::Command::SetModel`].
    ModelAnswered {
        /// The request's id.
        request: String,
        /// What came of it.
        outcome: Result<ModelChoice, ModelRefusal>,
    },
    /// How the sandbox stands: at the start of a session that has one, and whenever a host was allowed.
    SandboxStatus(SandboxStatus),
    /// Settings changed; all that are in force now, variables by marks alone.
    SettingsChanged(Value),
    /// A hook is being run.
    HookStarted(HookRunStarted),
    /// A hook has printed something, and still runs.
    HookProgress(HookRunProgress),
    /// A hook has ended.
    HookEnded(HookRunEnded),
    /// A hook wants this sent to the terminal: titles, notifications and bells, and nothing else. A front end without a
    /// screen of its own leaves it.
    TerminalSequence(String),
    /// Lines were written to a transcript; told only where somebody asked for it.
    TranscriptLines {
        /// The file.
        file: PathBuf,
        /// The lines, in order.
        lines: Vec<String>,
    },
    /// A prompt that waited was taken back, or had begun already; the answer to [`crate::Command::CancelPrompt`].
    PromptCancelled {
        /// The request's id.
        request: String,
        /// Whether it was taken back.
        is_cancelled: bool,
    },
    /// Plugins were read anew, or could not be; the answer to [`crate::Command::ReloadPlugins`].
    PluginsReloaded {
        /// The request's id.
        request: String,
        /// What there is now and what changed, or why nothing did.
        outcome: Result<String, String>,
    },
    /// Something the user should know, with what to do next.
    Warning(String),
    /// The turn is over.
    TurnEnded(Box<TurnReport>),
}

/// Why another model is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ModelRefusal {
    /// In words.
    pub why: String,
    /// The model that stays, where a hook has refused the other.
    pub blocked_with: Option<String>,
}

impl ModelRefusal {
    pub(crate) fn new(why: String) -> Self {
        Self { why, blocked_with: None }
    }
}

/// Where a conversation's events go.
#[derive(Debug, Clone)]
pub(crate) struct EventSink {
    events: UnboundedSender<EngineEvent>,
    agent: Option<AgentRef>,
    is_silent: bool,
}

impl EventSink {
    /// Tells front ends of everything; what an agent does is told as its own.
    pub(crate) fn new(events: UnboundedSender<EngineEvent>, agent: Option<AgentRef>) -> Self {
        Self { events, agent, is_silent: false }
    }

    /// Tells nobody: the conversation concerns nobody but its owner.
    pub(crate) fn silent(events: UnboundedSender<EngineEvent>, agent: AgentRef) -> Self {
        Self { events, agent: Some(agent), is_silent: true }
    }

    /// Tells what concerns the conversation.
    pub(crate) fn send(&self, event: EngineEvent) {
        if self.is_silent {
            return;
        }
        let event = match self.agent.clone() {
            Some(agent) => EngineEvent::Agent { agent, event: Box::new(event) },
            None => event,
        };
        // Without a listener the session still runs to its end; the transcript has everything.
        drop(self.events.send(event));
    }
}
