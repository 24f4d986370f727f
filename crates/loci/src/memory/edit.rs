//! `loci memory edit`.

use std::io::Read;

use loci_app::UserError;
use loci_app::memory::edit;

use super::{MemoryContext, change_note};

#[derive(Debug, clap::Args)]
pub(super) struct EditArgs {
    /// The memory's file or name.
    name: String,
    /// The new text; without it, standard input is read. Text without front matter leaves that as it is.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &EditArgs) -> Result<String, UserError> {
    let (file, _) = ctx.find(&args.name)?;
    let text = match &args.text {
        Some(text) => text.clone(),
        None => read_stdin()?,
    };
    let id = edit::edit(ctx, &file, &text)?;
    Ok(change_note(&format!("`{file}` is changed"), id, args.json))
}

fn read_stdin() -> Result<String, UserError> {
    let mut text = String::new();
    // One byte more, so that what is too long is refused, not cut.
    let read = std::io::stdin().take(edit::MOST_BYTES as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| UserError::new(format!("Standard input cannot be read: {error}")))?;
    Ok(text)
}
