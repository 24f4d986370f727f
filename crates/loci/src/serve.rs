//! `loci serve`: loci as a server for others.

mod team_memory;

use loci_app::UserError;
use loci_stdx::Env;

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Share memories among the people of a repository.
    TeamMemory(team_memory::TeamMemoryArgs),
}

/// Serves until it is told to stop, and returns the exit code.
pub(crate) fn run(env: &Env, args: &ServeArgs) -> Result<u8, UserError> {
    match &args.what {
        What::TeamMemory(args) => team_memory::run(env, args),
    }
}
