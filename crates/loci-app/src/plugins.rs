//! The plugins of a run: found, allowed, their values put in, and each loader given its share.
//!
//! Plugins are read when settings are, and again by `/reload-plugins`. What a folder's settings turn on counts only when the
//! folder is trusted: `loci-settings` holds it back until then, and so it is with plugins that lie among a folder's skills.
//! What an installed plugin may run is remembered (`approval`): when that changes, it waits until somebody has looked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::agent::AgentDefinition;
use loci_core::hooks::{HookScope, HookSource, HookSwitches, SettingsHooks};
use loci_core::output_style::OutputStyle;
use loci_core::plugin::{
    MarketplacePolicy, PluginId, PluginList, PluginOnly, PluginProblem, PluginSummary, PluginVariables,
    SKILLS_DIR_MARKETPLACE, option_values, plugin_hooks, plugin_servers, reserved_refusal,
};
use loci_core::skill::SkillDefinition;
use loci_settings::MergedSettings;
use loci_stdx::{Env, counted};
use loci_storage::config::{
    FoundPlugins, InstallScope, InstalledPlugin, PluginFolder, PluginPlaces, RenamedPlugin, SettingsSources,
    SkillsPrefetch, find_plugins, plugin_secrets,
};
use loci_storage::layout::ConfigHome;
use serde_json::{Map, Value, json};

use crate::compose::child_env::child_env;

mod approval;
mod configure;
mod dependencies;
mod details;
mod install;
mod managed;
mod marketplace;
mod options;
mod prune;
mod renames;
mod request;
mod source;
mod toggle;
mod validate;

pub use approval::{approval_key, approve_plugin};
pub use configure::{needed_options, option_spec, parse_given_options, store_options};
pub use details::{one_line, unused_note};
pub use install::Uninstall;
use managed::is_forced;
pub use managed::{managed_refusal, trust_message};
pub use options::{
    PluginOption, forget_option, keep_option, parse_option_value, plugin_options, set_typed_option,
    unset_options,
};
pub use prune::Confirm;
pub use renames::{RewrittenSettings, rewrite_renamed};
pub use request::{MarketplaceRequest, PluginAnswer, PluginRequest};
pub use toggle::{ToggledPlugin, installed_id, toggle_plugin, write_enabled};

/// How many problems are said at start; `loci plugin list` knows the rest.
const MOST_WARNINGS: usize = 5;
/// The variable that says where plugins lie.
const DIR: &str = "CLAUDE_CODE_PLUGIN_CACHE_DIR";
/// The variable for directories of plugins that are only read, which has no effect.
const SEED: &str = "CLAUDE_CODE_PLUGIN_SEED_DIR";

/// A plugin that is on.
#[derive(Debug, Clone)]
pub struct RunPlugin {
    /// Its files.
    pub folder: PluginFolder,
    /// Its directories and options.
    pub variables: PluginVariables,
    /// Whether the administrator turned it on.
    pub is_forced: bool,
}

/// The plugins of a run.
#[derive(Debug, Clone, Default)]
pub struct RunPlugins {
    /// Those that are on.
    pub plugins: Vec<RunPlugin>,
    /// Those that are installed and off.
    pub disabled: Vec<InstalledPlugin>,
    /// What is wrong.
    pub problems: Vec<PluginProblem>,
    /// What only plugins may add.
    pub only: PluginOnly,
    /// Those that settings name as they are not called any more.
    pub renamed: Vec<RenamedPlugin>,
}

/// What decides which plugins a run has.
#[derive(Clone, Copy)]
pub struct PluginQuery<'a> {
    /// Directories that a flag names.
    pub given: &'a [PathBuf],
    /// Those of them whose MCP servers are left out.
    pub without_servers: &'a [PathBuf],
    /// The root of the project.
    pub project: &'a Path,
    /// What settings say.
    pub merged: &'a MergedSettings,
    /// Whether the folder is trusted.
    pub is_trusted: bool,
    /// Whose files are read.
    pub sources: SettingsSources,
    /// The reading of the user's skills, where it is under way.
    pub prefetch: Option<&'a SkillsPrefetch>,
}

/// Returns the directory that installed plugins lie below.
pub fn plugins_dir(env: &Env, home: &ConfigHome) -> PathBuf {
    match env.vars.non_empty(DIR) {
        Some(dir) => env.cwd.join(loci_core::path::expand_home(&env.home, dir)),
        None => home.root().join("plugins"),
    }
}

