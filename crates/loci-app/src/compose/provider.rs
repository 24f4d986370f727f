//! The model providers of a session, and where the credentials of the first come from.
//!
//! The first provider is the environment's: the Anthropic API, or whatever speaks like it. Those that have names stand beside
//! it and are put together when they are first asked. A session whose models are all theirs needs no key for the first.

use std::collections::BTreeMap;
use std::sync::Arc;

use loci_core::model::{FieldRules, ModelCatalog, ModelDescription, ModelPricing, NamedModels, WindowRules};
use loci_core::stream::{Failure, FailureKind};
use loci_engine::{CloudKind, ModelConfig, NO_LARGE_WINDOW, has_cloud_ids, is_on_cloud, model_refusal};
use loci_llm::{Announcer, AuthSource, Client, PromptCaching, ProviderConfig};
use loci_settings::Settings;
use loci_stdx::Env;

use crate::credentials::Credentials;
use crate::models::choose_model::{ModelSources, choose};
use crate::models::cloud::{cloud_warnings, connect_cloud};
use crate::models::pinned::{PinnedModel, pinned_models};
use crate::models::providers::{
    self, KeySource, ProviderModels, ProviderTable, described_models, models_problems, unknown_provider_keys,
};
use crate::options::RunOptions;
use crate::settings::RunSettings;
use crate::settings::provider_policy::check_first_provider;
use crate::user_error::UserError;

/// The least that a session can work in: a system prompt, a few tools, and a little of what they say.
const LEAST_WINDOW: u64 = 8_192;

/// The providers of a session.
pub(super) struct Provider {
    pub(super) client: Client,
    /// Where the credentials come from, for people.
    pub(super) api_key_source: String,
    pub(super) credentials: Arc<Credentials>,
    /// Whether a script plays the model.
    pub(super) is_scripted: bool,
    /// What is known of the models.
    pub(super) catalog: ModelCatalog,
    table: Arc<ProviderTable>,
    /// What is known of the models of the table.
    models: Arc<ProviderModels>,
    /// Why the first provider cannot be asked.
    first_problem: Option<UserError>,
}

/// Makes the providers of a run, unless there is a client already, which plays a script.
pub(super) fn provider(options: &RunOptions, run: &RunSettings, scripted: Option<Client>) -> Provider {
    let announcer = Announcer::default();
    let credentials = Credentials::new(&run.home, &run.env, &run.settings).announced_by(announcer.clone());
    let credentials = Arc::new(credentials);
    if let Some(client) = scripted {
        return Provider {
            client,
            api_key_source: "none".to_owned(),
            credentials,
            is_scripted: true,
            catalog: describe_models(ModelCatalog::default(), run),
            table: Arc::default(),
            models: Arc::new(ProviderModels::new(Arc::default(), None)),
            first_problem: None,
        };
    }
    let table = Arc::new(provider_table(run));
    let (first, api_key_source, first_problem) = match connect(run, &credentials, &announcer) {
        Ok((client, source)) => (Ok(client), source, None),
        Err(error) => (Err(as_failure(&error)), "none", Some(error)),
    };
    let settings = run.in_force.clone();
    let router = table.router(first, &run.env, &announcer);
    let client = Client::routed(router.refusing(move |model| model_refusal(&settings, model)));
    let asked = options.model.model.as_deref().or_else(|| run.env.vars.non_empty("ANTHROPIC_MODEL"));
    if asked.or(run.settings.model.as_deref()).is_none_or(|model| table.find(model).is_none()) {
        client.warm_up();
    }
    let models = Arc::new(ProviderModels::new(Arc::clone(&table), declared_window(run)));
    models.ask_through(client.clone());
    Provider {
        client,
        api_key_source: api_key_source.to_owned(),
        credentials,
        is_scripted: false,
        catalog: describe_models(ModelCatalog::new(Arc::clone(&models) as Arc<dyn NamedModels>), run),
        table,
        models,
        first_problem,
    }
}

/// Adds what settings and variables say of the models of the first provider.
fn describe_models(catalog: ModelCatalog, run: &RunSettings) -> ModelCatalog {
    let windows = WindowRules {
        is_cloud: has_cloud_ids(&run.env.vars),
        has_no_large: run.env.vars.is_truthy(NO_LARGE_WINDOW),
    };
    let is_set = |name| run.env.vars.is_truthy(name);
    let fields = FieldRules {
        omits_thinking: is_set("CLAUDE_CODE_DISABLE_THINKING"),
        has_thinking_budget: is_set("CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING"),
        assumes_effort: is_set("CLAUDE_CODE_ALWAYS_ENABLE_EFFORT"),
    };
    let (pricing, _) = ModelPricing::parse(&run.settings.model_pricing);
    catalog.describing(described(run)).with_windows(windows).with_fields(fields).with_pricing(pricing)
}

