//! `loci memory undo`.

use std::collections::HashSet;

use loci_storage::Act;

use super::{Desk, complain, done};
use crate::complaint::Complaint;

#[derive(Debug, clap::Args)]
pub(super) struct UndoArgs {
    /// The change's number; without one, the last that was not taken back.
    change: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(desk: &Desk, args: &UndoArgs) -> Result<String, Complaint> {
    let id = match args.change {
        Some(id) => id,
        None => last(desk)?.ok_or_else(|| Complaint::new("There is no change to take back"))?,
    };
    let change = desk.book.undo(&desk.env, id).map_err(|error| complain(&error))?;
    Ok(done(&format!("Change {id} is taken back"), change.id, args.json))
}

fn last(desk: &Desk) -> Result<Option<u64>, Complaint> {
    let changes = desk.book.changes().map_err(|error| complain(&error))?;
    let undone: HashSet<u64> = changes.iter().filter_map(|change| change.undoes).collect();
    let open = changes.iter().rev().find(|change| change.act != Act::Undo && !undone.contains(&change.id));
    Ok(open.map(|change| change.id))
}
