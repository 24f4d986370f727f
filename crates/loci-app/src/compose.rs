//! The composition root: from options, settings and the past to the configuration of a session that can be run.
//!
//! The steps, in order: [`Prefetch`] starts reading while the front end finds the session to go on with; then the provider
//! (its connection is made meanwhile), permissions and memories, the reloading of settings, tools and model; at last
//! what was read is waited for and all is put together. What is slow runs beside the rest: a start is measured.

mod identity;
mod permissions;
mod prefetch;
mod provider;
mod structured_output;
mod tools;

use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_context::PromptParts;
use loci_core::hooks::{HookConfig, HookEvent};
use loci_core::model::ModelCatalog;
use loci_core::permission::Rulebook;
use loci_engine::{
    BackgroundConfig, CommandRegistry, CompactionConfig, Grants, InitializeRequest, LoadedHistory, McpConfig,
    ModelConfig, PlanConfig, SessionConfig, SessionMemory, SessionSkills, SettingsReload, ToolSearchMode,
    TurnLimits,
};
use loci_llm::{Client, RetryPolicy};
use loci_mcp::SandboxMaker;
use loci_sandbox::Sandbox;
use loci_stdx::{Env, Store};
use loci_storage::layout::{ConfigHome, SessionTmp};
use loci_tools::{RecordDirs, SKILL_TOOL, Toolbox, real_path};

use crate::agent_servers::agent_servers;
use crate::agents::{SessionAgents, add_client_agents};
use crate::background_agents::background_config;
use crate::checkpoints::file_history;
use crate::choose_model;
use crate::commands::{PluginReload, SessionCommands};
use crate::compaction::compaction_config;
use crate::mcp;
use crate::memory::{Memory, open_memory};
use crate::options::{RunOptions, ToolChoice};
use crate::output_style::{StyleNames, choose_style, style_names};
use crate::plans::plan_config;
use crate::providers::wait_beside;
use crate::resume::{self, Resume};
use crate::sandbox::{SandboxWorld, SessionSandbox, sandbox_maker};
use crate::save_permission::{save_nothing, save_to_settings};
use crate::settings::RunSettings;
use crate::settings_editor::SettingsInputs;
use crate::settings_reload::{ReloadBaseline, watch_settings};
use crate::skills::SkillOptions;
use crate::status_line::refused_commands;
use crate::system_prompt::{change_prompts, prompt_parts};
use crate::tool_search::tool_search;
use crate::user_error::UserError;
use crate::worktree::worktree_options;

use permissions::may_bypass;
use provider::{Provider, declared_window, provider};
use structured_output::offer_structured_output;

pub use permissions::Permissions;
pub use prefetch::{Prefetch, Prefetched};
pub(crate) use provider::provider_of_run;
pub use provider::{needs_credentials, own_catalog};
pub use tools::toolbox;

/// Models of named providers with less than this are offered few tools: each takes room that the work needs.
const SMALL_WINDOW: u64 = 32_768;

/// How often hooks may make a turn go on, unless somebody says otherwise.
const MOST_OBJECTIONS: u32 = 8;

/// How long a session waits for its user before hooks hear of it, unless somebody says otherwise.
const IDLE_NOTICE: Duration = Duration::from_secs(60);

/// What a session is composed from.
pub struct ComposeInputs<'a> {
    /// What the run is asked to be.
    pub options: &'a RunOptions,
    /// Its settings.
    pub run: RunSettings,
    /// The session that begins or goes on.
    pub resume: Resume,
    /// What is being read meanwhile.
    pub prefetch: Prefetch,
    /// The provider, where it is not the environment's own.
    pub client: Option<Client>,
    /// When the process, or the renewal, started.
    pub started: Instant,
}

/// A session's configuration and what the user should know about it.
pub struct Composed {
    /// The configuration.
    pub config: SessionConfig,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// The main model, and those that may take its place.
    pub models: Vec<String>,
    /// Whether the session may switch to running everything unasked.
    pub may_bypass: bool,
    /// Lists the names of all output styles.
    pub style_names: StyleNames,
    /// How plugins are read anew.
    pub plugin_reload: PluginReload,
}