/// Returns what settings and variables say of models of the first provider.
fn described(run: &RunSettings) -> BTreeMap<String, ModelDescription> {
    let mut described = described_models(&run.settings.models);
    for PinnedModel { id, capabilities, .. } in pinned_models(&run.env.vars) {
        let Some(capabilities) = capabilities else { continue };
        for name in [format!("{id}[1m]"), id] {
            described.entry(name).or_default().capabilities = Some(capabilities);
        }
    }
    described
}

/// The providers of a run that has no session: whom to ask, and what is known of the models.
pub(crate) struct RunProviders {
    pub(crate) client: Client,
    pub(crate) catalog: ModelCatalog,
    pub(crate) table: Arc<ProviderTable>,
    pub(crate) models: Arc<ProviderModels>,
    /// What the user should know about them.
    pub(crate) warnings: Vec<String>,
}

impl RunProviders {
    pub(crate) fn new(options: &RunOptions, run: &RunSettings) -> Self {
        let provider = provider(options, run, None);
        let warnings = provider.warnings(run);
        let Provider { client, catalog, table, models, .. } = provider;
        Self { client, catalog, table, models, warnings }
    }
}

impl Provider {
    /// Takes up the models that were chosen: whoever cannot be asked is said now, and what only the first provider has is
    /// asked of the main model where that provider is not there.
    pub(super) fn settle(&mut self, model: &mut ModelConfig, run: &RunSettings) -> Result<(), UserError> {
        model.catalog = self.catalog.clone();
        if self.is_scripted {
            return Ok(());
        }
        let named = self.table.find(&model.main);
        if let Some((entry, _)) = named {
            providers::connect(entry, &run.env, &Announcer::default())?;
            self.api_key_source = match &entry.key {
                KeySource::None => "none".to_owned(),
                KeySource::Variable(variable) => variable.clone(),
                KeySource::Helper(_) => "apiKeyHelper".to_owned(),
            };
        }
        let mut models = std::iter::once(&model.main).chain(&model.fallbacks);
        let needs_first = models.any(|name| self.table.find(name).is_none());
        if let Some(problem) = self.first_problem.take() {
            if needs_first {
                return Err(self.without_first(problem, model));
            }
            self.catalog = self.catalog.clone().standing_in(&model.main);
            model.catalog = self.catalog.clone();
        }
        if named.is_some() { check_window(model) } else { Ok(()) }
    }
}

impl Provider {
    /// Returns what the user should know about them.
    pub(super) fn warnings(&self, run: &RunSettings) -> Vec<String> {
        let mut warnings = models_problems(&run.settings.models);
        let (_, problems) = ModelPricing::parse(&run.settings.model_pricing);
        warnings.extend(problems.into_iter().map(|problem| format!("Settings: {problem}")));
        warnings.extend(unknown_provider_keys(&run.settings.providers, &run.settings.models));
        if run.settings.has_idle_overrides {
            warnings.push(
                "Settings: `modelOverrides` counts in the administrator's settings alone, which say what may be chosen \
                 (availableModels)"
                    .to_owned(),
            );
        }
        if !self.is_scripted {
            warnings.extend(cloud_warnings(&run.env));
        }
        warnings
    }

    /// Says that a name which looks like a provider's is none, where that is why nobody can be asked.
    fn without_first(&self, problem: UserError, model: &ModelConfig) -> UserError {
        let named = std::iter::once(&model.main).chain(&model.fallbacks);
        let named = named.filter(|name| self.table.find(name).is_none());
        match named.filter_map(|name| name.split_once('/')).next() {
            Some((name, _)) => problem.hint(format!(
                "`{name}` is no provider: add it to the `providers` setting of your own settings file. As an id of the first \
                 provider it needs ANTHROPIC_API_KEY."
            )),
            None => problem,
        }
    }
}

/// Returns what is known of models without asking anybody: the built-in table, and what settings say. Settings that cannot be
/// read say nothing.
pub fn own_catalog(env: &Env) -> ModelCatalog {
    let run = RunSettings::load(env, &RunOptions::default());
    let catalog = |run: RunSettings| {
        let (pricing, _) = ModelPricing::parse(&run.settings.model_pricing);
        ModelCatalog::default().describing(described(&run)).with_pricing(pricing)
    };
    run.map(catalog).unwrap_or_default()
}

