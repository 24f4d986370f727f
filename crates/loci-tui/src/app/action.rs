//! What happens to the application, and what it wants done about it.

use loci_app::start::{StartAnswer, StartQuestion};
use loci_core::permission::Mode;
use loci_engine::{Command, Prompt, RunnerEvent};

use crate::block::{Block, FileDiff};
use crate::key::InputEvent;

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
    },
    /// What a call would change in a file.
    Preview {
        /// The engine's id of the question.
        question: String,
        /// The change.
        diff: FileDiff,
    },
    /// What a command printed, as blocks.
    Output(Vec<Block>),
}

/// What the interface should know about a session that has begun.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// Its id.
    pub id: String,
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
}

/// What the application wants done.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Tell the session.
    Send(Command),
    /// Say something to the model while it works.
    Queue(Prompt),
    /// Go on with the start.
    Answer(StartAnswer),
    /// Ask for an API key.
    AskForKey,
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
    /// Leave.
    Exit(ExitReason),
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
