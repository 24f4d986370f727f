//! `loci context`: what the model would be told, piece by piece.
//!
//! The pieces are made by the same code that makes them for a session. Nothing is sent anywhere.

mod show;

use loci_app::UserError;
use loci_stdx::Env;

#[derive(Debug, clap::Args)]
pub(crate) struct ContextArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List everything a session sends before the first prompt: source, size, why it is there. With `-- -c` or
    /// `-- -r ID`, how full that session is.
    Show(show::ShowArgs),
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &ContextArgs) -> Result<u8, UserError> {
    match &args.verb {
        Verb::Show(args) => crate::config::write(&show::run(env, args)?)?,
    }
    Ok(0)
}
