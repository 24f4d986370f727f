//! `loci memory reject`.

use loci_storage::{Act, Edit};

use super::{Desk, done};
use crate::complaint::Complaint;

#[derive(Debug, clap::Args)]
pub(super) struct RejectArgs {
    /// The proposals' files or names.
    names: Vec<String>,
    /// All of them.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(desk: &Desk, args: &RejectArgs) -> Result<String, Complaint> {
    let mut said = String::new();
    for (file, text) in desk.chosen(&args.names, args.all)? {
        let id = desk.apply(Act::Reject, vec![Edit::pending(&file, Some(text), None)])?;
        said.push_str(&done(&format!("`{file}` is turned down"), id, args.json));
    }
    Ok(if said.is_empty() { "Nothing waits for your word\n".to_owned() } else { said })
}
