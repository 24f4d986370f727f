//! What every front end needs: composing a conversation from options, settings, trust, credentials and the past, and
//! telling a transcript as people read it.
//!
//! A front end turns what its user asks for into [`RunOptions`], reads the settings ([`settings::RunSettings`]), finds the
//! session to go on with ([`sessions::resume`]) and has a configuration made of them ([`compose::compose`]). Arguments of the
//! command line and exit codes are not known here.

pub mod commands;
pub mod compose;
pub mod credentials;
pub mod extensions;
pub mod interface;
pub mod mcp;
pub mod memory;
pub mod models;
mod options;
pub mod permissions;
pub mod plugins;
pub mod reports;
pub mod service;
pub mod sessions;
pub mod settings;
pub mod start;
mod user_error;

pub use loci_engine::CurrentWorktree;
pub use loci_tools::picture_block;
pub use models::cloud::api_provider;
pub use options::{
    McpOptions, ModelOptions, PermissionOptions, RunOptions, SessionOptions, SessionSource, TextSource,
    ThinkingChoice, ToolChoice,
};
pub use settings::flags::FlagSettings;
pub use start::trace::{TraceFilter, TraceLevel, TraceOptions, TraceTarget, start_trace};
pub use user_error::UserError;

/// The release of Claude Code whose files and protocol we speak; clients look for a leading `N.N.N`.
pub const COMPATIBLE_VERSION: &str = "2.1.325";
