//! Agents as tools see them: sent out, spoken to, listed. The engine runs them, behind [`AgentHost`].

pub(crate) mod agent;
pub(crate) mod list_agents;
pub(crate) mod send_message;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use loci_core::ids::AgentId;
use loci_core::permission::Mode;
use serde::Deserialize;
use serde_json::Value;

use crate::{HostFuture, ToolCall};

/// What the model asks of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct AgentRequest {
    /// What it is to do, in a few words.
    pub description: String,
    /// What it is to do.
    pub prompt: String,
    /// Its type; the general one without.
    pub subagent_type: Option<String>,
    /// The model, by alias or id.
    pub model: Option<String>,
    /// How hard it thinks.
    pub effort: Option<String>,
    /// Whether the conversation goes on without waiting for it.
    pub run_in_background: Option<bool>,
    /// What to call it.
    pub name: Option<String>,
    /// `worktree`, where it works in one of its own.
    pub isolation: Option<String>,
    /// The permission mode it is to work in.
    pub mode: Option<Mode>,
    /// The agent that goes on, where none is to begin.
    pub resume: Option<String>,
    /// The most round trips to the model.
    pub max_turns: Option<u32>,
}

/// What comes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentReply {
    /// The agent has answered.
    Finished(Box<FinishedAgent>),
    /// It works in the background.
    Launched(LaunchedAgent),
}

/// An agent that works in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchedAgent {
    /// Its id.
    pub id: AgentId,
    /// The model it asks.
    pub model: String,
    /// The file that what it says goes to.
    pub output: PathBuf,
    /// Whether a person moved it there.
    pub is_moved: bool,
    /// Whether it moved there by itself, because it took long.
    pub is_late: bool,
}

/// An agent that has answered.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedAgent {
    /// Its id.
    pub id: AgentId,
    /// Its type.
    pub kind: String,
    /// The model it asked.
    pub model: String,
    /// What it said last, fit to be read by another conversation.
    pub text: String,
    /// Why it is not done, if it is not.
    pub failure: Option<String>,
    /// How long it took.
    pub duration: Duration,
    /// Tokens of its last request and answer.
    pub total_tokens: u64,
    /// Calls of tools.
    pub tool_uses: u64,
    /// The usage of its last answer, as the transcript has it.
    pub usage: Value,
    /// What its calls were.
    pub stats: ToolStats,
    /// The worktree that it left changes in.
    pub worktree: Option<KeptWorktree>,
    /// Whether it can go on.
    pub is_resumable: bool,
}

/// A worktree that is kept because something in it is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptWorktree {
    /// Where it lies.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
}

/// How often an agent used what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolStats {
    /// Files read.
    pub reads: u64,
    /// Searches.
    pub searches: u64,
    /// Commands.
    pub commands: u64,
    /// Edits of files.
    pub edits: u64,
    /// Lines that came.
    pub lines_added: u64,
    /// Lines that went.
    pub lines_removed: u64,
    /// Anything else.
    pub others: u64,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageReceipt {
    /// The agent runs and hears of it before its next request.
    Queued {
        /// Its id.
        id: AgentId,
    },
    /// The agent goes on with it, in the background.
    Resumed(LaunchedAgent),
    /// The main conversation hears of it before its next request.
    ToMain,
}

/// An agent of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    /// Its id.
    pub id: AgentId,
    /// What it was called.
    pub name: Option<String>,
    /// Its type.
    pub kind: String,
    /// What it does.
    pub description: String,
    /// `running`, `completed`, `failed`, `killed` or `cut off`.
    pub status: String,
}

/// The engine as the tools of agents see it.
pub trait AgentHost: Send + Sync {
    /// Says why a request cannot be taken.
    fn check(&self, request: &AgentRequest) -> Result<(), String>;

    /// Sends an agent out; returns its answer, or at once where it works in the background.
    fn run<'a>(
        &'a self,
        request: AgentRequest,
        call: &'a ToolCall,
    ) -> HostFuture<'a, Result<AgentReply, String>>;

    /// Hands a message to an agent, by id or name; one that is done goes on with it.
    fn send<'a>(
        &'a self,
        to: &'a str,
        message: String,
        call: &'a ToolCall,
    ) -> HostFuture<'a, Result<MessageReceipt, String>>;

    /// Lists the agents of the session, oldest first.
    fn list(&self) -> Vec<AgentRow>;

    /// Returns the id of the agent that has this name.
    fn resolve(&self, name: &str) -> Option<String>;
}

/// What the main conversation is called where an agent speaks to it.
pub const MAIN: &str = "main";

/// What a tool says where no agents can be sent out.
pub(crate) const NO_AGENTS: &str = "No agents can be sent out from here.";
