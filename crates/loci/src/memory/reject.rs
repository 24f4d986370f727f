//! `loci memory reject`.

use loci_app::Complaint;
use loci_storage::memory::{Act, Edit, Shelf};

use super::{Desk, done, gone};

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

pub(super) fn run(desk: &Desk, args: &RejectArgs) -> Result<String, Complaint> {
    let files = desk.chosen(&args.names, args.all)?;
    desk.each(files, args.json, |file| {
        let content = desk.content(Shelf::Pending, file)?.ok_or_else(|| gone(file))?;
        let id = desk.apply(Act::Reject, vec![Edit::pending(file, Some(content), None)])?;
        Ok(done(&format!("`{file}` is turned down"), id, args.json))
    })
}
