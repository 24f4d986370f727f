//! Turning plugins on and off: one entry of `enabledPlugins` in one settings file.

use loci_core::plugin::{PluginId, SKILLS_DIR_MARKETPLACE};
use loci_settings::Scope;
use loci_settings::edit::set;
use loci_storage::config::{InstallScope, PluginState, edit_settings, read_plugin_state};
use serde_json::Value;

use super::{RunPlugin, RunPlugins, marketplace_policy, plugins_dir};
use crate::settings::editor::{SettingsContext, to_user_error};
use crate::user_error::UserError;

/// A plugin that was turned on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToggledPlugin {
    /// Which one.
    pub id: PluginId,
    /// What is to be said of it.
    pub said: String,
}

/// Turns a plugin on or off in the file of a scope; where none is named, of the one that it is installed for.
pub fn toggle_plugin(
    ctx: &SettingsContext,
    name: &str,
    is_on: bool,
    scope: Option<Scope>,
) -> Result<ToggledPlugin, UserError> {
    let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    let plugins = ctx.plugins();
    let id = match among_skills(&plugins, name) {
        Some(id) => id,
        None => installed_id(&state, name)?,
    };
    let scope = scope.unwrap_or_else(|| scope_of_installed(ctx, &state, &id));
    let mut out = String::new();
    match is_on {
        true => out += &enable_needed(ctx, &state, &id, scope)?,
        false => {
            for other in dependents(&plugins, &state, &id)? {
                write_enabled(ctx, &other, scope, Some(false))?;
                out += &format!("{other} is off, too: it and {id} need each other\n");
            }
        }
    }
    write_enabled(ctx, &id, scope, Some(is_on))?;
    let (file, _) = ctx.file(scope);
    let word = if is_on { "on" } else { "off" };
    out += &format!("{id} is {word} in {}\n", ctx.places.display_path(&file));
    let after = SettingsContext::new(&ctx.env);
    let enabled = after.loaded.merged.value("enabledPlugins");
    let counts = enabled.and_then(|it| it.get(id.to_string())).and_then(Value::as_bool);
    if counts != Some(is_on) {
        out += "It has no effect here: another file says otherwise, or the folder is not trusted\n";
    }
    Ok(ToggledPlugin { id, said: out })
}

/// Returns the settings that go with where a plugin is installed: for this project, or for the user.
fn scope_of_installed(ctx: &SettingsContext, state: &PluginState, id: &PluginId) -> Scope {
    let here = state.installed_in(ctx.places.tree_root());
    match here.iter().find(|it| it.id == *id).map(|it| it.scope) {
        Some(InstallScope::Local) => Scope::Local,
        Some(InstallScope::Project) => Scope::Project,
        Some(InstallScope::User | InstallScope::Managed | InstallScope::Inline) | None => Scope::User,
    }
}

/// Finds a plugin that lies among skills.
fn among_skills(plugins: &RunPlugins, name: &str) -> Option<PluginId> {
    let on = plugins.plugins.iter().map(|plugin| &plugin.folder.id);
    let mut all = on.chain(plugins.disabled.iter().map(|plugin| &plugin.id));
    all.find(|id| id.marketplace == SKILLS_DIR_MARKETPLACE && (id.to_string() == name || id.name == name))
        .cloned()
}

/// Turns on what a plugin needs; the error says what is not there.
fn enable_needed(
    ctx: &SettingsContext,
    state: &PluginState,
    id: &PluginId,
    scope: Scope,
) -> Result<String, UserError> {
    let needed = needed_by_installed(state, id);
    let missing: Vec<String> =
        needed.iter().filter(|it| !state.has(it)).map(|it| format!("loci plugin install {it}")).collect();
    if !missing.is_empty() {
        return Err(UserError::new(format!("`{id}` needs plugins that are not installed"))
            .hint(format!("Run: {}.", missing.join(" && "))));
    }
    let policy = marketplace_policy(&ctx.loaded.merged);
    for other in &needed {
        let source = state.marketplace(&other.marketplace).map(|it| &it.source);
        if let Some(why) = policy.refusal(source) {
            return Err(UserError::new(format!("`{id}` needs `{other}`, which may not be used: {why}")));
        }
        if let Some(above) = off_above(ctx, other, scope) {
            return Err(UserError::new(format!(
                "`{id}` needs `{other}`, which the {above} settings turn off"
            ))
            .hint(format!("Turn `{other}` on there, or name that scope with `--scope`.")));
        }
    }
    let enabled = ctx.loaded.merged.value("enabledPlugins").and_then(Value::as_object);
    let is_on = |id: &PluginId| enabled.and_then(|it| it.get(&id.to_string())) == Some(&Value::Bool(true));
    let mut out = String::new();
    for other in needed.iter().filter(|it| !is_on(it)) {
        write_enabled(ctx, other, scope, Some(true))?;
        out += &format!("{other} is on, too: it is needed\n");
    }
    Ok(out)
}

