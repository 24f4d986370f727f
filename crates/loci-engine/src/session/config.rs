//! What a session is started with. Everything here was decided by the binary: no environment is read later.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_context::{NotesPace, PromptParts, Replaced, Window};
use loci_core::agent::{AgentDefinition, AgentRegistry};
use loci_core::conversation::{RESUME_PROMPT, Repair};
use loci_core::entry::draft::Stamp;
use loci_core::entry::{Attachment, AttachmentKind, Entry};
use loci_core::hooks::HookConfig;
use loci_core::ids::{EntryId, PromptId};
use loci_core::message::ToolUse;
use loci_core::model::{DeniedModels, EffortLimits, ModelCatalog, ModelFacts};
use loci_core::permission::{Rulebook, Update};
use loci_core::plugin::PluginList;
use loci_core::session::SessionIdentity;
use loci_llm::{Client, RetryPolicy};
use loci_mcp::SandboxMaker;
use loci_sandbox::Sandbox;
use loci_stdx::{Env, Store, Vars};
use loci_storage::config::{Instructions, LazyInstructions};
use loci_storage::layout::{ConfigHome, SessionTmp};
use loci_storage::memory::MemoryJournal;
use loci_storage::sessions::{LabelWatch, SessionLog};
use loci_storage::worktree::WorktreeOptions;
use loci_tools::{EditorHost, Toolbox};
use serde_json::Value;

use crate::agents::AgentServersMaker;
use crate::extensions::local_command::LocalCommands;
use crate::extensions::mcp::McpConfig;
use crate::extensions::skills::SessionSkills;
use crate::extensions::slash_command::CommandRegistry;
use crate::extensions::{Classifier, CompactionHooks, McpToolCaller, RestoreSource, TurnHooks};
use crate::session::MemoryWatch;
use crate::session::client_request::ClientRequests;
use crate::session::earlier_totals::EarlierTotals;
use crate::session::file_history::FileHistoryStores;
use crate::session::initialize::ClientHook;
use crate::session::plan::PlanConfig;
use crate::tools::worktrees::CurrentWorktree;
use crate::turn::StructuredAnswerRule;

