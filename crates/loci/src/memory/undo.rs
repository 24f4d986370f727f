//! `loci memory undo`.

use loci_app::UserError;
use loci_app::memory::edit;

use super::{MemoryContext, change_note};

#[derive(Debug, clap::Args)]
pub(super) struct UndoArgs {
    /// The change's number; without one, the last that was not taken back.
    change: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &UndoArgs) -> Result<String, UserError> {
    let (id, undo) = edit::undo(ctx, args.change)?;
    Ok(change_note(&format!("Change {id} is taken back"), undo, args.json))
}
