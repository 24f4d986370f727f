//! `loci plugin`: which plugins there are, what each brings and may run, turning them on and off, installing and making them.

mod approve;
mod configure;
mod dependencies;
mod details;
mod init;
mod install;
mod list;
mod marketplace;
mod prune;
mod source;
mod tag;
mod validate;

use loci_app::UserError;
use loci_app::plugins::{RunPlugin, RunPlugins, toggle_plugin};
use loci_settings::Scope;
use loci_stdx::Env;

use crate::config::{SettingsContext, Target, write};

#[derive(Debug, clap::Args)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Args)]
struct ToggleArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
    #[command(flatten)]
    target: Target,
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
    Enable(ToggleArgs),
    /// Turn a plugin off.
    Disable(ToggleArgs),
    /// Make the directory of a new plugin.
    #[command(visible_alias = "new")]
    Init(init::InitArgs),
    /// Install a plugin of a known marketplace, and turn it on; says what it may run.
    #[command(visible_alias = "i")]
    Install(install::InstallArgs),
    /// Bring a plugin up to date; says what changes in what it may run.
    Update(install::UpdateArgs),
    /// Take a plugin away; what it kept stays.
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
        Verb::List(args) => (list::run(&SettingsContext::new(env).plugins(), args), 0),
        Verb::Details(args) => (details::run(&SettingsContext::new(env).plugins(), args)?, 0),
        Verb::Validate(args) => validate::run(env, args)?,
        Verb::Enable(args) => (toggle(env, args, true)?, 0),
        Verb::Disable(args) => (toggle(env, args, false)?, 0),
        Verb::Init(args) => (init::run(env, args)?, 0),
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

fn toggle(env: &Env, args: &ToggleArgs, is_on: bool) -> Result<String, UserError> {
    let scope = args.target.scope().unwrap_or(Scope::User);
    toggle_plugin(&SettingsContext::new(env), &args.name, is_on, scope)
}

/// Finds a plugin by its id or, where that is enough, its name.
fn find<'a>(plugins: &'a RunPlugins, name: &str) -> Option<&'a RunPlugin> {
    let mut all = plugins.plugins.iter();
    all.find(|plugin| plugin.folder.id.to_string() == name || plugin.folder.id.name == name)
}
