//! Plugins on disk: those that a flag names, and those that are installed below `plugins` in the config home.
//!
//! ```text
//! plugins/installed_plugins.json   {"version": 2, "plugins": {"name@marketplace": [{"scope", "installPath", "version", ..}]}}
//! plugins/known_marketplaces.json  {"marketplace": {"source": {..}, "installLocation", "lastUpdated"}}
//! plugins/marketplaces/            copies of marketplaces
//! plugins/cache/<marketplace>/<plugin>/<version>/
//! plugins/data/<id>/               what a plugin keeps
//! plugins/.loci-approved.json      {"name@marketplace": "digest of what it may run"}
//! ```
//!
//! A directory of skills that has a manifest is a plugin, too: `<name>@skills-dir`.
//!
//! Nothing of a plugin is run here, and nothing outside its directory is opened: a link that leads out is left alone and
//! reported.

mod approval;
mod folder;
mod install;
mod release;
mod runs;
mod state;

use std::path::{Path, PathBuf};

use loci_core::plugin::{PluginId, PluginProblem};
use serde_json::{Map, Value};

pub use approval::{approve_plugins, approved_plugins};
pub use folder::{PluginFolder, read_plugin};
pub use install::{GitSource, cache_place, clone_repository, copy_plugin, edit_plugin_file};
pub use release::{ReleaseTag, tag_release};
pub use state::{
    InstallScope, InstalledPlugin, KnownMarketplace, PluginState, marketplace_manifest, read_plugin_state,
};

/// From so many plugins on they are read side by side.
const MANY: usize = 8;
/// By so many threads at most.
const MOST_THREADS: usize = 4;

/// Where plugins are looked for.
#[derive(Debug, Clone)]
pub struct PluginPlaces {
    /// `plugins` in the config home.
    pub dir: PathBuf,
    /// Directories that a flag names.
    pub given: Vec<PathBuf>,
    /// Directories of skills, and whose they are.
    pub skills_dirs: Vec<(PathBuf, InstallScope)>,
    /// The root of the project.
    pub project: PathBuf,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct FoundPlugins {
    /// Those that are on, in the order in which they were named.
    pub plugins: Vec<PluginFolder>,
    /// Those that are installed and off.
    pub disabled: Vec<InstalledPlugin>,
    /// What is wrong.
    pub problems: Vec<PluginProblem>,
}

/// Finds and reads plugins. `enabled` is what settings say; `refusal` says why one that is installed may not be used.
pub fn find_plugins(
    places: &PluginPlaces,
    enabled: &Map<String, Value>,
    refusal: &dyn Fn(&PluginId, &PluginState) -> Option<String>,
) -> FoundPlugins {
    let mut found = FoundPlugins::default();
    for dir in &places.given {
        match read_plugin(dir, None, InstallScope::Inline, None) {
            Ok(plugin) => found.take(plugin),
            Err(problem) => found.problems.push(problem),
        }
    }
    let (state, problems) = read_plugin_state(&places.dir);
    found.problems.extend(problems);
    for (dir, scope) in &places.skills_dirs {
        found.take_skills_dir(dir, *scope, enabled, &|id| refusal(id, &state));
    }
    let mut wanted = Vec::new();
    for installed in state.installed_in(&places.project) {
        let said = enabled.get(&installed.id.to_string()).map(is_on);
        if said == Some(false) {
            found.disabled.push(installed);
            continue;
        }
        if let Some(why) = refusal(&installed.id, &state) {
            found.problems.push(PluginProblem::new(&installed.id, "policy", why));
            found.disabled.push(installed);
            continue;
        }
        wanted.push((installed, said));
    }
    let read = read_installed(&wanted, &state);
    for ((installed, said), plugin) in wanted.into_iter().zip(read) {
        match plugin {
            Ok(plugin) if said.is_none() && !plugin.manifest.is_enabled_by_default => {
                found.disabled.push(installed);
            }
            Ok(plugin) => found.take(plugin),
            Err(problem) => found.problems.push(problem),
        }
    }
    found.report_missing(enabled, &state);
    found
}

/// Reads installed plugins, side by side where there are many: a session waits for them.
fn read_installed(
    wanted: &[(InstalledPlugin, Option<bool>)],
    state: &PluginState,
) -> Vec<Result<PluginFolder, PluginProblem>> {
    let read = |(installed, _): &(InstalledPlugin, Option<bool>)| {
        let entry = || state.marketplace_entry(&installed.id);
        read_plugin(&installed.path, Some(&installed.id), installed.scope, Some(&entry))
    };
    if wanted.len() < MANY {
        return wanted.iter().map(read).collect();
    }
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let share = wanted.len().div_ceil(n_threads);
    std::thread::scope(|scope| {
        let read = &read;
        let threads: Vec<_> = wanted
            .chunks(share)
            .map(|part| (part, scope.spawn(move || part.iter().map(read).collect::<Vec<_>>())))
            .collect();
        // A thread that is lost has lost nothing that cannot be read again.
        let shares = threads
            .into_iter()
            .map(|(part, thread)| thread.join().unwrap_or_else(|_| part.iter().map(read).collect()));
        shares.flatten().collect()
    })
}

/// Tells whether a value of `enabledPlugins` turns a plugin on: older files list versions there.
fn is_on(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::Array(versions) => !versions.is_empty(),
        _ => false,
    }
}

