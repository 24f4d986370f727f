//! Putting a session together from its configuration.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use loci_context::{PromptParts, excluded_sections, system_prompt};
use loci_core::app_state::{AppState, ModelChoice, PermissionState, SessionView};
use loci_core::entry::{Attachment, AttachmentKind, Entry};
use loci_core::session::SessionIdentity;
use loci_stdx::{Env, Store};
use loci_storage::memory::Author;
use loci_storage::sessions::LineMirror;
use loci_tools::{BackgroundTasks, DeathWatch, Host as _, Workspace};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::side_question::SideQuestions;
use super::{Session, SessionHandle, TaskWait};
use crate::agents::background::{BackgroundBudget, BackgroundDeps};
use crate::agents::{AgentBase, AgentService};
use crate::command::Command;
use crate::conversation::context::{PolicyState, SessionFacts, SessionServices, SessionUsage};
use crate::conversation::host::{ConversationHost, HostParts, Spill};
use crate::conversation::recorder::Recorder;
use crate::conversation::request_base::RequestBase;
use crate::conversation::{
    Conversation, ConversationParts, Helpers, InstructionState, Prelude, SessionContext,
};
use crate::event::{EngineEvent, EventSink, ResumedHistory};
use crate::extensions::hooks::{HookAgents, HookService, HookWorld};
use crate::extensions::mcp::{McpConfig, McpLink};
use crate::extensions::{McpToolCaller, RestoreSource};
use crate::models::small_model::SmallModel;
use crate::session::config::{Ambient, SessionConfig};
use crate::session::file_history::Checkpoints;
use crate::session::goal::{GoalKeeper, refusal};
use crate::session::memory::MemoryService;
use crate::session::plan::PlanService;
use crate::session::schedule::ScheduleService;
use crate::session::state::connect;
use crate::session::state_effects::SessionStateEffects;
use crate::session::timeline::TimelineRecorder;
use crate::tools::sandbox_hosts::connect_sandbox;
use crate::tools::task_list::task_store;
use crate::tools::web::{WebService, WebWorld};
use crate::tools::worktrees::WorktreeService;

/// The variable that turns schedules off.
const NO_SCHEDULE: &str = "CLAUDE_CODE_DISABLE_CRON";

impl Session {
    /// Makes a session; nothing happens until it is run.
    pub fn new(mut config: SessionConfig) -> (Self, SessionHandle, UnboundedReceiver<EngineEvent>) {
        let (events, events_out) = unbounded_channel();
        let (command_in, commands) = unbounded_channel();
        let listener = events.clone();
        config.client.on_announcement(move |text| {
            // Without a listener there is nobody to tell.
            drop(listener.send(EngineEvent::Warning(text.to_owned())));
        });
        let place = place(&config.identity, &config.rulebook.dirs, &config.env);
        let ctx = Arc::new(session_context(&mut config, events, &command_in));
        ctx.add_skill_commands();
        if let Some(schedule) = &ctx.schedule {
            for why in [schedule.take_problem(), schedule.sync_durable()].into_iter().flatten() {
                // Without a listener there is nobody to tell.
                drop(ctx.events.send(EngineEvent::Warning(why)));
            }
        }
        connect_sandbox(&ctx);
        let mcp = ctx.services.mcp.as_ref().map(|mcp| {
            let (requests, main) = (config.client_requests.clone(), config.agents.main.clone());
            McpLink::new(mcp, &ctx, requests, main, config.limits.max_budget_usd)
        });
        let main = config.agents.main.as_ref().filter(|_| config.history.path.is_empty());
        let session = Self {
            commands,
            queue: VecDeque::new(),
            is_closing: false,
            is_deaf: false,
            drain: config.background.drain,
            is_side_work_asked_for: config.background.max_share.is_none(),
            task_wait: TaskWait {
                is_on: true,
                agents: config.background.agent_wait,
                commands: config.background.command_wait,
            },
            start_source: config.start_source,
            setup: config.setup,
            idle_notice: config.idle_notice,
            memory_watch: config.memory_watch.clone(),
            has_answered: false,
            is_told_idle: false,
            end_reason: "other",
            initial_prompt: main.and_then(|agent| agent.initial_prompt.clone()),
            mcp,
            side_questions: SideQuestions::new(background_deps(&ctx, &config)),
            n_switching: 0,
            conversation: Conversation::main(ctx, config, place),
        };
        (session, SessionHandle { commands: command_in }, events_out)
    }
}

/// What the services of a session are built upon.
struct Foundation {
    identity: Arc<Store<SessionIdentity>>,
    state: Arc<Store<AppState>>,
    ambient: Arc<Mutex<Ambient>>,
    timeline: Arc<TimelineRecorder>,
    env_dir: Arc<OnceLock<PathBuf>>,
    small_model: SmallModel,
    mcp_tools: Option<Arc<dyn McpToolCaller>>,
}