impl Composed {
    /// Takes up what the client asked for meanwhile; nothing of the session exists yet.
    pub fn take_initialize(&mut self, options: &RunOptions) -> Result<(), UserError> {
        change_prompts(&mut self.config.prompt, options)?;
        resume::name_history(&mut self.config.history, options);
        offer_structured_output(&mut self.config, options)?;
        if let Some(request) = &options.initialize {
            if let Some(names) = &request.skills {
                choose_skills(&mut self.config, names);
            }
            redirect_tools(&mut self.config, request);
            self.config.client_hooks.clone_from(&request.hooks);
            self.config.plans.instructions.clone_from(&request.plan_mode_instructions);
            let problems = add_client_agents(&mut self.config, &request.agents);
            self.warnings.extend(problems);
            if let Some(mcp) = &self.config.mcp {
                mcp.servers.add_sdk(&request.sdk_mcp_servers);
            }
        }
        Ok(())
    }
}

/// Makes the configuration of a session.
pub fn compose(inputs: ComposeInputs<'_>) -> Result<Composed, UserError> {
    let ComposeInputs { options, mut run, mut resume, prefetch, client, started } = inputs;
    let mut provider = provider(options, &run, client);
    let tmp = run.home.session_tmp(&run.env.cwd, resume.place.id());
    let mut access = access(options, &run, &resume, &tmp, provider.is_scripted)?;
    let sandbox = sandbox(&run, &tmp, &mut access)?;
    let settings_reload = reload(options, &mut run, &access, &provider, sandbox.clone());
    let record = RecordDirs {
        sessions: identity::project_dir(&resume.place),
        memory: access.memory.as_ref().map(|memory| memory.place.dir.clone()),
    };
    let mut agents = SessionAgents::new(options, &run)?;
    agents.apply_main(options, &run, &mut access.rulebook, Some(&resume));
    resume.history.agent = agents.news_for(&resume);
    let asked = agents.model_options(&options.model);
    let mut model = choose_model::choose(&run.env, &asked, &run.settings, resume.model.as_deref())?;
    let unavailable = choose_model::keep_available(&run.env.vars, &run.in_force, &mut model);
    provider.settle(&mut model, &run)?;
    check_budget(options, &model)?;
    model.user_id = loci_storage::config::known_user_id(&run.home);
    let mut prefetched = prefetch.join();
    let instructions = prefetched.instructions.diagnostics.iter();
    let instructions = instructions.map(|found| format!("{}: {}", found.path.display(), found.message));
    let mut warnings = std::mem::take(&mut resume.warnings);
    warnings.extend(unavailable);
    warnings.extend(provider.warnings(&run));
    let skills = std::mem::take(&mut prefetched.skills);
    warnings.extend(skills.warnings());
    warnings.extend(run.warnings.iter().chain(&access.warnings).cloned().chain(instructions));
    let mut compaction = compaction_config(&run.env, &run.settings, &model.main);
    let is_named = model.catalog.facts(&model.main).is_named;
    compaction.window = match is_named {
        // A window of the whole session would count for its other models, too.
        true => compaction.window.filter(|window| Some(*window) != declared_window(&run)),
        false => compaction
            .window
            .or_else(|| server_window(&run.env, &provider.client, &model.catalog, &model.main)),
    };
    compaction.window = options.compact_window.or(compaction.window);
    let (mcp, problems) =
        mcp::servers_of_run(options, &run, resume.place.id().as_str(), agents.config.main.as_deref())?;
    let make_sandbox = sandbox_maker(&run, resume.place.id().as_str());
    let of_agents = agent_servers(options, &run, resume.place.id().as_str(), &make_sandbox);
    agents.config.make_servers = Some(of_agents);
    warnings.extend(problems);
    let window = compaction.window.unwrap_or(model.catalog.facts(&model.main).window);
    let skills = match options.has_no_commands {
        true => SessionSkills::none(),
        false => skills.into_session(SkillOptions::new(&run), window),
    };
    let skills = Arc::new(skills);
    agents.preload_skills(&skills.registry());
    warnings.append(&mut agents.warnings);
    warnings.extend(tools::unknown_tools(options));
    let mut toolbox = toolbox(options, &run, &access.rulebook, record, &skills)?;
    agents.offer(&mut toolbox, &access.rulebook);
    let (search, warning) = tool_search(options, &run, &access.rulebook, &model.main);
    // What was found is told in a kind of block that only the Messages API knows.
    model.tool_search = if is_named { ToolSearchMode::Off } else { search };
    warnings.extend(warning);
    if is_named && window < SMALL_WINDOW && options.tools == ToolChoice::Usual {
        toolbox.retain(|tool| tool.facts.is_bare);
        warnings.push(format!(
            "`{}` can read {window} tokens at once, so it is offered the tools of a bare run alone; name others with --tools",
            model.main
        ));
    }
    let models = std::iter::once(model.main.clone()).chain(model.fallbacks.clone()).collect();
    let may_bypass = may_bypass(&options.permissions, &run.settings.permissions);
    let (plans, warning) = plan_config(&run.env, &run.home, options, &run.settings, &tmp);
    warnings.extend(warning);
    let parts = Parts {
        sandbox_maker: make_sandbox,
        sandbox,
        agents,
        provider,
        access,
        settings_reload,
        toolbox,
        skills,
        model,
        compaction,
        prefetched,
        tmp,
        plans,
        mcp,
    };
    let style = choose_style(&run);
    warnings.extend(style.warnings);
    let style_names = style_names(&run);
    let plugin_reload = PluginReload {
        inherited: run.inherited.clone(),
        options: options.clone(),
        store: Arc::clone(&run.plugin_store),
    };
    let mut config = assemble(options, run, resume, parts, started)?;
    config.prompt.style = style.prompt;
    config.output_style = style.name;
    offer_structured_output(&mut config, options)?;
    if let Some(request) = &options.initialize {
        redirect_tools(&mut config, request);
        if let Some(names) = &request.skills {
            choose_skills(&mut config, names);
        }
    }
    Ok(Composed { config, warnings, models, may_bypass, style_names, plugin_reload })
}

