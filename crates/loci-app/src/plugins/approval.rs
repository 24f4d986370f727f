//! What installed plugins may run is held against what was approved (S-39): installing and updating approve, and so does the
//! first session that sees a plugin which another program installed. After that any change waits.
//!
//! What a flag names, what lies among the user's own skills and what the administrator turns on needs no approval.

use std::path::Path;

use loci_core::plugin::{PluginProblem, SKILLS_DIR_MARKETPLACE};
use loci_storage::config::{
    InstallScope, PluginFolder, approve_plugins, approved_plugins, read_plugin, read_plugin_state,
};
use serde_json::Map;

use super::details::describe;
use super::{RunPlugin, RunPlugins, plugins_dir};
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// Returns what an approval is kept by; none for a plugin that needs none.
pub fn approval_key(folder: &PluginFolder) -> Option<String> {
    match (folder.scope, folder.id.marketplace.as_str()) {
        (InstallScope::Inline, _) | (InstallScope::User, SKILLS_DIR_MARKETPLACE) => None,
        (_, SKILLS_DIR_MARKETPLACE) => Some(format!("{} in {}", folder.id, folder.root.display())),
        _ => Some(folder.id.to_string()),
    }
}

/// Approves what a plugin that is on may run now; returns what that is.
pub fn approve_plugin(ctx: &SettingsContext, name: &str) -> Result<String, UserError> {
    let plugins = ctx.plugins();
    let plugin = plugins.find(name).ok_or_else(|| {
        UserError::new(format!("There is no plugin `{name}` that is on"))
            .hint("`loci plugin list` shows those there are.")
    })?;
    let held = &plugin.folder;
    let dir = plugins_dir(&ctx.env, &ctx.home);
    // What the session would have may be held back; the files have it all.
    let (state, _) = read_plugin_state(&dir);
    let entry = || state.marketplace_entry(&held.id);
    let folder = read_plugin(&held.root, Some(&held.id), held.scope, Some(&entry))
        .map_err(|problem| UserError::new(problem.to_string()))?;
    let Some(key) = approval_key(&folder) else {
        return Ok(format!("{} needs no approval\n", held.id));
    };
    approve_plugins(&dir, &[(key, folder.digest())]).map_err(UserError::new)?;
    Ok(format!("{}Approved {}\n", describe(&folder), folder.id))
}

impl RunPlugins {
    /// Takes away what runs of plugins that have changed since they were approved.
    pub(super) fn hold_back_changed(&mut self, dir: &Path) {
        let needs = |plugin: &RunPlugin| !plugin.is_forced && approval_key(&plugin.folder).is_some();
        if !self.plugins.iter().any(needs) {
            return;
        }
        let (approved, is_readable) = match approved_plugins(dir) {
            Ok(approved) => (approved, true),
            Err(why) => {
                let message =
                    format!("{why}, so what installed plugins run waits; remove it to approve them anew");
                self.problems.push(PluginProblem::new("approvals", "approval", message));
                (Map::new(), false)
            }
        };
        let mut new = Vec::new();
        for plugin in self.plugins.iter_mut().filter(|plugin| !plugin.is_forced) {
            let Some(key) = approval_key(&plugin.folder) else { continue };
            let digest = plugin.folder.take_read_digest();
            match approved.get(&key).and_then(|it| it.as_str()) {
                Some(known) if known == digest => {}
                None if is_readable => new.push((key, digest)),
                _ => {
                    let id = plugin.folder.id.clone();
                    plugin.folder.hold_back();
                    let message = format!(
                        "what it may run has changed since it was approved, so its hooks, servers, programs and grants wait; \
                         `loci plugin approve {id}` shows and approves them"
                    );
                    self.problems.push(PluginProblem::new(&id, "approval", message));
                }
            }
        }
        if !new.is_empty()
            && let Err(why) = approve_plugins(dir, &new)
        {
            let message = format!("what plugins may run could not be remembered: {why}");
            self.problems.push(PluginProblem::new("approvals", "approval", message));
        }
    }
}
