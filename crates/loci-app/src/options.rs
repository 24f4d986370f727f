//! What a run is asked to be, with its meaning: no flag is looked at behind this.

use std::path::PathBuf;
use std::sync::Arc;

use loci_core::permission::Mode;
use loci_engine::{ClientRequests, CurrentWorktree, EditorHost, InitializeRequest, McpConfig};
use loci_storage::config::SettingsSources;
use serde_json::{Map, Value};

use crate::compose::compaction::CompactWindow;
use crate::settings::flags::FlagSettings;

/// What a front end asks of a run. The default is a new, saved session with nothing out of the ordinary.
#[derive(Clone)]
pub struct RunOptions {
    /// Which session it is.
    pub session: SessionOptions,
    /// Whether anything is written to disk.
    pub is_persistent: bool,
    /// Whether it does without instruction files, memories and most tools; a variable may ask for the same.
    pub is_bare: bool,
    /// Whether more prompts than one are to be expected.
    pub is_long_lived: bool,
    /// Whether there is somebody to put permission questions to.
    pub can_ask: bool,
    /// Whether what files held is kept before they are changed.
    pub keeps_checkpoints: bool,
    /// Which model is asked, and how.
    pub model: ModelOptions,
    /// What replaces the system prompt.
    pub system_prompt: Option<TextSource>,
    /// What is added to the system prompt.
    pub appended_prompt: Option<TextSource>,
    /// What is added to the system prompts of agents that are sent out.
    pub appended_agent_prompt: Option<String>,
    /// Which built-in tools are on offer.
    pub tools: ToolChoice,
    /// What may run.
    pub permissions: PermissionOptions,
    /// The most round trips to the model.
    pub max_turns: Option<u32>,
    /// The most US dollars to be spent.
    pub max_budget_usd: Option<f64>,
    /// The schema of the answer, where it must have one.
    pub json_schema: Option<Value>,
    /// Whether what differs between machines is told in the first message, not in the system prompt.
    pub excludes_dynamic_sections: bool,
    /// Whether the system prompt is recorded, and sent as it was when the session goes on.
    pub keeps_system_prompt: bool,
    /// Whether it does without tools that run code, and keeps to its directories.
    pub is_restricted: bool,
    /// The window that the conversation is compacted within, where this run names one.
    pub compact_window: Option<CompactWindow>,
    /// Whether prompts are sent as they are: there are no slash commands and no skills.
    pub has_no_commands: bool,
    /// Whether the front end hears of every line of the transcripts.
    pub mirrors_transcript: bool,
    /// Settings that win over those of files: a JSON object, or a file that holds one.
    pub settings: Option<String>,
    /// What was given since the run began, over them.
    pub flag_settings: FlagSettings,
    /// Which settings and instruction files are read.
    pub setting_sources: SettingsSources,
    /// Agents given with the start: a JSON object, or a file that holds one.
    pub agents: Option<String>,
    /// The agent that the main conversation runs as.
    pub agent: Option<String>,
    /// Whether more than the terminal's own user is there: a person who looks on, so that forks pay.
    pub is_interactive: bool,
    /// Whether the person trusts the folder for as long as the process runs, where that cannot be kept.
    pub has_given_trust: bool,
    /// Whether the run goes on with keys of settings that this version does not know, and that may restrict it.
    pub accepts_unknown_settings: bool,
    /// Directories of plugins that are on for this run.
    pub plugin_dirs: Vec<PathBuf>,
    /// Those of them whose MCP servers are not used: whoever drives the run sees to them.
    pub plugin_dirs_without_servers: Vec<PathBuf>,
    /// Which MCP servers it has besides those of files.
    pub mcp: McpOptions,
    /// Those that are there already: a session that takes another's place takes them over.
    pub mcp_servers: Option<McpConfig>,
    /// `init` or `maintenance`, where hooks are to make the project ready first.
    pub setup: Option<&'static str>,
    /// The way to the client that drives the run, if there is one.
    pub client_requests: ClientRequests,
    /// The editor that drives the run, where it has a say in files or commands.
    pub editor: Option<Arc<dyn EditorHost>>,
    /// Which build this is, for people.
    pub build: Option<String>,
    /// The worktree that the run is in, shared with its session.
    pub worktree: CurrentWorktree,
    /// Whether it is the demo: nothing of the person's settings counts, and none is written.
    pub is_demo: bool,
    /// What that client asked for before there was a session.
    pub initialize: Option<InitializeRequest>,
    /// The agents of that, where they are known before the session is composed: it may run as one of them.
    pub client_agents: Map<String, Value>,
}

