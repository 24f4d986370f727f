//! What every front end needs: composing a conversation from options, settings, trust, credentials and the past, and
//! telling a transcript as people read it.
//!
//! A front end turns what its user asks for into [`RunOptions`], reads the settings ([`settings::RunSettings`]), finds the
//! session to go on with ([`resume`]) and has a configuration made of them ([`compose::compose`]). Arguments of the
//! command line and exit codes are not known here.

mod agent_servers;
pub mod agents;
pub mod approvals;
mod background_agents;
mod bypass_warning;
pub mod checkpoints;
pub mod child_env;
pub mod choose_model;
mod cloud;
pub mod commands;
pub mod compaction;
pub mod compose;
mod credentials;
pub mod display;
pub mod doctor;
pub mod export;
pub mod file_suggestions;
mod flag_settings;
mod gateway_models;
pub mod helper_command;
mod ineffective_settings;
mod ineffective_vars;
pub mod login;
mod managed_policy;
pub mod mcp;
pub mod mcp_approvals;
pub mod mcp_logins;
pub mod mcp_toggles;
pub mod memory;
pub mod memory_edit;
pub mod memory_review;
mod options;
pub mod output_style;
mod pinned_models;
mod plans;
pub mod plugins;
mod provider_policy;
pub mod providers;
pub mod renewal;
pub mod resume;
pub mod retention;
pub mod rules;
pub mod sandbox;
mod save_permission;
pub mod session_command;
mod session_mention;
pub mod session_picker;
pub mod settings;
pub mod settings_editor;
pub mod settings_explained;
mod settings_reload;
mod sideload;
mod skill_usage;
pub mod skills;
pub mod start;
pub mod stats;
pub mod status_line;
pub mod system_prompt;
mod tool_search;
mod trace;
pub mod transcript;
pub mod trust;
mod unknown_settings;
mod user_error;
pub mod worktree;

pub use cloud::api_provider;
pub use flag_settings::FlagSettings;
pub use loci_engine::CurrentWorktree;
pub use loci_tools::picture_block;
pub use options::{
    McpOptions, ModelOptions, PermissionOptions, RunOptions, SessionOptions, SessionSource, TextSource,
    ThinkingChoice, ToolChoice,
};
pub use trace::{TraceFilter, TraceLevel, TraceOptions, TraceTarget, start_trace};
pub use user_error::UserError;

/// The release of Claude Code whose files and protocol we speak; clients look for a leading `N.N.N`.
pub const COMPATIBLE_VERSION: &str = "2.1.325";
