//! What front ends hear of a session: news, in the order in which they happened.
//!
//! An answer is never an event: who asks gets it by itself ([`crate::Ask`]). In JSON an event is an object with one key, its
//! name, so that blocks and entries inside keep their own bytes.

mod hook_run;
mod turn;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_core::background_task::TaskNews;
use loci_core::entry::Entry;
use loci_core::ids::{AgentId, EntryId, SessionId, ToolUseId};
use loci_core::permission::Mode;
use loci_core::sandbox_status::SandboxStatus;
use loci_core::serde_form::{millis, opt_millis};
use loci_core::stream::{Failure, StreamEvent};
use loci_core::task_list::Task;
use loci_core::tool::ToolProgress;
use loci_core::window::Fullness;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use hook_run::{HookRunEnded, HookRunProgress, HookRunStarted};
pub use turn::{AssistantBlock, Interruption, Outcome, TurnReport, TurnStart, UserMessage};

use crate::goal::{Goal, GoalVerdict};
use crate::prompt::ShellOutput;
use crate::question::Question;
use crate::slash_command::CommandRegistry;
use crate::view::WaitingPrompt;

/// News of a session. What concerns an agent's conversation comes wrapped in [`Event::Agent`]; everything else is the main
/// line's, or the session's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A session goes on; the first event of one that does.
    Resumed(ResumedHistory),
    /// News of an agent's conversation.
    Agent {
        /// Whose.
        agent: AgentRef,
        /// What.
        event: Box<Event>,
    },
    /// Work beside a conversation begins, gets on, moves to the background, ends: commands, agents, whatever there is.
    Task(TaskNews),
    /// No agent was sent out, though one was asked for: a limit is reached.
    AgentRefused(AgentLimit),
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
    /// A request goes out.
    Requesting,
    /// The model says something; the first of a response says how long that took.
    Stream {
        /// What.
        event: StreamEvent,
        /// From request to first event, with the first.
        #[serde(rename = "first_after_ms", with = "opt_millis", default)]
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
        #[serde(rename = "delay_ms", with = "millis")]
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
    /// May this call run? Answer with `question/answer`.
    QuestionAsked(Question),
    /// A call was refused without anybody being asked.
    PermissionDenied {
        /// The tool.
        tool: String,
        /// The call.
        call: ToolUseId,
        /// Why, in one word.
        reason_kind: Cow<'static, str>,
        /// What the model is told.
        message: String,
    },
    /// The question is withdrawn.
    QuestionWithdrawn {
        /// The question's id.
        question: String,
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
    /// A command of the person runs; what it prints is its [`Event::Progress`].
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
    /// Something the user should know, with what to do next.
    Warning(String),
    /// The turn is over.
    TurnEnded(Box<TurnReport>),
    /// A prompt was taken and waits for its time.
    PromptQueued(WaitingPrompt),
    /// A prompt that waited was taken back.
    PromptDropped {
        /// Its id.
        id: EntryId,
    },
    /// A question was answered: whoever shows it takes it away.
    QuestionAnswered {
        /// The question's id.
        question: String,
        /// By whom, as they call themselves.
        by: String,
    },
    /// Somebody else writes now, or nobody.
    SeatChanged {
        /// Who, as they call themselves.
        writer: Option<String>,
    },
    /// The session has another name.
    Titled(String),
    /// Another session takes the place of this one: what follows is its news.
    Renewed(SessionId),
    /// The session that was to take the place of this one cannot begin; nothing more will be asked.
    RenewalFailed(String),
    /// The session is over; nothing follows.
    Ended(SessionOver),
}

/// How a session ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOver {
    /// What troubled it, for people.
    pub troubles: Vec<String>,
    /// Whether it failed, or lines of its transcript were lost.
    pub has_failed: bool,
}

/// An agent that works beside the main line of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRef {
    /// Its id, as its transcript has it.
    pub id: AgentId,
    /// Its type, such as `memory-extraction`.
    pub kind: String,
    /// The call that it works for, if it is one.
    pub parent: Option<ToolUseId>,
    /// What it was sent out for, in a few words.
    pub description: String,
    /// How many conversations stand above it; the main line is the first.
    pub depth: u32,
}

impl AgentRef {
    /// Names it for people who have several: by its type and what it was sent out for.
    pub fn label(&self) -> String {
        match self.description.trim() {
            "" => self.kind.clone(),
            description => format!("{} ({description})", self.kind),
        }
    }
}

/// A limit for which no agent is sent out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentLimit {
    /// Too many conversations stand above.
    Depth,
    /// The budget of the run is spent.
    Budget,
}

/// What was said before a session was resumed, as far as the model still sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResumedHistory {
    /// The entries of the path, oldest first.
    pub entries: Vec<Arc<Entry>>,
    /// Work beside the conversation that ended with the process before.
    pub lost: Vec<LostTask>,
}

impl PartialEq for ResumedHistory {
    fn eq(&self, other: &Self) -> bool {
        self.lost == other.lost
            && self
                .entries
                .iter()
                .map(|entry| entry.line())
                .eq(other.entries.iter().map(|entry| entry.line()))
    }
}

/// Work of an earlier process that nobody was told the end of, for clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostTask {
    /// Its id.
    pub id: String,
    /// What it was to do, for people.
    pub what: String,
    /// What it had answered, where it is an agent that had.
    pub answer: Option<String>,
}

/// What was said by a command, as front ends show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalCommandOutput {
    /// Its name.
    pub name: String,
    /// What it was given.
    pub argument: Option<String>,
    /// What was said, as Markdown.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
    /// Whether what was typed stands in the conversation already.
    pub has_prompt: bool,
    /// Whether there is no such command here: what was said is what to do instead.
    pub is_unavailable: bool,
}
