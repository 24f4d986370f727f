//! `loci memory undo`.

use std::collections::HashSet;

use loci_app::UserError;
use loci_storage::memory::Change;

use super::{MemoryContext, done, to_user_error};

#[derive(Debug, clap::Args)]
pub(super) struct UndoArgs {
    /// The change's number; without one, the last that was not taken back.
    change: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &UndoArgs) -> Result<String, UserError> {
    let id = match args.change {
        Some(id) => id,
        None => last(ctx)?.ok_or_else(|| UserError::new("There is no change to take back"))?,
    };
    let change = ctx.journal.undo(&ctx.env, id).map_err(|error| to_user_error(&error))?;
    Ok(done(&format!("Change {id} is taken back"), change.id, args.json))
}

fn last(ctx: &MemoryContext) -> Result<Option<u64>, UserError> {
    Ok(last_made(&ctx.journal.changes().map_err(|error| to_user_error(&error))?))
}

/// Returns the last change that made something and was not taken back. Taking back what took something back makes it
/// again, so that counts like the change itself.
fn last_made(changes: &[Change]) -> Option<u64> {
    let undone: HashSet<u64> = changes.iter().filter_map(|change| change.undoes).collect();
    let mut taking: HashSet<u64> = HashSet::new();
    for change in changes {
        let is_taking = change.undoes.is_some_and(|id| !taking.contains(&id));
        taking.extend(is_taking.then_some(change.id));
    }
    let open = changes.iter().rev().find(|it| !taking.contains(&it.id) && !undone.contains(&it.id));
    open.map(|change| change.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_storage::memory::{Author, ChangeKind};

    #[test]
    fn redone_change_can_be_undone_again() {
        for (undoes, expected) in [
            (&[][..], None),
            (&[None, None], Some(2)),
            (&[None, None, Some(2)], Some(1)),
            (&[None, None, Some(2), Some(1)], None),
            (&[None, Some(1), Some(2)], Some(3)),
            (&[None, Some(1), Some(2), Some(3)], None),
            (&[None, Some(1), Some(2), Some(3), Some(4)], Some(5)),
            (&[None, None, Some(1), Some(3)], Some(4)),
        ] {
            let change = |(n, undoes): (usize, &Option<u64>)| Change {
                id: n as u64 + 1,
                at: String::new(),
                act: if undoes.is_some() { ChangeKind::Undo } else { ChangeKind::Edit },
                by: Author::Person,
                session: None,
                message: None,
                undoes: *undoes,
                files: Vec::new(),
            };
            let changes: Vec<Change> = undoes.iter().enumerate().map(change).collect();
            assert_eq!(last_made(&changes), expected, "{undoes:?}");
        }
    }
}
