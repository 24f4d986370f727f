//! What all conversations of a session share: its world, state, identity, settings, permissions and memories.
//!
//! It owns no conversation and holds no inbox but those of questions that wait for an answer.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use loci_core::app_state::AppState;
use loci_core::cost_state::CostState;
use loci_core::hooks::{HookConfig, HookEvent, HookScope, HookSource};
use loci_core::ids::AgentId;
use loci_core::permission::{AskedCall, Mode, Rulebook};
use loci_core::session::{SessionIdentity, Totals};
use loci_core::skill::SkillScope;
use loci_core::stream::RateLimits;
use loci_llm::Client;
use loci_mcp::server_part;
use loci_stdx::{Env, Store};
use loci_storage::layout::{ConfigHome, SessionTmp};
use loci_storage::sessions::LineMirror;
use loci_tools::{EditorHost, SkillCatalog};
use tokio::sync::mpsc::UnboundedSender;

use super::InboxMessage;
use super::host::lock;
use crate::agents::background::BackgroundBudget;
use crate::command::Answer;
use crate::event::EngineEvent;
use crate::extensions::hooks::HookService;
use crate::extensions::local_command::LocalCommands;
use crate::extensions::mcp::McpConfig;
use crate::extensions::skills::SessionSkills;
use crate::extensions::slash_command::{CommandRegistry, split_command};
use crate::extensions::{
    Classifier, ClassifierBlocks, CompactionHooks, FeatureHooks, RestoreSource, ScopedHooks, TurnHooks,
};
use crate::models::small_model::SmallModel;
use crate::session::config::{Ambient, Grants, ReloadPoint, SettingsSource};
use crate::session::earlier_totals::EarlierTotals;
use crate::session::goal::GoalKeeper;
use crate::session::memory::MemoryService;
use crate::session::plan::PlanService;
use crate::session::schedule::ScheduleService;
use crate::session::state_effects::apply_reloaded;
use crate::session::timeline::TimelineRecorder;
use crate::tools::sandbox_hosts::QUESTION_PREFIX;
use crate::tools::web::WebService;
use crate::tools::worktrees::WorktreeService;

/// What the conversations of a session share.
pub(crate) struct SessionContext {
    pub(crate) services: SessionServices,
    pub(crate) facts: SessionFacts,
    pub(crate) policy: PolicyState,
    pub(crate) usage: SessionUsage,
    pub(crate) state: Arc<Store<AppState>>,
    pub(crate) identity: Arc<Store<SessionIdentity>>,
    /// Where front ends hear of whatever concerns the whole session.
    pub(crate) events: UnboundedSender<EngineEvent>,
    /// Prompts for later; none where nothing is to be scheduled.
    pub(crate) schedule: Option<Arc<ScheduleService>>,
    pub(crate) slash_commands: Arc<Store<CommandRegistry>>,
    /// Carries out those that need no model.
    pub(crate) local_commands: Option<Arc<dyn LocalCommands>>,
    /// The user's hooks.
    pub(crate) hooks: HookService,
    /// Who has a say in prompts, calls and ends of turns.
    pub(crate) turn_hooks: Arc<dyn TurnHooks>,
    /// How often they may make a turn go on; zero means as often as they like.
    pub(crate) max_objections: u32,
    /// Who has a say in compactions.
    pub(crate) compaction_hooks: Arc<dyn CompactionHooks>,
    pub(crate) restore_sources: Vec<Arc<dyn RestoreSource>>,
    /// The skills there are.
    pub(crate) skills: Arc<SessionSkills>,
    /// The memories of the project.
    pub(crate) memory: Option<Arc<MemoryService>>,
    /// What it works towards until it holds.
    pub(crate) goal: GoalKeeper,
    /// Its working copies.
    pub(crate) worktrees: Arc<WorktreeService>,
    /// Its plan.
    pub(crate) plans: Arc<PlanService>,
}

/// The world around a session, and whom it asks for what it does not do itself.
pub(crate) struct SessionServices {
    pub(crate) env: Env,
    pub(crate) home: ConfigHome,
    pub(crate) tmp: SessionTmp,
    /// What calls see of the world; settings change it.
    pub(crate) ambient: Arc<Mutex<Ambient>>,
    pub(crate) client: Client,
    /// The model of small work beside the conversation.
    pub(crate) small_model: SmallModel,
    /// The web, for tools that use it.
    pub(crate) web: Arc<WebService>,
    /// The editor that drives the session, where it has a say.
    pub(crate) editor: Option<Arc<dyn EditorHost>>,
    /// Who hears of every line of its transcripts.
    pub(crate) mirror: Option<LineMirror>,
    /// The MCP servers, where there are any.
    pub(crate) mcp: Option<McpConfig>,
    /// Where hooks leave variables for commands, once there are any.
    pub(crate) env_dir: Arc<OnceLock<PathBuf>>,
}

