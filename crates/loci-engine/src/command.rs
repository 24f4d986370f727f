//! What front ends ask of a session.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use loci_core::hooks::ModelSwitchFields;
use loci_core::ids::{EntryId, ToolUseId};
use loci_core::permission::{Mode, Update};
use loci_tools::Tool;

/// The answer to a permission question: a person's, or a hook's in their place.
pub use loci_core::hooks::PermissionReply as Answer;
pub use loci_protocol::files::DirectorySource;
pub use loci_protocol::mcp::McpAction;
pub use loci_protocol::prompt::{Prompt, QueuedPrompt, ShellCommand};
pub use loci_protocol::side_task::{SideExchange, SideTask};

/// A wish of the user, through whatever front end.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Begin a turn; during one, wait for its end.
    Prompt(Prompt),
    /// Say something while a turn is under way: the model hears it with the next results of its calls, or in a turn of
    /// its own when there are none. Between turns it begins one. Whoever has a say in prompts is asked, so with such
    /// hooks it always waits for a turn of its own.
    Queue(QueuedPrompt),
    /// Take back what was queued and the model has not heard yet; answered by an event.
    TakeBackQueue,
    /// Run a command of the shell in the person's name; during a turn, wait for its end.
    Shell(ShellCommand),
    /// Begin a turn with nothing new said: the model is asked about the conversation as it stands.
    GoOn,
    /// Stop the turn; said twice, do not wait for what runs.
    Interrupt,
    /// Answer a permission question.
    Answer {
        /// The question's id.
        question: String,
        /// The answer.
        answer: Answer,
    },
    /// Change the permission mode.
    SetMode(Mode),
    /// Nothing more will be asked: the session ends when what was asked is done. Open and later permission
    /// questions are denied; an interrupt still counts.
    Close,
    /// Nothing more will be asked, since another session takes this one's place: it ends when what was asked is
    /// done. Questions are asked as before.
    Leave {
        /// A name to find it by.
        title: Option<String>,
        /// Why, as hooks are told.
        reason: &'static str,
    },
    /// Stop the turn, drop the prompts that wait, and end the session; said twice, do not wait for what runs.
    Quit,
    /// Bring files back to what they were before a prompt; answered by an event.
    RewindFiles {
        /// An id for the answer.
        request: String,
        /// The prompt.
        prompt: EntryId,
        /// Only say what would happen.
        is_trial: bool,
    },
    /// Change the model; answered by an event where there is an id for the answer, else told only where it cannot be done.
    SetModel {
        /// An id for the answer.
        request: Option<String>,
        /// Which, by alias or id; `None` goes back to the one chosen at the start.
        model: Option<String>,
    },
    /// Hooks have said what they think of another model: it is asked from now on, or not. Nobody but the session itself says so.
    ModelSwitchDecided(Box<ModelSwitchDecision>),
    /// Begin a turn with words that no person wrote; during one, wait for its end.
    Wake {
        /// What the model is told.
        text: String,
    },
    /// Stop work beside the conversation; answered by an event, also where there is no such task.
    StopTask {
        /// An id for the answer.
        request: String,
        /// Which.
        task: String,
    },
    /// Say something to an agent, in the person's name: one that works hears it before its next step, one that is done goes
    /// on with it in the background; answered by an event.
    MessageAgent {
        /// An id for the answer.
        request: String,
        /// The agent, by id or name.
        agent: String,
        /// What is said.
        text: String,
    },
    /// Have calls of the turn at hand go on in the background: this one, or all that can.
    MoveToBackground {
        /// Which.
        call: Option<ToolUseId>,
    },
    /// Tell hooks that the user is notified of something. A front end with a screen says so when a question, or the end of a
    /// turn, has waited a while without a key being typed; elsewhere the session does by itself.
    Notify {
        /// `permission_prompt`, `idle_prompt`, `auth_success`, `elicitation_dialog`, ..
        kind: String,
        /// What the user is told.
        message: String,
        /// A title over it.
        title: Option<String>,
    },
    /// Let the session work in another directory, too; answered by an event.
    AddDirectory {
        /// An id for the answer.
        request: String,
        /// The directory: absolute, beginning with `~`, or seen from where the session stands.
        directory: PathBuf,
        /// Who wants it.
        source: DirectorySource,
    },
    /// Say how the session stands; answered by an event, also while a turn is under way.
    Snapshot {
        /// An id for the answer.
        request: String,
    },
    /// Take back a prompt that waits for its turn; answered by an event.
    CancelPrompt {
        /// An id for the answer.
        request: String,
        /// The prompt's own id.
        prompt: EntryId,
    },
    /// Look at the files of skills now, not only before the next turn.
    ReloadSkills,
    /// Read plugins anew, as the command of that name does; answered by an event.
    ReloadPlugins {
        /// An id for the answer.
        request: String,
    },
    /// Ask about the calls of an MCP server where the mode of the session would let them run; `None` takes that back.
    SetServerMode {
        /// The server.
        server: String,
        /// What its calls are judged in: `default` or `auto`.
        mode: Option<Mode>,
    },
    /// Take a file to be read by the model as it is, if it was last changed then.
    SeedReadState {
        /// The file: absolute, or seen from where the session stands.
        path: PathBuf,
        /// When it was changed, in milliseconds since 1970.
        modified_ms: u64,
    },
    /// Ask with another effort; `None` leaves it to the model.
    SetEffort(Option<String>),
    /// Show the model's thinking in another form; `None` leaves that to the server.
    SetThinkingDisplay(Option<String>),
    /// Let the model think with so many tokens at most; `None` leaves it to the model, zero switches it off.
    SetThinking(Option<u64>),
    /// Change what calls are judged by: for the session, or in a settings file, too. What cannot be changed is told.
    ChangePermission(Update),
    /// Bring tools and take tools away; the next request offers what is there then.
    ChangeTools(ToolChanges),
    /// Give the session a name to find it by.
    Rename {
        /// The name.
        title: String,
    },
    /// Ask the model beside the conversation: it sees what was said, has no tools, and nothing is recorded; answered by an
    /// event.
    AskOnTheSide {
        /// An id for the answer.
        request: String,
        /// What is asked.
        task: SideTask,
    },
    /// Look after MCP servers; answered by an event.
    Mcp {
        /// An id for the answer.
        request: String,
        /// What is wanted.
        action: McpAction,
    },
}

