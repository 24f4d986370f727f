//! `loci memory forget`.

use loci_app::Complaint;
use loci_context::without_index_lines;
use loci_storage::memory::{Act, Edit, Shelf};

use super::{Desk, done};

#[derive(Debug, clap::Args)]
pub(super) struct ForgetArgs {
    /// The memory's file or name.
    name: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(desk: &Desk, args: &ForgetArgs) -> Result<String, Complaint> {
    let (file, _) = desk.find(&args.name)?;
    let content = desk.content(Shelf::Memory, &file)?;
    let mut edits = vec![Edit::memory(&file, content, None)];
    edits.extend(desk.index_edit(|index| without_index_lines(index, &file))?);
    let id = desk.apply(Act::Forget, edits)?;
    Ok(done(&format!("`{file}` is forgotten"), id, args.json))
}
