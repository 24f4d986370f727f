//! The composition root: from arguments and environment to a session that can be run.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use loci_core::entry::draft::Stamp;
use loci_core::permission::{Mode, RuleList, Rulebook};
use loci_core::session::{NewSession, SessionIdentity};
use loci_engine::{CommandRegistry, Grants, ReadInstructions, SessionConfig, SessionMemory, TurnLimits};
use loci_llm::{AuthSource, Client, ProviderConfig, RetryPolicy};
use loci_settings::Settings;
use loci_stdx::{Env, Store};
use loci_storage::config::{Instructions, LazyInstructions, discover_instructions};
use loci_storage::layout::ConfigHome;
use loci_storage::project::{GitSnapshot, git_snapshot, head_branch};
use loci_storage::search::RECALL_TOOL;
use loci_storage::sessions::SessionLog;
use loci_tools::{RecordDirs, Toolbox, real_path};

use crate::background_agents::background_config;
use crate::checkpoints::file_history;
use crate::child_env::child_env;
use crate::compaction::compaction_config;
use crate::credentials::Credentials;
use crate::memory::{is_bare, open_memory};
use crate::options::{RunOptions, ToolChoice};
use crate::resume::Resume;
use crate::rules::{add_flag_rules, rulebook_from_settings};
use crate::save_permission::save_to_settings;
use crate::settings::RunSettings;
use crate::settings_reload;
use crate::system_prompt;
use crate::user_error::UserError;
use crate::{COMPATIBLE_VERSION, choose_model};

/// Instruction files, and those that wait for their time.
type Found = (Instructions, Option<LazyInstructions>);

/// What is read from the project while other things are made ready.
pub struct Prefetch {
    git: JoinHandle<Option<GitSnapshot>>,
    instructions: JoinHandle<(Found, ReadInstructions)>,
    configured: RunSettings,
}

impl Prefetch {
    /// Starts asking git and reading instruction files.
    pub fn start(env: &Env, home: &ConfigHome, options: &RunOptions, configured: RunSettings) -> Self {
        let wants_git = configured.settings.include_git_instructions != Some(false)
            && options.system_prompt.is_none()
            && !env.vars.is_truthy("CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS");
        let git_env = env.clone();
        let git =
            std::thread::spawn(move || wants_git.then(|| git_snapshot(&git_env.cwd, &git_env)).flatten());
        let is_off = env.vars.is_truthy("CLAUDE_CODE_DISABLE_CLAUDE_MDS") || is_bare(env, options);
        let (env, home) = (env.clone(), home.clone());
        let wish = configured.instructions.clone();
        let mut read: ReadInstructions = Box::new(move || {
            if is_off {
                return (Instructions::default(), None);
            }
            let places = wish.places(&env, &home);
            let found = discover_instructions(&places);
            let lazy = LazyInstructions::new(places, &found);
            (found, Some(lazy))
        });
        let instructions = std::thread::spawn(move || (read(), read));
        Self { git, instructions, configured }
    }

    /// Waits for both.
    pub fn join(self) -> (Option<GitSnapshot>, Found, Option<ReadInstructions>) {
        let read = self.instructions.join().ok();
        let (found, read) = read.map_or_else(Default::default, |(found, read)| (found, Some(read)));
        (self.git.join().ok().flatten(), found, read)
    }
}

/// A session's configuration and what the user should know about it.
pub struct Composed {
    /// The configuration.
    pub config: SessionConfig,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The main model, and those that may take its place.
    pub models: Vec<String>,
    /// Whether the session may switch to running everything unasked.
    pub may_bypass: bool,
    /// How much of the transcript was there before.
    pub n_bytes_before: u64,
}

