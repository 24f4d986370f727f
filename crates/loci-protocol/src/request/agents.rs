//! Agents, tasks, skills and plugins.

use serde::{Deserialize, Serialize};

/// Says something to an agent, in the person's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageAgent {
    /// The agent, by id or name.
    pub agent: String,
    /// What is said.
    pub text: String,
}

/// Stops work beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopTask {
    /// Which.
    pub task: String,
}

/// Looks at the files of skills now, not only before the next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadSkills;

/// Reads plugins anew; the answer says what there is now and what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadPlugins;
