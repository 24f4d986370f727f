//! `loci plugin enable` and `disable`: entries of `enabledPlugins`, and the options that a plugin is turned on with.

use loci_app::UserError;
use loci_app::plugins::toggle_plugin;

use super::ScopeArgs;
use super::ask::ask_options;
use crate::config::SettingsContext;

#[derive(Debug, clap::Args)]
pub(super) struct EnableArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct DisableArgs {
    /// The plugin: its name, or `name@marketplace`.
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    /// All that are on, each where it is installed.
    #[arg(long, short, conflicts_with_all = ["name", "ScopeArgs"])]
    all: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// Turns a plugin on where it is installed, unless another scope is named.
pub(super) fn enable(ctx: &SettingsContext, args: &EnableArgs) -> Result<String, UserError> {
    let toggled = toggle_plugin(ctx, &args.name, true, args.scope.scope())?;
    ask_options(&SettingsContext::new(&ctx.env), &toggled.id, toggled.said)
}

/// Turns a plugin off where it is installed, unless another scope is named.
pub(super) fn disable(ctx: &SettingsContext, args: &DisableArgs) -> Result<String, UserError> {
    match &args.name {
        Some(name) => Ok(toggle_plugin(ctx, name, false, args.scope.scope())?.said),
        None => disable_all(ctx),
    }
}

/// What others need goes after them: whatever is refused now is tried again once something else is off.
fn disable_all(ctx: &SettingsContext) -> Result<String, UserError> {
    let mut out = String::new();
    let mut open: Vec<String> = on_now(ctx);
    while !open.is_empty() {
        let (mut left, mut refusal) = (Vec::new(), None);
        for id in &open {
            let now = SettingsContext::new(&ctx.env);
            if !on_now(&now).contains(id) {
                continue;
            }
            match toggle_plugin(&now, id, false, None) {
                Ok(toggled) => out += &toggled.said,
                Err(error) => {
                    left.push(id.clone());
                    refusal = Some(error);
                }
            }
        }
        match refusal {
            Some(error) if left.len() == open.len() => return Err(error),
            _ => open = left,
        }
    }
    Ok(if out.is_empty() { "No plugin is on\n".to_owned() } else { out })
}

/// Returns those that are on and that can be turned off here.
fn on_now(ctx: &SettingsContext) -> Vec<String> {
    let plugins = ctx.plugins();
    let own = plugins.plugins.iter().filter(|plugin| !plugin.is_forced);
    own.map(|plugin| plugin.folder.id.to_string()).collect()
}
