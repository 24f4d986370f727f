//! The settings of a run: read, said, applied to the environment.

pub mod editor;
pub mod explained;
pub(crate) mod flags;
pub(crate) mod ineffective_settings;
pub(crate) mod ineffective_vars;
pub(crate) mod managed_policy;
pub(crate) mod provider_policy;
pub(crate) mod reload;
pub(crate) mod sideload;
pub(crate) mod unknown;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use loci_core::hooks::SettingsHooks;
use loci_core::skill::SkillUsageTable;
use loci_settings::{Diagnostic, MergedSettings, Settings, jsonc};
use loci_stdx::{Env, Store, counted};
use loci_storage::config::{
    DefinitionPlaces, GivenSettings, InstructionPlaces, LoadedSettings, MANAGED_DIR, MANAGED_INSTRUCTIONS,
    SETTINGS_LIMIT, SettingsPlaces, SettingsSources, SettingsWatch, SkillsPrefetch, TrustState,
    external_imports,
};
use loci_storage::layout::ConfigHome;

use serde_json::Value;

use crate::compose::child_env::with_secret_names;
use crate::mcp::McpSources;
use crate::models::providers::ProviderEntry;
use crate::options::RunOptions;
use crate::plugins::{PluginQuery, RunPlugins, rewrite_renamed};
use crate::settings::ineffective_settings::ineffective_settings;
use crate::settings::managed_policy::{check_helper_policy, check_start, helper_policy, unreadable_versions};
use crate::settings::sideload::check_sideload;
use crate::settings::unknown::restricting;
use crate::user_error::UserError;

/// How many problems are said at start; `loci doctor` knows the rest.
const MOST_WARNINGS: usize = 5;

/// The variable that asks for a bare run.
const BARE: &str = "CLAUDE_CODE_SIMPLE";

/// The settings of a run, and the environment with their variables.
pub struct RunSettings {
    /// The environment with the settings' variables in it.
    pub env: Env,
    /// The environment without them.
    pub inherited: Env,
    /// Where the user's things lie.
    pub home: ConfigHome,
    /// Whether the run does without everything it is not told to do: an option or a variable says so.
    pub is_bare: bool,
    /// What this version acts upon.
    pub settings: Settings,
    /// Everything in force, as the app state holds it.
    pub in_force: Value,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// How instruction files are looked for.
    pub instructions: InstructionOptions,
    /// What the files say of hooks.
    pub hooks: SettingsHooks,
    /// Which of them the run has.
    pub(crate) hook_gate: HookGate,
    /// The plugins.
    pub plugins: Arc<RunPlugins>,
    /// The same, as `/reload-plugins` changes them.
    pub plugin_store: Arc<Store<RunPlugins>>,
    /// Where MCP servers are written down.
    pub mcp: McpSources,
    /// How often skills were used before.
    pub skill_usage: Arc<SkillUsageTable>,
    /// Keys that this version does not know and that may restrict the run, a line each.
    pub unknown: Vec<String>,
    /// Follows the files.
    pub watch: Option<SettingsWatch>,
    /// The reading of the user's skills, for whoever needs them first.
    skills: Mutex<Option<SkillsPrefetch>>,
}

/// How instruction files are looked for.
#[derive(Debug, Clone)]
pub struct InstructionOptions {
    root: PathBuf,
    main_checkout: Option<PathBuf>,
    trust: TrustState,
    sources: SettingsSources,
    excludes: Vec<String>,
    managed_text: Option<String>,
    reads_agents: bool,
    extra_dirs: Vec<PathBuf>,
}

impl InstructionOptions {
    /// Takes what the settings say; `extra_dirs` are directories the user added.
    pub fn new(places: &SettingsPlaces, loaded: &LoadedSettings, extra_dirs: &[PathBuf]) -> Self {
        let settings = loaded.settings();
        Self {
            root: places.tree_root().to_owned(),
            main_checkout: places.main_checkout().map(Path::to_path_buf),
            trust: loaded.trust.clone(),
            sources: places.sources,
            excludes: settings.claude_md_excludes,
            managed_text: settings.claude_md,
            reads_agents: settings.read_agents_md,
            extra_dirs: extra_dirs.to_vec(),
        }
    }

    /// Returns the root that memories belong to: the main checkout's, or the project's.
    pub fn memory_root(&self) -> &Path {
        self.main_checkout.as_deref().unwrap_or(&self.root)
    }

    /// Tells whether the user trusts the folder.
    pub fn is_trusted(&self) -> bool {
        self.trust.is_trusted
    }