/// What was settled when the session started, and is told of it.
pub(crate) struct SessionFacts {
    /// The output style.
    pub(crate) output_style: String,
    /// Whether that style has words of its own in the prompt.
    pub(crate) has_style_prompt: bool,
    /// The agent that the main conversation runs as.
    pub(crate) main_agent: Option<String>,
    pub(crate) api_key_source: String,
    /// The plugins, and what is wrong with them.
    pub(crate) plugins: Arc<loci_core::plugin::PluginList>,
    /// When the process started, on the clock's monotonic scale.
    pub(crate) started: std::time::Duration,
}

/// What a session has used, and what it may.
pub(crate) struct SessionUsage {
    /// What earlier runs of the session used.
    pub(crate) earlier: EarlierTotals,
    /// What agents beside the conversation may cost.
    pub(crate) background_budget: Arc<BackgroundBudget>,
    /// What its last turn spent time on.
    pub(crate) timeline: Arc<TimelineRecorder>,
    /// How much of what the account may use is used, as the last answer told; held to set or copy it.
    pub(crate) rate_limits: Mutex<Option<Box<RateLimits>>>,
}

/// What decides about calls beside the rules: who is asked, what was answered, and which settings count.
#[derive(Default)]
pub(crate) struct PolicyState {
    /// Whether somebody is there who answers permission questions.
    pub(crate) can_ask: AtomicBool,
    /// The files of settings; held for one look, question or answer.
    pub(crate) settings_source: Mutex<Option<Box<dyn SettingsSource>>>,
    /// Whether hooks are being asked right now which changes of settings count.
    pub(crate) is_asking_about_settings: AtomicBool,
    /// What answers may change, and where that is saved; held for one change.
    pub(crate) grants: Mutex<Grants>,
    /// Judges what would be asked about in mode `auto`.
    pub(crate) classifier: Option<Arc<dyn Classifier>>,
    /// How often it said no; held to count.
    pub(crate) classifier_blocks: Mutex<ClassifierBlocks>,
    /// How calls of MCP servers are judged where the session would let them run, by what their tools' names begin with.
    pub(crate) server_modes: Mutex<BTreeMap<String, Mode>>,
    /// Calls that somebody was asked about, and what they said; held to add one or to copy them.
    pub(crate) asked: Mutex<VecDeque<AskedCall>>,
    /// The conversation that waits for each open question; held to look one up.
    pub(crate) questions: Mutex<HashMap<String, UnboundedSender<InboxMessage>>>,
}

impl PolicyState {
    /// Begins with what a session was given.
    pub(crate) fn new(
        can_ask: bool,
        settings_source: Option<Box<dyn SettingsSource>>,
        grants: Grants,
        classifier: Option<Arc<dyn Classifier>>,
    ) -> Self {
        Self {
            can_ask: AtomicBool::new(can_ask),
            settings_source: Mutex::new(settings_source),
            grants: Mutex::new(grants),
            classifier,
            ..Self::default()
        }
    }

    /// Has calls of an MCP server asked about where the session's mode would let them run; `None` takes that back.
    pub(crate) fn set_server_mode(&self, server: &str, mode: Option<Mode>) {
        let beginning = format!("mcp__{}__", server_part(server));
        match mode {
            Some(mode) => drop(lock(&self.server_modes).insert(beginning, mode)),
            None => drop(lock(&self.server_modes).remove(&beginning)),
        }
    }

    /// Returns the mode that the calls of a tool's server are judged in, where somebody chose one.
    pub(crate) fn server_mode(&self, tool: &str) -> Option<Mode> {
        let modes = lock(&self.server_modes);
        modes.iter().find(|(beginning, _)| tool.starts_with(beginning.as_str())).map(|(_, mode)| *mode)
    }

    pub(crate) fn can_ask(&self) -> bool {
        self.can_ask.load(Ordering::Relaxed)
    }