/// Returns which marketplaces settings let be used.
pub fn marketplace_policy(merged: &MergedSettings) -> MarketplacePolicy {
    MarketplacePolicy::new(merged.value("strictKnownMarketplaces"), merged.value("blockedMarketplaces"))
}

impl RunPlugins {
    /// Finds a plugin that is on by its id or, where that is enough, its name.
    pub fn find(&self, name: &str) -> Option<&RunPlugin> {
        let mut all = self.plugins.iter();
        all.find(|plugin| plugin.folder.id.to_string() == name || plugin.folder.id.name == name)
    }

    /// Finds the plugins of a run; `env` has the variables of the settings, `given` are directories that a flag names.
    pub fn load(env: &Env, home: &ConfigHome, query: PluginQuery<'_>) -> Self {
        let PluginQuery { given, without_servers, project, merged, .. } = query;
        let dir = plugins_dir(env, home);
        let expand =
            |dir: &PathBuf| env.cwd.join(loci_core::path::expand_home(&env.home, &dir.to_string_lossy()));
        let places = PluginPlaces {
            given: given.iter().map(expand).collect(),
            skills_dirs: skills_dirs(env, home, query),
            prefetch: query.prefetch,
            project: project.to_owned(),
            dir: dir.clone(),
        };
        let none = Map::new();
        let enabled = merged.value("enabledPlugins").and_then(Value::as_object).unwrap_or(&none);
        let policy = marketplace_policy(merged);
        let skills_dir = json!({"source": SKILLS_DIR_MARKETPLACE});
        let mut found = find_plugins(&places, enabled, &|id, state| match id.marketplace.as_str() {
            SKILLS_DIR_MARKETPLACE => policy.refusal(Some(&skills_dir)),
            name => {
                let source = state.marketplace(name).map(|it| &it.source);
                let reserved = || reserved_refusal(name, source?);
                policy.refusal(source).or_else(reserved)
            }
        });
        let serverless: Vec<PathBuf> = without_servers.iter().map(expand).collect();
        for folder in found.plugins.iter_mut().filter(|folder| serverless.contains(&folder.root)) {
            folder.servers.clear();
        }
        let only = PluginOnly::new(merged.value("strictPluginOnlyCustomization"));
        let mut run = Self { only, ..Self::default() };
        run.take(found, &dir, (home, merged));
        if env.vars.non_empty(SEED).is_some() {
            let message = format!("it has no effect in this version; `{DIR}` names the directory of plugins");
            run.problems.push(PluginProblem::new(SEED, "unsupported", message));
        }
        run.check_dependencies();
        run.hold_back_changed(&dir);
        run.make_data_dirs();
        run.check_parts();
        run
    }

