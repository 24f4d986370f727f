//! `loci plugin approve`: what a plugin may run now, shown and approved.

use loci_app::UserError;
use loci_app::plugins::{approval_key, plugins_dir};
use loci_storage::config::{approve_plugins, read_plugin, read_plugin_state};

use super::details::describe;
use super::find;
use crate::config::SettingsContext;

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
}

pub(super) fn run(ctx: &SettingsContext, args: &ApproveArgs) -> Result<String, UserError> {
    let plugins = ctx.plugins();
    let plugin = find(&plugins, &args.name).ok_or_else(|| {
        UserError::new(format!("There is no plugin `{}` that is on", args.name))
            .hint("`loci plugin list` shows those there are.")
    })?;
    let held = &plugin.folder;
    // What the session would have may be held back; the files have it all.
    let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    let entry = || state.marketplace_entry(&held.id);
    let folder = read_plugin(&held.root, Some(&held.id), held.scope, Some(&entry))
        .map_err(|problem| UserError::new(problem.to_string()))?;
    let Some(key) = approval_key(&folder) else {
        return Ok(format!("{} needs no approval\n", held.id));
    };
    let dir = plugins_dir(&ctx.env, &ctx.home);
    approve_plugins(&dir, &[(key, folder.digest())]).map_err(UserError::new)?;
    Ok(format!("{}Approved {}\n", describe(&folder), folder.id))
}
