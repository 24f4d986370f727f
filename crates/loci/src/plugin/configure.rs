//! `loci plugin configure`: the options that a plugin declares. Values go to the user's settings, secrets to a file that only
//! their owner can read.

use std::io::Read as _;

use loci_app::UserError;
use loci_app::plugins::{forget_option, installed_id, keep_option, parse_option_value, plugins_dir};
use loci_core::plugin::{OptionSpec, PluginId};
use loci_storage::config::{PluginFolder, read_plugin_state};
use serde_json::Value;

use super::find;
use crate::config::SettingsContext;

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
        out += &forget_option(ctx, id, spec_of(folder, key)?)?;
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
        let value = parse_option_value(spec, word)
            .map_err(|why| UserError::new(format!("The option `{key}` {why}")))?;
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
    let mut out = String::new();
    for (spec, value) in options {
        let place = keep_option(ctx, id, spec, value)?;
        out += &format!("`{}` is kept in {}\n", spec.key, ctx.places.display_path(&place));
    }
    Ok(out)
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