/// Has tools called in the place of others, as the client wants it.
fn redirect_tools(config: &mut SessionConfig, request: &InitializeRequest) {
    let redirects = request.tool_aliases.iter();
    let redirects = redirects.filter_map(|(name, tool)| Some((name.clone(), tool.as_str()?.to_owned())));
    config.toolbox.set_redirects(redirects.collect());
}

/// Lets the model use the skills that the client names and no others.
fn choose_skills(config: &mut SessionConfig, names: &[String]) {
    config.skills.choose(names.to_vec());
    if !config.skills.has_any_for_model() {
        config.toolbox.retain(|tool| tool.name != SKILL_TOOL);
    }
}

/// What a session may do and remember.
struct Access {
    /// The rules of the options alone.
    base: Rulebook,
    rulebook: Rulebook,
    memory: Option<Memory>,
    warnings: Vec<String>,
}

/// Finds rules and memories. A session reads its own directories; a scripted model has nothing to remember.
fn access(
    options: &RunOptions,
    run: &RunSettings,
    resume: &Resume,
    tmp: &SessionTmp,
    is_scripted: bool,
) -> Result<Access, UserError> {
    let Permissions { base, mut rulebook, mut warnings } =
        Permissions::new(&run.env, &options.permissions, &run.settings.permissions, resume.mode)?;
    let own_dirs = [resume.place.tool_results_dir(), tmp.tasks_dir()];
    rulebook.read_dirs = own_dirs.iter().flat_map(|dir| [dir.clone(), real_path(dir)]).collect();
    let (memory, warning) = if is_scripted { (None, None) } else { memory_of(run) };
    warnings.extend(warning);
    if let Some(memory) = &memory {
        memory.admit(&mut rulebook);
    }
    Ok(Access { base, rulebook, memory, warnings })
}

/// Makes the sandbox that settings ask for, and has calls judged by it.
fn sandbox(
    run: &RunSettings,
    tmp: &SessionTmp,
    access: &mut Access,
) -> Result<Option<Arc<Sandbox>>, UserError> {
    let world = SandboxWorld {
        env: &run.env,
        config_home: run.home.root().to_owned(),
        scratch: tmp.sandbox_dir(),
        dirs: access.rulebook.dirs.clone(),
    };
    let SessionSandbox { sandbox, rules, warnings } = SessionSandbox::new(&world, &run.settings)?;
    access.base.sandbox.clone_from(&rules);
    access.rulebook.sandbox = rules;
    access.warnings.extend(warnings);
    access.warnings.extend(refused_commands(&run.in_force));
    Ok(sandbox)
}