    /// Returns where definitions of skills and the like are looked for.
    pub fn definition_places(&self, env: &Env, home: &ConfigHome) -> DefinitionPlaces {
        DefinitionPlaces {
            managed_dir: PathBuf::from(MANAGED_DIR),
            user: home.root().to_owned(),
            cwd: env.cwd.clone(),
            root: self.root.clone(),
            extra_dirs: self.extra_dirs.iter().filter_map(|dir| self.real_dir(env, dir)).collect(),
            sources: self.sources,
            is_trusted: self.trust.is_trusted,
        }
    }

    fn real_dir(&self, env: &Env, dir: &Path) -> Option<PathBuf> {
        env.cwd.join(loci_core::path::expand_home(&env.home, &dir.to_string_lossy())).canonicalize().ok()
    }

    /// Returns where to look; `env` has the variables of the settings.
    pub fn places(&self, env: &Env, home: &ConfigHome) -> InstructionPlaces {
        let wants_extra = env.vars.is_truthy("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD");
        let extra_dirs = self.extra_dirs.iter().filter(|_| wants_extra);
        let extra_dirs = extra_dirs.filter_map(|dir| self.real_dir(env, dir)).collect();
        InstructionPlaces {
            managed: PathBuf::from(MANAGED_INSTRUCTIONS),
            managed_text: self.managed_text.clone(),
            user: home.user_instructions(),
            home: env.home.clone(),
            cwd: env.cwd.clone(),
            root: self.root.clone(),
            main_checkout: self.main_checkout.clone(),
            extra_dirs,
            sources: self.sources,
            excludes: self.excludes.clone(),
            allows_external: self.trust.is_trusted && external_imports(home, &self.trust.root) == Some(true),
            reads_agents: self.reads_agents,
        }
    }
}

impl RunSettings {
    /// Reads all settings; `env` is the environment as inherited.
    ///
    /// What a bare run starts is to be bare too.
    pub fn load(env: &Env, options: &RunOptions) -> Result<Self, UserError> {
        Self::load_with(env, options, None)
    }

    /// The same, where the reading of the user's skills may be under way.
    pub fn load_with(
        env: &Env,
        options: &RunOptions,
        skills: Option<SkillsPrefetch>,
    ) -> Result<Self, UserError> {
        if options.is_demo {
            return Ok(Self::none(env));
        }
        let bare = options.is_bare.then(|| Env { vars: env.vars.clone().with(BARE, "1"), ..env.clone() });
        let env = bare.as_ref().unwrap_or(env);
        let home = ConfigHome::from_env(env);
        // What lies there does not depend on settings, so it is read beside them.
        let reads_skills = options.setting_sources.user && !is_bare(env, options);
        let skills_dir = home.root().join("skills");
        let skills = skills.filter(|skills| reads_skills && skills.path() == skills_dir);
        let skills = skills.or_else(|| reads_skills.then(|| SkillsPrefetch::start(skills_dir)).flatten());
        let managed = Path::new(MANAGED_DIR);
        let mut places = SettingsPlaces::new(env, &home, managed, options.setting_sources);
        let (mut watch, loaded) = watched_settings(&mut places, env, options)?;
        let settings = loaded.settings();
        let instructions = InstructionOptions::new(&places, &loaded, &options.permissions.dirs);
        let with_vars = with_settings_vars(env, &settings);
        let hook_gate = HookGate::new(&with_vars, options);
        check_sideload(&loaded.merged, options)?;
        let home = ConfigHome::from_env(&with_vars);
        let mut plugins = RunPlugins::default();
        if !is_bare(&with_vars, options) {
            let query = PluginQuery {
                given: &options.plugin_dirs,
                without_servers: &options.plugin_dirs_without_servers,
                project: places.tree_root(),
                merged: &loaded.merged,
                is_trusted: loaded.trust.is_trusted,
                sources: options.setting_sources,
                prefetch: skills.as_ref(),
            };
            plugins = RunPlugins::load(&with_vars, &home, query);
            let rewritten = rewrite_renamed(&home, &places, &loaded, &plugins.renamed);
            if rewritten.is_changed {
                // What was written here is no change that anybody has to hear of.
                watch = watched_settings(&mut places, env, options)?.0;
            }
            plugins.problems.extend(rewritten.problems);
        }
        let plugin_store = Arc::new(Store::new(plugins));
        let plugins = plugin_store.get();
        let hooks = hooks_of(&loaded, &with_vars, hook_gate, &plugins);
        let mut warnings = settings_warnings(&loaded);
        warnings.extend(ineffective_settings(&loaded.merged));
        warnings.extend(unreadable_versions(&loaded.merged));
        warnings.extend(plugins.warnings());
        if is_bare(&with_vars, options) && !options.plugin_dirs.is_empty() {
            warnings.push("A bare run has no plugins: --plugin-dir has no effect".to_owned());
        }
        warnings.extend(hooks.problems.iter().map(|problem| format!("Hooks: {problem}")));
        Ok(Self {
            home,
            is_bare: is_bare(&with_vars, options),
            env: with_vars,
            inherited: env.clone(),
            in_force: crate::settings::reload::in_force(&loaded.merged, &plugins),
            warnings,
            settings,
            hooks,
            hook_gate,
            instructions,
            plugins: plugin_store.get(),
            plugin_store,
            mcp: McpSources::new(&places, &loaded),
            unknown: restricting(&loaded.unknown),
            skill_usage: Arc::new(loaded.skill_usage),
            watch: Some(watch),
            skills: Mutex::new(skills),
        })
    }