/// Makes the configuration of a session. `client` is the provider, where it is not the environment's own.
pub fn compose(
    env: &Env,
    home: &ConfigHome,
    options: &RunOptions,
    start: Resume,
    mut prefetch: Prefetch,
    client: Option<Client>,
    started: Instant,
) -> Result<Composed, UserError> {
    let entrypoint = env.vars.non_empty("CLAUDE_CODE_ENTRYPOINT").unwrap_or("sdk-cli").to_owned();
    let credentials = Arc::new(Credentials::new(home, env, &prefetch.configured.settings));
    let is_scripted = client.is_some();
    let (client, api_key_source) = match client {
        Some(client) => (client, "none".to_owned()),
        None => provider(env, &credentials)?,
    };
    let tmp = home.session_tmp(&env.cwd, start.place.id());
    let own_dirs = [start.place.tool_results_dir(), tmp.tasks_dir()];
    let settings = prefetch.configured.settings.clone();
    let mut notes = start.notes;
    notes.extend(prefetch.configured.notes.iter().cloned());
    let (base, rulebook, rule_notes) = rulebook(env, options, &settings, start.mode)?;
    notes.extend(rule_notes);
    let shows_team = prefetch.configured.instructions.is_trusted();
    // A scripted model has nothing to remember.
    let (memory, memory_note) = match is_scripted {
        true => (None, None),
        false => open_memory(
            env,
            home,
            is_bare(env, options),
            &settings,
            prefetch.configured.instructions.memory_root(),
        ),
    };
    notes.extend(memory_note);
    let mut rulebook = Rulebook {
        read_dirs: own_dirs.iter().flat_map(|dir| [dir.clone(), real_path(dir)]).collect(),
        ..rulebook
    };
    if let Some(memory) = &memory {
        memory.admit(&mut rulebook);
    }
    let watch = prefetch.configured.watch.take();
    let in_force = prefetch.configured.in_force.clone();
    let reload = watch.map(|watch| {
        let start = settings_reload::ReloadBaseline {
            inherited: prefetch.configured.inherited.clone(),
            env: env.clone(),
            base,
            rulebook: rulebook.clone(),
            settings: in_force.clone(),
            credentials,
        };
        settings_reload::watch_settings(watch, start)
    });
    let record = RecordDirs {
        sessions: start.place.file().parent().map(Path::to_path_buf).unwrap_or_default(),
        memory: memory.as_ref().map(|memory| memory.place.dir.clone()),
    };
    let toolbox = toolbox(env, options, &settings, &rulebook, record)?;
    let mut model = choose_model::choose(env, &options.model, &settings, start.model.as_deref())?;
    model.user_id = loci_storage::config::known_user_id(home);
    let (git, (instructions, lazy_instructions), read_instructions) = prefetch.join();
    notes.extend(instructions.diagnostics.iter().map(|d| format!("{}: {}", d.path.display(), d.message)));
    let identity = SessionIdentity::new(NewSession {
        id: start.place.id().clone(),
        project_dir: start.place.file().parent().map(Path::to_path_buf).unwrap_or_default(),
        cwd: env.cwd.clone(),
        is_interactive: false,
        is_persistent: options.is_persistent,
    });
    let log = match (options.is_persistent, start.lease) {
        (false, _) => SessionLog::in_memory(),
        (true, Some(lease)) => SessionLog::leased(start.place.file(), lease),
        (true, None) => SessionLog::on_disk(start.place.file()),
    }
    .with_refuge(home, &start.place);
    let file_history = file_history(env, home, options, &settings, &start.place, start.snapshots);
    let stamp = Stamp {
        session_id: start.place.id().clone(),
        cwd: env.cwd.display().to_string(),
        version: COMPATIBLE_VERSION.to_owned(),
        git_branch: head_branch(&env.cwd).unwrap_or_else(|| "HEAD".to_owned()),
        entrypoint,
        agent: None,
    };
    let memory_dir = memory.as_ref().map(|memory| memory.place.dir.as_path());
    let prompt = system_prompt::prompt_parts(env, options, &rulebook, &model.main, git, memory_dir)?;
    let main_model = model.main.clone();
    let models = std::iter::once(model.main.clone()).chain(model.fallbacks.clone()).collect();
    let config = SessionConfig {
        env: env.clone(),
        home: home.clone(),
        tmp,
        identity,
        log,
        stamp,
        history: start.history,
        toolbox,
        commands: Arc::new(Store::new(CommandRegistry::builtin())),
        rulebook,
        settings: in_force,
        settings_reload: reload,
        grants: Grants {
            may_grant: !settings.permissions.managed_rules_only,
            may_bypass: may_bypass(options, &settings),
            save: Some(save_to_settings(env.clone())),
        },
        classifier: None,
        can_ask: options.can_ask,
        client,
        model,
        limits: limits(env, options)?,
        compaction: compaction_config(env, &settings, &main_model),
        turn_hooks: None,
        compaction_hooks: None,
        restore_sources: Vec::new(),
        background: background_config(
            env,
            options,
            &settings,
            memory.as_ref().is_some_and(|memory| memory.is_reviewed),
        ),
        memory: memory.map(|memory| SessionMemory { book: memory.book, shows_team }),
        prompt,
        instructions,
        lazy_instructions,
        read_instructions,
        child_env: child_env(env),
        file_history,
        started: env.clock.monotonic().saturating_sub(started.elapsed()),
        api_key_source,
    };
    Ok(Composed {
        config,
        notes,
        models,
        may_bypass: may_bypass(options, &settings),
        n_bytes_before: start.n_bytes,
    })
}