impl FoundPlugins {
    /// Takes the plugins that lie in a directory of skills.
    fn take_skills_dir(
        &mut self,
        dir: &Path,
        scope: InstallScope,
        enabled: &Map<String, Value>,
        refusal: &dyn Fn(&PluginId) -> Option<String>,
    ) {
        for path in folder::sorted_entries(dir).into_iter().filter(|path| is_plugin_dir(path)) {
            let plugin = match read_plugin(&path, None, scope, None) {
                Ok(plugin) => plugin,
                Err(problem) => {
                    self.problems.push(problem);
                    continue;
                }
            };
            let said = enabled.get(&plugin.id.to_string()).map(is_on);
            let why = refusal(&plugin.id);
            if said.unwrap_or(plugin.manifest.is_enabled_by_default) && why.is_none() {
                self.take(plugin);
                continue;
            }
            self.problems.extend(why.map(|why| PluginProblem::new(&plugin.id, "policy", why)));
            self.disabled.push(InstalledPlugin {
                scope,
                project: None,
                path: plugin.root,
                version: plugin.manifest.version,
                commit: None,
                is_dependency: false,
                id: plugin.id,
            });
        }
    }

    /// Takes a plugin unless another of its name is there: what it brings would be called the same.
    fn take(&mut self, plugin: PluginFolder) {
        match self.plugins.iter().find(|other| other.id.name == plugin.id.name) {
            None => self.plugins.push(plugin),
            Some(other) => {
                let message =
                    format!("`{}` has the same name and comes first; this one is left out", other.id);
                self.problems.push(PluginProblem::new(&plugin.id, "name_conflict", message));
            }
        }
    }

    fn report_missing(&mut self, enabled: &Map<String, Value>, state: &PluginState) {
        for (text, _) in enabled.iter().filter(|(_, value)| is_on(value)) {
            let Some(id) = PluginId::parse(text) else {
                let shown: String = text.escape_debug().take(80).collect();
                let message = "`enabledPlugins` names it, and it is no `plugin@marketplace`";
                self.problems.push(PluginProblem::new(shown, "invalid_id", message));
                continue;
            };
            let is_known = state.has(&id)
                || self.plugins.iter().any(|plugin| plugin.id == id)
                || self.disabled.iter().any(|plugin| plugin.id == id);
            if !is_known {
                let message = format!("it is turned on and not installed; run `loci plugin install {id}`");
                self.problems.push(PluginProblem::new(&id, "not_installed", message));
            }
        }
    }
}

/// Tells whether a directory is that of a plugin with a manifest.
pub(super) fn is_plugin_dir(dir: &Path) -> bool {
    dir.join(".claude-plugin").join("plugin.json").symlink_metadata().is_ok()
}

/// Tells whether `dir` lies in `root`, or is it.
fn is_within(root: &Path, dir: &Path) -> bool {
    dir.starts_with(root)
}

#[cfg(test)]
mod tests;
