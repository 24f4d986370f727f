//! What may be asked of a session: one table, a row for each request with the answer that belongs to it.
//!
//! A request is a value of its own type, and [`Ask`] says what its answer is; [`Request`] and [`Answer`] are all of them, for
//! carriers. In JSON a request is an object with one key, its method: `{"turn/interrupt":null}`,
//! `{"model/set":{"model":"opus"}}`; its answer has the same key.
//!
//! To add one: write its type into the file of its topic, and give it a row here. [`Reach`] says who may ask it.

mod agents;
mod files;
mod mcp;
mod permissions;
mod prompts;
mod session;
mod settings;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use agents::{MessageAgent, ReloadPlugins, ReloadSkills, StopTask};
pub use files::{AddDirectory, RewindFiles, SeedReadState};
pub use mcp::{McpCall, SetServerMode};
pub use permissions::{AnswerQuestion, ChangePermission, SetMode};
pub use prompts::{
    AskAside, CancelPrompt, ContinueTurn, Interrupt, MoveToBackground, PromptAccepted, PromptCancelled,
    PromptTiming, RunShell, SendPrompt, TakeBackQueue, Wake,
};
pub use session::{Close, LookAt, Notify, Quit, ReleaseSeat, Rename, TakeSeat};
pub use settings::{SetEffort, SetModel, SetThinking};

use crate::files::FilesRewound;
use crate::model::ModelChoice;
use crate::prompt::QueuedPrompt;
use crate::view::{Seat, SessionView};

/// A request, and what it is answered with.
pub trait Ask: Into<Request> {
    /// What it is answered with.
    type Answer;

    /// Takes the answer out of an envelope; gives back what belongs to another request.
    fn open(answer: Answer) -> Result<Self::Answer, Answer>;

    /// Puts an answer into its envelope.
    fn answer(answer: Self::Answer) -> Answer;
}

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Whoever may look on: nothing changes.
    Reads,
    /// Whoever may take part: the first who answers a question, stops a turn, gives a name.
    TakesPart,
    /// Whoever has the writer's seat, which the first of them takes.
    Writes,
}

/// Nothing more to say than that it was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident $method:literal $reach:ident -> $answer:ty;)*) => {
        /// Everything that may be asked of a session.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum Request {
            $($(#[$doc])* #[serde(rename = $method)] $name($name),)*
        }

        /// What is answered, each under the method of its request.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum Answer {
            $(#[doc = concat!("To `", $method, "`.")] #[serde(rename = $method)] $name(Box<$answer>),)*
        }

        impl Request {
            /// Every method, in the order of the table.
            pub const METHODS: &[&str] = &[$($method),*];

            /// Returns the request's method.
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $method,)*
                }
            }

            /// Says who may ask it.
            pub fn reach(&self) -> Reach {
                match self {
                    $(Self::$name(_) => Reach::$reach,)*
                }
            }
        }

        $(
            impl From<$name> for Request {
                fn from(request: $name) -> Self {
                    Self::$name(request)
                }
            }

            impl Ask for $name {
                type Answer = $answer;

                fn open(answer: Answer) -> Result<$answer, Answer> {
                    match answer {
                        Answer::$name(answer) => Ok(*answer),
                        other => Err(other),
                    }
                }

                fn answer(answer: $answer) -> Answer {
                    Answer::$name(Box::new(answer))
                }
            }
        )*
    };
}

requests! {
    /// Says something to the model: begins a turn, or waits for its time.
    SendPrompt "prompt/send" Writes -> PromptAccepted;
    /// Takes back a prompt that waits for its turn.
    CancelPrompt "prompt/cancel" Writes -> PromptCancelled;
    /// Takes back everything that was queued and the model has not heard yet.
    TakeBackQueue "prompt/take_back" Writes -> Vec<QueuedPrompt>;
    /// Stops the turn; asked twice, does not wait for what runs.
    Interrupt "turn/interrupt" TakesPart -> Done;
    /// Begins a turn with nothing new said.
    ContinueTurn "turn/continue" Writes -> Done;
    /// Begins a turn with words that no person wrote.
    Wake "turn/wake" Writes -> Done;
    /// Runs a command of the shell in the person's name.
    RunShell "turn/shell" Writes -> Done;
    /// Has calls of the turn at hand go on in the background.
    MoveToBackground "turn/background" Writes -> Done;
    /// Asks the model something beside the conversation; nothing of it is recorded.
    AskAside "turn/ask_aside" TakesPart -> String;
    /// Answers a question; the first answer counts.
    AnswerQuestion "question/answer" TakesPart -> Done;
    /// Says how the session stands.
    LookAt "session/view" Reads -> SessionView;
    /// Gives the session a name to find it by.
    Rename "session/rename" TakesPart -> Done;
    /// Tells hooks that the person is notified of something.
    Notify "session/notify" Writes -> Done;
    /// Nothing more will be asked: the session ends when what was asked is done.
    Close "session/close" Writes -> Done;
    /// Stops the turn, drops what waits, and ends the session.
    Quit "session/quit" Writes -> Done;
    /// Takes the writer's seat.
    TakeSeat "seat/take" TakesPart -> Seat;
    /// Gives the writer's seat up.
    ReleaseSeat "seat/release" TakesPart -> Seat;
    /// Asks another model from now on.
    SetModel "model/set" Writes -> ModelChoice;
    /// Asks with another effort.
    SetEffort "model/set_effort" Writes -> Done;
    /// Lets the model think more or less, or shows its thinking in another form.
    SetThinking "model/set_thinking" Writes -> Done;
    /// Changes the permission mode.
    SetMode "permission/set_mode" Writes -> Done;
    /// Changes what calls are judged by.
    ChangePermission "permission/change" Writes -> Done;
    /// Looks after MCP servers.
    McpCall "mcp/call" Writes -> Value;
    /// Has the calls of one server asked about.
    SetServerMode "mcp/set_mode" Writes -> Done;
    /// Lets the session work in another directory, too.
    AddDirectory "files/add_directory" Writes -> std::path::PathBuf;
    /// Brings files back to what they were before a prompt.
    RewindFiles "files/rewind" Writes -> FilesRewound;
    /// Takes a file to be read by the model as it is.
    SeedReadState "files/seed_read_state" Writes -> Done;
    /// Says something to an agent in the person's name.
    MessageAgent "agents/message" Writes -> String;
    /// Stops work beside the conversation.
    StopTask "tasks/stop" TakesPart -> Done;
    /// Looks at the files of skills now.
    ReloadSkills "skills/reload" Writes -> Done;
    /// Reads plugins anew.
    ReloadPlugins "plugins/reload" Writes -> String;
}
