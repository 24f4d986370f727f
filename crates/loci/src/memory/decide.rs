//! `loci memory accept`, `reject` and `forget`: a person decides what counts.

use loci_app::UserError;
use loci_app::memory::review;

use super::{MemoryContext, change_note, each};

#[derive(Debug, clap::Args)]
pub(super) struct ProposalArgs {
    /// The proposals' files or names.
    names: Vec<String>,
    /// All of them.
    #[arg(long)]
    all: bool,
    /// Print a JSON object for each, one a line.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ForgetArgs {
    /// The memory's file or name.
    name: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Lets proposals count.
pub(super) fn accept(ctx: &MemoryContext, args: &ProposalArgs) -> Result<String, UserError> {
    let files = ctx.chosen(&args.names, args.all)?;
    each(files, args.json, |file| {
        let id = review::accept(ctx, file)?;
        Ok(change_note(&format!("`{file}` counts from now on"), id, args.json))
    })
}

/// Turns proposals down.
pub(super) fn reject(ctx: &MemoryContext, args: &ProposalArgs) -> Result<String, UserError> {
    let files = ctx.chosen(&args.names, args.all)?;
    each(files, args.json, |file| {
        let id = review::reject(ctx, file)?;
        Ok(change_note(&format!("`{file}` is turned down"), id, args.json))
    })
}

/// Removes a memory and its line in the index.
pub(super) fn forget(ctx: &MemoryContext, args: &ForgetArgs) -> Result<String, UserError> {
    let (file, _) = ctx.find(&args.name)?;
    let id = review::forget(ctx, &file)?;
    Ok(change_note(&format!("`{file}` is forgotten"), id, args.json))
}
