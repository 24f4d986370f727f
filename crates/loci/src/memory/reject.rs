//! `loci memory reject`.

use loci_app::UserError;
use loci_storage::memory::{Act, Edit, Shelf};

use super::{MemoryContext, done, gone};

#[derive(Debug, clap::Args)]
pub(super) struct RejectArgs {
    /// The proposals' files or names.
    names: Vec<String>,
    /// All of them.
    #[arg(long)]
    all: bool,
    /// Print a JSON object for each, one a line.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &RejectArgs) -> Result<String, UserError> {
    let files = ctx.chosen(&args.names, args.all)?;
    ctx.each(files, args.json, |file| {
        let content = ctx.content(Shelf::Pending, file)?.ok_or_else(|| gone(file))?;
        let id = ctx.apply(Act::Reject, vec![Edit::pending(file, Some(content), None)])?;
        Ok(done(&format!("`{file}` is turned down"), id, args.json))
    })
}
