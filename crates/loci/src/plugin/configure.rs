//! `loci plugin configure`: the options that a plugin declares. Values go to the user's settings, secrets to a file that only
//! their owner can read.

use std::io::Read as _;

use loci_app::UserError;
use loci_app::plugins::{
    forget_option, installed_id, option_spec, parse_given_options, plugins_dir, store_options,
};
use loci_storage::config::read_plugin_state;

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
    let Some(plugin) = plugins.find(&args.name) else {
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
    let options = parse_given_options(folder, &given)?;
    let mut out = store_options(ctx, id, &options)?;
    for key in &args.unset {
        out += &forget_option(ctx, id, option_spec(folder, key)?)?;
    }
    if out.is_empty() {
        return Err(UserError::new("No option is named").hint("`loci plugin details` lists those there are."));
    }
    Ok(out)
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
