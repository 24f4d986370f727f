//! The options of one plugin: which have no value yet, and where a value is kept.

use std::io;
use std::path::PathBuf;

use loci_core::plugin::{OptionKind, OptionSpec, PluginId};
use loci_settings::Scope;
use loci_settings::edit::set;
use loci_storage::config::{
    PluginFolder, edit_settings, plugin_secrets, read_plugin_state, store_plugin_secret,
};
use serde_json::{Map, Value};

use super::plugins_dir;
use crate::settings::editor::{SettingsContext, to_user_error};
use crate::user_error::UserError;

/// An option of a plugin, and what it is set to.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginOption {
    /// What its manifest says of it.
    pub spec: OptionSpec,
    /// Whether somebody has given it a value; a default is none.
    pub is_set: bool,
    /// That value as people type it; none of a secret, which is shown nowhere.
    pub typed: Option<String>,
}

/// Returns the options of a plugin that nobody has given a value; a default is none.
pub fn unset_options(ctx: &SettingsContext, id: &PluginId) -> Vec<OptionSpec> {
    plugin_options(ctx, id).into_iter().filter(|it| !it.is_set).map(|it| it.spec).collect()
}

/// Returns the options of a plugin, whether it is on or not, and what they are set to.
pub fn plugin_options(ctx: &SettingsContext, id: &PluginId) -> Vec<PluginOption> {
    let Some(folder) = folder_of(ctx, id) else { return Vec::new() };
    if folder.manifest.options.is_empty() {
        return Vec::new();
    }
    let id = id.to_string();
    let configs = ctx.loaded.merged.value("pluginConfigs");
    let given = configs.and_then(|it| it.get(&id)?.get("options")?.as_object());
    let secrets = plugin_secrets(&ctx.home).unwrap_or_else(|_| Map::new());
    let kept = secrets.get(&id).and_then(Value::as_object);
    let option = |spec: OptionSpec| {
        let kept = kept.filter(|_| spec.is_sensitive).and_then(|kept| kept.get(&spec.key));
        let given = given.and_then(|given| given.get(&spec.key));
        let value = kept.into_iter().chain(given).find(|value| !value.is_null());
        let typed = value.filter(|_| !spec.is_sensitive).map(typed_value);
        PluginOption { is_set: value.is_some(), typed, spec }
    };
    folder.manifest.options.into_iter().map(option).collect()
}

/// Returns a value as people type it.
fn typed_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(typed_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Reads the word for a value; the error says why it is none.
pub fn parse_option_value(spec: &OptionSpec, word: &str) -> Result<Value, String> {
    let value = match spec.kind {
        OptionKind::Number => serde_json::from_str(word).unwrap_or_else(|_| Value::from(word)),
        OptionKind::Switch => match word.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "y" | "on" | "1" => Value::Bool(true),
            "false" | "no" | "n" | "off" | "0" => Value::Bool(false),
            _ => Value::from(word),
        },
        OptionKind::Text if spec.is_multiple => word.split(',').map(str::trim).collect(),
        OptionKind::Text | OptionKind::Directory | OptionKind::File => Value::from(word),
    };
    spec.check(&value).map(|_| value)
}

/// Sets an option to what was typed, or forgets its value where nothing was; returns what to say.
pub fn set_typed_option(
    ctx: &SettingsContext,
    id: &PluginId,
    key: &str,
    typed: Option<&str>,
) -> Result<String, UserError> {
    let spec = plugin_options(ctx, id).into_iter().map(|it| it.spec).find(|spec| spec.key == key);
    let spec = spec.ok_or_else(|| UserError::new(format!("The plugin `{id}` has no option `{key}`")))?;
    let Some(typed) = typed else { return forget_option(ctx, id, &spec) };
    let value = parse_option_value(&spec, typed)
        .map_err(|why| UserError::new(format!("The option `{key}` {why}")))?;
    let place = keep_option(ctx, id, &spec, &value)?;
    Ok(format!("`{key}` is kept in {}\n", ctx.places.display_path(&place)))
}

/// Forgets the value of an option; returns what to say.
pub fn forget_option(ctx: &SettingsContext, id: &PluginId, spec: &OptionSpec) -> Result<String, UserError> {
    let (id, key) = (id.to_string(), spec.key.as_str());
    if spec.is_sensitive {
        store_plugin_secret(&ctx.home, &id, key, None).map_err(|error| failed(key, &error))?;
    }
    ctx.unset(&["pluginConfigs", &id, "options", key], Scope::User)?;
    Ok(format!("`{key}` is not set any more\n"))
}

/// Reads the files of a plugin, whether it is on or not.
fn folder_of(ctx: &SettingsContext, id: &PluginId) -> Option<PluginFolder> {
    let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    let installed = state.installed_in(ctx.places.tree_root()).into_iter().find(|it| it.id == *id);
    let read = installed.and_then(|it| state.read_installed(&it).ok());
    read.or_else(|| ctx.plugins().plugins.into_iter().map(|it| it.folder).find(|it| it.id == *id))
}

/// Keeps the value of an option: a secret with the credentials, another one in the user's settings; returns where.
pub fn keep_option(
    ctx: &SettingsContext,
    id: &PluginId,
    spec: &OptionSpec,
    value: &Value,
) -> Result<PathBuf, UserError> {
    let (id, key) = (id.to_string(), spec.key.as_str());
    if spec.is_sensitive {
        return store_plugin_secret(&ctx.home, &id, key, Some(value)).map_err(|error| failed(key, &error));
    }
    let (file, options) = ctx.file(Scope::User);
    let path = ["pluginConfigs", id.as_str(), "options", key];
    edit_settings(&ctx.home, &file, &options, |text| set(text, &path, value))
        .map_err(|error| to_user_error(&error))?;
    Ok(file)
}

fn failed(key: &str, error: &io::Error) -> UserError {
    UserError::new(format!("Failed to keep the secret `{key}`: {error}"))
}