impl RunOptions {
    /// Takes up what a client asks for. A prompt that it leaves empty does not undo one of the command line.
    pub fn take_initialize(&mut self, request: InitializeRequest) {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        match (given(&request.system_prompt), &self.system_prompt) {
            (Some(text), _) => self.system_prompt = Some(TextSource::Text(text)),
            (None, None) if request.system_prompt.is_some() => {
                self.system_prompt = Some(TextSource::Text(String::new()));
            }
            (None, _) => {}
        }
        if let Some(text) = given(&request.append_system_prompt) {
            self.appended_prompt = Some(TextSource::Text(text));
        }
        if let Some(title) = given(&request.title) {
            self.session.title = Some(title);
        }
        if let Some(schema) = &request.json_schema {
            self.json_schema = Some(schema.clone());
        }
        self.excludes_dynamic_sections |= request.excludes_dynamic_sections;
        self.keeps_system_prompt = request.keeps_system_prompt.unwrap_or(self.keeps_system_prompt);
        self.initialize = Some(request);
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            session: SessionOptions::default(),
            is_persistent: true,
            is_bare: false,
            is_long_lived: false,
            can_ask: false,
            keeps_checkpoints: false,
            model: ModelOptions::default(),
            system_prompt: None,
            appended_prompt: None,
            appended_agent_prompt: None,
            tools: ToolChoice::Usual,
            permissions: PermissionOptions::default(),
            max_turns: None,
            max_budget_usd: None,
            json_schema: None,
            excludes_dynamic_sections: false,
            keeps_system_prompt: false,
            is_restricted: false,
            compact_window: None,
            has_no_commands: false,
            mirrors_transcript: false,
            settings: None,
            flag_settings: FlagSettings::default(),
            setting_sources: SettingsSources::ALL,
            agents: None,
            agent: None,
            is_interactive: false,
            has_given_trust: false,
            accepts_unknown_settings: false,
            plugin_dirs: Vec::new(),
            plugin_dirs_without_servers: Vec::new(),
            mcp: McpOptions::default(),
            mcp_servers: None,
            setup: None,
            client_requests: ClientRequests::none(),
            editor: None,
            build: None,
            worktree: CurrentWorktree::default(),
            is_demo: false,
            initialize: None,
            client_agents: Map::new(),
        }
    }
}

/// MCP servers of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpOptions {
    /// JSON objects, or files that hold one, with `mcpServers`.
    pub configs: Vec<String>,
    /// Whether there are no others.
    pub is_strict: bool,
    /// Whether servers of the project must have been approved: there is somebody to ask.
    pub needs_approval: bool,
}

/// Which session a run begins or goes on with.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// The session that goes on.
    pub source: SessionSource,
    /// Whether a copy of it goes on in its place.
    pub is_fork: bool,
    /// The message it goes on from, where that is not the last.
    pub at: Option<String>,
    /// The id of a new session or copy.
    pub id: Option<String>,
    /// What to call it.
    pub title: Option<String>,
    /// The prompt that all that is left out must belong to, where somebody wants to be sure of that.
    pub drops_turn: Option<String>,
    /// Whether it is taken from another process that is using it.
    pub takes_over: bool,
}

/// The session that goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionSource {
    /// None: a new one begins.
    #[default]
    New,
    /// The newest of the directory, or of the repository around it; a new one where there is none.
    Newest,
    /// The one with this id or title, or in this file.
    Named(String),
}

/// Which model is asked, and how.
#[derive(Debug, Clone, Default)]
pub struct ModelOptions {
    /// An alias or an id.
    pub model: Option<String>,
    /// What to take when the first is overloaded.
    pub fallbacks: Option<Vec<String>>,
    /// How hard it thinks.
    pub effort: Option<String>,
    /// The most tokens it may think with; 0 turns thinking off.
    pub max_thinking_tokens: Option<u64>,
    /// Whether it thinks, where somebody says so.
    pub thinking: Option<ThinkingChoice>,
    /// How its thinking is shown.
    pub thinking_display: Option<String>,
    /// Tokens that it is told it may spend on the task.
    pub task_budget: Option<u64>,
    /// Beta features to ask the API for.
    pub betas: Vec<String>,
    /// Whether the front end wants the model's events as they arrive.
    pub wants_wire_events: bool,
}

/// Whether a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingChoice {
    /// As much as it does by itself.
    Adaptive,
    /// Not at all.
    Disabled,
}

/// A text, or where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextSource {
    /// The text itself.
    Text(String),
    /// The file that holds it.
    File(PathBuf),
}

/// Which built-in tools are on offer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// All, or the few of a bare run.
    #[default]
    Usual,
    /// All, of a bare run too.
    All,
    /// Those with these names.
    Only(Vec<String>),
}

/// What may run.
#[derive(Debug, Clone, Default)]
pub struct PermissionOptions {
    /// Rules for calls that run without asking.
    pub allow: Vec<String>,
    /// Rules for calls that never run.
    pub deny: Vec<String>,
    /// The mode to begin in.
    pub mode: Option<Mode>,
    /// Whether the session may run everything unasked, now or after a switch.
    pub may_bypass: bool,
    /// Further directories to work in.
    pub dirs: Vec<PathBuf>,
    /// Whether everything outside them is out of reach.
    pub is_confined: bool,
}
