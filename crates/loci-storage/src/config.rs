//! Files that configure loci: settings, global state, logins, instruction files and the input history.
//!
//! - `settings` finds, reads, watches and edits `settings.json` and its kin, and says whether a folder is trusted.
//! - `state_file` reads and edits `.claude.json`.
//! - `agents` finds and follows definitions of agents.
//! - `skills` finds and follows skills and command files, with the help of `definition_files`.
//! - `output_styles` finds output styles.
//! - `plugins` finds plugins and reads their directories.
//! - `credentials` reads a stored login, `mcp_logins` keeps those at MCP servers beside it, `keychain` reads secrets of
//!   plugins on macOS.
//! - `mcp_approvals` keeps what the MCP servers of projects were when they were approved.
//! - `instructions` discovers `CLAUDE.md`, rules and what they import.
//! - `input_history` keeps what was typed, with the long pastes of it in `paste_cache`.
//!
//! Finding and watching is done here; what the files mean is decided by pure code. A file that is edited keeps every
//! key it had.

mod agents;
mod credentials;
mod definition_files;
mod input_history;
pub(crate) mod instructions;
#[cfg(any(target_os = "macos", test))]
mod keychain;
mod mcp_approvals;
mod mcp_logins;
mod output_styles;
mod paste_cache;
mod plugins;
mod scheduled_tasks;
pub(crate) mod settings;
mod skills;
mod state_file;

pub use agents::{AgentWatch, FoundAgents, discover_agents};
pub use credentials::{
    StoredLogin, StoredLoginError, plugin_secrets, remove_api_key, store_api_key, store_plugin_secret,
    stored_api_key, stored_login, team_token,
};
pub use definition_files::DefinitionPlaces;
pub use input_history::{InputEntry, InputHistory, InputHistoryError, InputScope};
pub use instructions::{
    Diagnostic, InstructionFile, InstructionPlaces, InstructionScope, Instructions, LazyInstructions,
    MANAGED_INSTRUCTIONS, PathPatterns, PathRule, TriggeredInstructions, discover_instructions,
    strip_html_comments,
};
pub use mcp_approvals::{
    ApprovalError, ApprovedServer, ApprovedServers, approved_servers, edit_approved_servers,
};
pub use mcp_logins::{
    McpLoginError, lock_mcp_login, mcp_client_secret, mcp_login, set_mcp_client_secret, set_mcp_login,
};
pub use output_styles::discover_output_styles;
pub use plugins::{
    FoundPlugins, GitSource, InstallScope, InstalledPlugin, KnownMarketplace, PluginFolder, PluginPlaces,
    PluginState, ReleaseTag, RenamedPlugin, approve_plugins, approved_plugins, cache_place, clone_repository,
    copy_plugin, edit_plugin_file, find_plugins, git_commit, git_identity, mark_orphaned,
    marketplace_manifest, move_plugin, read_plugin, read_plugin_state, repository_root, repository_tags,
    sweep_orphans, tag_release,
};
pub use scheduled_tasks::ScheduledTasksFile;
pub use settings::{
    FILE_LIMIT as SETTINGS_LIMIT, GivenSettings, LoadedSettings, MANAGED_DIR, McpState, SettingsChange,
    SettingsEditError, SettingsFile, SettingsPlaces, SettingsSources, SettingsWatch, TrustState,
    UnknownSetting, edit_settings, exclude_local_settings, load_settings,
};
pub use skills::{FoundSkills, SkillWatch, SkillsPrefetch, discover_skills};
pub use state_file::{
    StateFileError, add_skill_usage, edit_state, external_imports, idle_notice, known_user_id,
    set_external_imports, set_trust, user_id,
};
