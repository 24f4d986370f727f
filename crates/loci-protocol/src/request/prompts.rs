//! Prompts and the turns that they begin.

use loci_core::ids::{EntryId, ToolUseId};
use serde::{Deserialize, Serialize};

use crate::prompt::{Prompt, ShellCommand};
use crate::side_task::SideTask;

/// Says something to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SendPrompt {
    /// What is said.
    pub prompt: Prompt,
    /// When the model hears it.
    #[serde(default)]
    pub timing: PromptTiming,
}

/// When a prompt that comes during a turn is heard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptTiming {
    /// In a turn of its own, when the turn at hand is over.
    #[default]
    AfterTurn,
    /// With the next results of calls.
    DuringTurn,
}

/// A prompt was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptAccepted {
    /// The id that its entry gets.
    pub id: EntryId,
    /// Whether it had been sent before, and nothing happens a second time.
    pub is_repeated: bool,
}

/// Takes back a prompt that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelPrompt {
    /// The prompt's id.
    pub prompt: EntryId,
}

/// What became of a prompt that was to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptCancelled {
    /// Whether it was; else it had begun.
    pub is_cancelled: bool,
}

/// Takes back everything that was queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeBackQueue;

/// Stops the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt;

/// Begins a turn with nothing new said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContinueTurn;

/// Begins a turn with words that no person wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// What the model is told.
    pub text: String,
}

/// Runs a command of the shell in the person's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunShell {
    /// The command.
    pub command: ShellCommand,
}

/// Has calls of the turn at hand go on in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveToBackground {
    /// Which; all that can, where none is named.
    #[serde(default)]
    pub call: Option<ToolUseId>,
}

/// Asks the model something beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskAside {
    /// What is asked.
    pub task: SideTask,
}