/// What a session is started with.
pub struct SessionConfig {
    /// The ambient world.
    pub env: Env,
    /// Where the user's things lie.
    pub home: ConfigHome,
    /// Who the session is.
    pub identity: SessionIdentity,
    /// Where it is written.
    pub log: SessionLog,
    /// Whether front ends hear of every line of its transcripts.
    pub mirrors_transcript: bool,
    /// What every entry is stamped with.
    pub stamp: Stamp,
    /// What came before, for a resumed session.
    pub history: LoadedHistory,
    /// The tools on offer.
    pub toolbox: Toolbox,
    /// The slash commands; whoever brings more appends to it between turns.
    pub commands: Arc<Store<CommandRegistry>>,
    /// Carries out those that need no model; without it they are refused.
    pub local_commands: Option<Arc<dyn LocalCommands>>,
    /// The output style's name.
    pub output_style: String,
    /// Mode and rules.
    pub rulebook: Rulebook,
    /// Settings in force, as front ends may show them.
    pub settings: Value,
    /// Follows the settings' files.
    pub settings_source: Option<Box<dyn SettingsSource>>,
    /// What answers to permission questions may change.
    pub grants: Grants,
    /// Judges what would be asked about in mode `auto`; without one it is asked about.
    pub classifier: Option<Arc<dyn Classifier>>,
    /// Whether a front end answers permission questions; without one they are denied.
    pub can_ask: bool,
    /// The model provider.
    pub client: Client,
    /// Models and how they are asked.
    pub model: ModelConfig,
    /// Limits of a turn.
    pub limits: TurnLimits,
    /// When the conversation is compacted.
    pub compaction: CompactionConfig,
    /// The user's hooks.
    pub hooks: HookConfig,
    /// Hooks of the client that drives the session.
    pub client_hooks: Vec<ClientHook>,
    /// The way to that client.
    pub client_requests: ClientRequests,
    /// The editor that drives the session, where it has a say in files or commands.
    pub editor: Option<Arc<dyn EditorHost>>,
    /// The MCP servers, where there are any.
    pub mcp: Option<McpConfig>,
    /// The connected MCP servers, for hooks that are tools of theirs.
    pub mcp_tools: Option<Arc<dyn McpToolCaller>>,
    /// How often hooks may make a turn go on; zero means as often as they like.
    pub max_objections: u32,
    /// `init` or `maintenance`, where hooks are to make the project ready first.
    pub setup: Option<&'static str>,
    /// How the session begins: `startup`, `resume`, `clear` or `fork`.
    pub start_source: &'static str,
    /// Who has a say in prompts, calls and ends of turns, in the place of the user's hooks.
    pub turn_hooks: Option<Arc<dyn TurnHooks>>,
    /// Who has a say in compactions, in the place of the user's hooks.
    pub compaction_hooks: Option<Arc<dyn CompactionHooks>>,
    /// What outlasts it besides files.
    pub restore_sources: Vec<Arc<dyn RestoreSource>>,
    /// The skills there are.
    pub skills: Arc<SessionSkills>,
    /// The memories of the project, if any are kept.
    pub memory: Option<SessionMemory>,
    /// Where plans are made, and how.
    pub plans: PlanConfig,
    /// How working copies are made.
    pub worktree: WorktreeOptions,
    /// The working copy that the session begins in, and then the one that it is in.
    pub current_worktree: CurrentWorktree,
    /// What is done beside the conversation.
    pub background: BackgroundConfig,
    /// The agents that can be sent out.
    pub agents: AgentsConfig,
    /// The parts of the system prompt.
    pub prompt: PromptParts,
    /// Whether it is recorded with the first prompt, and sent as it was then when the session goes on.
    pub keeps_prompt: bool,
    /// Instruction files.
    pub instructions: Instructions,
    /// Those that wait until files are read.
    pub lazy_instructions: Option<LazyInstructions>,
    /// Reads them anew, after a compaction.
    pub read_instructions: Option<ReadInstructions>,
    /// Environment of child processes.
    pub child_env: Vec<(String, String)>,
    /// What commands run in, where the session has a sandbox.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Makes the sandboxes that hooks ask for.
    pub sandbox_maker: Option<SandboxMaker>,
    /// What files held before they were changed; without it nothing is kept.
    pub file_history: Option<FileHistoryStores>,
    /// Where background tasks write.
    pub tmp: SessionTmp,
    /// How long a session may wait for a prompt before hooks hear of it.
    pub idle_notice: Duration,
    /// When commands in the background make room for others; without it they do not.
    pub memory_watch: Option<MemoryWatch>,
    /// When the process started, on the clock's monotonic scale.
    pub started: Duration,
    /// Where the credentials come from, for people.
    pub api_key_source: String,
    /// Its plugins, and what is wrong with them.
    pub plugins: Arc<PluginList>,
}

/// The memories of a session's project.
#[derive(Debug, Clone)]
pub struct SessionMemory {
    /// Where they are, and the journal about them.
    pub journal: MemoryJournal,
    /// Whether the model is shown what a team shares; other people write that, so only in a folder the user trusts.
    pub shows_team: bool,
}

/// The settings files of a session, followed while it runs.
pub trait SettingsSource: Send {
    /// Looks whether files changed, before each turn and before each call is judged. Given the rules in force, returns
    /// all that changed settings mean, or nothing when none did.
    fn reload(&mut self, current: &Rulebook, point: ReloadPoint) -> Option<Reloaded>;

    /// Returns the files that changed since they were last decided upon. From the first time on no change counts before
    /// it was.
    fn changes(&mut self) -> Vec<ConfigFileChange>;

    /// Says, for each of them in order, whether it counts.
    fn decide(&mut self, taken: Vec<bool>);
}

/// A settings file that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFileChange {
    /// Whose it is, as hooks are told: `user_settings`, `project_settings`, `local_settings` or `policy_settings`.
    pub source: &'static str,
    /// The file.
    pub path: PathBuf,
}

/// When settings are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadPoint {
    /// A prompt has come, and nothing is under way.
    Prompt,
    /// A call is about to be judged.
    Call,
}

/// What changed settings mean for a session.
#[derive(Debug, Clone)]
pub struct Reloaded {
    /// The rules from now on.
    pub rulebook: Rulebook,
    /// Settings in force, as front ends may show them.
    pub settings: Value,
    /// Hooks from now on, where they changed.
    pub hooks: Option<HookConfig>,
    /// The world around the session from now on, where settings in force changed; credentials got before are forgotten.
    pub ambient: Option<Ambient>,
    /// What people should know about the change.
    pub warnings: Vec<String>,
}

