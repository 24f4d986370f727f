//! `loci plugin prune`: plugins that came because others needed them, and that nothing needs any more.

use loci_app::UserError;
use loci_app::plugins::plugins_dir;
use loci_core::plugin::{PluginId, PluginNeeds, orphans};
use loci_settings::Scope;
use loci_storage::config::{read_plugin, read_plugin_state};

use super::install::{install_scope, remove_installed};
use crate::config::{SettingsContext, Target};

#[derive(Debug, clap::Args)]
pub(super) struct PruneArgs {
    /// Remove them; without it they are only listed.
    #[arg(long, short)]
    yes: bool,
    /// Only list them.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(ctx: &SettingsContext, args: &PruneArgs) -> Result<String, UserError> {
    let scope = args.target.scope().unwrap_or(Scope::User);
    if args.yes && !args.dry_run {
        return remove_orphans(ctx, scope);
    }
    let orphans = orphans_of(ctx, scope);
    match orphans.is_empty() {
        true => Ok("Nothing to prune: whatever came because it was needed still is\n".to_owned()),
        false => {
            let lines: String = orphans.iter().map(|id| format!("{id}\n")).collect();
            Ok(format!("{lines}Nothing needs these any more; `loci plugin prune --yes` removes them\n"))
        }
    }
}

/// Removes all of them; returns what to say.
pub(super) fn remove_orphans(ctx: &SettingsContext, scope: Scope) -> Result<String, UserError> {
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let mut out = String::new();
    for id in orphans_of(ctx, scope) {
        out += &remove_installed(ctx, &dir, &id, scope)?;
    }
    if out.is_empty() {
        out += "Nothing to prune\n";
    }
    Ok(out)
}

/// Finds them among what is installed for a scope; what is installed for another may need them.
fn orphans_of(ctx: &SettingsContext, scope: Scope) -> Vec<PluginId> {
    let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    let needs: Vec<PluginNeeds> = state
        .installed
        .iter()
        .map(|it| PluginNeeds {
            id: it.id.clone(),
            is_dependency: it.is_dependency && it.scope == install_scope(scope),
            dependencies: read_plugin(&it.path, Some(&it.id), it.scope, None)
                .map(|folder| folder.manifest.dependencies)
                .unwrap_or_default(),
        })
        .collect();
    orphans(&needs)
}
