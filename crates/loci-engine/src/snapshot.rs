//! How a session stands at a moment: what commands and panels about it are made from.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_context::{ContextRoom, ContextUsage, Window};
use loci_core::app_state::Denial;
use loci_core::hooks::HookConfig;
use loci_core::ids::{PromptId, SessionId};
use loci_core::model::{ModelCatalog, facts};
use loci_core::permission::{AskedCall, Mode, Rulebook};
use loci_core::plugin::PluginList;
use loci_core::session::Totals;
use loci_core::skill::SkillRegistry;
use loci_core::stream::RateLimits;
use loci_core::usage::Usage;
use loci_mcp::ServerView;
use loci_sandbox::SandboxStatus;
use loci_tools::BackgroundTask;
use serde_json::Value;

use crate::agents::AgentAtWork;
use crate::extensions::mcp::McpServerError;
use crate::session::goal::Goal;
use crate::session::timeline::TurnTimeline;

/// How a session stands.
#[derive(Debug, Clone)]
pub struct SessionSnapshot {
    /// Which.
    pub session: SessionId,
    /// Whether a person sits at a terminal.
    pub is_interactive: bool,
    /// What it is called.
    pub title: Option<String>,
    /// Where it was started.
    pub cwd: PathBuf,
    /// Where its shell stands.
    pub current_dir: PathBuf,
    /// The prompt at hand, or the last one.
    pub prompt: Option<PromptId>,
    /// What the last answer used; none before the first, and after a compaction.
    pub last_usage: Option<Usage>,
    /// How much of what the account may use is used, where the server has told.
    pub rate_limits: Option<Box<RateLimits>>,
    /// The agent that the conversation runs as.
    pub main_agent: Option<String>,
    /// The working copy that it is in, as the transcript says it; null without one.
    pub worktree: Value,
    /// Where it is saved, unless it is not kept.
    pub transcript: Option<PathBuf>,
    /// Whether anything was said in it.
    pub has_messages: bool,
    /// The model that is asked.
    pub model: String,
    /// The model that was chosen at the start.
    pub start_model: String,
    /// What is known of models.
    pub catalog: ModelCatalog,
    /// The effort that was chosen, where one was.
    pub effort: Option<String>,
    /// The most tokens it may think with, where somebody says so; zero means that it does not think.
    pub max_thinking_tokens: Option<u64>,
    /// Whether what was said so far can still be read from the provider's cache.
    pub is_cache_warm: bool,
    /// The size at which it is compacted, where that is not the model's window.
    pub compact_window: Option<u64>,
    /// The permission mode.
    pub mode: Mode,
    /// The rules in force, and the directories.
    pub rulebook: Rulebook,
    /// Calls that somebody was asked about, and what they said, oldest first.
    pub asked: Vec<AskedCall>,
    /// Calls that were denied, the newest last.
    pub recent_denials: Vec<Denial>,
    /// What fills the window.
    pub context: ContextUsage,
    /// What the session has used in all.
    pub totals: Totals,
    /// The time on the clock's monotonic scale.
    pub now: Duration,
    /// How long this process has run.
    pub wall: Duration,
    /// The MCP servers.
    pub mcp_servers: Vec<ServerView>,
    /// What is wrong with how they are configured.
    pub mcp_errors: Vec<McpServerError>,
    /// Instruction files in force, with whose they are.
    pub instructions: Vec<(PathBuf, &'static str)>,
    /// Where memories lie, if any are kept.
    pub memory_dir: Option<PathBuf>,
    /// The skills there are.
    pub skills: Arc<SkillRegistry>,
    /// The hooks in force.
    pub hooks: Arc<HookConfig>,
    /// The agents that can be sent out.
    pub agents: Vec<String>,
    /// The agents that work now, oldest first.
    pub agents_at_work: Vec<AgentAtWork>,
    /// Work beside the conversation, oldest first: commands and agents.
    pub tasks: Vec<BackgroundTask>,
    /// What the last turn that asked a model spent its time on.
    pub timeline: Option<TurnTimeline>,
    /// The goal, also one that has ended.
    pub goal: Option<Goal>,
    /// The plugins, and what is wrong with them.
    pub plugins: Arc<PluginList>,
    /// How its sandbox stands, where it has one.
    pub sandbox: Option<SandboxStatus>,
    /// Settings in force.
    pub settings: Value,
    /// Where the credentials come from.
    pub api_key_source: String,
    /// The output style.
    pub output_style: String,
}

impl SessionSnapshot {
    /// Returns a session in which nothing was said and of which nothing is known, with a model's window.
    pub fn empty(session: SessionId, model: &str) -> Self {
        let window =
            Window { tokens: facts(model).window, max_output: facts(model).default_output, percent: None };
        let fullness = ContextRoom::new(window, 0).fullness(0);
        Self {
            session,
            is_interactive: true,
            title: None,
            cwd: PathBuf::new(),
            current_dir: PathBuf::new(),
            prompt: None,
            last_usage: None,
            rate_limits: None,
            main_agent: None,
            worktree: Value::Null,
            transcript: None,
            has_messages: false,
            model: model.to_owned(),
            start_model: model.to_owned(),
            catalog: ModelCatalog::default(),
            effort: None,
            max_thinking_tokens: None,
            is_cache_warm: false,
            compact_window: None,
            mode: Mode::default(),
            rulebook: Rulebook::default(),
            asked: Vec::new(),
            recent_denials: Vec::new(),
            context: ContextUsage::new(model.to_owned(), Vec::new(), fullness, true),
            totals: Totals::default(),
            now: Duration::ZERO,
            wall: Duration::ZERO,
            mcp_servers: Vec::new(),
            mcp_errors: Vec::new(),
            instructions: Vec::new(),
            memory_dir: None,
            skills: Arc::default(),
            hooks: Arc::default(),
            agents: Vec::new(),
            agents_at_work: Vec::new(),
            tasks: Vec::new(),
            timeline: None,
            goal: None,
            plugins: Arc::default(),
            sandbox: None,
            settings: Value::Null,
            api_key_source: String::new(),
            output_style: String::new(),
        }
    }
}

/// Two are the same when they tell of the same moment of a session.
impl PartialEq for SessionSnapshot {
    fn eq(&self, other: &Self) -> bool {
        self.session == other.session && self.wall == other.wall && self.context == other.context
    }
}
