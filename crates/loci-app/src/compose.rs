//! The composition root: from options, settings and the past to the configuration of a session that can be run.
//!
//! The steps, in order: [`Prefetch`] starts reading while the front end finds the session to go on with; then the provider
//! (its connection is made meanwhile), what the session may do (`session_bounds`), its agents and its model; what was read is
//! waited for, the session gets what it works with (`equipment`), and all is put together (`assembly`). What is slow runs
//! beside the rest: a start is measured.

mod assembly;
pub(crate) mod background_agents;
pub mod checkpoints;
pub mod child_env;
pub mod compaction;
mod equipment;
mod identity;
mod permissions;
pub(crate) mod plans;
mod prefetch;
mod provider;
mod structured_output;
pub mod system_prompt;
pub(crate) mod tool_search;
mod tools;

use std::sync::Arc;
use std::time::Instant;

use loci_core::permission::Rulebook;
use loci_engine::{InitializeRequest, ModelConfig, SessionConfig, SettingsSource};
use loci_llm::Client;
use loci_sandbox::Sandbox;
use loci_storage::layout::SessionTmp;
use loci_tools::{SKILL_TOOL, real_path};

use crate::commands::PluginReload;
use crate::compose::plans::plan_config;
use crate::compose::system_prompt::change_prompts;
use crate::extensions::agents::{SessionAgents, add_client_agents};
use crate::extensions::output_style::{StyleNames, choose_style, style_names};
use crate::interface::status_line::refused_commands;
use crate::memory::{Memory, open_memory};
use crate::models::choose_model::{self, ModelSources};
use crate::models::gateway::start_discovery;
use crate::options::RunOptions;
use crate::permissions::sandbox::{SandboxWorld, SessionSandbox};
use crate::sessions::resume::{self, Resume};
use crate::settings::RunSettings;
use crate::settings::ineffective_vars::ineffective_vars;
use crate::settings::reload::{ReloadBaseline, SettingsFollower};
use crate::settings::sideload::check_client_agents;
use crate::settings::unknown::check_unknown;
use crate::user_error::UserError;

use assembly::{Parts, assemble};
use equipment::{Chosen, equip};
use provider::{Provider, provider};
use structured_output::offer_structured_output;

pub use permissions::Permissions;
pub use prefetch::{Prefetch, Prefetched};
pub(crate) use provider::RunProviders;
pub(crate) use provider::prompt_caching;
pub use provider::{credentials_source, needs_credentials, own_catalog};
pub use tools::toolbox;

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
    pub async fn take_initialize(&mut self, options: &RunOptions) -> Result<(), UserError> {
        change_prompts(&mut self.config.prompt, options)?;
        self.config.keeps_prompt = options.keeps_system_prompt;
        resume::name_history(&mut self.config.history, options);
        offer_structured_output(&mut self.config, options)?;
        if let Some(request) = &options.initialize {
            if let Some(names) = &request.skills {
                choose_skills(&mut self.config, names);
            }
            redirect_tools(&mut self.config, request);
            self.config.client_hooks.clone_from(&request.hooks);
            self.config.plans.instructions.clone_from(&request.plan_mode_instructions);
            check_client_agents(&self.config.settings, &request.agents)?;
            let problems = add_client_agents(&mut self.config, &request.agents);
            self.warnings.extend(problems);
            if let Some(mcp) = &self.config.mcp {
                mcp.servers.add_sdk(&request.sdk_mcp_servers, &request.sdk_mcp_server_settings).await;
            }
        }
        Ok(())
    }
}

/// Makes the configuration of a session.
pub fn compose(inputs: ComposeInputs<'_>) -> Result<Composed, UserError> {
    let ComposeInputs { options, mut run, mut resume, prefetch, client, started } = inputs;
    check_unknown(&run.unknown, options)?;
    let mut warnings = std::mem::take(&mut resume.warnings);
    let mut provider = provider(options, &run, client);
    if !provider.is_scripted {
        start_discovery(options, &run);
    }
    let mut bounds = session_bounds(options, &mut run, &resume, &provider)?;
    let mut agents = session_agents(options, &run, &mut bounds.access, &mut resume)?;
    let mut model = session_model(options, &run, &resume, &agents, &mut provider, &mut warnings)?;
    let mut prefetched = prefetch.join();
    warnings.extend(start_warnings(&run, &provider, &bounds.access, &prefetched));
    let skills = std::mem::take(&mut prefetched.skills);
    let chosen = Chosen { options, run: &run, resume: &resume, provider: &provider, access: &bounds.access };
    let equipment = equip(&chosen, &mut agents, &mut model, skills, &mut warnings)?;
    let (plans, warning) = plan_config(&run.env, &run.home, options, &run.settings, &bounds.tmp);
    warnings.extend(warning);
    let style = choose_style(&run);
    warnings.extend(style.warnings);
    let style_names = style_names(&run);
    let plugin_reload = plugin_reload(options, &run);
    let models = std::iter::once(model.main.clone()).chain(model.fallbacks.clone()).collect();
    let is_small = equipment.room.is_small;
    let parts = Parts {
        bounds,
        agents,
        provider,
        equipment,
        model,
        prefetched,
        plans,
        plugin_reload: plugin_reload.clone(),
    };
    let mut config = assemble(options, run, resume, parts, started)?;
    config.prompt.style = style.prompt;
    config.prompt.is_small = is_small;
    config.output_style = style.name;
    offer_structured_output(&mut config, options)?;
    apply_initialize(&mut config, options.initialize.as_ref());
    let may_bypass = config.grants.may_bypass;
    Ok(Composed { config, warnings, models, may_bypass, style_names, plugin_reload })
}

