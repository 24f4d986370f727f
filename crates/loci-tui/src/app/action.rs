//! What happens to the application, and what it wants done about it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_app::interface::helper_command::{HelperCommand, HelperSandboxes};
use loci_app::interface::status_line::AgentRowsConfig;
use loci_app::sessions::picker::SessionChoice;
use loci_app::start::renewal::SwitchTarget;
use loci_app::start::{StartAnswer, StartQuestion};
use loci_core::ids::EntryId;
use loci_core::permission::Mode;
use loci_core::plugin::PluginTheme;
use loci_engine::{Command, CommandRegistry, Prompt, RunnerEvent, SessionSnapshot};
use loci_stdx::Vars;

use super::BackgroundRun;
use crate::block::{Block, FileDiff, NoticeLevel};
use crate::input::{
    Draft, FileAnswer, FileSource, HistoryNews, Mention, PastPrompt, PastedImage, PictureSource, TokenKind,
};
use crate::interface_settings::InterfaceSettings;
use crate::key::InputEvent;
use crate::panel::{PanelData, PanelRequest};
use crate::theme::ThemeFile;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// The terminal sent something.
    Input(InputEvent),
    /// News from outside the thread that draws.
    News(News),
    /// Time has passed.
    Tick,
    /// What the application showed has been drawn.
    Drawn,
}

/// News from outside the thread that draws.
#[derive(Debug)]
pub enum News {
    /// The session says something.
    Engine(Box<RunnerEvent>),
    /// Before there is a session, the person is asked something.
    Asked(StartQuestion),
    /// The session is there.
    Started(Box<SessionFacts>),
    /// The end of a session that goes on, before it is there.
    Tail {
        /// What was said last.
        blocks: Vec<Block>,
        /// The entries of it, oldest first.
        entries: Vec<EntryId>,
    },
    /// The session is only looked at: what was said in it.
    Viewing(Vec<Block>),
    /// There is no session, and why.
    StartFailed(String),
    /// The session has ended, with what troubled it.
    Ended {
        /// What should be told once the terminal is given back.
        troubles: Vec<String>,
        /// Whether it failed or lost lines of its transcript.
        has_failed: bool,
        /// What this process has cost, in US dollars.
        cost_usd: f64,
    },
    /// What a call would change in a file.
    Preview {
        /// The engine's id of the question.
        question: String,
        /// The change.
        diff: FileDiff,
    },
    /// The person's own key bindings, as their file has them: none where there is no file, or why it cannot be read.
    Keys(Result<Option<String>, String>),
    /// The person's own themes.
    Themes(Vec<ThemeFile>),
    /// The prompt comes back from the person's editor, or why not.
    Edited(Box<Result<Draft, String>>),
    /// A command of the shell that had the terminal has ended.
    RanOnTerminal {
        /// The command.
        command: String,
        /// Its code, none where a signal ended it; or why it did not begin.
        ended: Result<Option<i32>, String>,
    },
    /// Files were found.
    Files(FileAnswer),
    /// What else can be mentioned.
    Mentions(Vec<Mention>),
    /// The input history was read, or not.
    History(HistoryNews),
    /// A picture was read, or why not.
    Picture {
        /// The number of its chip.
        number: u32,
        /// The picture, or a sentence that says why there is none.
        read: Box<Result<PastedImage, String>>,
    },
    /// What a command printed, as blocks.
    Output(Vec<Block>),
    /// What the command of the status line printed, or why nothing.
    StatusLine(Result<String, String>),
    /// Another pull request, or none, belongs to the branch at hand.
    PullRequest(Option<serde_json::Value>),
    /// What the command for the rows of agents printed, or why nothing.
    AgentRows(Result<String, String>),
    /// The answer to something that a panel or a command asked for.
    PanelData(PanelData),
    /// The session that was chosen is ready; it begins when the one at hand has ended its turns.
    Switched(Box<SwitchedFacts>),
    /// The session that was chosen cannot be had, and why.
    SwitchFailed(String),
    /// An MCP server asks something: the request that waits for the answer, and the question as the headless protocol has it.
    Elicitation {
        /// The request.
        request: String,
        /// The question.
        payload: serde_json::Value,
    },
    /// Nobody waits for the answer to this request any more.
    RequestWithdrawn(String),
    /// Another process uses the session that was chosen.
    SessionInUse {
        /// What was chosen.
        target: SwitchTarget,
        /// What is known of that process.
        holder: String,
    },
}