    /// No settings at all.
    pub fn none(env: &Env) -> Self {
        let home = ConfigHome::from_env(env);
        let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), SettingsSources::ALL);
        let instructions = InstructionOptions::new(&places, &LoadedSettings::default(), &[]);
        Self {
            env: env.clone(),
            inherited: env.clone(),
            home,
            is_bare: is_bare(env, &RunOptions::default()),
            settings: Settings::default(),
            in_force: Value::Null,
            warnings: Vec::new(),
            instructions,
            hooks: SettingsHooks::default(),
            hook_gate: HookGate::new(env, &RunOptions::default()),
            plugins: Arc::default(),
            plugin_store: Arc::new(Store::new(RunPlugins::default())),
            mcp: McpSources::default(),
            unknown: Vec::new(),
            skill_usage: Arc::default(),
            watch: None,
            skills: Mutex::default(),
        }
    }

    /// Returns the reading of the user's skills, once, where it was begun.
    pub(crate) fn take_skills(&self) -> Option<SkillsPrefetch> {
        self.skills.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Reads the settings and follows their files, as far as the administrator lets the run start at all. What the
/// administrator's program prints takes the place of the administrator's files, and is noted in `places`.
fn watched_settings(
    places: &mut SettingsPlaces,
    env: &Env,
    options: &RunOptions,
) -> Result<(SettingsWatch, LoadedSettings), UserError> {
    let given = options.flag_settings.over(read_settings_flag(env, options)?);
    let (watch, loaded) = SettingsWatch::start(places.clone(), given.clone());
    check_start(&loaded.merged, env)?;
    places.policy = helper_policy(&loaded.merged, env)?;
    if places.policy.is_none() {
        return Ok((watch, loaded));
    }
    let (watch, loaded) = SettingsWatch::start(places.clone(), given);
    check_helper_policy(&loaded)?;
    check_start(&loaded.merged, env)?;
    Ok((watch, loaded))
}

/// Which hooks of settings a run has, besides what the settings say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookGate {
    /// Whether the run does without everything it is not told to do.
    is_bare: bool,
    /// Whether hooks wait until the folder is trusted: before a screen all do, for there somebody can say so.
    waits_for_trust: bool,
}

impl HookGate {
    /// Reads what the run is; `env` has the variables of the settings.
    pub(crate) fn new(env: &Env, options: &RunOptions) -> Self {
        Self {
            is_bare: is_bare(env, options),
            waits_for_trust: options.is_interactive && !options.has_given_trust,
        }
    }
}

/// Returns what settings say of hooks. The administrator's always count; they are all that a bare run has, and all that
/// a person's has in a folder that is not trusted.
pub(crate) fn hooks_of(
    loaded: &LoadedSettings,
    env: &Env,
    gate: HookGate,
    plugins: &RunPlugins,
) -> SettingsHooks {
    let hooks = all_hooks(&loaded.merged, &env.cwd, plugins);
    match gate {
        HookGate { is_bare: true, .. } => hooks.managed_only(),
        HookGate { waits_for_trust: true, .. } if !loaded.trust.is_trusted => hooks.until_trusted(),
        HookGate { .. } => hooks,
    }
}

/// Returns the hooks of settings and plugins, those that do not count among them.
pub fn all_hooks(merged: &MergedSettings, cwd: &Path, plugins: &RunPlugins) -> SettingsHooks {
    let mut hooks = SettingsHooks::parse(merged, cwd);
    plugins.add_hooks(&mut hooks, merged, cwd);
    if plugins.only.hooks { hooks.plugins_only() } else { hooks }
}

/// Tells whether a run is to do without everything it is not told to do; `env` has the variables of the settings.
pub(crate) fn is_bare(env: &Env, options: &RunOptions) -> bool {
    options.is_bare || env.vars.is_truthy(BARE)
}

