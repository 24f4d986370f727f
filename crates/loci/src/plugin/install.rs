//! `loci plugin install`, `update`, `uninstall` and `prune`: their arguments.

use loci_app::plugins::{PluginRequest, Uninstall};
use loci_storage::config::InstallScope;

use super::ScopeArgs;

#[derive(Debug, clap::Args)]
pub(super) struct InstallArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
    /// An option of the plugin and its value; may be given several times. Secrets are better given to `configure`.
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// No effect: plugins that come from a command are not supported.
    #[arg(long, short, hide = true)]
    yes: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

impl InstallArgs {
    pub(super) fn request(&self) -> PluginRequest {
        PluginRequest::Install {
            name: self.name.clone(),
            options: self.config.clone(),
            scope: self.scope.scope(),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct UpdateArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
    /// No effect: plugins that come from a command are not supported.
    #[arg(long, short, hide = true)]
    yes: bool,
    /// For whom; everywhere it is installed, where nothing is said.
    #[arg(long, short, value_name = "SCOPE", value_parser = parse_scope)]
    scope: Option<InstallScope>,
}

impl UpdateArgs {
    pub(super) fn request(&self) -> PluginRequest {
        PluginRequest::Update { name: self.name.clone(), scope: self.scope }
    }
}

fn parse_scope(word: &str) -> Result<InstallScope, String> {
    InstallScope::parse(word).ok_or_else(|| "it is user, project, local or managed".to_owned())
}

#[derive(Debug, clap::Args)]
pub(super) struct UninstallArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
    /// Also remove what came because it was needed, and is not needed any more.
    #[arg(long)]
    prune: bool,
    /// Remove those without asking.
    #[arg(long, short)]
    yes: bool,
    /// Leave what the plugin has kept in its data directory.
    #[arg(long)]
    keep_data: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

impl UninstallArgs {
    pub(super) fn request(&self) -> PluginRequest {
        let how = Uninstall {
            scope: self.scope.scope(),
            keeps_data: self.keep_data,
            prunes: self.prune,
            is_sure: self.yes,
        };
        PluginRequest::Uninstall { name: self.name.clone(), how }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct PruneArgs {
    /// Remove them without asking; where nobody can be asked, they are only listed without it.
    #[arg(long, short)]
    yes: bool,
    /// Only list them.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

impl PruneArgs {
    pub(super) fn request(&self) -> PluginRequest {
        PluginRequest::Prune { scope: self.scope.scope(), is_sure: self.yes, only_lists: self.dry_run }
    }
}