    /// Nobody is left who answers questions.
    pub(crate) fn stop_asking(&self) {
        self.can_ask.store(false, Ordering::Relaxed);
        // Whoever waits for one of these hears that no answer will come.
        lock(&self.questions).retain(|id, _| !id.starts_with(QUESTION_PREFIX));
    }

    /// Hands an answer to the conversation that asked; one that comes too late, or twice, changes nothing.
    pub(crate) fn answer(&self, question: String, answer: Answer) {
        let asker = lock(&self.questions).remove(&question);
        if let Some(asker) = asker {
            // A turn that is over waits for no answer.
            drop(asker.send(InboxMessage::Answered(question, answer)));
        }
    }
}

impl SessionContext {
    /// Returns the rules in force, with what changed in the settings since the last look.
    pub(crate) fn reload_settings(&self, point: ReloadPoint) -> Rulebook {
        let book = self.state.get().permission.rulebook.clone();
        let mut source = lock(&self.policy.settings_source);
        let reloaded = source.as_mut().and_then(|source| source.reload(&book, point));
        drop(source);
        match reloaded {
            Some(mut reloaded) => {
                if let Some(hooks) = reloaded.hooks.take() {
                    self.hooks.set_config(hooks);
                }
                apply_reloaded(reloaded, &self.state, &self.services.ambient, &self.events)
            }
            None => book,
        }
    }

    /// Tells whether a text is a skill that its author lets nobody use but people. Our own can be scheduled: whoever typed
    /// the loop wants them.
    pub(crate) fn is_for_people_alone(&self, text: &str) -> bool {
        let Some((name, _)) = split_command(text) else { return false };
        let registry = self.skills.registry();
        let skill = registry.find(name);
        skill.is_some_and(|skill| !skill.is_for_model && skill.source.scope != SkillScope::Bundled)
    }

    /// Adds what people can type to the commands.
    pub(crate) fn add_skill_commands(&self) {
        self.slash_commands.update_eq(|commands| {
            let mut commands = CommandRegistry::clone(commands);
            self.skills.add_commands(&mut commands);
            Arc::new(commands)
        });
    }

    /// Lets the hooks of a skill that was used count until the session ends; returns what is wrong with them.
    pub(crate) fn register_skill_hooks(&self, name: &str) -> Option<String> {
        let skill = self.skills.find(name)?;
        let hooks = skill.hooks.as_ref().filter(|_| self.skills.is_first_use_of_hooks(name))?;
        let (scope, file) = (HookScope::Skill(name.to_owned()), Arc::from(skill.source.to_string()));
        let source = HookSource { scope, file, line: 0 };
        let (config, problems) = HookConfig::parse(hooks, source, &self.services.env.cwd);
        self.hooks.add_scoped(ScopedHooks { config, agent: None }).keep();
        let problems: Vec<String> = problems.iter().map(|problem| problem.to_string()).collect();
        (!problems.is_empty()).then(|| format!("Hooks of the skill `{name}`: {}", problems.join("; ")))
    }

    /// Returns whoever has a say in turns, if anybody listens to this event.
    pub(crate) fn listeners(&self, event: HookEvent) -> Option<Arc<dyn TurnHooks>> {
        self.turn_hooks.listens_to(event).then(|| Arc::clone(&self.turn_hooks))
    }

    /// Returns where an agent's transcript lies, or would.
    pub(crate) fn agent_transcript(&self, agent: &AgentId) -> PathBuf {
        self.identity.get().companion_dir().join("subagents").join(format!("agent-{agent}.jsonl"))
    }

    pub(crate) fn mode(&self) -> Mode {
        self.state.get().permission.rulebook.mode
    }

    /// Returns what this process has spent so far, in US dollars: what a budget is held against.
    pub(crate) fn spent_usd(&self) -> f64 {
        self.identity.get().process_totals().cost_usd()
    }

    /// Returns what the session has used in all, earlier runs included, with what this process used before it.
    pub(crate) fn totals(&self) -> Totals {
        self.usage.earlier.plus(&self.identity.get().process_totals())
    }

    /// Returns what the transcript is to say of it; nothing, as long as this process used nothing.
    pub(crate) fn cost_state(&self) -> Option<CostState> {
        let identity = self.identity.get();
        let is_told = identity.is_persistent() && !identity.totals.by_model.is_empty();
        is_told.then(|| self.usage.earlier.cost_state(&identity.totals))
    }
}
