//! Plugins on disk: those that a flag names, and those that are installed below `plugins` in the config home.
//!
//! ```text
//! plugins/installed_plugins.json   {"version": 2, "plugins": {"name@marketplace": [{"scope", "installPath", "version", ..}]}}
//! plugins/known_marketplaces.json  {"marketplace": {"source": {..}, "installLocation", "lastUpdated"}}
//! plugins/marketplaces/            copies of marketplaces
//! plugins/cache/<marketplace>/<plugin>/<version>/  with .orphaned_at once nothing is installed from it
//! plugins/data/<id>/               what a plugin keeps
//! plugins/.loci-approved.json      {"name@marketplace": "digest of what it may run"}
//! ```
//!
//! A directory of skills that has a manifest is a plugin, too: `<name>@skills-dir`.
//!
//! Nothing of a plugin is run here, and nothing outside its directory is opened: a link that leads out is left alone and
//! reported.

mod approval;
mod contained;
mod folder;
mod install;
mod orphans;
mod release;
mod renames;
mod runs;
mod state;

use std::path::{Path, PathBuf};

use loci_core::plugin::{PluginId, PluginProblem};
use loci_stdx::in_parallel;
use serde_json::{Map, Value};

use super::skills::{SkillsDir, SkillsPrefetch};
pub use approval::{approve_plugins, approved_plugins};
pub use folder::{PluginFolder, read_plugin};
pub use install::{GitSource, cache_place, clone_repository, copy_plugin, edit_plugin_file, move_plugin};
pub use orphans::{mark_orphaned, sweep_orphans};
pub use release::{ReleaseTag, git_commit, git_identity, repository_root, repository_tags, tag_release};
pub use renames::RenamedPlugin;
use renames::Renames;
use state::Catalogues;
pub use state::{
    InstallScope, InstalledPlugin, KnownMarketplace, PluginState, marketplace_manifest, read_plugin_state,
};

/// How many plugins make another thread worth it, and the most threads that read.
const PLUGINS_PER_THREAD: usize = 8;
const MOST_READERS: usize = 4;

/// Where plugins are looked for.
#[derive(Clone)]
pub struct PluginPlaces<'a> {
    /// `plugins` in the config home.
    pub dir: PathBuf,
    /// Directories that a flag names.
    pub given: Vec<PathBuf>,
    /// Directories of skills, and whose they are.
    pub skills_dirs: Vec<(PathBuf, InstallScope)>,
    /// The reading of the user's one, where it is under way.
    pub prefetch: Option<&'a SkillsPrefetch>,
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
    /// Those whose names in settings are not what they are called any more.
    pub renamed: Vec<RenamedPlugin>,
}

/// Finds and reads plugins. `enabled` is what settings say; `refusal` says why one that is installed may not be used.
pub fn find_plugins(
    places: &PluginPlaces<'_>,
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
    let catalogues = Catalogues::new(&state);
    let all = state.installed_in(&places.project);
    let renames = Renames::find(enabled, &all, &catalogues);
    let enabled = &renames.enabled;
    let mut off = FoundPlugins::default();
    let mut wanted = Vec::new();
    for installed in all {
        if let Some(why) = renames.replacement(&installed.id) {
            off.problems.push(PluginProblem::new(&installed.id, "renamed", why));
            off.disabled.push(installed);
            continue;
        }
        let said = enabled.get(&installed.id.to_string()).map(is_on);
        if said == Some(false) {
            off.disabled.push(installed);
            continue;
        }
        if let Some(why) = refusal(&installed.id, &state) {
            off.problems.push(PluginProblem::new(&installed.id, "policy", why));
            off.disabled.push(installed);
            continue;
        }
        wanted.push((installed, said));
    }
    // Read before it is asked what lies among the skills, which is being looked at meanwhile; taken behind that.
    let read = read_installed(&wanted, &catalogues);
    for (dir, scope) in &places.skills_dirs {
        let dirs = match places.prefetch.filter(|prefetch| prefetch.path() == dir) {
            Some(prefetch) => prefetch.plugins().to_vec(),
            None => SkillsDir::open(dir).map(|dir| dir.plugins().to_vec()).unwrap_or_default(),
        };
        found.take_skills_dir(&dirs, *scope, enabled, &|id| refusal(id, &state));
    }
    found.problems.append(&mut off.problems);
    found.disabled.append(&mut off.disabled);
    for ((installed, said), plugin) in wanted.into_iter().zip(read) {
        match plugin {
            Ok(plugin) if said.is_none() && !is_on_by_default(&plugin, &catalogues) => {
                found.disabled.push(installed);
            }
            Ok(plugin) => found.take(plugin),
            Err(problem) => found.problems.push(problem),
        }
    }
    found.report_missing(enabled, &state);
    found.problems.extend(renames.problems);
    found.renamed = renames.renamed;
    found
}

/// Reads installed plugins, side by side where there are many: a session waits for them.
fn read_installed(
    wanted: &[(InstalledPlugin, Option<bool>)],
    catalogues: &Catalogues<'_>,
) -> Vec<Result<PluginFolder, PluginProblem>> {
    let read = |(installed, _): &(InstalledPlugin, Option<bool>)| {
        let entry = || catalogues.entry(&installed.id);
        let mut plugin = read_plugin(&installed.path, Some(&installed.id), installed.scope, Some(&entry))?;
        plugin.installed_version.clone_from(&installed.version);
        // It is asked for at each start, and made here side by side.
        plugin.read_digest = Some(plugin.digest());
        Ok(plugin)
    };
    let n_threads = (wanted.len() / PLUGINS_PER_THREAD).clamp(1, MOST_READERS);
    in_parallel(wanted.len(), n_threads, |idx| read(&wanted[idx]))
}

/// Tells whether a plugin is on where settings say nothing of it: what its marketplace says counts before its own word.
fn is_on_by_default(plugin: &PluginFolder, catalogues: &Catalogues<'_>) -> bool {
    let said = catalogues.entry(&plugin.id).and_then(|entry| entry.get("defaultEnabled")?.as_bool());
    said.unwrap_or(plugin.manifest.is_enabled_by_default)
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
        dirs: &[PathBuf],
        scope: InstallScope,
        enabled: &Map<String, Value>,
        refusal: &dyn Fn(&PluginId) -> Option<String>,
    ) {
        for path in dirs {
            let plugin = match read_plugin(path, None, scope, None) {
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
                installed_at: None,
                updated_at: None,
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

/// Tells whether `dir` lies in `root`, or is it.
fn is_within(root: &Path, dir: &Path) -> bool {
    dir.starts_with(root)
}

#[cfg(test)]
mod tests;