/// Returns the settings above a scope that turn a plugin off: what is written below them would not count.
fn off_above(ctx: &SettingsContext, id: &PluginId, scope: Scope) -> Option<Scope> {
    let setting = ctx.loaded.merged.get("enabledPlugins")?;
    let above = setting.parts.iter().filter(|part| part.origin.scope > scope);
    let id = id.to_string();
    above.filter(|part| part.value.get(&id) == Some(&Value::Bool(false))).map(|part| part.origin.scope).next()
}

/// Refuses to turn off what another plugin that is on needs. Those that it needs itself are returned: of plugins that need
/// each other none could be turned off alone.
fn dependents(plugins: &RunPlugins, state: &PluginState, id: &PluginId) -> Result<Vec<PluginId>, UserError> {
    let needs = |plugin: &&RunPlugin| {
        let own = &plugin.folder.id.marketplace;
        plugin.folder.id != *id && plugin.folder.manifest.dependencies.iter().any(|it| it.id(own) == *id)
    };
    let needed = needed_by_installed(state, id);
    let by = plugins.plugins.iter().filter(needs).map(|it| it.folder.id.clone());
    let (mutual, others): (Vec<PluginId>, Vec<PluginId>) = by.partition(|other| needed.contains(other));
    if others.is_empty() {
        return Ok(mutual);
    }
    let by: Vec<String> = others.iter().map(ToString::to_string).collect();
    let all: Vec<String> =
        by.iter().chain([&id.to_string()]).map(|id| format!("loci plugin disable {id}")).collect();
    Err(UserError::new(format!("`{id}` is still needed by {}", by.join(", ")))
        .hint(format!("To turn all of them off: {}.", all.join(" && "))))
}

/// Finds an installed plugin by its id or its name.
pub fn installed_id(state: &PluginState, name: &str) -> Result<PluginId, UserError> {
    let matching: Vec<&PluginId> = {
        let mut ids: Vec<&PluginId> = state.installed.iter().map(|it| &it.id).collect();
        ids.sort();
        ids.dedup();
        ids.into_iter().filter(|id| id.to_string() == name || id.name == name).collect()
    };
    match matching.as_slice() {
        [id] => Ok((*id).clone()),
        [] => Err(UserError::new(format!("The plugin `{name}` is not installed"))
            .hint("`loci plugin list` shows those there are.")),
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(UserError::new(format!("Several plugins are called `{name}`"))
                .hint(format!("Name one of: {}.", names.join(", "))))
        }
    }
}

/// Writes one entry of `enabledPlugins`, or takes it away.
pub fn write_enabled(
    ctx: &SettingsContext,
    id: &PluginId,
    scope: Scope,
    value: Option<bool>,
) -> Result<(), UserError> {
    let id = id.to_string();
    let path = ["enabledPlugins", id.as_str()];
    let Some(value) = value else { return ctx.unset(&path, scope).map(drop) };
    let (file, options) = ctx.file(scope);
    ctx.keep_private(scope, &file)?;
    edit_settings(&ctx.home, &file, &options, |text| set(text, &path, &Value::Bool(value)))
        .map(drop)
        .map_err(|error| to_user_error(&error))
}

/// Returns what an installed plugin needs, and what that needs.
fn needed_by_installed(state: &PluginState, id: &PluginId) -> Vec<PluginId> {
    let (mut all, mut open) = (Vec::new(), vec![id.clone()]);
    while let Some(id) = open.pop() {
        let Some(installed) = state.installed.iter().find(|it| it.id == id) else { continue };
        let Ok(folder) = state.read_installed(installed) else { continue };
        for needed in folder.manifest.dependencies.iter().map(|it| it.id(&id.marketplace)) {
            if !all.contains(&needed) {
                open.push(needed.clone());
                all.push(needed);
            }
        }
    }
    all
}
