//! The options that a plugin declares. Values go to the user's settings, secrets to a file that only
//! their owner can read.

use loci_core::plugin::{OptionSpec, PluginId};
use loci_storage::config::PluginFolder;
use serde_json::Value;

use super::{keep_option, parse_option_value, unset_options};
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// Reads options as they are given in words.
pub fn parse_given_options(
    folder: &PluginFolder,
    given: &[String],
) -> Result<Vec<(OptionSpec, Value)>, UserError> {
    let mut options = Vec::new();
    for text in given {
        let Some((key, word)) = text.split_once('=') else {
            return Err(UserError::new(format!("`{text}` is no KEY=VALUE")));
        };
        let spec = option_spec(folder, key)?;
        let value = parse_option_value(spec, word)
            .map_err(|why| UserError::new(format!("The option `{key}` {why}")))?;
        options.push((spec.clone(), value));
    }
    Ok(options)
}

/// Keeps options; returns what to say.
pub fn store_options(
    ctx: &SettingsContext,
    id: &PluginId,
    options: &[(OptionSpec, Value)],
) -> Result<String, UserError> {
    let mut out = String::new();
    for (spec, value) in options {
        let place = keep_option(ctx, id, spec, value)?;
        out += &format!("`{}` is kept in {}\n", spec.key, ctx.places.display_path(&place));
    }
    Ok(out)
}

/// Says which options a plugin cannot do without and have no value.
pub fn needed_options(ctx: &SettingsContext, id: &PluginId) -> String {
    unset_options(ctx, id)
        .iter()
        .filter(|spec| spec.is_required && spec.default.is_none())
        .map(|spec| {
            format!("! It needs the option `{}`: run `loci plugin configure {id} {}`\n", spec.key, spec.key)
        })
        .collect()
}

/// Finds an option of a plugin by its key.
pub fn option_spec<'a>(folder: &'a PluginFolder, key: &str) -> Result<&'a OptionSpec, UserError> {
    folder.manifest.options.iter().find(|spec| spec.key == key).ok_or_else(|| {
        let keys: Vec<&str> = folder.manifest.options.iter().map(|spec| spec.key.as_str()).collect();
        let error = UserError::new(format!("The plugin `{}` has no option `{key}`", folder.id));
        match keys.is_empty() {
            true => error,
            false => error.hint(format!("It has: {}.", keys.join(", "))),
        }
    })
}