/// Refuses a model that can hardly read the system prompt.
fn check_window(model: &ModelConfig) -> Result<(), UserError> {
    let window = model.catalog.facts(&model.main).window;
    if window >= LEAST_WINDOW {
        return Ok(());
    }
    Err(UserError::new(format!(
        "`{}` can read {window} tokens at once, and a session needs at least {LEAST_WINDOW}",
        model.main
    ))
    .hint(
        "Start the server with more: llama.cpp `-c 32768`, Ollama `OLLAMA_CONTEXT_LENGTH=32768`, vLLM `--max-model-len 32768`, \
         LM Studio its context length; or correct `window` in the `providers` setting.",
    ))
}

/// Returns the window that the environment declares for models that are not ours to know.
pub(super) fn declared_window(run: &RunSettings) -> Option<u64> {
    let said = run.env.vars.non_empty("CLAUDE_CODE_MAX_CONTEXT_TOKENS")?;
    said.trim().parse().ok().filter(|tokens| *tokens > 0)
}

fn as_failure(error: &UserError) -> Failure {
    let failure = Failure::new(FailureKind::Unauthenticated, error.message());
    match error.to_string().split_once('\n') {
        Some((_, hint)) => failure.with_hint(hint),
        None => failure,
    }
}

/// Tells whether a run has nothing to authenticate with, where it needs something; `before` is the model that the session
/// used last.
pub fn needs_credentials(
    run: &RunSettings,
    options: &RunOptions,
    before: Option<&str>,
) -> Result<bool, UserError> {
    if check_first_provider(run.settings.provider_limits.as_ref(), &run.env.vars).is_err() {
        // What is wrong is said by what puts the provider together; a key would not mend it.
        return Ok(false);
    }
    if is_on_cloud(&run.env.vars) {
        return Ok(false);
    }
    let config = ProviderConfig::from_env(&run.env)?;
    let credentials = Credentials::new(&run.home, &run.env, &run.settings);
    if is_custom(run, &config) || !matches!(credentials.source(), Ok(None)) {
        return Ok(false);
    }
    let sources =
        ModelSources { asked: &options.model, settings: &run.settings, in_force: &run.in_force, before };
    let (model, _) = choose(&run.env, sources)?;
    let table = provider_table(run);
    Ok(std::iter::once(&model.main).chain(&model.fallbacks).any(|name| table.find(name).is_none()))
}

/// Names where the credentials of a run come from, or the cloud that has them; none where there are none.
pub fn credentials_source(run: &RunSettings) -> Result<Option<&'static str>, UserError> {
    if let Some(cloud) = CloudKind::from_vars(&run.env.vars) {
        return Ok(Some(cloud.name()));
    }
    let credentials = Credentials::new(&run.home, &run.env, &run.settings);
    credentials.source().map_err(|error| UserError::new(error.to_string()))
}

/// Tells whether requests go to a server of the user's own choice, which may want no credentials.
fn is_custom(run: &RunSettings, config: &ProviderConfig) -> bool {
    run.env.vars.non_empty("ANTHROPIC_BASE_URL").is_some() || !config.custom_headers.is_empty()
}

/// Returns which prompts are cached, and for how long, as variables and settings say.
pub(crate) fn prompt_caching(env: &Env, settings: &Settings) -> PromptCaching {
    let (main, agents) = (&settings.prompt_cache_ttl, &settings.subagent_prompt_cache_ttl);
    PromptCaching::from_settings(&env.vars, main.as_deref(), agents.as_deref())
}

fn provider_table(run: &RunSettings) -> ProviderTable {
    let table = ProviderTable::new(&run.settings.providers, &run.env.vars);
    table.limited_by(run.settings.provider_limits.as_ref())
}

fn connect(
    run: &RunSettings,
    credentials: &Arc<Credentials>,
    announcer: &Announcer,
) -> Result<(Client, &'static str), UserError> {
    check_first_provider(run.settings.provider_limits.as_ref(), &run.env.vars)?;
    if let Some(cloud) = CloudKind::from_vars(&run.env.vars) {
        return Ok((connect_cloud(cloud, &run.env, &run.settings, announcer)?, cloud.name()));
    }
    let model_overrides = run.settings.model_overrides.iter().cloned().collect();
    let caching = prompt_caching(&run.env, &run.settings);
    let config = ProviderConfig { model_overrides, caching, ..ProviderConfig::from_env(&run.env)? };
    let is_custom = is_custom(run, &config);
    let source = match credentials.source() {
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
    Ok((client, source))
}
