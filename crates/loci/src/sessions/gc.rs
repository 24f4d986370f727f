//! `loci sessions gc`: what files held, where no session refers to it any more, and temporary files of killed writers.

use loci_app::UserError;
use loci_stdx::counted;
use loci_storage::doctor::{stale_temporary_files, sweep_temporary_files};
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
    let now = std::time::SystemTime::now();
    let n_temporary = match args.dry_run {
        true => stale_temporary_files(&ctx.home, now).len(),
        false => sweep_temporary_files(&ctx.home, now).len(),
    };
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
            "removedTemporaryFiles": n_temporary,
        }));
    }
    let verb = if args.dry_run { "Would remove" } else { "Removed" };
    let temporary = match n_temporary {
        0 => String::new(),
        n => {
            let files = counted(n as u64, "temporary file", "temporary files");
            format!("{verb} {files} of programs that were killed\n")
        }
    };
    output::print(&format!(
        "{temporary}{verb} {} of {} kept contents, {} of {} (the limit is {})\n",
        removed.n_blobs,
        before.n_blobs,
        format::size(removed.n_bytes),
        format::size(before.n_bytes),
        format::size(limit),
    ))
}