fn memory_of(run: &RunSettings) -> (Option<Memory>, Option<String>) {
    open_memory(&run.env, &run.home, run.is_bare, &run.settings, run.instructions.memory_root())
}

/// Has the session follow its settings files, where there are any.
fn reload(
    options: &RunOptions,
    run: &mut RunSettings,
    access: &Access,
    provider: &Provider,
    sandbox: Option<Arc<Sandbox>>,
) -> Option<SettingsReload> {
    let watch = run.watch.take()?;
    let baseline = ReloadBaseline {
        inherited: run.inherited.clone(),
        env: run.env.clone(),
        base: access.base.clone(),
        rulebook: access.rulebook.clone(),
        settings: run.in_force.clone(),
        credentials: Arc::clone(&provider.credentials),
        hook_gate: run.hook_gate,
        is_trusted: run.instructions.is_trusted(),
        plugins: Arc::clone(&run.plugin_store),
        flag_settings: options.flag_settings.clone(),
        sandbox,
    };
    Some(watch_settings(watch, baseline))
}

/// What the steps made.
struct Parts {
    sandbox_maker: SandboxMaker,
    sandbox: Option<Arc<Sandbox>>,
    agents: SessionAgents,
    provider: Provider,
    access: Access,
    settings_reload: Option<SettingsReload>,
    toolbox: Toolbox,
    skills: Arc<SessionSkills>,
    model: ModelConfig,
    compaction: CompactionConfig,
    prefetched: Prefetched,
    tmp: SessionTmp,
    plans: PlanConfig,
    mcp: Option<McpConfig>,
}

/// Puts all together.
fn assemble(
    options: &RunOptions,
    run: RunSettings,
    resume: Resume,
    parts: Parts,
    started: Instant,
) -> Result<SessionConfig, UserError> {
    let Parts {
        sandbox_maker,
        sandbox,
        agents,
        provider,
        access,
        settings_reload,
        toolbox,
        skills,
        model,
        compaction,
        prefetched,
        tmp,
        plans,
        mcp,
    } = parts;
    let RunSettings {
        env,
        inherited,
        home,
        settings,
        in_force,
        instructions,
        hooks,
        is_bare,
        plugins,
        plugin_store,
        ..
    } = run;
    let Access { rulebook, memory, .. } = access;
    let place = &resume.place;
    let memory_dir = memory.as_ref().map(|memory| memory.place.dir.as_path());
    Ok(SessionConfig {
        tmp,
        identity: identity::identity(&env, place, options),
        log: identity::log(&home, place, resume.lease, options.is_persistent),
        mirrors_transcript: options.mirrors_transcript,
        stamp: identity::stamp(&env, place, options.is_interactive),
        setup: options.setup,
        start_source: start_source(options, &resume.history),
        history: resume.history,
        toolbox,
        commands: Arc::new(Store::new(match options.has_no_commands {
            true => CommandRegistry::default(),
            false => CommandRegistry::builtin(),
        })),
        local_commands: Some(Arc::new(SessionCommands {
            env: env.clone(),
            home: home.clone(),
            build: options.build.clone().unwrap_or_else(|| "unknown".to_owned()),
            settings: SettingsInputs::from_options(&env, options),
            plugin_reload: Some(PluginReload { inherited, options: options.clone(), store: plugin_store }),
        })),
        output_style: String::new(),
        settings: in_force,
        settings_reload,
        grants: Grants {
            may_grant: !settings.permissions.managed_rules_only,
            may_bypass: may_bypass(&options.permissions, &settings.permissions),
            save: Some(if options.is_demo { save_nothing() } else { save_to_settings(env.clone()) }),
        },
        classifier: None,
        can_ask: options.can_ask,
        client: provider.client,
        prompt: PromptParts {
            agent: agents.prompt.clone(),
            ..prompt_parts(&env, options, &rulebook, &model.main, prefetched.git, memory_dir)?
        },
        limits: limits(&env, options)?,
        compaction,
        idle_notice: idle_notice(&home, options, &hooks.config),
        hooks: agents.with_hooks(hooks.config, &env.cwd),
        agents: agents.config,
        client_hooks: options.initialize.as_ref().map(|it| it.hooks.clone()).unwrap_or_default(),
        client_requests: options.client_requests.clone(),
        editor: options.editor.clone(),
        mcp,
        mcp_tools: None,
        max_objections: max_objections(&env),
        turn_hooks: None,
        compaction_hooks: None,
        restore_sources: Vec::new(),
        skills,
        plans,
        worktree: worktree_options(&settings.worktree),
        background: background_of(
            &env,
            &model,
            background_config(&env, options, &settings, is_bare, memory.as_ref()),
        ),
        memory: memory
            .map(|memory| SessionMemory { journal: memory.journal, shows_team: instructions.is_trusted() }),
        instructions: prefetched.instructions,
        lazy_instructions: prefetched.lazy_instructions,
        read_instructions: prefetched.read_instructions,
        child_env: plugins.child_env(&env),
        sandbox,
        sandbox_maker: Some(sandbox_maker),
        plugins: Arc::new(plugins.list()),
        file_history: file_history(&env, &home, options, &settings, place, resume.snapshots),
        started: env.clock.monotonic().saturating_sub(started.elapsed()),
        api_key_source: provider.api_key_source,
        rulebook,
        model,
        env,
        home,
    })
}

