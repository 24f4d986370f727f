//! Work beside a conversation, as others see it: commands and agents, at one moment and as news.

use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, ToolUseId};
use crate::serde_form::millis;

/// What a task is, whatever becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDescription {
    /// Its id: nine letters and digits, or an agent's.
    pub id: String,
    /// What kind of work it is.
    pub kind: TaskKind,
    /// The call that started it.
    pub tool_use_id: ToolUseId,
    /// The command line, or what an agent is to do.
    pub command: String,
    /// What the model said it does; may be empty.
    pub description: String,
    /// The file that collects its output.
    pub output: PathBuf,
}

/// A kind of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// A command.
    Shell,
    /// A command whose lines are told as they come.
    Monitor,
    /// An agent of this type.
    Agent(String),
    /// A call of an MCP server's tool.
    McpCall,
}

impl TaskKind {
    /// Returns the word of the protocol for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Shell => "local_bash",
            Self::Monitor => "monitor",
            Self::Agent(_) => "local_agent",
            Self::McpCall => "mcp_call",
        }
    }
}

/// How a task is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundStatus {
    /// It has not ended.
    Running,
    /// It was done; a command ended with exit code 0.
    Completed,
    /// Its command ended with another exit code.
    Failed(i32),
    /// It could not be done, for a reason given here.
    Broken(String),
    /// It was stopped, by request or for a reason given here.
    Killed(String),
}

impl BackgroundStatus {
    /// Returns the word of the protocol for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed(_) | Self::Broken(_) => "failed",
            Self::Killed(_) => "killed",
        }
    }

    /// Returns the exit code, if a command ended by itself.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Completed => Some(0),
            Self::Failed(code) => Some(*code),
            Self::Running | Self::Broken(_) | Self::Killed(_) => None,
        }
    }
}

/// What came of a task that has more to tell than its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReport {
    /// What an agent answered, fit to be read by another conversation.
    pub text: String,
    /// What it used.
    pub usage: TaskUsage,
}

/// What a task has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUsage {
    /// Tokens of its last request and answer.
    pub total_tokens: u64,
    /// Calls of tools.
    pub tool_uses: u64,
    /// Since it began.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
}

/// A task at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// What it is.
    pub about: TaskDescription,
    /// The agent that started it; none for the main conversation.
    pub owner: Option<AgentId>,
    /// How it is doing.
    pub status: BackgroundStatus,
    /// Whether its conversation went on without waiting for it.
    pub is_background: bool,
    /// What came of it, once it has ended.
    pub report: Option<TaskReport>,
}

impl BackgroundTask {
    /// Returns what people are told it does.
    pub fn label(&self) -> &str {
        if self.about.description.is_empty() { &self.about.command } else { &self.about.description }
    }

    /// Returns the type of the agent, if it is one.
    pub fn agent_type(&self) -> Option<&str> {
        match &self.about.kind {
            TaskKind::Agent(kind) => Some(kind),
            TaskKind::Shell | TaskKind::Monitor | TaskKind::McpCall => None,
        }
    }
}

impl Deref for BackgroundTask {
    type Target = TaskDescription;

    fn deref(&self) -> &TaskDescription {
        &self.about
    }
}

/// A step of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskNews {
    /// It has begun.
    Started(BackgroundTask),
    /// Its conversation no longer waits for it.
    Backgrounded(BackgroundTask),
    /// It is getting on.
    Progress {
        /// Which.
        task: BackgroundTask,
        /// With what.
        description: String,
        /// The tool it called last.
        last_tool: Option<String>,
        /// What it has used so far.
        usage: TaskUsage,
    },
    /// It has ended.
    Ended(BackgroundTask),
}
