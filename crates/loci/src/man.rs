//! `loci man`: manual pages, made of the definitions of our arguments.

use std::path::PathBuf;

use clap::CommandFactory;
use loci_app::UserError;

use crate::args::CommandLine;
use crate::config::write;

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands to this directory, instead of printing the first.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints or writes the pages and returns the exit code.
pub(crate) fn run(args: &ManArgs) -> Result<u8, UserError> {
    match &args.dir {
        Some(dir) => {
            let failed = |error: std::io::Error| {
                UserError::new(format!("Failed to write manual pages: `{}`: {error}", dir.display()))
                    .hint("Give --dir a directory that can be written to.")
            };
            std::fs::create_dir_all(dir).map_err(failed)?;
            clap_mangen::generate_to(CommandLine::command(), dir).map_err(failed)?;
        }
        None => {
            let mut text = Vec::new();
            let page = clap_mangen::Man::new(CommandLine::command());
            page.render(&mut text)
                .map_err(|error| UserError::new(format!("The manual page cannot be made: {error}")))?;
            write(&String::from_utf8_lossy(&text))?;
        }
    }
    Ok(0)
}