/// What the interface should know about a session that takes another's place.
#[derive(Debug, Clone)]
pub struct SwitchedFacts {
    /// Its name, where it has one.
    pub title: Option<String>,
    /// The model that will be asked.
    pub model: String,
    /// What runs unasked.
    pub mode: Mode,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What was done on the way.
    pub notes: Vec<String>,
}

/// What the interface should know about a session that has begun.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// Its id.
    pub id: String,
    /// Its name, where it has one.
    pub title: Option<String>,
    /// The model that will be asked.
    pub model: String,
    /// What runs unasked.
    pub mode: Mode,
    /// Whether it may switch to running everything unasked.
    pub may_bypass: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// Whether it is kept on disk.
    pub is_persistent: bool,
    /// The slash commands it has.
    pub commands: Arc<CommandRegistry>,
    /// How long it may wait for its user before hooks hear of it.
    pub idle_notice: Duration,
    /// What settings say about the interface.
    pub interface: InterfaceSettings,
    /// The variables in force, those of settings among them.
    pub vars: Option<Vars>,
    /// After how long without a key a question of the model goes on, where a variable says so (`CLAUDE_AFK_TIMEOUT_MS`).
    pub answer_timeout: Option<Duration>,
    /// How long before that it is counted down, where a variable says so (`CLAUDE_AFK_COUNTDOWN_MS`).
    pub answer_countdown: Option<Duration>,
    /// What the agent that it runs as begins with.
    pub initial_prompt: Option<String>,
    /// The colour themes of its plugins.
    pub themes: Vec<PluginTheme>,
    /// Makes the sandboxes that commands of the interface ask for.
    pub helper_sandboxes: HelperSandboxes,
}

/// What a dialog or a panel wants done: by the interface itself, or by the world.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// By the interface.
    Ui(UiAction),
    /// By the world.
    Effect(Effect),
}

/// What the interface does itself, in the update in which it is asked for; the event loop never hears of it.
#[derive(Debug, PartialEq)]
pub enum UiAction {
    /// Say something to the model while it works.
    Queue(Prompt),
    /// Send a text as if it had been typed.
    Submit(String),
    /// Have the session carry a command out, without asking any more.
    RunInSession(String),
    /// Have a summary take the place of all that was said before a prompt.
    Compact {
        /// The prompt; it and what came after it stay as they are.
        keeps_from: String,
        /// What the summary is to pay attention to.
        focus: Option<String>,
    },
    /// Begin a new conversation with this plan, once the turn is over.
    BeginWithPlan(String),
    /// Bring a task of the background to the front, by id.
    BringToFront(String),
    /// Ask for an API key.
    AskForKey,
    /// Close the panel that is open.
    ClosePanel,
    /// Put a text into the prompt.
    SetPrompt(String),
    /// Put a text on the clipboard, and say so.
    CopyLines(String),
    /// Tell the person something, in the conversation.
    Notice(NoticeLevel, String),
    /// Tell the person something for a while, below the prompt.
    Flash(String),
    /// Note the name of the session.
    Titled(String),
    /// Show a theme, as settings call it, until it is chosen or left.
    PreviewTheme(Option<Option<String>>),
    /// Have a theme from now on; none is the terminal's own colours.
    ChooseTheme(Option<String>),
    /// Go on with a session that was chosen, from a message where one is given.
    Resume(Box<SessionChoice>, Option<String>),
    /// Leave the session for another, unless a turn is under way.
    Switch(SwitchTarget),
    /// No session was chosen.
    PickerClosed,
    /// Leave, and keep what is typed.
    Exit(ExitReason),
}