impl Foundation {
    fn new(config: &mut SessionConfig, events: &UnboundedSender<EngineEvent>) -> Self {
        let identity = Arc::new(Store::new(config.identity.clone()));
        let ambient = Ambient {
            env: config.env.clone(),
            child_env: std::mem::take(&mut config.child_env),
            sandbox: config.sandbox.take(),
        };
        let effects = SessionStateEffects { events: events.clone(), identity: Arc::clone(&identity) };
        let state = first_state(config, &identity.get());
        let own_caller = config.mcp.as_ref().map(McpConfig::tool_caller);
        Self {
            state: Arc::new(connect(state, effects)),
            identity,
            ambient: Arc::new(Mutex::new(ambient)),
            timeline: Arc::new(TimelineRecorder::default()),
            env_dir: Arc::new(OnceLock::new()),
            small_model: SmallModel::new(&config.model),
            mcp_tools: config.mcp_tools.take().or(own_caller),
        }
    }

    fn hooks(
        &self,
        config: &mut SessionConfig,
        events: &UnboundedSender<EngineEvent>,
        commands: &UnboundedSender<Command>,
    ) -> HookService {
        HookService::new(
            std::mem::take(&mut config.hooks),
            &config.client_hooks,
            HookWorld {
                identity: Arc::clone(&self.identity),
                state: Arc::clone(&self.state),
                ambient: Arc::clone(&self.ambient),
                events: events.clone(),
                timeline: Arc::clone(&self.timeline),
                tmp: config.tmp.clone(),
                client_requests: config.client_requests.clone(),
                client: config.client.clone(),
                models: config.model.catalog.clone(),
                small_model: self.small_model.clone(),
                has_classifier: config.classifier.is_some(),
                main_agent: config.agents.main.as_ref().map(|agent| agent.name.clone()),
                mcp_tools: self.mcp_tools.clone(),
                home: config.home.clone(),
                env_dir: Arc::clone(&self.env_dir),
                sandbox_maker: config.sandbox_maker.take(),
                commands: commands.downgrade(),
            },
        )
    }

    fn web(&self, config: &SessionConfig) -> WebService {
        let world = WebWorld {
            client: config.client.clone(),
            models: config.model.catalog.clone(),
            identity: Arc::clone(&self.identity),
            state: Arc::clone(&self.state),
            ambient: Arc::clone(&self.ambient),
            main_model: config.model.main.clone(),
            small_model: self.small_model.clone(),
            mcp_tools: self.mcp_tools.clone(),
            death_watch: DeathWatch::default(),
        };
        WebService::new(world, &config.env)
    }

    fn plans(&self, config: &mut SessionConfig) -> PlanService {
        // A fork begins with the words of another session, not with its plan.
        let past = if config.history.inherited.is_empty() { &config.history.path[..] } else { &[] };
        let can_exit = config.toolbox.find("ExitPlanMode").is_some();
        let plan_config = std::mem::take(&mut config.plans);
        PlanService::new(plan_config, config.env.clone(), Arc::clone(&self.state), past, can_exit)
    }
}

/// Makes what the conversations of a session share.
fn session_context(
    config: &mut SessionConfig,
    events: UnboundedSender<EngineEvent>,
    commands: &UnboundedSender<Command>,
) -> SessionContext {
    let foundation = Foundation::new(config, &events);
    let hooks = foundation.hooks(config, &events, commands);
    let web = foundation.web(config);
    let plans = foundation.plans(config);
    let Foundation { identity, state, ambient, timeline, env_dir, small_model, mcp_tools: _ } = foundation;
    let memory = config.memory.take();
    let memory = memory.map(|it| MemoryService::new(config.env.clone(), Arc::clone(&identity), it));
    let options = std::mem::take(&mut config.worktree);
    let current = config.current_worktree.clone();
    let worktrees =
        WorktreeService::new(config.env.clone(), hooks.clone(), options, Arc::clone(&state), current);
    let goal = config.history.goal.clone().filter(|_| refusal(&state.get().settings).is_none());
    SessionContext {
        schedule: schedule(config, &identity.get()),
        services: SessionServices {
            env: config.env.clone(),
            home: config.home.clone(),
            tmp: config.tmp.clone(),
            ambient,
            client: config.client.clone(),
            small_model,
            web: Arc::new(web),
            editor: config.editor.take(),
            mirror: config.mirrors_transcript.then(|| mirror(events.clone())),
            mcp: config.mcp.take(),
            env_dir,
        },
        facts: SessionFacts {
            output_style: std::mem::take(&mut config.output_style),
            has_style_prompt: config.prompt.style.is_some(),
            main_agent: config.agents.main.as_ref().map(|agent| agent.name.clone()),
            api_key_source: std::mem::take(&mut config.api_key_source),
            plugins: Arc::clone(&config.plugins),
            started: config.started,
        },
        policy: PolicyState::new(
            config.can_ask,
            config.settings_source.take(),
            std::mem::take(&mut config.grants),
            config.classifier.take(),
        ),
        usage: SessionUsage {
            earlier: config.history.earlier.clone(),
            background_budget: Arc::new(BackgroundBudget::new(
                config.background.max_share,
                config.model.catalog.clone(),
            )),
            timeline,
            rate_limits: Mutex::default(),
        },
        state,
        identity,
        events,
        slash_commands: Arc::clone(&config.commands),
        local_commands: config.local_commands.take(),
        turn_hooks: config.turn_hooks.take().unwrap_or_else(|| Arc::new(hooks.clone())),
        max_objections: config.max_objections,
        compaction_hooks: config.compaction_hooks.take().unwrap_or_else(|| Arc::new(hooks.clone())),
        hooks,
        restore_sources: restore_sources(config),
        skills: Arc::clone(&config.skills),
        memory: memory.map(Arc::new),
        goal: GoalKeeper::restored(goal.as_deref(), config.env.clock.monotonic()),
        worktrees: Arc::new(worktrees),
        plans: Arc::new(plans),
    }
}

