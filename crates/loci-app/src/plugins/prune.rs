//! Plugins that came because others needed them, and that nothing needs any more.

use loci_core::plugin::{PluginId, PluginNeeds, orphans};
use loci_settings::Scope;
use loci_storage::config::read_plugin_state;

use super::install::{install_scope, remove_installed};
use super::plugins_dir;
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// Asks whether something is to go; none where nobody can be asked.
pub type Confirm<'a> = &'a dyn Fn(&str) -> Option<bool>;

/// Lists them.
pub(super) fn list_orphans(ctx: &SettingsContext, scope: Scope) -> String {
    listed(&orphans_of(ctx, scope))
}

/// Removes all of them, once that is wanted; returns what to say.
pub(super) fn prune_orphans(
    ctx: &SettingsContext,
    scope: Scope,
    is_sure: bool,
    confirm: Confirm<'_>,
) -> Result<String, UserError> {
    let orphans = orphans_of(ctx, scope);
    let is_wanted = || {
        let names: Vec<String> = orphans.iter().map(ToString::to_string).collect();
        confirm(&format!("Remove {}?", names.join(", ")))
    };
    if orphans.is_empty() || !(is_sure || is_wanted() == Some(true)) {
        return Ok(listed(&orphans));
    }
    let dir = plugins_dir(&ctx.env, &ctx.home);
    orphans.iter().map(|id| remove_installed(ctx, &dir, id, scope)).collect()
}

fn listed(orphans: &[PluginId]) -> String {
    if orphans.is_empty() {
        return "Nothing to prune: whatever came because it was needed still is\n".to_owned();
    }
    let lines: String = orphans.iter().map(|id| format!("{id}\n")).collect();
    format!("{lines}Nothing needs these any more; `loci plugin prune --yes` removes them\n")
}

/// Finds them among what is installed for a scope; what is installed for another may need them.
fn orphans_of(ctx: &SettingsContext, scope: Scope) -> Vec<PluginId> {
    let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    let needs: Vec<PluginNeeds> = state
        .installed
        .iter()
        .map(|it| PluginNeeds {
            id: it.id.clone(),
            is_dependency: it.is_dependency && it.scope == install_scope(scope),
            dependencies: state.read_installed(it).map(|it| it.manifest.dependencies).unwrap_or_default(),
        })
        .collect();
    orphans(&needs)
}
