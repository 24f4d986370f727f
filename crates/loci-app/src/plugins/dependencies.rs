//! Plugins that need others: one whose needs are not met, or not by the version there is, stays off, and what it needs is said.

use loci_core::plugin::{INLINE_MARKETPLACE, PluginProblem, SKILLS_DIR_MARKETPLACE, version_fits};
use loci_storage::config::InstalledPlugin;

use super::{RunPlugin, RunPlugins};

impl RunPlugins {
    /// Turns off plugins that miss others, and those that have the wrong version of another beside them.
    pub(super) fn check_dependencies(&mut self) {
        while let Some((place, problem)) = self.unfit().or_else(|| self.unmet()) {
            let plugin = self.plugins.remove(place);
            self.problems.push(problem);
            self.disabled.push(InstalledPlugin {
                scope: plugin.folder.scope,
                project: None,
                path: plugin.folder.root,
                version: plugin.folder.manifest.version,
                commit: None,
                is_dependency: false,
                installed_at: None,
                updated_at: None,
                id: plugin.folder.id,
            });
        }
    }

    /// Finds a plugin whose needs the versions there are do not meet.
    fn unfit(&self) -> Option<(usize, PluginProblem)> {
        self.plugins.iter().enumerate().find_map(|(place, plugin)| {
            plugin.folder.manifest.dependencies.iter().find_map(|dependency| {
                let found = self.find_enabled(plugin, &dependency.name, dependency.marketplace.as_deref())?;
                let version = found.folder.version();
                if version_fits(dependency.version.as_deref(), version) {
                    return None;
                }
                let message = format!(
                    "it needs `{}` in version {}, and {} is there; it stays off",
                    found.folder.id,
                    dependency.version.as_deref().unwrap_or("*"),
                    version.unwrap_or("one without a version")
                );
                Some((place, PluginProblem::new(&plugin.folder.id, "dependency_version", message)))
            })
        })
    }

    /// Finds a plugin that needs one which is not there.
    fn unmet(&self) -> Option<(usize, PluginProblem)> {
        self.plugins.iter().enumerate().find_map(|(place, plugin)| {
            let id = &plugin.folder.id;
            let mut needs = plugin.folder.manifest.dependencies.iter();
            let missing = needs
                .find(|it| self.find_enabled(plugin, &it.name, it.marketplace.as_deref()).is_none())?
                .id(&id.marketplace);
            let message = match self.disabled.iter().any(|it| it.id.name == missing.name) {
                true => format!("it needs `{missing}`, which is off; it stays off until `loci plugin enable {missing}`"),
                false => {
                    format!("it needs `{missing}`, which is not installed; it stays off until `loci plugin install {missing}`")
                }
            };
            Some((place, PluginProblem::new(id, "dependency_missing", message)))
        })
    }

    /// Finds a plugin that is on. For one that comes from no marketplace, any marketplace is right.
    fn find_enabled(&self, by: &RunPlugin, name: &str, marketplace: Option<&str>) -> Option<&RunPlugin> {
        let own = by.folder.id.marketplace.as_str();
        let is_loose = matches!(own, INLINE_MARKETPLACE | SKILLS_DIR_MARKETPLACE) && marketplace.is_none();
        let wanted = marketplace.unwrap_or(own);
        self.plugins.iter().find(|other| {
            let id = &other.folder.id;
            let is_there = is_loose || id.marketplace == wanted || id.marketplace == INLINE_MARKETPLACE;
            id.name == name && is_there
        })
    }
}