impl Conversation {
    /// Makes the main line of a session.
    fn main(ctx: Arc<SessionContext>, mut config: SessionConfig, place: Workspace) -> Self {
        let who = ctx.identity.get();
        let checkpoints = Checkpoints::new(&config.env, config.file_history.take());
        let events = EventSink::new(ctx.events.clone(), None);
        let host = ConversationHost::new(HostParts {
            home: ctx.services.home.clone(),
            ambient: Arc::clone(&ctx.services.ambient),
            place,
            spill: spill(&who),
            tmp: ctx.services.tmp.clone(),
            events: events.clone(),
            state: Arc::clone(&ctx.state),
            keeper: checkpoints.keeper(),
            transcript: config.log.path().map(Path::to_path_buf),
            memory: ctx.memory.as_ref().map(|memory| memory.dir().to_owned()),
            task_store: task_store(&config.home, &who, &config.env, events.clone()),
            plans: Some(Arc::clone(&ctx.plans)),
            worktrees: Some(Arc::clone(&ctx.worktrees)),
            session: who.id().to_string(),
            env_dir: Arc::clone(&ctx.services.env_dir),
            tasks: tasks(&ctx),
            agent: None,
        });
        let own = config.keeps_prompt.then(|| kept_prompt(&mut config.prompt, &config.history.path));
        let (prompt, toolbox, id) = (&config.prompt, &config.toolbox, who.id().as_str());
        let base = Arc::new(RequestBase::new(prompt, toolbox, &config.model, config.compaction, id));
        let deps = background_deps(&ctx, &config);
        let past = config.history.path.clone();
        let base_of_agents = AgentBase {
            prompt: PromptParts { snapshot: Vec::new(), ..config.prompt.clone() },
            limits: config.limits.clone(),
            compaction: config.compaction,
            instructions: config.instructions.clone(),
            lazy_instructions: config.lazy_instructions.clone(),
            task_store: host.task_store(),
            file_history: checkpoints.keeper(),
            client_requests: config.client_requests.clone(),
        };
        let service = AgentService::new(deps.clone(), &config.agents, base_of_agents, config.toolbox.clone());
        let host = host.with_agents(Arc::new(service)).with_agent_poller(config.agents.poll.take());
        let host = host
            .with_schedule(ctx.schedule.clone())
            .with_web(&ctx.services.web)
            .with_servers(ctx.services.mcp.clone());
        let host = host.with_editor(ctx.services.editor.clone());
        let helpers = Helpers::new(&deps, &config.background, config.compaction.collapses, &past);
        let log = config.log.with_mirror(ctx.services.mirror.clone());
        let mut recorder = Recorder::new(config.env.clone(), log, config.stamp, config.history);
        recorder.add_before_prompt(own.flatten().into_iter().collect());
        let lost = match who.is_persistent() {
            true => recorder.find_lost_tasks(Some(&who.companion_dir().join("subagents"))),
            false => Vec::new(),
        };
        if !past.is_empty() {
            events.send(EngineEvent::Resumed(ResumedHistory { entries: past.clone(), lost }));
        }
        let instructions = InstructionState {
            files: config.instructions,
            lazy: config.lazy_instructions,
            read: config.read_instructions,
            excluded: excluded_sections(&config.prompt),
            servers: Vec::new(),
            told_date: String::new(),
        };
        let host = Arc::new(host);
        ctx.hooks.set_agents(HookAgents {
            ctx: Arc::downgrade(&ctx),
            stamp: recorder.stamp().clone(),
            max_budget_usd: config.limits.max_budget_usd,
            toolbox: config.toolbox.clone(),
            model: config.model.clone(),
            host: Arc::downgrade(&host),
        });
        let search = config.model.tool_search;
        let mut conversation = Self::new(ConversationParts {
            agent: None,
            events,
            recorder,
            host,
            toolbox: config.toolbox,
            base,
            model: config.model,
            limits: config.limits,
            asks: true,
            policy: None,
            author: Author::Model,
            compaction: config.compaction,
            instructions,
            prelude: Prelude::Opening(None),
            past: Some(past),
            checkpoints,
            helpers,
            ctx,
        });
        conversation.set_tool_search(search);
        conversation
    }
}