/// What the world must do: tell the session, write to the terminal, read a file. The event loop does it.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Tell the session.
    Send(Command),
    /// Answer a request that was put to whoever sits here.
    AnswerClient {
        /// The request.
        request: String,
        /// The answer.
        answer: serde_json::Value,
    },
    /// Go on with the start.
    Answer(StartAnswer),
    /// Open a page in a browser, where there is one.
    OpenPage(String),
    /// Keep an API key, and go on with the start.
    StoreKey(SecretText),
    /// Find out what a call would change.
    Preview {
        /// The engine's id of the question.
        question: String,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: serde_json::Value,
    },
    /// Keep a prompt in the input history.
    Remember(PastPrompt),
    /// Read the input history of all projects.
    LoadHistory,
    /// Find files for what stands at the caret.
    AskFiles {
        /// Where they come from.
        source: FileSource,
        /// What is being completed.
        kind: TokenKind,
        /// What is typed of it.
        query: String,
    },
    /// Ask what an argument of a command could be, which an MCP server knows.
    CompleteArgument {
        /// The command, without its `/`.
        command: String,
        /// What stands behind it.
        written: String,
    },
    /// Say what else than files can be mentioned now.
    ListMentions,
    /// Offer these beside the files.
    SetMentions(Vec<Mention>),
    /// Let the person edit the prompt in their own editor.
    EditDraft {
        /// The prompt.
        draft: Draft,
        /// The last answer, where it is to stand above it.
        answer: Option<String>,
    },
    /// Call a person who looks elsewhere.
    CallPerson(String),
    /// Draw everything anew, with all that was said lately.
    RepaintAll,
    /// Read a picture for the chip with this number.
    ReadPicture {
        /// The chip's number.
        number: u32,
        /// Where the picture is.
        source: PictureSource,
    },
    /// Write a sequence that a hook has for the terminal, as the engine let it pass.
    Write(String),
    /// Put a text on the clipboard.
    Copy(String),
    /// Give the shell the terminal until it comes back.
    Suspend,
    /// Draw everything anew.
    Repaint,
    /// Play the demo in the place of a session.
    PlayDemo,
    /// Find something out beside the thread that draws, for a panel or a command.
    AskPanel(PanelRequest),
    /// Show a text in the person's own editor; what becomes of it there is not looked at.
    ShowInEditor(String),
    /// Let the person edit a text in their own editor, for the panel that is open.
    EditText {
        /// What it is of.
        name: String,
        /// The text.
        text: String,
    },
    /// Let the person edit a file in their own editor.
    EditFile(PathBuf),
    /// Let the person edit their key bindings.
    EditKeyBindings,
    /// Let the person edit a theme of their own; one that is not there yet is begun.
    EditTheme {
        /// The name of its file.
        slug: String,
        /// What it is called where it is begun.
        name: String,
    },
    /// Leave the session for another.
    Switch(SwitchTarget),
    /// Ask which pull request the branch at hand has; anew, where something was pushed.
    AskPullRequest {
        /// Whether what is known counts no more.
        is_pushed: bool,
    },
    /// Run a command of the shell with the terminal.
    RunOnTerminal {
        /// The command.
        command: String,
        /// Where.
        cwd: PathBuf,
        /// Whether what it showed would be gone before it is read, so that Enter is waited for.
        waits: bool,
    },
    /// Run the command of the status line for a session that stands like this.
    RunStatusLine {
        /// The command.
        command: HelperCommand,
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// Run the command for the rows of agents at work.
    RunAgentRows {
        /// The command.
        config: AgentRowsConfig,
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// Leave, and go on in another directory.
    GoElsewhere(Elsewhere),
    /// Look whether the person's key bindings and themes are others now.
    ReadOwnFiles,
    /// Have the session go on without a terminal once this one is left.
    GoBackground(BackgroundRun),
    /// Leave.
    Exit(ExitReason),
}

/// Where it goes on once the interface is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The directory.
    pub cwd: PathBuf,
    /// The session's id; none where a new one begins.
    pub session: Option<String>,
    /// The message it goes on from, where that is not the last.
    pub at: Option<String>,
    /// Whether the session moves there from where it is.
    pub is_moved: bool,
}

/// Why the application is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// The person wants to.
    Asked,
    /// There is nothing to go on with.
    Failed,
    /// The process was told to end.
    Terminated,
    /// The terminal is gone.
    HungUp,
}

impl ExitReason {
    /// Returns the exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Asked => 0,
            Self::Failed => 1,
            Self::Terminated => 143,
            Self::HungUp => 129,
        }
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Returns the text, for whoever keeps it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SecretText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretText")
    }
}