/// The world around a session, with what settings change about it.
#[derive(Debug, Clone)]
pub struct Ambient {
    /// The world as our own code sees it.
    pub env: Env,
    /// Environment of child processes, complete.
    pub child_env: Vec<(String, String)>,
    /// What commands run in, where the session has a sandbox.
    pub sandbox: Option<Arc<Sandbox>>,
}

/// Makes a change in the settings file it is for, and returns what people should know about it; the error says why not.
pub type SaveUpdate = Box<dyn FnMut(&Update) -> Result<Option<String>, String> + Send>;

/// What answers to permission questions may change.
#[derive(Default)]
pub struct Grants {
    /// Whether they may allow calls at all.
    pub may_grant: bool,
    /// Whether they may switch to bypassing permissions.
    pub may_bypass: bool,
    /// Saves what is to outlast the session.
    pub save: Option<SaveUpdate>,
}

/// What came before this process.
#[derive(Debug, Clone, Default)]
pub struct LoadedHistory {
    /// The path of the conversation, oldest first.
    pub path: Vec<Arc<Entry>>,
    /// The entry the next one hangs under.
    pub leaf: Option<EntryId>,
    /// Whether that is another one than the session stood at; the next prompt begins a branch.
    pub begins_branch: bool,
    /// Results of it that are replaced.
    pub replaced: Replaced,
    /// What must be recorded before the next prompt.
    pub repairs: Vec<Repair>,
    /// What a fork takes over from its source; written with the first prompt.
    pub inherited: Vec<Arc<Entry>>,
    /// A name to give the session, written with the first prompt.
    pub title: Option<String>,
    /// The agent that the session runs as from now on, where that is news; written with the first prompt.
    pub agent: Option<String>,
    /// The goal that the session worked towards when it was left.
    pub goal: Option<String>,
    /// What the session was called so far.
    pub labels: LabelWatch,
    /// What the session used so far.
    pub earlier: EarlierTotals,
}

/// A call that an earlier run put off.
#[derive(Debug, Clone, PartialEq)]
pub struct DeferredCall {
    /// The call.
    pub call: ToolUse,
    /// The entry that holds it.
    pub(crate) source: EntryId,
    /// The prompt whose turn it was.
    pub(crate) prompt: Option<PromptId>,
}

/// Returns what the model is asked that goes on with a turn which was cut short (`CLAUDE_CODE_RESUME_PROMPT`).
pub fn resume_prompt(vars: &Vars) -> &str {
    vars.non_empty("CLAUDE_CODE_RESUME_PROMPT").unwrap_or(RESUME_PROMPT)
}

impl LoadedHistory {
    /// Tells whether the session ended in the middle of a turn.
    pub fn is_cut_short(&self) -> bool {
        !self.repairs.is_empty() && self.deferred_call().is_none()
    }

    /// Leaves the turn that was cut short open: the next prompt goes on with it, so nothing has to stand for its answer.
    pub fn keep_turn_open(&mut self) {
        self.repairs.retain(|repair| matches!(repair, Repair::CloseCall { .. }));
    }

    /// Returns the call that the session ended with, where a hook put it off.
    pub fn deferred_call(&self) -> Option<DeferredCall> {
        let Some(Repair::CloseCall { call: id, source, prompt }) = self.repairs.first() else { return None };
        let mark = self.path.last()?.attachment_of_kind(AttachmentKind::HookDeferredTool)?;
        let Attachment::HookDeferredTool { tool_use_id, tool_name: name, tool_input: input, .. } = mark
        else {
            return None;
        };
        if tool_use_id != id.as_str() || name.is_empty() {
            return None;
        }
        let call = ToolUse { id: id.clone(), name, input };
        Some(DeferredCall { call, source: source.clone(), prompt: prompt.clone() })
    }
}

/// Models and how they are asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The main model, alias resolved.
    pub main: String,
    /// Whether options or settings say which it is.
    pub is_main_chosen: bool,
    /// The model that is asked in plan mode, where that is another one.
    pub planner: Option<String>,
    /// Models to fall back to.
    pub fallbacks: Vec<String>,
    /// The effort level that was chosen, for models that take one.
    pub effort: Option<String>,
    /// How hard models are to think, and may at most.
    pub effort_limits: EffortLimits,
    /// The models that may not be asked.
    pub denied: DeniedModels,
    /// A budget of thinking tokens that overrides the usual one; zero turns thinking off.
    pub max_thinking_tokens: Option<u64>,
    /// How its thinking is shown, where somebody says so.
    pub thinking_display: Option<String>,
    /// Tokens that it is told it may spend on the task.
    pub task_budget: Option<u64>,
    /// A limit of output tokens that overrides the model's.
    pub max_output_tokens: Option<u64>,
    /// Beta features to ask for.
    pub betas: Vec<String>,
    /// The user's anonymous id.
    pub user_id: Option<String>,
    /// Fields merged over the request's body.
    pub extra_body: Option<serde_json::Map<String, serde_json::Value>>,
    /// Whether each server event is passed on unchanged.
    pub wants_wire_events: bool,
    /// Whether it looks for tools that it rarely needs.
    pub tool_search: ToolSearchMode,
    /// What is known of models.
    pub catalog: ModelCatalog,
}

