//! What a client asks of a session before its first turn: the payload of `initialize`.
//!
//! A value without rules: a front end reads it from its protocol, composing takes from it what it can honour.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

/// What a client asks of a session before its first turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InitializeRequest {
    /// Hooks that the client wants to be called back for.
    pub hooks: Vec<ClientHook>,
    /// Names of MCP servers that run inside the client.
    pub sdk_mcp_servers: Vec<String>,
    /// What the client says of them, by name: how long calls may take, which tools are asked about.
    pub sdk_mcp_server_settings: Map<String, Value>,
    /// The schema that the answer must have.
    pub json_schema: Option<Value>,
    /// What replaces the system prompt; empty leaves a line of identity.
    pub system_prompt: Option<String>,
    /// What is added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether what differs between machines and days stays out of the system prompt.
    pub excludes_dynamic_sections: bool,
    /// Whether the system prompt is recorded, and sent as it was when the session goes on; none leaves it open.
    pub keeps_system_prompt: Option<bool>,
    /// Custom agents by name, each as it was written.
    pub agents: Map<String, Value>,
    /// The skills to be offered; none means no choice was made.
    pub skills: Option<Vec<String>>,
    /// What to call the session.
    pub title: Option<String>,
    /// Whether the client wants suggestions for the next prompt.
    pub wants_prompt_suggestions: bool,
    /// Whether the client wants to see what subagents say.
    pub forwards_subagent_text: bool,
    /// Whether the client wants summaries of what agents do.
    pub wants_agent_summaries: bool,
    /// What the model is told in plan mode.
    pub plan_mode_instructions: Option<String>,
    /// Other names for tools.
    pub tool_aliases: Map<String, Value>,
    /// Whether the client can stop each task by itself: an interrupt leaves those in the background alone then.
    pub can_stop_tasks: bool,
    /// Directories of plugins.
    pub plugin_dirs: Vec<PathBuf>,
    /// Those of them whose MCP servers are the client's own business.
    pub plugin_dirs_without_servers: Vec<PathBuf>,
    /// MCP servers by name, as configuration files have them.
    pub mcp_servers: Map<String, Value>,
    /// Fields that are not known, as they were written.
    pub unknown: Map<String, Value>,
}

/// Callbacks of the client for one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHook {
    /// The event, in the protocol's word.
    pub event: String,
    /// What it must match; none means everything.
    pub matcher: Option<String>,
    /// The callbacks, by the client's ids.
    pub callback_ids: Vec<String>,
    /// How long each may take.
    pub timeout: Option<Duration>,
    /// Whether what it guards is not let through when a callback fails.
    pub blocks_on_failure: bool,
}