/// What hooks think of another model that somebody asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSwitchDecision {
    /// The id for the answer, where one is waited for.
    pub request: Option<String>,
    /// The model, as it was asked for.
    pub model: Option<String>,
    /// What it is about.
    pub switch: ModelSwitchFields,
    /// Why it may not be asked, if it may not.
    pub refusal: Option<String>,
}

impl Command {
    /// Returns what kind of command it is, in a word or two.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Prompt(_) => "prompt",
            Self::Queue(_) => "queue",
            Self::TakeBackQueue => "take back queue",
            Self::Shell(_) => "shell",
            Self::GoOn => "go on",
            Self::Interrupt => "interrupt",
            Self::Answer { .. } => "answer",
            Self::SetMode(_) => "set mode",
            Self::Close => "close",
            Self::Leave { .. } => "leave",
            Self::Quit => "quit",
            Self::RewindFiles { .. } => "rewind files",
            Self::SetModel { .. } => "set model",
            Self::ModelSwitchDecided(_) => "model switch decided",
            Self::Wake { .. } => "wake",
            Self::StopTask { .. } => "stop task",
            Self::MessageAgent { .. } => "message agent",
            Self::MoveToBackground { .. } => "move to background",
            Self::Notify { .. } => "notify",
            Self::AddDirectory { .. } => "add directory",
            Self::Snapshot { .. } => "snapshot",
            Self::CancelPrompt { .. } => "cancel prompt",
            Self::ReloadSkills => "reload skills",
            Self::ReloadPlugins { .. } => "reload plugins",
            Self::SetServerMode { .. } => "set server mode",
            Self::SeedReadState { .. } => "seed read state",
            Self::SetEffort(_) => "set effort",
            Self::SetThinkingDisplay(_) => "set thinking display",
            Self::SetThinking(_) => "set thinking",
            Self::ChangePermission(_) => "change permission",
            Self::ChangeTools(_) => "change tools",
            Self::Rename { .. } => "rename",
            Self::AskOnTheSide { .. } => "ask on the side",
            Self::Mcp { .. } => "mcp",
        }
    }
}

/// Tools that come and go while a session runs.
#[derive(Clone, Default)]
pub struct ToolChanges {
    /// Tools that are there from now on.
    pub added: Vec<Arc<dyn Tool>>,
    /// Names of tools that are gone.
    pub removed: Vec<String>,
}

impl fmt::Debug for ToolChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added: Vec<_> = self.added.iter().map(|tool| tool.descriptor().name.as_str()).collect();
        f.debug_struct("ToolChanges").field("added", &added).field("removed", &self.removed).finish()
    }
}

impl PartialEq for ToolChanges {
    fn eq(&self, other: &Self) -> bool {
        let same = |(ours, theirs): (&Arc<dyn Tool>, &Arc<dyn Tool>)| Arc::ptr_eq(ours, theirs);
        self.removed == other.removed
            && self.added.len() == other.added.len()
            && self.added.iter().zip(&other.added).all(same)
    }
}
