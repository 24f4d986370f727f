//! `loci memory list`.

use loci_app::UserError;
use loci_stdx::{counted, single_line};
use serde_json::Value;

use super::{MemoryContext, known};
use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Print a JSON array.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &ListArgs) -> Result<String, UserError> {
    let all = known::memories(ctx)?;
    if args.json {
        return Ok(pretty(&Value::from_iter(all.iter().map(known::Known::to_json))));
    }
    let unreadable = known::unreadable(ctx, &all);
    if all.is_empty() && unreadable.is_empty() {
        return Ok(format!("There are no memories in `{}`\n", ctx.journal.dir().display()));
    }
    let mut lines = Vec::new();
    for it in &all {
        let description = it.memory.description.as_deref().unwrap_or_default();
        lines.push(format!("{:<10} {}  {}", it.kind(), it.file, single_line(description, 100)));
        lines.extend(it.flags.iter().map(|flag| format!("           ! {flag}")));
    }
    lines.extend(unreadable.into_iter().map(|(file, why)| format!("{:<10} {file}\n           ! {why}", "-")));
    let n_pending = ctx.journal.pending().len();
    if n_pending > 0 {
        let waiting = counted(n_pending as u64, "proposal waits", "proposals wait");
        lines.push(format!("{waiting} for your word: `loci memory review`"));
    }
    Ok(lines.join("\n") + "\n")
}
