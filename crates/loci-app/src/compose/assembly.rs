//! The last step of composing: what the others made becomes the configuration of a session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_context::PromptParts;
use loci_core::hooks::{HookConfig, HookEvent};
use loci_engine::{
    CommandRegistry, Grants, LoadedHistory, MemoryWatch, ModelConfig, PlanConfig, SessionConfig,
    SessionMemory, TurnLimits,
};
use loci_llm::RetryPolicy;
use loci_stdx::{Env, Store};
use loci_storage::layout::ConfigHome;

use super::equipment::Equipment;
use super::permissions::may_bypass;
use super::provider::Provider;
use super::{Access, Bounds, Prefetched, identity};
use crate::commands::{PluginReload, SessionCommands};
use crate::compose::background_agents::background_config;
use crate::compose::checkpoints::file_history;
use crate::compose::system_prompt::{preferences, prompt_parts};
use crate::extensions::agents::SessionAgents;
use crate::options::RunOptions;
use crate::permissions::save::{save_nothing, save_to_settings};
use crate::sessions::resume::Resume;
use crate::sessions::worktree::worktree_options;
use crate::settings::RunSettings;
use crate::settings::editor::SettingsInputs;
use crate::user_error::UserError;

/// How often hooks may make a turn go on, unless somebody says otherwise.
const MOST_OBJECTIONS: u32 = 8;

/// How long a session waits for its user before hooks hear of it, unless somebody says otherwise.
const IDLE_NOTICE: Duration = Duration::from_secs(60);

/// What the steps made.
pub(super) struct Parts {
    pub(super) bounds: Bounds,
    pub(super) agents: SessionAgents,
    pub(super) provider: Provider,
    pub(super) equipment: Equipment,
    pub(super) model: ModelConfig,
    pub(super) prefetched: Prefetched,
    pub(super) plans: PlanConfig,
    pub(super) plugin_reload: PluginReload,
}

/// Puts all together.
pub(super) fn assemble(
    options: &RunOptions,
    run: RunSettings,
    resume: Resume,
    parts: Parts,
    started: Instant,
) -> Result<SessionConfig, UserError> {
    let Parts { bounds, agents, provider, equipment, model, prefetched, plans, plugin_reload } = parts;
    let Bounds { tmp, access, sandbox, settings_source } = bounds;
    let Equipment { compaction, sandbox_maker, mcp, skills, toolbox, room: _ } = equipment;
    let RunSettings { env, home, settings, in_force, instructions, hooks, is_bare, plugins, .. } = run;
    let Access { rulebook, memory, .. } = access;
    let place = &resume.place;
    let memory_dir = memory.as_ref().map(|memory| memory.place.dir.as_path());
    Ok(SessionConfig {
        tmp,
        identity: identity::identity(&env, place, options),
        log: identity::log(&home, place, resume.lease, options.is_persistent),
        mirrors_transcript: options.mirrors_transcript,
        keeps_prompt: options.keeps_system_prompt,
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
            plugin_reload: Some(plugin_reload),
        })),
        output_style: String::new(),
        settings: in_force,
        settings_source,
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
            preferences: preferences(&settings),
            ..prompt_parts(&env, options, &rulebook, &model.main, prefetched.git, memory_dir)?
        },
        limits: limits(&env, options)?,
        compaction,
        idle_notice: idle_notice(&home, options, &hooks.config),
        memory_watch: MemoryWatch::from_env(&env),
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
        current_worktree: options.worktree.clone(),
        background: background_config(&env, options, &settings, is_bare, memory.as_ref()),
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

/// The variable that says after how many round trips a run stops.
const MAX_TURNS: &str = "CLAUDE_CODE_MAX_TURNS";

/// Reads a limit; a run that was to have one does not go on without.
fn parse_max_turns(text: &str) -> Result<u32, UserError> {
    let number = text.trim().parse().ok().filter(|most| *most > 0);
    number.ok_or_else(|| UserError::new(format!("{MAX_TURNS} needs a number above 0, not `{text}`")))
}

/// Returns how long and how often a turn may go on.
fn limits(env: &Env, options: &RunOptions) -> Result<TurnLimits, UserError> {
    let parallel = env.vars.non_empty("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY");
    let retry = RetryPolicy::from_env(env)?;
    Ok(TurnLimits {
        max_turns: match options.max_turns {
            Some(most) => Some(most),
            None => env.vars.non_empty(MAX_TURNS).map(parse_max_turns).transpose()?,
        },
        max_budget_usd: options.max_budget_usd,
        max_parallel: parallel.and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        retry: if options.is_interactive { retry } else { retry.unwatched() },
        allows_one_piece: !env.vars.is_truthy("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK"),
        structured: None,
    })
}