/// Tells whether the session may switch to running everything unasked.
fn may_bypass(options: &RunOptions, settings: &Settings) -> bool {
    options.permissions.may_bypass && !settings.permissions.is_bypass_disabled
}

fn provider(env: &Env, credentials: &Arc<Credentials>) -> Result<(Client, String), UserError> {
    let config = ProviderConfig::from_env(env)?;
    let source = credentials.source();
    let is_custom = env.vars.non_empty("ANTHROPIC_BASE_URL").is_some() || !config.custom_headers.is_empty();
    let source = match source {
        Ok(Some(source)) => source,
        Ok(None) | Err(_) if is_custom => "none",
        Ok(None) => {
            return Err(UserError::new("No API key is set").hint(
                "Set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or try `loci demo`, which needs none.",
            ));
        }
        Err(problem) => {
            return Err(UserError::from_error(&problem)
                .hint("Let only yourself read the file (`chmod 600`), or set ANTHROPIC_API_KEY."));
        }
    };
    let client = Client::with_auth_source(config, Arc::clone(credentials) as Arc<dyn AuthSource>)?;
    client.warm_up();
    Ok((client, source.to_owned()))
}

/// Returns the rules of the command line alone, those with the settings, and what to say about them.
pub fn rulebook(
    env: &Env,
    options: &RunOptions,
    settings: &Settings,
    before: Option<Mode>,
) -> Result<(Rulebook, Rulebook, Vec<String>), UserError> {
    let mut dirs = vec![env.cwd.clone()];
    for dir in &options.permissions.dirs {
        let path = env.cwd.join(loci_core::path::expand_home(&env.home, &dir.to_string_lossy()));
        let real = path.canonicalize().map_err(|error| {
            UserError::new(format!("Failed to add directory: `{}`: {error}", path.display()))
                .hint("Give --add-dir directories that exist.")
        })?;
        if !real.is_dir() {
            return Err(UserError::new(format!("Not a directory: `{}`", real.display())));
        }
        dirs.push(real);
    }
    let mut book = Rulebook { dirs, cwd: env.cwd.clone(), home: env.home.clone(), ..Rulebook::default() };
    let mut notes = add_flag_rules(env, RuleList::Allow, &options.permissions.allow, &mut book);
    notes.extend(add_flag_rules(env, RuleList::Deny, &options.permissions.deny, &mut book));
    let chosen = options.permissions.mode;
    let permissions = &settings.permissions;
    if permissions.is_bypass_disabled && chosen == Some(Mode::BypassPermissions) {
        return Err(UserError::new("Settings forbid bypassing permissions")
            .hint("See `loci config explain permissions.disableBypassPermissionsMode`."));
    }
    let chosen = chosen.or(before);
    let base = book.clone();
    notes.extend(rulebook_from_settings(env, permissions, chosen, &mut book));
    if book.mode == Mode::BypassPermissions || options.permissions.may_bypass {
        check_bypass(env)?;
    }
    Ok((base, book, notes))
}

/// Running everything unasked, now or later, is refused to root, unless a sandbox says it is one.
fn check_bypass(env: &Env) -> Result<(), UserError> {
    if loci_stdx::is_root() && !env.vars.is_truthy("IS_SANDBOX") {
        return Err(UserError::new("Permissions cannot be bypassed as root")
            .hint("Run as an ordinary user, or set IS_SANDBOX=1 inside a sandbox that you can throw away."));
    }
    Ok(())
}

/// Returns the tools on offer.
pub fn toolbox(
    env: &Env,
    options: &RunOptions,
    settings: &Settings,
    rulebook: &Rulebook,
    record: RecordDirs,
) -> Result<Toolbox, UserError> {
    let mut toolbox = Toolbox::with_record(Some(record));
    match &options.tools {
        ToolChoice::Usual if is_bare(env, options) => {
            toolbox.retain(|tool| ["Bash", "Edit", "Read"].contains(&tool.name.as_str()));
        }
        ToolChoice::Usual | ToolChoice::All => {}
        ToolChoice::Only(names) => {
            if let Some(unknown) = names.iter().find(|name| toolbox.find(name).is_none()) {
                return Err(UserError::new(format!("Unknown tool in --tools: `{unknown}`")));
            }
            toolbox.retain(|tool| names.contains(&tool.name));
        }
    }
    toolbox.retain(|tool| !rulebook.is_tool_denied(&tool.name));
    // Without a record there is nothing to look up.
    if !options.is_persistent || settings.recall_enabled == Some(false) {
        toolbox.retain(|tool| tool.name != RECALL_TOOL);
    }
    Ok(toolbox)
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
    })
}
