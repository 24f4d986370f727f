//! `loci config trust`: the user's word that a folder's settings may count in full.

use loci_storage::set_trust;

use super::Desk;
use crate::complaint::Complaint;

#[derive(Debug, clap::Args)]
pub(super) struct TrustArgs {
    /// Take the trust back.
    #[arg(long)]
    revoke: bool,
}

pub(super) fn run(desk: &Desk, args: &TrustArgs) -> Result<String, Complaint> {
    let trust = &desk.loaded.trust;
    let root = trust.root.display();
    if !trust.can_be_kept {
        return Err(Complaint::new("The home directory cannot be trusted as a whole")
            .hint("Trust the folder of a project instead."));
    }
    set_trust(&desk.home, &trust.root, !args.revoke).map_err(|error| Complaint::from_error(&error))?;
    let word = if args.revoke { "No longer trusted" } else { "Trusted" };
    Ok(format!("{word}: {root}\n"))
}
