//! `loci sessions gc`: what files held, where no session refers to it any more.

use loci_app::UserError;
use loci_storage::history::{BlobStore, collect_blobs};
use serde_json::json;

use super::{SessionsContext, format, output};

/// The arguments of `loci sessions gc`.
#[derive(Debug, clap::Args)]
pub(super) struct GcArgs {
    /// Only say what would go.
    #[arg(long)]
    dry_run: bool,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Removes what nothing refers to.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &GcArgs) -> Result<(), UserError> {
    let collected = collect_blobs(&ctx.home, args.dry_run).map_err(|error| {
        UserError::from_error(&error)
            .hint("What running sessions keep is not known to others; try again later.")
    })?;
    let (before, removed) = (collected.before, collected.removed);
    let limit = BlobStore::new(&ctx.home).limit();
    if args.json {
        return output::print_json(&json!({
            "isTrial": args.dry_run,
            "blobs": before.n_blobs,
            "bytes": before.n_bytes,
            "limit": limit,
            "removedBlobs": removed.n_blobs,
            "removedBytes": removed.n_bytes,
        }));
    }
    let verb = if args.dry_run { "Would remove" } else { "Removed" };
    output::print(&format!(
        "{verb} {} of {} kept contents, {} of {} (the limit is {})\n",
        removed.n_blobs,
        before.n_blobs,
        format::size(removed.n_bytes),
        format::size(before.n_bytes),
        format::size(limit),
    ))
}
