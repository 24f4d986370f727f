//! `loci plugin configure`: the options that a plugin declares. Values go to the user's settings, secrets to a file that only
//! their owner can read.

use std::io::Read as _;

use loci_app::UserError;
use loci_app::plugins::{installed_id, plugins_dir};
use loci_core::plugin::{OptionKind, OptionSpec, PluginId};
use loci_settings::Scope;
use loci_settings::edit::set;
use loci_storage::config::{
    PluginFolder, edit_settings, plugin_secrets, read_plugin_state, store_plugin_secret,
};
use serde_json::{Map, Value, json};

use super::find;
use crate::config::{SettingsContext, to_user_error};

/// The most of standard input that is a value.
const MOST_BYTES: u64 = 64 * 1024;

#[derive(Debug, clap::Args)]
pub(super) struct ConfigureArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
    /// Options and their values. Of one without a value, that is read from standard input.
    #[arg(value_name = "KEY[=VALUE]")]
    options: Vec<String>,
    /// An option to forget; may be given several times.
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
}

pub(super) fn run(ctx: &SettingsContext, args: &ConfigureArgs) -> Result<String, UserError> {
    let plugins = ctx.plugins();
    let Some(plugin) = find(&plugins, &args.name) else {
        let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
        let id = installed_id(&state, &args.name)?;
        return Err(UserError::new(format!("`{id}` is off")).hint("`loci plugin enable` turns it on."));
    };
    let (folder, id) = (&plugin.folder, &plugin.folder.id);
    let mut given = Vec::new();
    for text in &args.options {
        given.push(match text.contains('=') {
            true => text.clone(),
            false => format!("{text}={}", read_value()?),
        });
    }
    let options = parse_options(folder, &given)?;
    let mut out = store_options(ctx, id, &options)?;
    for key in &args.unset {
        let spec = spec_of(folder, key)?;
        if spec.is_sensitive {
            store_plugin_secret(&ctx.home, &id.to_string(), key, None)
                .map_err(|error| failed(key, &error))?;
        }
        let id = id.to_string();
        ctx.unset(&["pluginConfigs", &id, "options", key], Scope::User)?;
        out += &format!("`{key}` is not set any more\n");
    }
    if out.is_empty() {
        return Err(UserError::new("No option is named").hint("`loci plugin details` lists those there are."));
    }
    Ok(out)
}

/// Reads options as they are given in words.
pub(super) fn parse_options(
    folder: &PluginFolder,
    given: &[String],
) -> Result<Vec<(OptionSpec, Value)>, UserError> {
    let mut options = Vec::new();
    for text in given {
        let Some((key, word)) = text.split_once('=') else {
            return Err(UserError::new(format!("`{text}` is no KEY=VALUE")));
        };
        let spec = spec_of(folder, key)?;
        let value = match spec.kind {
            OptionKind::Number | OptionKind::Switch => {
                serde_json::from_str(word).unwrap_or_else(|_| Value::from(word))
            }
            OptionKind::Text if spec.is_multiple => word.split(',').collect(),
            OptionKind::Text | OptionKind::Directory | OptionKind::File => Value::from(word),
        };
        spec.check(&value).map_err(|why| UserError::new(format!("The option `{key}` {why}")))?;
        options.push((spec.clone(), value));
    }
    Ok(options)
}

/// Keeps options; returns what to say.
pub(super) fn store_options(
    ctx: &SettingsContext,
    id: &PluginId,
    options: &[(OptionSpec, Value)],
) -> Result<String, UserError> {
    let (id, mut out) = (id.to_string(), String::new());
    for (spec, value) in options {
        let key = spec.key.as_str();
        let place = if spec.is_sensitive {
            store_plugin_secret(&ctx.home, &id, key, Some(value)).map_err(|error| failed(key, &error))?
        } else {
            let (file, write) = ctx.file(Scope::User);
            let path = ["pluginConfigs", id.as_str(), "options", key];
            edit_settings(&ctx.home, &file, &write, |text| set(text, &path, value))
                .map_err(|error| to_user_error(&error))?;
            file
        };
        out += &format!("`{key}` is kept in {}\n", ctx.places.display_path(&place));
    }
    Ok(out)
}

/// Says which options are needed and have no value yet.
pub(super) fn missing_options(ctx: &SettingsContext, folder: &PluginFolder, id: &PluginId) -> String {
    let after = SettingsContext::new(&ctx.env);
    let configs = after.loaded.merged.value("pluginConfigs").cloned().unwrap_or_else(|| json!({}));
    let given = configs[id.to_string()]["options"].as_object().cloned().unwrap_or_default();
    let secrets = plugin_secrets(&ctx.home).unwrap_or_else(|_| Map::new());
    let kept = secrets.get(&id.to_string()).and_then(Value::as_object).cloned().unwrap_or_default();
    let is_missing = |spec: &&OptionSpec| {
        spec.is_required
            && spec.default.is_none()
            && !given.contains_key(&spec.key)
            && !kept.contains_key(&spec.key)
    };
    let missing = folder.manifest.options.iter().filter(is_missing);
    missing
        .map(|spec| {
            format!("! It needs the option `{}`: run `loci plugin configure {id} {}`\n", spec.key, spec.key)
        })
        .collect()
}

fn spec_of<'a>(folder: &'a PluginFolder, key: &str) -> Result<&'a OptionSpec, UserError> {
    folder.manifest.options.iter().find(|spec| spec.key == key).ok_or_else(|| {
        let keys: Vec<&str> = folder.manifest.options.iter().map(|spec| spec.key.as_str()).collect();
        let error = UserError::new(format!("The plugin `{}` has no option `{key}`", folder.id));
        match keys.is_empty() {
            true => error,
            false => error.hint(format!("It has: {}.", keys.join(", "))),
        }
    })
}

fn read_value() -> Result<String, UserError> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(MOST_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| UserError::new(format!("Failed to read a value from standard input: {error}")))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn failed(key: &str, error: &std::io::Error) -> UserError {
    UserError::new(format!("Failed to keep the secret `{key}`: {error}"))
}