/// Has work beside the conversation ask a model that is there.
fn background_of(env: &Env, model: &ModelConfig, background: BackgroundConfig) -> BackgroundConfig {
    // At Foundry a model is a deployment, and only the main one is known to be there.
    let is_foundry = env.vars.is_truthy("CLAUDE_CODE_USE_FOUNDRY");
    let small_model = background.small_model.map(|name| match is_foundry {
        true => model.main.clone(),
        false => model.catalog.stand_in(name),
    });
    BackgroundConfig { small_model, ..background }
}

/// Returns how long a session may wait for its user before hooks hear of it.
fn idle_notice(home: &ConfigHome, options: &RunOptions, hooks: &HookConfig) -> Duration {
    let is_heard = options.is_interactive || hooks.has(HookEvent::Notification);
    is_heard.then(|| loci_storage::config::idle_notice(home)).flatten().unwrap_or(IDLE_NOTICE)
}

/// Says how a session begins, as hooks are told.
fn start_source(options: &RunOptions, history: &LoadedHistory) -> &'static str {
    match (history.path.is_empty(), options.session.is_fork) {
        (true, _) => "startup",
        (false, true) => "fork",
        (false, false) => "resume",
    }
}

/// Returns how often hooks may make a turn go on.
fn max_objections(env: &Env) -> u32 {
    let said = env.vars.non_empty("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP");
    said.and_then(|text| text.trim().parse().ok()).unwrap_or(MOST_OBJECTIONS)
}

/// Asks a local server how much a model can read of which we know nothing; where it does not say, that is assumed.
fn server_window(env: &Env, client: &Client, catalog: &ModelCatalog, model: &str) -> Option<u64> {
    if catalog.facts(model).is_known || env.vars.non_empty("ANTHROPIC_BASE_URL").is_none() {
        return None;
    }
    let (client, model) = (client.clone(), model.to_owned());
    wait_beside(async move { client.context_window(&model).await })
}

/// Refuses a budget that nothing could be held against.
fn check_budget(options: &RunOptions, model: &ModelConfig) -> Result<(), UserError> {
    let Some(limit) = options.max_budget_usd else { return Ok(()) };
    let mut models = std::iter::once(&model.main).chain(&model.fallbacks);
    match models.find(|name| model.catalog.facts(name).price.is_none()) {
        None => Ok(()),
        Some(name) => Err(UserError::new(format!(
            "The price of `{name}` is unknown, so a budget of ${limit} cannot be kept"
        ))
        .hint("Choose a model whose price is known, or leave out --max-budget-usd.")),
    }
}

fn limits(env: &Env, options: &RunOptions) -> Result<TurnLimits, UserError> {
    let parallel = env.vars.non_empty("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY");
    Ok(TurnLimits {
        max_turns: options.max_turns.or_else(|| {
            env.vars.non_empty("CLAUDE_CODE_MAX_TURNS").and_then(|text| text.trim().parse().ok())
        }),
        max_budget_usd: options.max_budget_usd,
        max_parallel: parallel.and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        retry: RetryPolicy::from_env(env)?,
        allows_one_piece: !env.vars.is_truthy("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK"),
        structured: None,
    })
}