/// Reads what `--settings` gives: a JSON object, or the name of a file that holds one.
pub(crate) fn read_settings_flag(
    env: &Env,
    options: &RunOptions,
) -> Result<Option<GivenSettings>, UserError> {
    let Some(argument) = options.settings.as_deref() else { return Ok(None) };
    let (text, name) = match argument.trim_start().starts_with('{') {
        true => (argument.to_owned(), "--settings".to_owned()),
        false => (read_given(env, argument)?, argument.to_owned()),
    };
    if text.len() > SETTINGS_LIMIT {
        return Err(UserError::new(format!("The settings in `{name}` are larger than 2 MiB")));
    }
    let document = jsonc::parse(&text);
    if let Some(error) = document.errors.first() {
        let line = text[..error.at].matches('\n').count() + 1;
        return Err(UserError::new(format!("Not valid JSON in `{name}`, line {line}: {}", error.message))
            .hint("Give --settings a JSON object, or a file that holds one."));
    }
    Ok(Some(GivenSettings { text, name }))
}

fn read_given(env: &Env, argument: &str) -> Result<String, UserError> {
    let path = env.cwd.join(loci_core::path::expand_home(&env.home, argument));
    let failed = |error: std::io::Error| {
        UserError::new(format!("Failed to read settings: `{}`: {error}", path.display()))
            .hint("Give --settings a JSON object, or a file that holds one.")
    };
    let metadata = std::fs::metadata(&path).map_err(failed)?;
    if metadata.is_file() && metadata.len() > SETTINGS_LIMIT as u64 {
        return Err(UserError::new(format!("The settings in `{argument}` are larger than 2 MiB")));
    }
    std::fs::read_to_string(&path).map_err(failed)
}

/// Returns what is wrong, a line each, and no more than a person reads at start.
pub(crate) fn settings_warnings(loaded: &LoadedSettings) -> Vec<String> {
    few_warnings(loaded.warnings())
}

/// Returns the same of those of a file that cannot be read as they stand there; why others do not count is another matter.
pub(crate) fn unreadable_settings(loaded: &LoadedSettings) -> Vec<String> {
    let refused: Vec<String> = loaded.merged.diagnostics("").into_iter().map(|it| it.message).collect();
    few_warnings(loaded.warnings().filter(|diagnostic| !refused.contains(&diagnostic.message)))
}

fn few_warnings<'a>(warnings: impl Iterator<Item = &'a Diagnostic>) -> Vec<String> {
    let all: Vec<String> = warnings.map(|diagnostic| format!("Settings: {diagnostic}")).collect();
    let n_more = all.len().saturating_sub(MOST_WARNINGS);
    let problems = counted(n_more as u64, "more problem", "more problems");
    let more = (n_more > 0).then(|| format!("Settings: {problems}; see `loci doctor`"));
    all.into_iter().take(MOST_WARNINGS).chain(more).collect()
}

/// Returns the environment with the variables of the settings in it, which win over inherited ones.
pub fn with_settings_vars(env: &Env, settings: &Settings) -> Env {
    let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let usable = settings.env.iter().filter(|(name, value)| is_name(name) && !value.contains('\0'));
    let vars = usable.fold(env.vars.clone(), |vars, (name, value)| vars.with(name, value));
    let keys = settings.providers.iter();
    let keys: Vec<String> =
        keys.flat_map(|(name, value)| ProviderEntry::parse(name, value).secret_variables()).collect();
    Env { vars: with_secret_names(vars, &keys), ..env.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_settings_win_and_bad_names_are_left_out() {
        let mut env = Env::for_test("/home/dev", "/p");
        env.vars = [("A", "shell"), ("B", "shell")].into_iter().collect();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let settings = Settings {
            env: vec![pair("A", "mine"), pair("C", ""), pair("X=Y", "1"), pair("", "1")],
            ..Settings::default()
        };
        let applied = with_settings_vars(&env, &settings);
        let all: Vec<_> = applied.vars.iter().collect();
        assert_eq!(all, [("A", "mine"), ("B", "shell"), ("C", "")]);
    }

    /// H-8.
    #[test]
    fn hooks_wait_for_trust_before_a_screen_and_nowhere_else() {
        let home = loci_testkit::TestHome::new();
        let hook = |name: &str| {
            format!(r#"{{"hooks": {{"Stop": [{{"hooks": [{{"type": "command", "command": "{name}"}}]}}]}}}}"#)
        };
        home.write_config("settings.json", hook("user"));
        home.write(".claude/settings.json", hook("project"));
        let env = Env::for_test(home.home(), home.project());
        let counting = |is_interactive: bool, has_given_trust: bool| {
            let options = RunOptions { is_interactive, has_given_trust, ..RunOptions::default() };
            let run = RunSettings::load(&env, &options).unwrap();
            run.hooks.config.entries().iter().map(|entry| entry.label()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(counting(true, false), "", "before a screen the user's own wait, too");
        assert_eq!(counting(true, true), "user", "trust that cannot be kept covers what is the user's");
        assert_eq!(counting(false, false), "user", "without one nobody can be asked");
        crate::start::trust::accept_trust(&env).unwrap();
        for is_interactive in [false, true] {
            assert_eq!(counting(is_interactive, false), "user project");
        }
    }
}
