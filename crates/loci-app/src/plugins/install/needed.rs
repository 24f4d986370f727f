//! What a plugin needs: fetched with it before anything is put in its place, or named where it cannot be had.

use std::collections::BTreeMap;
use std::path::Path;

use loci_core::plugin::PluginId;
use loci_storage::config::{PluginState, marketplace_manifest};
use serde_json::Value;

use super::releases::{VersionRange, fits_all, installed_ranges, listed};
use super::{Fetched, fetch};
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// The field that lets a marketplace's plugins need those of another.
const CROSS: &str = "allowCrossMarketplaceDependenciesOn";

/// Fetches what a plugin needs and is not installed, or is in a version that somebody cannot use; those that others need
/// first. The error says what cannot be had.
pub(super) fn fetch_needed(
    ctx: &SettingsContext,
    state: &PluginState,
    root: &Fetched,
    dir: &Path,
) -> Result<Vec<Fetched>, UserError> {
    let mut ranges: BTreeMap<PluginId, Vec<VersionRange>> = BTreeMap::new();
    let mut fetched: Vec<Fetched> = Vec::new();
    let mut open = needs_of(root);
    while let Some((needed, range, by)) = open.pop() {
        if needed == root.id {
            continue;
        }
        let all = ranges.entry(needed.clone()).or_insert_with(|| installed_ranges(state, &needed, &root.id));
        if let Some(range) = range.map(|range| VersionRange { range, by }).filter(|it| !all.contains(it)) {
            all.push(range);
        }
        let place = fetched.iter().position(|it| it.id == needed);
        let known = place.map(|place| fetched[place].version());
        let known = known.or_else(|| installed_version(state, &needed));
        if known.is_some_and(|version| fits_all(all, &version)) {
            continue;
        }
        if needed.marketplace != root.id.marketplace
            && !allows(state, &root.id.marketplace, &needed.marketplace)
        {
            return Err(refusal(
                &root.id,
                &needed,
                &format!(
                    "and its marketplace does not allow plugins of `{}` (`{CROSS}`)",
                    needed.marketplace
                ),
            ));
        }
        let other = fetch(ctx, state, &needed, dir, all)
            .map_err(|error| refusal(&root.id, &needed, &format!("and {error}")))?;
        if !fits_all(all, &other.version()) {
            let why = format!("in version {}, and {} is there", listed(all), other.version());
            return Err(refusal(&root.id, &needed, &why));
        }
        open.extend(needs_of(&other));
        if let Some(place) = place {
            fetched.remove(place);
        }
        fetched.push(other);
    }
    fetched.reverse();
    Ok(fetched)
}

fn refusal(root: &PluginId, needed: &PluginId, why: &str) -> UserError {
    UserError::new(format!("`{root}` cannot be installed: it needs `{needed}`, {why}"))
        .hint(format!("`loci plugin install {needed}` installs it by itself."))
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