    fn take(&mut self, found: FoundPlugins, dir: &Path, (home, merged): (&ConfigHome, &MergedSettings)) {
        self.problems = found.problems;
        self.disabled = found.disabled;
        self.renamed = found.renamed;
        let has_secrets = found.plugins.iter().flat_map(|it| &it.manifest.options).any(|it| it.is_sensitive);
        let secrets = if has_secrets { plugin_secrets(home) } else { Ok(Map::new()) };
        let secrets = secrets.unwrap_or_else(|error| {
            self.problems.push(PluginProblem::new("secrets", "secrets", format!("{error}; none is used")));
            Map::new()
        });
        for mut folder in found.plugins {
            let id = folder.id.to_string();
            self.leave_out_servers(&mut folder);
            self.problems.append(&mut folder.problems);
            let former = self.former_id(&folder.id);
            let by_id = |all: &Value| all.get(&id).or_else(|| all.get(former.as_deref()?)).cloned();
            let config = merged.value("pluginConfigs").and_then(by_id);
            let config = config.as_ref();
            let none = Map::new();
            let given = config.and_then(|it| it.get("options")).and_then(Value::as_object).unwrap_or(&none);
            let kept = secrets.get(&id).or_else(|| secrets.get(former.as_deref()?));
            let kept = kept.and_then(Value::as_object).unwrap_or(&none);
            let (options, problems) = option_values(&folder.manifest.options, given, kept);
            self.problems.extend(problems.into_iter().map(|it| PluginProblem::new(&id, "option", it)));
            let mut note = |kind: &'static str, message: &str| {
                self.problems.push(PluginProblem::new(&id, kind, message));
            };
            for spec in folder.manifest.options.iter().filter(|it| it.is_sensitive) {
                if given.contains_key(&spec.key) && !kept.contains_key(&spec.key) {
                    let key = &spec.key;
                    let message = format!(
                        "its secret `{key}` stands in settings; `loci plugin configure {id} {key}` keeps it apart"
                    );
                    note("secret_in_settings", &message);
                }
            }
            if config.is_some_and(|it| it.get("mcpServers").is_some()) {
                note("unsupported", "`mcpServers` of its `pluginConfigs` has no effect in this version");
            }
            if !folder.unsupported.is_empty() {
                let message = format!("{} are not supported by this version", folder.unsupported.join(", "));
                note("unsupported", &message);
            }
            let variables = PluginVariables {
                root: folder.root.display().to_string(),
                data: dir.join("data").join(folder.id.data_dir_name()).display().to_string(),
                options,
            };
            let for_prompts = variables.for_prompts();
            for skill in folder.skills.iter_mut().map(Arc::make_mut) {
                skill.variables.clone_from(&for_prompts);
            }
            let is_forced = is_forced(merged, &id);
            self.plugins.push(RunPlugin { folder, variables, is_forced });
        }
    }

    /// Returns what settings still call a plugin by.
    fn former_id(&self, id: &PluginId) -> Option<String> {
        let former = self.renamed.iter().find(|it| it.new.as_ref() == Some(id));
        former.map(|it| it.old.to_string())
    }

    /// A plugin among the skills of a project brings no servers: those of a project are approved one by one.
    fn leave_out_servers(&mut self, folder: &mut PluginFolder) {
        let is_projects =
            folder.id.marketplace == SKILLS_DIR_MARKETPLACE && folder.scope == InstallScope::Project;
        if is_projects && !std::mem::take(&mut folder.servers).is_empty() {
            let message = "its MCP servers are left out: those of a project belong in `.mcp.json`, where each is approved";
            self.problems.push(PluginProblem::new(&folder.id, "servers_left_out", message));
        }
    }

    /// A plugin that brings something that runs has a directory to keep things in.
    fn make_data_dirs(&mut self) {
        for plugin in &self.plugins {
            let runs = !plugin.folder.hooks.is_empty() || !plugin.folder.servers.is_empty();
            if runs && let Err(error) = loci_stdx::create_private_dir_all(Path::new(&plugin.variables.data)) {
                let message = format!("its data directory cannot be made: {error}");
                self.problems.push(PluginProblem::new(&plugin.folder.id, "data_dir", message));
            }
        }
    }

    /// Returns what the user should know at start.
    pub fn warnings(&self) -> Vec<String> {
        let all: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        let n_more = all.len().saturating_sub(MOST_WARNINGS);
        let more = (n_more > 0).then(|| {
            let problems = counted(n_more as u64, "more problem", "more problems");
            format!("Plugins: {problems}; see `loci plugin list`")
        });
        all.into_iter().take(MOST_WARNINGS).chain(more).collect()
    }

    /// Returns the skills and commands of all plugins.
    pub fn skills(&self) -> impl Iterator<Item = &Arc<SkillDefinition>> {
        self.plugins.iter().flat_map(|plugin| &plugin.folder.skills)
    }

    /// Returns the agents of all plugins.
    pub fn agents(&self) -> Vec<AgentDefinition> {
        let of_plugin = |plugin: &RunPlugin| {
            let mut agents = plugin.folder.agents.clone();
            for agent in &mut agents {
                agent.prompt = plugin.variables.expand_for_prompt(&agent.prompt);
            }
            agents
        };
        self.plugins.iter().flat_map(of_plugin).collect()
    }

    /// Returns the output styles of all plugins.
    pub fn styles(&self) -> Vec<OutputStyle> {
        let of_plugin = |plugin: &RunPlugin| {
            let mut styles = plugin.folder.styles.clone();
            for style in &mut styles {
                style.text = plugin.variables.expand_for_prompt(&style.text);
            }
            styles
        };
        self.plugins.iter().flat_map(of_plugin).collect()
    }

    /// Adds the hooks of all plugins to those of settings.
    pub fn add_hooks(&self, hooks: &mut SettingsHooks, merged: &MergedSettings, cwd: &Path) {
        let switches = HookSwitches::new(merged);
        for plugin in &self.plugins {
            let vars: Arc<[(String, String)]> = plugin.variables.env().into();
            for (file, value) in &plugin.folder.hooks {
                let (events, _) = plugin_hooks(value, &plugin.variables);
                let scope = HookScope::Plugin(plugin.folder.id.name.clone());
                let source = HookSource { scope, file: file.as_str().into(), line: 0 };
                hooks.take_plugin(&events, source, &vars, (switches, plugin.is_forced), cwd);
            }
        }
    }

    /// Returns the MCP servers of all plugins, each with where it is written.
    pub fn servers(&self) -> Vec<(String, Value)> {
        let of_plugin = |plugin: &RunPlugin| {
            let RunPlugin { folder, variables, .. } = plugin;
            let servers = folder.servers.iter();
            servers
                .map(|(file, value)| (file.clone(), plugin_servers(value, &folder.id.name, variables).0))
                .collect::<Vec<_>>()
        };
        self.plugins.iter().flat_map(of_plugin).collect()
    }

    /// Looks for what is wrong with hooks and servers, which is known once values are put in.
    fn check_parts(&mut self) {
        for plugin in &self.plugins {
            let RunPlugin { folder, variables, .. } = plugin;
            let hooks = folder.hooks.iter().flat_map(|(_, value)| plugin_hooks(value, variables).1);
            let servers = folder
                .servers
                .iter()
                .flat_map(|(_, value)| plugin_servers(value, &folder.id.name, variables).1);
            let problems = hooks.chain(servers).map(|it| PluginProblem::new(&folder.id, "component", it));
            self.problems.extend(problems);
        }
    }

    /// Returns the agent that a plugin has the main conversation run as, by the names it may have.
    pub fn main_agent(&self) -> Option<[String; 2]> {
        self.plugins.iter().find_map(|plugin| {
            let name = plugin.folder.settings.get("agent")?.as_str()?.trim();
            Some([format!("{}:{name}", plugin.folder.id.name), name.to_owned()])
        })
    }

    /// Returns the environment of commands, with the programs of plugins in their search path.
    pub fn child_env(&self, env: &Env) -> Vec<(String, String)> {
        let mut vars = child_env(env);
        self.extend_path(&mut vars);
        vars
    }

    /// Puts the programs of plugins behind all others in the search path of commands: they add to what there is, and
    /// take the place of nothing.
    fn extend_path(&self, child_env: &mut Vec<(String, String)>) {
        let bins: Vec<String> = self
            .plugins
            .iter()
            .filter_map(|plugin| Some(plugin.folder.bin.as_ref()?.display().to_string()))
            .filter(|bin| !bin.contains(':'))
            .collect();
        if bins.is_empty() {
            return;
        }
        let bins = bins.join(":");
        match child_env.iter_mut().find(|(name, _)| name == "PATH") {
            Some((_, path)) if !path.is_empty() => *path = format!("{path}:{bins}"),
            Some((_, path)) => *path = bins,
            None => child_env.push(("PATH".to_owned(), bins)),
        }
    }

    /// Returns the list for those who look on.
    pub fn list(&self) -> PluginList {
        let summary = |plugin: &RunPlugin| PluginSummary {
            name: plugin.folder.id.name.clone(),
            path: plugin.folder.root.display().to_string(),
            source: plugin.folder.id.to_string(),
        };
        PluginList {
            plugins: self.plugins.iter().map(summary).collect(),
            themes: self.plugins.iter().flat_map(|plugin| plugin.folder.themes.clone()).collect(),
            problems: self.problems.clone(),
        }
    }
}

/// Returns the directories of skills that plugins may lie in: the user's, and that of a working directory that is trusted.
fn skills_dirs(env: &Env, home: &ConfigHome, query: PluginQuery<'_>) -> Vec<(PathBuf, InstallScope)> {
    let user = home.root().join("skills");
    let project = env.cwd.join(".claude").join("skills");
    let has_project = query.sources.project && query.is_trusted && project != user;
    let dirs =
        [(user, InstallScope::User, query.sources.user), (project, InstallScope::Project, has_project)];
    dirs.into_iter().filter(|(.., is_read)| *is_read).map(|(dir, scope, _)| (dir, scope)).collect()
}

/// Returns the marketplaces that settings name, by name, with where each is.
pub fn extra_marketplaces(merged: &MergedSettings) -> Vec<(String, Value)> {
    let named = merged.value("extraKnownMarketplaces").and_then(Value::as_object);
    let named = named.into_iter().flatten();
    named.filter_map(|(name, entry)| Some((name.clone(), entry.get("source")?.clone()))).collect()
}