/// Takes the prompt that a session has recorded, so that it is sent as it was; without one, returns what is to be recorded.
/// A compaction leaves it behind: then there is nothing cached that another prompt would lose.
fn kept_prompt(prompt: &mut PromptParts, path: &[Arc<Entry>]) -> Option<Attachment> {
    let recorded = path.iter().rev().find_map(|entry| {
        let snapshot = entry.attachment_of_kind(AttachmentKind::PromptSnapshot)?;
        let Attachment::PromptSnapshot { system_prompt } = snapshot else { return None };
        let texts = system_prompt.as_array()?.iter().map(|it| it.as_str().map(str::to_owned));
        let texts: Option<Vec<String>> = texts.collect();
        texts.filter(|texts| !texts.is_empty())
    });
    match recorded {
        Some(texts) => {
            prompt.snapshot = texts;
            None
        }
        None => {
            let texts: Vec<String> = system_prompt(prompt).into_iter().map(|it| it.text).collect();
            Some(Attachment::PromptSnapshot { system_prompt: json!(texts) })
        }
    }
}

/// Tells front ends of every line that is written to a transcript.
fn mirror(events: UnboundedSender<EngineEvent>) -> LineMirror {
    LineMirror::new(move |file, lines| {
        // Without a listener the lines are in the file all the same.
        drop(events.send(EngineEvent::TranscriptLines { file: file.to_owned(), lines }));
    })
}

/// Returns what agents beside the conversation share with it.
fn background_deps(ctx: &Arc<SessionContext>, config: &SessionConfig) -> BackgroundDeps {
    BackgroundDeps {
        ctx: Arc::clone(ctx),
        stamp: config.stamp.clone(),
        max_budget_usd: config.limits.max_budget_usd,
    }
}

/// Returns what the session says to itself later, unless that is turned off. A fork begins with nothing of it.
fn schedule(config: &SessionConfig, who: &SessionIdentity) -> Option<Arc<ScheduleService>> {
    let is_off = config.env.vars.is_truthy(NO_SCHEDULE);
    let is_resumed = !config.history.path.is_empty() && config.history.inherited.is_empty();
    (!is_off).then(|| Arc::new(ScheduleService::new(config.env.clone(), &config.home, who, is_resumed)))
}

/// Returns what outlasts a compaction: skills that were used, and whatever else was plugged in.
fn restore_sources(config: &mut SessionConfig) -> Vec<Arc<dyn RestoreSource>> {
    let mut sources = std::mem::take(&mut config.restore_sources);
    sources.push(Arc::clone(&config.skills) as _);
    sources
}

/// Makes the table of background work; front ends hear of every step of it.
fn tasks(ctx: &SessionContext) -> BackgroundTasks {
    let (tasks, events) = (BackgroundTasks::default(), ctx.events.clone());
    // Without a listener the work goes on all the same.
    tasks.observe(move |news| drop(events.send(EngineEvent::Task(news))));
    tasks
}

/// Says where the session is, and where else it may work.
fn place(who: &SessionIdentity, dirs: &[PathBuf], env: &Env) -> Workspace {
    let project = who.project_root().to_path_buf();
    Workspace {
        cwd: who.original_cwd().to_path_buf(),
        extra_dirs: dirs.iter().filter(|dir| **dir != project).cloned().collect(),
        project,
        home: env.home.clone(),
    }
}

fn first_state(config: &mut SessionConfig, who: &SessionIdentity) -> AppState {
    let title = config.history.title.as_deref().or(config.history.labels.title()).map(str::to_owned);
    let rulebook = std::mem::take(&mut config.rulebook);
    AppState {
        permission: PermissionState { rulebook, ..PermissionState::default() },
        session: SessionView { title },
        settings: std::mem::take(&mut config.settings),
        model: ModelChoice { session_override: who.model_override.clone() },
    }
}

/// Long results lie beside the transcript; a session that leaves none keeps them with its tasks' output.
fn spill(who: &SessionIdentity) -> Spill {
    if who.is_persistent() {
        Spill::Beside(who.companion_dir().join("tool-results"))
    } else {
        Spill::Temporary
    }
}
