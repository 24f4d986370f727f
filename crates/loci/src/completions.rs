//! `loci completions`: what a shell needs to complete our arguments, made of their definitions.

use clap::CommandFactory;
use clap_complete::Shell;
use loci_app::UserError;

use crate::args::CommandLine;
use crate::config::write;

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completions and returns the exit code.
pub(crate) fn run(args: &CompletionsArgs) -> Result<u8, UserError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "loci", &mut text);
    write(&String::from_utf8_lossy(&text))?;
    Ok(0)
}