/// Whether the model looks for tools instead of being told of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolSearchMode {
    /// It is told of all.
    #[default]
    Off,
    /// It looks for those that can be deferred.
    On,
    /// It does once their definitions take so much of the window, in percent.
    Auto(u8),
}

impl ToolSearchMode {
    /// Tells whether tools are deferred whose definitions take so many tokens.
    pub(crate) fn is_on(self, tokens: u64, window: u64) -> bool {
        match self {
            Self::Off => false,
            Self::On => true,
            Self::Auto(percent) => tokens.saturating_mul(100) >= window.saturating_mul(u64::from(percent)),
        }
    }
}

impl ModelConfig {
    /// Returns the effort to ask a model for, where it takes one: what was chosen, or is usual for it, and no more than
    /// settings let it have.
    pub fn effort_of(&self, model: &str) -> Option<String> {
        let facts = self.catalog.facts(model);
        let chosen = self.effort.as_deref().or_else(|| self.effort_limits.usual(model));
        facts.effort(self.effort_limits.capped(model, chosen, facts.default_effort))
    }

    /// Asks this model, with nothing out of the ordinary.
    pub fn new(main: &str) -> Self {
        Self {
            main: main.to_owned(),
            is_main_chosen: false,
            planner: None,
            fallbacks: Vec::new(),
            effort: None,
            effort_limits: EffortLimits::default(),
            denied: DeniedModels::default(),
            max_thinking_tokens: None,
            thinking_display: None,
            task_budget: None,
            max_output_tokens: None,
            betas: Vec::new(),
            user_id: None,
            extra_body: None,
            wants_wire_events: false,
            tool_search: ToolSearchMode::Off,
            catalog: ModelCatalog::default(),
        }
    }
}

/// Reads the instruction files as they are now.
pub type ReadInstructions = Box<dyn FnMut() -> (Instructions, Option<LazyInstructions>) + Send>;

/// When a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionConfig {
    /// Whether it is at all.
    pub is_on: bool,
    /// Whether it is unasked, before it is too long.
    pub is_automatic: bool,
    /// Takes the place of the model's window.
    pub window: Option<u64>,
    /// What the window is at most, whatever it would be: an agent may ask for less.
    pub window_cap: Option<u64>,
    /// Compacts at this share of what can be used, in percent, where that is earlier.
    pub percent: Option<u8>,
    /// Whether it is when the server has refused a request for its length.
    pub is_reactive: bool,
    /// Whether results of tools that take too much of the window go to files.
    pub budgets_results: bool,
    /// Whether old tool results are cleared before anything is summarised.
    pub snips: bool,
    /// Whether they are after a long pause.
    pub clears_cold: bool,
    /// Whether the server is asked to do so, too.
    pub server_clears: bool,
    /// Whether old stretches are folded into summaries bit by bit, in the place of compacting all unasked.
    pub collapses: bool,
}

/// Models of named providers with less than this are compacted early: an answer and a result take more of it.
const SMALL_WINDOW: u64 = 32_768;
/// How full their context may be, in percent.
const SMALL_PERCENT: u8 = 70;

impl CompactionConfig {
    /// Leaves conversations as they are, however long.
    pub(crate) fn off() -> Self {
        Self {
            is_on: false,
            is_automatic: false,
            is_reactive: false,
            budgets_results: false,
            snips: false,
            clears_cold: false,
            ..Self::default()
        }
    }

