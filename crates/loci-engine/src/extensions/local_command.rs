//! Commands that are answered without the model: what is asked of whoever carries them out, and what comes of it.
//!
//! The engine does not know them. It hands the command and a [`SessionSnapshot`] to its [`LocalCommands`], which `loci-app`
//! makes, on a thread where reading and writing files disturbs nobody; then it makes the changes that were decided
//! ([`LocalEffect`]), records what was said, and tells it. So a command does the same whoever asks for it.

use std::path::PathBuf;
use std::sync::Arc;

use loci_core::hooks::HookConfig;
use loci_core::permission::Update;

pub use loci_protocol::event::LocalCommandOutput;

use crate::command::McpAction;
use crate::extensions::slash_command::CommandCall;
use crate::snapshot::SessionSnapshot;

/// Carries out commands that need no model.
pub trait LocalCommands: Send + Sync {
    /// Carries a command out. May block.
    fn run(&self, call: &CommandCall, session: &SessionSnapshot) -> LocalOutcome;

    /// Tells whether a command speaks of MCP servers, which are waited for then, as the first turn does.
    fn needs_servers(&self, call: &CommandCall) -> bool;

    /// Reads an earlier session that a prompt mentions (`@session:NAME`), by id or title. May block.
    fn read_session(&self, name: &str) -> Result<MentionedSession, String>;
}

/// A session that a prompt mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MentionedSession {
    /// Its id.
    pub id: String,
    /// Its transcript.
    pub file: PathBuf,
    /// What was said in it, as Markdown; the end of it, where that is long.
    pub text: String,
}

/// What came of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LocalOutcome {
    /// What people are told, as Markdown.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
    /// What is to change about the session, in order. One that fails ends the command.
    pub effects: Vec<LocalEffect>,
}

impl LocalOutcome {
    /// Says something.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Says why nothing was done.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, effects: Vec::new() }
    }

    /// Changes something about the session, too.
    #[must_use]
    pub fn with(mut self, effect: LocalEffect) -> Self {
        self.effects.push(effect);
        self
    }
}

/// A change of the running session that a command asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum LocalEffect {
    /// Ask another model; `None` goes back to the one chosen at the start.
    SetModel(Option<String>),
    /// Ask with another effort; `None` leaves it to the model.
    SetEffort(Option<String>),
    /// Compact at another size; `None` goes back to the model's window.
    SetCompactWindow(Option<u64>),
    /// Give the session a name.
    Rename(String),
    /// Let it work in another directory, too.
    AddDirectory(PathBuf),
    /// Change what calls are judged by.
    Permission(Update),
    /// Look after MCP servers.
    Mcp(McpAction),
    /// Read all skills anew, and say what changed.
    ReloadSkills,
    /// Say something to an agent, by id or name.
    MessageAgent {
        /// Which.
        agent: String,
        /// What.
        text: String,
    },
    /// Give a task to a fork of the conversation, in the background.
    Subtask(String),
    /// Stop work in the background, by id.
    StopTask(String),
    /// Work towards nothing any more.
    ClearGoal,
    /// Let these hooks count in the place of those of settings and plugins.
    SetHooks(NewHooks),
}

/// Hooks that take the place of others. Two are the same when they are one.
#[derive(Debug, Clone)]
pub struct NewHooks(pub Arc<HookConfig>);

impl PartialEq for NewHooks {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
