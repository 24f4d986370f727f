//! `loci plugin`: which plugins there are, what each brings and may run, turning them on and off, installing and making them.

mod approve;
mod ask;
mod configure;
mod dependencies;
mod details;
mod init;
mod install;
mod list;
mod marketplace;
mod packages;
mod prune;
mod releases;
mod source;
mod tag;
mod toggle;
mod validate;

use loci_app::UserError;
use loci_app::plugins::{RunPlugin, RunPlugins};
use loci_settings::Scope;
use loci_stdx::Env;

use crate::config::{SettingsContext, write};

#[derive(Debug, clap::Args)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    verb: Verb,
}

/// Whose settings a verb is about.
#[derive(Debug, Clone, Copy, clap::Args)]
#[group(multiple = false)]
struct ScopeArgs {
    /// Whose settings it is about.
    #[arg(long, short, value_name = "SCOPE")]
    scope: Option<ScopeWord>,
    /// Your settings for all projects.
    #[arg(long)]
    user: bool,
    /// The settings shared by all who work on this project.
    #[arg(long)]
    project: bool,
    /// Your settings for this project.
    #[arg(long)]
    local: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ScopeWord {
    /// Your settings for all projects.
    User,
    /// The settings shared by all who work on this project.
    Project,
    /// Your settings for this project.
    Local,
}

impl ScopeWord {
    fn scope(self) -> Scope {
        match self {
            Self::User => Scope::User,
            Self::Project => Scope::Project,
            Self::Local => Scope::Local,
        }
    }
}

impl ScopeArgs {
    fn scope(self) -> Option<Scope> {
        match self {
            Self { user: true, .. } => Some(Scope::User),
            Self { project: true, .. } => Some(Scope::Project),
            Self { local: true, .. } => Some(Scope::Local),
            Self { scope, .. } => scope.map(ScopeWord::scope),
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List plugins: which are on, which are off, and what is wrong with them.
    List(list::ListArgs),
    /// Show one plugin: what it brings, what it may run, and what its options are set to.
    Details(details::DetailsArgs),
    /// Check the directory of a plugin; exits with 1 when something is wrong.
    Validate(validate::ValidateArgs),
    /// Turn a plugin on.
    Enable(toggle::EnableArgs),
    /// Turn a plugin off, or all of them.
    Disable(toggle::DisableArgs),
    /// Make the directory of a new plugin.
    #[command(visible_alias = "new")]
    Init(init::InitArgs),
    /// Install a plugin of a known marketplace, and turn it on; says what it may run.
    #[command(visible_alias = "i")]
    Install(install::InstallArgs),
    /// Bring a plugin up to date; says what changes in what it may run.
    Update(install::UpdateArgs),
    /// Take a plugin away, with what it kept once it is installed for nobody any more.
    #[command(visible_aliases = ["remove", "rm"])]
    Uninstall(install::UninstallArgs),
    /// Set options of a plugin; secrets are kept apart from settings.
    Configure(configure::ConfigureArgs),
    /// Approve what a plugin may run after that has changed.
    Approve(approve::ApproveArgs),
    /// Remove plugins that came because others needed them, and that nothing needs any more.
    #[command(visible_alias = "autoremove")]
    Prune(prune::PruneArgs),
    /// Tag a release of a plugin in its repository.
    Tag(tag::TagArgs),
    /// Add, list, update and remove lists of plugins.
    Marketplace(marketplace::MarketplaceArgs),
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &PluginArgs) -> Result<u8, UserError> {
    let (text, code) = match &args.verb {
        Verb::List(args) => (list::run(&SettingsContext::new(env), args)?, 0),
        Verb::Details(args) => (details::run(&SettingsContext::new(env), args)?, 0),
        Verb::Validate(args) => validate::run(env, args)?,
        Verb::Enable(args) => (toggle::enable(&SettingsContext::new(env), args)?, 0),
        Verb::Disable(args) => (toggle::disable(&SettingsContext::new(env), args)?, 0),
        Verb::Init(args) => (init::run(&SettingsContext::new(env), args)?, 0),
        Verb::Install(args) => (install::install(&SettingsContext::new(env), args)?, 0),
        Verb::Update(args) => (install::update(&SettingsContext::new(env), args)?, 0),
        Verb::Uninstall(args) => (install::uninstall(&SettingsContext::new(env), args)?, 0),
        Verb::Configure(args) => (configure::run(&SettingsContext::new(env), args)?, 0),
        Verb::Approve(args) => (approve::run(&SettingsContext::new(env), args)?, 0),
        Verb::Prune(args) => (prune::run(&SettingsContext::new(env), args)?, 0),
        Verb::Tag(args) => (tag::run(env, args)?, 0),
        Verb::Marketplace(args) => (marketplace::run(&SettingsContext::new(env), args)?, 0),
    };
    write(&text)?;
    Ok(code)
}

/// Finds a plugin by its id or, where that is enough, its name.
fn find<'a>(plugins: &'a RunPlugins, name: &str) -> Option<&'a RunPlugin> {
    let mut all = plugins.plugins.iter();
    all.find(|plugin| plugin.folder.id.to_string() == name || plugin.folder.id.name == name)
}
