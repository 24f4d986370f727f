//! What hooks are asked by features beside turns: agents, the task list, worktrees, MCP servers, commands that expand.
//!
//! One function an event; whoever builds the feature calls it at its place and does what the answer says. Where nobody
//! listens, each of them answers at once that there is nothing to say. What nobody waits for (`WorktreeRemove`,
//! `Notification`, ..) goes to [`super::TurnHooks::notify`].

use std::path::PathBuf;

use loci_core::entry::Attachment;
use loci_core::hooks::{HookConfig, TaskFields};
use loci_core::ids::AgentId;
use serde_json::Value;

use super::{HookFuture, HookMoment};

/// What is about to become of a task of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStep {
    /// It was put on the list; without leave it is taken off again.
    Created,
    /// It is about to be marked as done; without leave it is not.
    Completed,
}

/// A typed command that is about to become a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptExpansion {
    /// `slash_command`, or `mcp_prompt` for prompts of MCP servers.
    pub kind: &'static str,
    /// Its name, without the slash.
    pub command: String,
    /// What follows the name.
    pub arguments: String,
    /// Where it comes from: `userSettings`, `projectSettings`, `plugin`, ..
    pub source: String,
    /// What was typed.
    pub prompt: String,
}

/// Whether a command may become a prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpansionGate {
    /// Yes; these attachments are recorded behind the prompt.
    Go {
        /// What is added.
        attachments: Vec<Attachment>,
    },
    /// No; nothing is sent.
    Block {
        /// Why, for the user.
        reason: String,
    },
}

/// Lines of the model's text that are about to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownBatch {
    /// The turn.
    pub turn: String,
    /// The message, by an id that all its batches share.
    pub message: String,
    /// Counted from zero within the message.
    pub index: u64,
    /// Whether it is the message's last.
    pub is_final: bool,
    /// The lines.
    pub text: String,
}

/// What an MCP server asks the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ElicitationRequest {
    /// The server.
    pub server: String,
    /// The question.
    pub message: String,
    /// `form` or `url`.
    pub mode: Option<String>,
    /// The address to open.
    pub url: Option<String>,
    /// The server's id of the question.
    pub id: Option<String>,
    /// What the form asks for.
    pub schema: Option<Value>,
}

/// What an MCP server is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationReply {
    /// `accept`, `decline` or `cancel`.
    pub action: String,
    /// What was entered.
    pub content: Option<Value>,
}

/// Hooks that a skill or an agent brings along.
#[derive(Debug, Clone)]
pub struct ScopedHooks {
    /// The hooks; those of an agent have gone through [`HookConfig::into_agent_hooks`].
    pub config: HookConfig,
    /// The agent in whose conversation alone they count; none for those of a skill, which count everywhere.
    pub agent: Option<AgentId>,
}

/// Takes hooks that were brought along away again when it is dropped, unless they are to stay ([`Self::keep`]).
pub struct ScopedHooksGuard {
    remove: Option<Box<dyn FnOnce() + Send>>,
}

impl ScopedHooksGuard {
    pub(crate) fn new(remove: impl FnOnce() + Send + 'static) -> Self {
        Self { remove: Some(Box::new(remove)) }
    }

    /// Lets them count until the session ends, as those of a skill do.
    pub fn keep(mut self) {
        self.remove = None;
    }
}

impl Drop for ScopedHooksGuard {
    fn drop(&mut self) {
        if let Some(remove) = self.remove.take() {
            remove();
        }
    }
}

/// Whoever has a say in what features do. The user's hooks are the one implementation.
pub trait FeatureHooks: Send + Sync {
    /// `SubagentStart`: told before an agent's first prompt is recorded; returns what is recorded before that. The
    /// moment names the agent. Its end needs no call: a conversation that works for a call asks `SubagentStop` itself.
    fn subagent_begins(&self, moment: HookMoment) -> HookFuture<Vec<Attachment>>;

    /// `TaskCreated`, `TaskCompleted`: the error says why not, and is what the model is told.
    fn before_task(
        &self,
        step: TaskStep,
        task: TaskFields,
        moment: HookMoment,
    ) -> HookFuture<Result<(), String>>;

    /// `TeammateIdle`: what a teammate is told instead of going idle.
    fn before_idle(&self, teammate: String, team: String, moment: HookMoment) -> HookFuture<Option<String>>;

    /// `WorktreeCreate`: where a hook says that it made the worktree, or why it could not; none where no hook makes them, and git does.
    fn create_worktree(
        &self,
        name: String,
        moment: HookMoment,
    ) -> HookFuture<Option<Result<PathBuf, String>>>;

    /// `Elicitation`: an answer in the user's place, before they are asked.
    fn before_elicitation(
        &self,
        request: ElicitationRequest,
        moment: HookMoment,
    ) -> HookFuture<Option<ElicitationReply>>;

    /// `ElicitationResult`: what the server is told of the user's answer.
    fn after_elicitation(
        &self,
        request: ElicitationRequest,
        reply: ElicitationReply,
        moment: HookMoment,
    ) -> HookFuture<ElicitationReply>;

    /// `UserPromptExpansion`: asked before a typed command becomes a prompt.
    fn before_expansion(&self, expansion: PromptExpansion, moment: HookMoment) -> HookFuture<ExpansionGate>;

    /// `MessageDisplay`: what is shown in the place of a text; none for the text itself. A session without a screen asks
    /// for whole messages by itself; a front end with one asks for each batch of lines, and shows nothing before.
    fn before_display(&self, batch: ShownBatch, moment: HookMoment) -> HookFuture<Option<String>>;

    /// Returns how things stand in the main line, for callers outside of it.
    fn moment(&self) -> HookMoment;

    /// Lets hooks of a skill or an agent count from now on.
    fn add_scoped(&self, hooks: ScopedHooks) -> ScopedHooksGuard;
}

/// Calls tools of connected MCP servers, for handlers of type `mcp_tool`.
pub trait McpToolCaller: Send + Sync {
    /// Calls a tool and returns its text. The error says why there is none: the server is not connected, it has no such
    /// tool, or the tool failed. Dropping the future withdraws the call.
    fn call_tool(&self, server: &str, tool: &str, input: Value) -> HookFuture<Result<String, String>>;

    /// Returns who has brought a server: a scope of configuration, or `sdk` for the client; none where it is not known.
    fn server_source(&self, _server: &str) -> Option<&'static str> {
        None
    }
}
