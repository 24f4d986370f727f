//! `loci plugin marketplace`: its arguments.

use loci_app::plugins::{MarketplaceRequest, PluginRequest};

use super::ScopeWord;

#[derive(Debug, clap::Args)]
pub(super) struct MarketplaceArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Add a marketplace: a directory, a file, `owner/repository` or the address of a repository.
    Add {
        /// Where it is; `#branch` may follow a repository, `@branch` an `owner/repository`.
        source: String,
        /// Whose settings name it: `project` and `local` write it to `extraKnownMarketplaces`, too.
        #[arg(long, value_name = "SCOPE")]
        scope: Option<ScopeWord>,
        /// The only directories of a repository that are fetched.
        #[arg(long, value_name = "PATH", num_args = 1..)]
        sparse: Vec<String>,
    },
    /// List the marketplaces that are known.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch a marketplace again; all of them, where none is named.
    Update {
        /// Its name.
        name: Option<String>,
    },
    /// Forget a marketplace, and remove the plugins that were installed from it.
    #[command(visible_alias = "rm")]
    Remove {
        /// Its name.
        name: String,
        /// Only where the settings of one scope name it.
        #[arg(long, value_name = "SCOPE")]
        scope: Option<ScopeWord>,
    },
}

impl MarketplaceArgs {
    pub(super) fn request(&self) -> PluginRequest {
        PluginRequest::Marketplace(match &self.verb {
            Verb::Add { source, scope, sparse } => MarketplaceRequest::Add {
                source: source.clone(),
                scope: scope.map(ScopeWord::scope),
                sparse: sparse.clone(),
            },
            Verb::List { json } => MarketplaceRequest::List { is_json: *json },
            Verb::Update { name } => MarketplaceRequest::Update { name: name.clone() },
            Verb::Remove { name, scope } => {
                MarketplaceRequest::Remove { name: name.clone(), scope: scope.map(ScopeWord::scope) }
            }
        })
    }
}
