//! `loci plugin`: which plugins there are, what each brings and may run, turning them on and off, installing and making them.

mod ask;
mod configure;
mod init;
mod inspect;
mod install;
mod list;
mod marketplace;
mod tag;
mod toggle;

use loci_app::UserError;
use loci_app::plugins::{PluginRequest, approve_plugin};
use loci_settings::Scope;
use loci_stdx::Env;

use crate::config::{SettingsContext, write};
use ask::{ask_options, confirm};

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
    Details(inspect::DetailsArgs),
    /// Check the directory of a plugin; exits with 1 when something is wrong.
    Validate(inspect::ValidateArgs),
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
    Approve(inspect::ApproveArgs),
    /// Remove plugins that came because others needed them, and that nothing needs any more.
    #[command(visible_alias = "autoremove")]
    Prune(install::PruneArgs),
    /// Tag a release of a plugin in its repository.
    Tag(tag::TagArgs),
    /// Add, list, update and remove lists of plugins.
    Marketplace(marketplace::MarketplaceArgs),
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &PluginArgs) -> Result<u8, UserError> {
    let ctx = || SettingsContext::new(env);
    let text = match &args.verb {
        Verb::List(args) => list::run(&ctx(), args)?,
        Verb::Enable(args) => toggle::enable(&ctx(), args)?,
        Verb::Disable(args) => toggle::disable(&ctx(), args)?,
        Verb::Init(args) => init::run(&ctx(), args)?,
        Verb::Configure(args) => configure::run(&ctx(), args)?,
        Verb::Approve(args) => approve_plugin(&ctx(), &args.name)?,
        Verb::Tag(args) => tag::run(env, args)?,
        Verb::Details(args) => return carry_out(&ctx(), &args.request()),
        Verb::Validate(args) => return carry_out(&ctx(), &args.request()),
        Verb::Install(args) => return carry_out(&ctx(), &args.request()),
        Verb::Update(args) => return carry_out(&ctx(), &args.request()),
        Verb::Uninstall(args) => return carry_out(&ctx(), &args.request()),
        Verb::Prune(args) => return carry_out(&ctx(), &args.request()),
        Verb::Marketplace(args) => return carry_out(&ctx(), &args.request()),
    };
    write(&text)?;
    Ok(0)
}

/// Does what `loci-app` can do for sessions, too; at a terminal, options of an installed plugin are asked for.
fn carry_out(ctx: &SettingsContext, request: &PluginRequest) -> Result<u8, UserError> {
    let answer = request.carry_out(ctx, &confirm)?;
    let text = match &answer.installed {
        Some(id) => ask_options(&SettingsContext::new(&ctx.env), id, answer.said)?,
        None => answer.said,
    };
    write(&text)?;
    Ok(u8::from(answer.is_wrong))
}
