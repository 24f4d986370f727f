//! `loci plugin enable` and `disable`: one entry of `enabledPlugins` in one settings file.

use loci_app::UserError;
use loci_app::plugins::plugins_dir;
use loci_core::plugin::PluginId;
use loci_settings::Scope;
use loci_settings::edit::set;
use loci_storage::config::{PluginState, edit_settings, read_plugin_state};
use serde_json::Value;

use crate::config::{SettingsContext, Target, to_user_error};

#[derive(Debug, clap::Args)]
pub(super) struct ToggleArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(ctx: &SettingsContext, args: &ToggleArgs, is_on: bool) -> Result<String, UserError> {
    let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    let id = installed_id(&state, &args.name)?;
    let scope = args.target.scope().unwrap_or(Scope::User);
    write_enabled(ctx, &id, scope, Some(is_on))?;
    let (file, _) = ctx.file(scope);
    let word = if is_on { "on" } else { "off" };
    let mut out = format!("{id} is {word} in {}\n", ctx.places.display_path(&file));
    let after = SettingsContext::new(&ctx.env);
    let enabled = after.loaded.merged.value("enabledPlugins");
    let counts = enabled.and_then(|it| it.get(id.to_string())).and_then(Value::as_bool);
    if counts != Some(is_on) {
        out += "It has no effect here: another file says otherwise, or the folder is not trusted\n";
    }
    Ok(out)
}

/// Finds an installed plugin by its id or its name.
pub(super) fn installed_id(state: &PluginState, name: &str) -> Result<PluginId, UserError> {
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
pub(super) fn write_enabled(
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
