//! `loci memory show`.

use loci_app::UserError;
use loci_storage::memory::MemoryArea;
use serde_json::json;

use super::{MemoryContext, known};
use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The memory's file or name.
    name: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &ShowArgs) -> Result<String, UserError> {
    let (file, text) = ctx.find(&args.name)?;
    let known = known::read_one(ctx, MemoryArea::Memory, file, text)?;
    if args.json {
        let mut value = known.to_json();
        value["text"] = json!(known.text);
        return Ok(pretty(&value));
    }
    let origin = known
        .origin
        .as_ref()
        .map_or("not known: it was written by other means".to_owned(), |it| it.in_words());
    let mut lines = vec![known.text.trim_end().to_owned(), String::new()];
    lines.push(format!("file: {}", ctx.journal.dir().join(&known.file).display()));
    lines.push(format!("from: {origin}"));
    lines.extend(known.flags.iter().map(|flag| format!("! {flag}")));
    Ok(lines.join("\n") + "\n")
}
