//! `loci memory forget`.

use loci_app::UserError;
use loci_context::without_index_lines;
use loci_storage::memory::{Act, Edit, Shelf};

use super::{MemoryContext, done};

#[derive(Debug, clap::Args)]
pub(super) struct ForgetArgs {
    /// The memory's file or name.
    name: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &ForgetArgs) -> Result<String, UserError> {
    let (file, _) = ctx.find(&args.name)?;
    let content = ctx.content(Shelf::Memory, &file)?;
    let mut edits = vec![Edit::memory(&file, content, None)];
    edits.extend(ctx.index_edit(|index| without_index_lines(index, &file))?);
    let id = ctx.apply(Act::Forget, edits)?;
    Ok(done(&format!("`{file}` is forgotten"), id, args.json))
}
