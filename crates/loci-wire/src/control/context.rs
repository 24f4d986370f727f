//! What requests are answered from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use loci_app::FlagSettings;
use loci_app::commands::SessionCommands;
use loci_app::settings::editor::SettingsContext;
use loci_core::agent::AgentRegistry;
use loci_core::ids::SessionId;
use loci_core::permission::Mode;
use loci_engine::{CommandRegistry, InitializeRequest};
use loci_stdx::Store;
use serde_json::{Map, Value, json};

use crate::cost::Cost;
use crate::headless::OutputStyles;

/// What `initialize` tells a client.
#[derive(Clone)]
pub(crate) struct ControlContext {
    /// The session, which another may take the place of.
    pub(crate) session: SessionId,
    pub(crate) version: String,
    pub(crate) api_key_source: String,
    pub(crate) may_bypass: bool,
    pub(crate) models: Vec<String>,
    pub(crate) output_style: String,
    pub(crate) output_styles: OutputStyles,
    /// The request that the session was made by.
    pub(crate) initialized: Option<InitializeRequest>,
    /// Whether it came before settings were read.
    pub(crate) has_awaited_initialize: bool,
    pub(crate) commands: Arc<Store<CommandRegistry>>,
    pub(crate) agents: Arc<Store<AgentRegistry>>,
    pub(crate) cost: Cost,
    /// The settings that whoever started the run has given.
    pub(crate) flag_settings: FlagSettings,
    /// What else is known beside the session.
    pub(crate) session_commands: SessionCommands,
    /// Prompts that have an id and wait for their turn.
    pub(crate) queued: Vec<String>,
    /// Where tasks write.
    pub(crate) task_outputs: BTreeMap<String, PathBuf>,
    /// Calls that are waited for and can go on in the background.
    pub(crate) foreground_calls: BTreeSet<String>,
    /// Whether a turn is under way or waits, or agents work.
    pub(crate) is_busy: bool,
    /// The permission mode.
    pub(crate) mode: Mode,
    /// Who serves the models.
    pub(crate) provider: &'static str,
}

impl ControlContext {
    /// Answers an interrupt: which prompts still wait.
    pub(super) fn interrupted(&self) -> Value {
        json!({"still_queued": self.queued})
    }

    /// Writes settings into a file of the user's or the project's.
    pub(super) fn update_settings(&self, source: &str, settings: &Map<String, Value>) -> Result<(), String> {
        let files = SettingsContext::new(&self.session_commands.env);
        files.update_source(source, settings).map_err(|error| error.to_string())
    }
}