/// What a session may do, and where: rules, memories, its own files, the sandbox, and how all that changes with settings.
struct Bounds {
    tmp: SessionTmp,
    access: Access,
    sandbox: Option<Arc<Sandbox>>,
    settings_source: Option<Box<dyn SettingsSource>>,
}

/// Finds out what the session may do.
fn session_bounds(
    options: &RunOptions,
    run: &mut RunSettings,
    resume: &Resume,
    provider: &Provider,
) -> Result<Bounds, UserError> {
    let tmp = run.home.session_tmp(&run.env.cwd, resume.place.id());
    let mut access = access(options, run, resume, &tmp, provider.is_scripted)?;
    let sandbox = sandbox(run, &tmp, &mut access)?;
    let settings_source = follow_settings(options, run, &access, provider, sandbox.clone());
    Ok(Bounds { tmp, access, sandbox, settings_source })
}

/// Returns what a person should know of what the session is made from.
fn start_warnings(
    run: &RunSettings,
    provider: &Provider,
    access: &Access,
    prefetched: &Prefetched,
) -> Vec<String> {
    let mut warnings = provider.warnings(run);
    warnings.extend(ineffective_vars(&run.env.vars));
    warnings.extend(prefetched.skills.warnings());
    warnings.extend(run.warnings.iter().chain(&access.warnings).cloned());
    warnings.extend(instruction_problems(prefetched));
    warnings
}

/// Says how plugins are read anew.
fn plugin_reload(options: &RunOptions, run: &RunSettings) -> PluginReload {
    PluginReload {
        inherited: run.inherited.clone(),
        options: options.clone(),
        store: Arc::clone(&run.plugin_store),
    }
}

/// Finds the agents that can be sent out, and has the session be the one that was chosen for it.
fn session_agents(
    options: &RunOptions,
    run: &RunSettings,
    access: &mut Access,
    resume: &mut Resume,
) -> Result<SessionAgents, UserError> {
    let mut agents = SessionAgents::new(options, run)?;
    agents.apply_main(options, run, &mut access.rulebook, Some(resume))?;
    resume.history.agent = agents.news_for(resume);
    Ok(agents)
}

/// Returns what is wrong with instruction files, for people.
fn instruction_problems(prefetched: &Prefetched) -> impl Iterator<Item = String> {
    let found = prefetched.instructions.diagnostics.iter();
    found.map(|found| format!("{}: {}", found.path.display(), found.message))
}

/// Chooses the model of the session and has the provider take it.
fn session_model(
    options: &RunOptions,
    run: &RunSettings,
    resume: &Resume,
    agents: &SessionAgents,
    provider: &mut Provider,
    warnings: &mut Vec<String>,
) -> Result<ModelConfig, UserError> {
    let asked = agents.model_options(&options.model);
    let sources = ModelSources {
        asked: &asked,
        settings: &run.settings,
        in_force: &run.in_force,
        before: resume.model.as_deref(),
    };
    let (mut model, unavailable) = choose_model::choose(&run.env, sources)?;
    provider.settle(&mut model, run)?;
    check_budget(options, &model)?;
    model.user_id = loci_storage::config::known_user_id(&run.home);
    warnings.extend(unavailable);
    Ok(model)
}

/// Takes up what a client asks of the session before it begins.
fn apply_initialize(config: &mut SessionConfig, request: Option<&InitializeRequest>) {
    let Some(request) = request else { return };
    redirect_tools(config, request);
    if let Some(names) = &request.skills {
        choose_skills(config, names);
    }
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
fn follow_settings(
    options: &RunOptions,
    run: &mut RunSettings,
    access: &Access,
    provider: &Provider,
    sandbox: Option<Arc<Sandbox>>,
) -> Option<Box<dyn SettingsSource>> {
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
    Some(Box::new(SettingsFollower::new(watch, baseline)))
}

/// Refuses a budget that nothing could be held against.
fn check_budget(options: &RunOptions, model: &ModelConfig) -> Result<(), UserError> {
    let Some(limit) = options.max_budget_usd else { return Ok(()) };
    let mut models = std::iter::once(&model.main).chain(&model.planner).chain(&model.fallbacks);
    match models.find(|name| model.catalog.facts(name).price.is_none()) {
        None => Ok(()),
        Some(name) => Err(UserError::new(format!(
            "The price of `{name}` is unknown, so a budget of ${limit} cannot be kept"
        ))
        .hint("Choose a model whose price is known, or leave out --max-budget-usd.")),
    }
}
