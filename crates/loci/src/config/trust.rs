//! `loci config trust`: the user's word that a folder's settings may count in full.

use loci_app::UserError;
use loci_storage::config::{set_external_imports, set_trust};

use super::SettingsContext;

#[derive(Debug, clap::Args)]
pub(super) struct TrustArgs {
    /// Take the trust back.
    #[arg(long)]
    revoke: bool,
    /// Let the folder's instructions import files from outside it too; with --revoke, only that is taken back.
    #[arg(long)]
    imports: bool,
}

pub(super) fn run(ctx: &SettingsContext, args: &TrustArgs) -> Result<String, UserError> {
    let trust = &ctx.loaded.trust;
    let root = trust.root.display();
    if !trust.can_be_kept {
        return Err(UserError::new("The home directory cannot be trusted as a whole")
            .hint("Trust the folder of a project instead."));
    }
    let failed = |error: loci_storage::config::StateFileError| UserError::from_error(&error);
    if args.imports {
        set_external_imports(&ctx.home, &trust.root, !args.revoke).map_err(failed)?;
    }
    if args.imports && args.revoke {
        return Ok(format!("No longer imports from outside: {root}\n"));
    }
    set_trust(&ctx.home, &trust.root, !args.revoke).map_err(failed)?;
    Ok(match (args.revoke, args.imports) {
        (true, _) => format!("No longer trusted: {root}\n"),
        (false, true) => format!("Trusted, and may import from outside: {root}\n"),
        (false, false) => format!("Trusted: {root}\n"),
    })
}
