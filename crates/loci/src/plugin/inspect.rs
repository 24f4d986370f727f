//! `loci plugin details` and `validate`: their arguments.

use std::path::PathBuf;

use loci_app::plugins::PluginRequest;

#[derive(Debug, clap::Args)]
pub(super) struct DetailsArgs {
    /// Its name, or `name@marketplace`.
    name: String,
    /// A directory of a plugin that counts, too; may be given several times.
    #[arg(long, value_name = "DIR")]
    plugin_dir: Vec<PathBuf>,
}

impl DetailsArgs {
    pub(super) fn request(&self) -> PluginRequest {
        PluginRequest::Details { name: self.name.clone(), dirs: self.plugin_dir.clone() }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct ValidateArgs {
    /// The directory; the current one, where none is named.
    path: Option<PathBuf>,
    /// Take what is only odd for wrong, too.
    #[arg(long)]
    strict: bool,
}

impl ValidateArgs {
    pub(super) fn request(&self) -> PluginRequest {
        PluginRequest::Validate { path: self.path.clone(), is_strict: self.strict }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArgs {
    /// The plugin: its name, or `name@marketplace`.
    pub(super) name: String,
}
