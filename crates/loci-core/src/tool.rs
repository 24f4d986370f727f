//! What a tool is to the rest of the house: its descriptor, the effects of a call, and what came of it.

mod asked_change;
mod facts;
mod kind;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::Attachment;
use crate::message::Block;

pub use asked_change::{AskedChange, AskedText};
pub use facts::{MainArgument, ToolFactTable, ToolFacts};
pub use kind::{KnownTool, ToolKind};

/// What the model and the permission engine are told about a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDescriptor {
    /// The canonical name, used in rules, hooks and transcripts.
    pub name: String,
    /// Other names the model may use.
    pub aliases: &'static [&'static str],
    /// The text shown to the model.
    pub description: String,
    /// JSON Schema of the input.
    pub input_schema: Value,
    /// Results longer than this are spilled to disk and replaced by a preview; `None` never spills.
    pub max_result_chars: Option<usize>,
    /// What others act on, whatever a call's input is.
    pub facts: ToolFacts,
}

/// Stands for a part of a command that is only known when the command runs.
pub const HOLE: char = '\0';

/// Everything a call would do, as far as it can be told without doing it. The permission engine judges this,
/// never the tool's name alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallEffects {
    /// Shell commands that would run, outermost first.
    pub commands: Vec<CommandEffect>,
    /// Files and directories that would be read, absolute.
    pub reads: Vec<PathEffect>,
    /// Files that would be created, changed or removed, absolute.
    pub writes: Vec<PathEffect>,
    /// Those of the writes that the shell makes itself, by redirection; no rule for a command covers them.
    pub redirects: Vec<PathEffect>,
    /// What would be removed.
    pub removals: Vec<Removal>,
    /// Hosts that would be contacted.
    pub hosts: Vec<String>,
    /// Whether what is sent to them may hold more than the name of what is wanted, such as a long query.
    pub carries_data: bool,
    /// Reads and writes of paths that are only known when the command runs.
    pub unclear: Vec<Unclear>,
    /// What could not be understood; anything here means the call is not known to be harmless.
    pub unknown: Vec<String>,
    /// What a person has to say to it, whatever rules and modes allow.
    pub interaction: Option<Interaction>,
    /// The MCP server that answers it, by the name that it is configured with; rules for a server go by that.
    pub server: Option<String>,
    /// Why whoever offers the tool does not want it to be called at all, where that is so.
    pub forbidden: Option<String>,
    /// Rules for later calls that it would let run unasked.
    pub grants: Vec<String>,
    /// Where the session itself would move to, outside the directory that is there for its worktrees.
    pub moves_session: Option<PathBuf>,
    /// Where its commands would run.
    pub containment: Containment,
}

/// Where the commands of a call run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Containment {
    /// Nobody has said; a session with a sandbox runs them inside.
    #[default]
    Unsaid,
    /// In the sandbox.
    Inside,
    /// Outside the sandbox that the session has, and why.
    Outside(String),
}

/// What a call says of itself that asks to run outside the sandbox.
pub const ASKS_OUTSIDE: &str = "asks to run outside the sandbox";

/// What a call needs of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interaction {
    /// Answers to its questions.
    Answers,
    /// A yes to a plan.
    PlanApproval,
    /// A yes to each call, as whoever offers the tool wants it.
    Confirmation,
}

impl CallEffects {
    /// Returns the effects of reading one path.
    pub fn read(path: PathEffect) -> Self {
        Self { reads: vec![path], ..Self::default() }
    }

    /// Returns the effects of writing one path.
    pub fn write(path: PathEffect) -> Self {
        Self { writes: vec![path], ..Self::default() }
    }

    /// Returns the effects of a call that does nothing but turn to a person.
    pub fn interaction(interaction: Interaction) -> Self {
        Self { interaction: Some(interaction), ..Self::default() }
    }

    /// Returns the effects of a call that moves the session somewhere else.
    pub fn session_move(to: PathBuf) -> Self {
        Self { moves_session: Some(to), ..Self::default() }
    }

    /// Returns the effects of something nobody can tell.
    pub fn unknown(what: impl Into<String>) -> Self {
        Self { unknown: vec![what.into()], ..Self::default() }
    }

    /// Returns true when nothing but reading would happen, as far as is known.
    pub fn is_read_only(&self) -> bool {
        self.writes.is_empty()
            && self.hosts.is_empty()
            && self.unclear.is_empty()
            && self.unknown.is_empty()
            && self.removals.is_empty()
            && self.interaction.is_none()
            && self.grants.is_empty()
            && self.moves_session.is_none()
            && self.commands.iter().all(|command| command.is_read_only)
    }
}

/// A path that is only known when the command runs, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    /// It would be read.
    Read(String),
    /// It would be written.
    Write(String),
    /// The shell would write it. Where that is has been worked out from the line and stands among the writes, but it is not
    /// written out: the shell moves before, or puts the path together.
    Redirect(String),
}

impl Unclear {
    /// Returns the path as written.
    pub fn text(&self) -> &str {
        match self {
            Self::Read(text) | Self::Write(text) | Self::Redirect(text) => text,
        }
    }

