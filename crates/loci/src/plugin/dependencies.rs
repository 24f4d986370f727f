//! What a plugin needs: fetched with it before anything is put in its place, or named where it cannot be had.

use std::collections::BTreeSet;
use std::path::Path;

use loci_app::UserError;
use loci_core::plugin::{PluginId, version_fits};
use loci_storage::config::{PluginState, marketplace_manifest};
use serde_json::Value;

use super::install::{Fetched, fetch};
use crate::config::SettingsContext;

/// The field that lets a marketplace's plugins need those of another.
const CROSS: &str = "allowCrossMarketplaceDependenciesOn";

/// Fetches what a plugin needs and is not installed, those that others need first; the error says what cannot be had.
pub(super) fn fetch_needed(
    ctx: &SettingsContext,
    state: &PluginState,
    root: &Fetched,
    dir: &Path,
) -> Result<Vec<Fetched>, UserError> {
    let mut seen: BTreeSet<PluginId> = BTreeSet::from([root.id.clone()]);
    let mut fetched: Vec<Fetched> = Vec::new();
    let mut open = needs_of(root);
    while let Some((needed, range, by)) = open.pop() {
        let range = range.as_deref();
        let refuse = |why: String| {
            UserError::new(format!("`{}` cannot be installed: it needs `{needed}`, {why}", root.id))
                .hint(format!("`loci plugin install {needed}` installs it by itself."))
        };
        let known = fetched.iter().find(|it| it.id == needed).map(Fetched::version);
        let known = known.or_else(|| installed_version(state, &needed));
        if let Some(version) = known {
            if !version_fits(range, Some(&version)) {
                let range = range.unwrap_or("*");
                return Err(refuse(format!("in version {range} for `{by}`, and {version} is there")));
            }
            continue;
        }
        if !seen.insert(needed.clone()) {
            continue;
        }
        if needed.marketplace != root.id.marketplace
            && !allows(state, &root.id.marketplace, &needed.marketplace)
        {
            return Err(refuse(format!(
                "and its marketplace does not allow plugins of `{}` (`{CROSS}`)",
                needed.marketplace
            )));
        }
        let other = fetch(ctx, state, &needed, dir).map_err(|error| refuse(format!("and {error}")))?;
        if !version_fits(range, Some(&other.version())) {
            let range = range.unwrap_or("*");
            return Err(refuse(format!("in version {range}, and its marketplace has {}", other.version())));
        }
        open.extend(needs_of(&other));
        fetched.push(other);
    }
    fetched.reverse();
    Ok(fetched)
}

/// Returns what a plugin needs that is installed and turned off.
pub(super) fn needed_and_off(ctx: &SettingsContext, state: &PluginState, root: &Fetched) -> Vec<PluginId> {
    let enabled = ctx.loaded.merged.value("enabledPlugins").and_then(Value::as_object);
    let is_off = |id: &PluginId| {
        enabled.and_then(|it| it.get(&id.to_string())).and_then(Value::as_bool) == Some(false)
    };
    let needs = needs_of(root).into_iter().map(|(id, ..)| id);
    needs.filter(|id| state.has(id) && is_off(id)).collect()
}

fn needs_of(plugin: &Fetched) -> Vec<(PluginId, Option<String>, PluginId)> {
    let needs = plugin.folder.manifest.dependencies.iter();
    needs.map(|it| (it.id(&plugin.id.marketplace), it.version.clone(), plugin.id.clone())).collect()
}

fn installed_version(state: &PluginState, id: &PluginId) -> Option<String> {
    let installed = state.installed.iter().find(|it| it.id == *id)?;
    Some(installed.version.clone().unwrap_or_default())
}

fn allows(state: &PluginState, marketplace: &str, other: &str) -> bool {
    let catalogue = state.marketplace(marketplace).and_then(|it| marketplace_manifest(&it.location).ok());
    let allowed = catalogue.and_then(|(catalogue, _)| catalogue.get(CROSS).cloned());
    allowed.as_ref().and_then(Value::as_array).is_some_and(|names| names.iter().any(|name| name == other))
}