    /// Returns what bounds a conversation with a model that may write so much.
    pub fn window(&self, facts: &ModelFacts, max_output: u64) -> Window {
        let percent =
            self.percent.or_else(|| (facts.is_named && facts.window < SMALL_WINDOW).then_some(SMALL_PERCENT));
        let tokens = self.window.unwrap_or(facts.window).min(self.window_cap.unwrap_or(u64::MAX));
        Window { tokens, max_output, percent }
    }
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            is_on: true,
            is_automatic: true,
            window: None,
            window_cap: None,
            percent: None,
            is_reactive: true,
            budgets_results: true,
            snips: true,
            clears_cold: true,
            server_clears: false,
            collapses: false,
        }
    }
}

/// What is done beside the conversation. Each costs requests of its own, so nothing is on unless somebody says so.
#[derive(Debug, Clone, PartialEq)]
pub struct BackgroundConfig {
    /// Keeps running notes of the conversation, at this pace.
    pub notes: Option<NotesPace>,
    /// Prepares the summary of a conversation before it must be compacted.
    pub prepares_summary: bool,
    /// Looks for memories when the model has answered.
    pub extraction: Option<ExtractionConfig>,
    /// The most that notes and memories may cost, as a share of what the conversation costs; no limit without one.
    pub max_share: Option<f64>,
    /// How long the end of a session waits for agents in the background; for ever without a limit.
    pub agent_wait: Option<Duration>,
    /// How long it waits for commands in the background.
    pub command_wait: Duration,
    /// How long the end of a session waits for what is under way.
    pub drain: Duration,
    /// How long a compaction waits for notes, or a summary, that are being written.
    pub patience: Duration,
}

impl Default for BackgroundConfig {
    fn default() -> Self {
        Self {
            notes: None,
            prepares_summary: false,
            extraction: None,
            max_share: None,
            agent_wait: Some(Duration::from_secs(10 * 60)),
            command_wait: Duration::from_secs(5),
            drain: Duration::from_secs(10),
            patience: Duration::from_secs(15),
        }
    }
}

/// The agents that can be sent out, and within which limits.
pub struct AgentsConfig {
    /// The definitions.
    pub registry: Arc<Store<AgentRegistry>>,
    /// Looks whether definitions changed; asked before each turn.
    pub poll: Option<AgentPoller>,
    /// How many work at once.
    pub max_concurrent: usize,
    /// How deep agents may send out agents.
    pub max_depth: u32,
    /// Whether a conversation can be forked by its model. Then all agents work in the background.
    pub can_fork: bool,
    /// Whether agents work in the background where a call does not say.
    pub is_background: bool,
    /// Whether anything works in the background at all.
    pub can_background: bool,
    /// The only types that the main conversation may send out.
    pub spawnable: Option<Vec<String>>,
    /// The agent that the main conversation runs as.
    pub main: Option<Arc<AgentDefinition>>,
    /// What is added to the prompts of agents that are sent out.
    pub appended_prompt: Option<String>,
    /// Whether agents may keep memories of their own.
    pub keeps_memory: bool,
    /// Where those of a project lie.
    pub memory_root: PathBuf,
    /// Makes the MCP servers that definitions have of their own; without it they have none.
    pub make_servers: Option<AgentServersMaker>,
    /// How long the model of an agent in the background may say nothing before it is given up.
    pub stall_timeout: Option<Duration>,
}

/// Returns all definitions when some changed.
pub type AgentPoller = Box<dyn FnMut() -> Option<AgentRegistry> + Send>;

impl Default for AgentsConfig {
    fn default() -> Self {
        Self {
            registry: Arc::new(Store::new(AgentRegistry::default())),
            poll: None,
            max_concurrent: 20,
            max_depth: 3,
            can_fork: false,
            is_background: false,
            can_background: true,
            spawnable: None,
            main: None,
            appended_prompt: None,
            keeps_memory: false,
            memory_root: PathBuf::new(),
            make_servers: None,
            stall_timeout: Some(Duration::from_secs(600)),
        }
    }
}

/// How memories are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractionConfig {
    /// How much must have been said since the last time, in tokens.
    pub least_tokens: u64,
    /// Whether what is found waits for a person's word.
    pub is_proposing: bool,
}

/// Limits of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnLimits {
    /// Round trips to the model.
    pub max_turns: Option<u32>,
    /// US dollars, over the whole process.
    pub max_budget_usd: Option<f64>,
    /// Calls at once; zero means the usual ten.
    pub max_parallel: usize,
    /// How failures are retried.
    pub retry: RetryPolicy,
    /// Whether a stream that keeps breaking may be replaced by an answer in one piece.
    pub allows_one_piece: bool,
    /// The shape that the answer of the main conversation must have.
    pub structured: Option<StructuredAnswerRule>,
}