    /// Tells whether nobody knows the path.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::Read(_) | Self::Write(_) => true,
            Self::Redirect(_) => false,
        }
    }
}

/// Something a command would remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// As written.
    pub text: String,
    /// What goes away, or the directory that is emptied; `None` when only the run will tell.
    pub target: Option<PathEffect>,
}

/// News of a running call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolProgress {
    /// More output of a command, as text.
    Output(String),
    /// A count of something found or done.
    Count(u64),
    /// It runs in a terminal of the editor, which shows its output.
    Terminal(String),
}

/// A path in its two spellings: as asked for, and where it really leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathEffect {
    /// Absolute and lexically normal, symlinks not followed.
    pub requested: PathBuf,
    /// With symlinks resolved as far as the path exists.
    pub real: PathBuf,
}

impl PathEffect {
    /// A path without symlinks.
    pub fn plain(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { requested: path.clone(), real: path }
    }
}

/// One simple command of a shell line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEffect {
    /// The command as text.
    pub text: String,
    /// Whether it is known to change nothing.
    pub is_read_only: bool,
    /// Whether all it does is change the files that are among the writes.
    pub is_edit: bool,
    /// Whether what it runs is only known when it runs: the program itself, or the code a shell is given.
    pub runs_unknown: bool,
    /// What a rule must match to let it run.
    pub cover: Cover,
    /// Every way to read it: behind wrappers and assignments, inside strings that are run as code, by the
    /// program's bare name. A rule that restricts is compared with each; unknown parts are [`HOLE`]s.
    pub readings: Vec<String>,
}

impl CommandEffect {
    /// A command that is what it says, and no more is known of it.
    pub fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            cover: Cover::Pattern(text.clone()),
            readings: vec![text.clone()],
            is_read_only: false,
            is_edit: false,
            runs_unknown: false,
            text,
        }
    }

    /// Returns true when it may run code that is only known when it runs, by any way to read it.
    pub fn could_be_anything(&self) -> bool {
        self.readings.iter().any(|reading| reading.starts_with(HOLE))
    }
}

/// What kind of rule lets a command run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cover {
    /// One that matches this text.
    Pattern(String),
    /// One that matches this text and spells its first words out, wildcards coming after.
    Spelled {
        /// The text.
        text: String,
        /// How many words must be spelled out.
        n_words: usize,
    },
    /// One without wildcards that is this text.
    Exact(String),
    /// Only one for the whole line, or for every command.
    Never,
}

/// What came of a call, whether it worked or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// What goes back to the model.
    pub content: ToolContent,
    /// The `is_error` field of the result; most tools leave it out on success.
    pub is_error: Option<bool>,
    /// The tool's structured output, kept in the transcript as `toolUseResult` and shown to hooks.
    pub structured: Value,
    /// Context to add behind the result (files of instructions met on the way, and the like).
    pub attachments: Vec<ToolAttachment>,
}

/// The visible part of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolContent {
    /// Plain text.
    Text(String),
    /// Text and pictures.
    Blocks(Vec<Block>),
}

impl ToolContent {
    /// Returns the wire form: a string or a list of blocks.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Blocks(blocks) => Value::from_iter(blocks.iter().map(Block::to_value)),
        }
    }

    /// Returns how many characters of text it holds.
    pub fn text_chars(&self) -> usize {
        match self {
            Self::Text(text) => text.chars().count(),
            Self::Blocks(blocks) => blocks.iter().filter_map(Block::text).map(|t| t.chars().count()).sum(),
        }
    }
}

/// An attachment a tool wants to add to the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAttachment {
    /// What it is.
    pub attachment: Attachment,
}

impl ToolOutcome {
    /// A call that worked.
    pub fn text(text: impl Into<String>, structured: Value) -> Self {
        Self { content: ToolContent::Text(text.into()), is_error: None, structured, attachments: Vec::new() }
    }

    /// A call that worked and answered with blocks.
    pub fn blocks(blocks: Vec<Block>, structured: Value) -> Self {
        Self { content: ToolContent::Blocks(blocks), is_error: None, structured, attachments: Vec::new() }
    }

    /// A call that failed while running: the text goes to the model as it is.
    pub fn error(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            structured: Value::from(format!("Error: {message}")),
            content: ToolContent::Text(message),
            is_error: Some(true),
            attachments: Vec::new(),
        }
    }

    /// A call the tool refused before doing anything: the text is wrapped as the format has it.
    pub fn refusal(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            structured: Value::from(format!("Error: {message}")),
            content: ToolContent::Text(format!("<tool_use_error>{message}</tool_use_error>")),
            is_error: Some(true),
            attachments: Vec::new(),
        }
    }

    /// Input that does not fit the tool's schema.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            structured: Value::from(format!("InputValidationError: {message}")),
            content: ToolContent::Text(format!(
                "<tool_use_error>InputValidationError: {message}</tool_use_error>"
            )),
            is_error: Some(true),
            attachments: Vec::new(),
        }
    }

    /// Returns true when the call failed.
    pub fn is_failure(&self) -> bool {
        self.is_error == Some(true)
    }
}
