//! Commands that are answered from what a session left on disk and in memory, without asking the model: one function each,
//! for every front end alike.
//!
//! They block; a front end calls them off the thread that draws.

mod context_history;
mod entries;
mod export;
mod move_session;
mod past_agents;
mod rewind;
mod task_output;
mod turn_changes;

use std::sync::Arc;

use loci_core::session::SessionIdentity;
use loci_engine::{CommandRegistry, EarlierTotals, McpConfig, SessionRunner};
use loci_llm::Client;
use loci_stdx::{Env, Store};
use loci_storage::layout::{ConfigHome, SessionPlace};

use crate::options::RunOptions;
use crate::settings::editor::{SettingsContext, SettingsInputs};
use crate::start::StartedSession;

pub use context_history::{ContextPart, ContextPoint, columns, condensed, context_history};
pub use entries::entries;
pub use export::{export, export_text, write_text};
pub use move_session::{move_session, move_target};
pub use past_agents::{PastAgent, agent_entries, past_agents};
pub(crate) use rewind::rewind_conversation;
pub use rewind::{
    RewindPoint, RewindPoints, RewindPreview, RewindRequest, preview_rewind, rewind_files, rewind_points,
};
pub use task_output::task_output;
pub use turn_changes::{TurnChanges, turn_changes};

/// What the commands of a session are answered from.
#[derive(Clone)]
pub struct CommandContext {
    /// The environment as the process was given it.
    pub inherited: Env,
    /// The same with the settings' variables.
    pub env: Env,
    /// Where the user's things lie.
    pub home: ConfigHome,
    /// What the run was asked to be.
    pub options: RunOptions,
    /// The model that was chosen at the start, and those that may take its place.
    pub models: Vec<String>,
    /// The session's identity: its id, its totals.
    pub identity: Arc<Store<SessionIdentity>>,
    /// What earlier runs of the session used.
    pub earlier: EarlierTotals,
    /// The slash commands.
    pub commands: Arc<Store<CommandRegistry>>,
    /// The MCP servers, where there are any.
    pub mcp: Option<McpConfig>,
    /// The provider, where it is not the environment's own.
    pub client: Option<Client>,
}

impl CommandContext {
    /// Makes the context of a session that was started.
    pub fn new(started: &StartedSession) -> Self {
        let session = &started.session.session;
        Self {
            inherited: started.inherited.clone(),
            env: started.env.clone(),
            home: started.home.clone(),
            options: started.options.clone(),
            models: started.models.clone(),
            identity: session.identity(),
            earlier: session.earlier_totals(),
            commands: session.slash_commands(),
            mcp: started.mcp.clone(),
            client: started.client.clone(),
        }
    }

    /// Takes up that another session runs now.
    pub fn follow(&mut self, runner: &SessionRunner) {
        self.identity = runner.identity();
        self.earlier = runner.earlier_totals();
        self.commands = runner.slash_commands();
    }

    /// Returns what counts beside the settings files of the directory.
    pub fn settings_inputs(&self) -> SettingsInputs {
        SettingsInputs::from_options(&self.inherited, &self.options)
    }

    /// Reads the settings that count for the session.
    pub fn settings(&self) -> SettingsContext {
        SettingsContext::with_inputs(&self.env, &self.settings_inputs())
    }

    /// Returns where the session lies.
    pub fn place(&self) -> SessionPlace {
        let identity = self.identity.get();
        SessionPlace::new(identity.transcript_path(), identity.id().clone())
    }
}
