//! `loci memory review`.

use std::collections::HashSet;

use loci_app::UserError;
use loci_storage::memory::MemoryArea;
use serde_json::{Value, json};

use super::{Known, MemoryContext, known};
use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct ReviewArgs {
    /// Print a JSON array.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &ReviewArgs) -> Result<String, UserError> {
    let all = known::proposals(ctx)?;
    if args.json {
        let mut values = Vec::new();
        for it in &all {
            let mut value = it.to_json();
            value["text"] = json!(it.text);
            value["replaces"] = json!(ctx.text(MemoryArea::Memory, &it.file)?);
            values.push(value);
        }
        return Ok(pretty(&Value::from(values)));
    }
    if all.is_empty() {
        return Ok("Nothing waits for your word\n".to_owned());
    }
    let mut text = String::new();
    for it in &all {
        text.push_str(&render_proposal(it, ctx.text(MemoryArea::Memory, &it.file)?.as_deref()));
    }
    text.push_str(
        "`loci memory accept FILE` lets one count, `reject FILE` turns it down; --all means all of them\n",
    );
    Ok(text)
}

fn render_proposal(it: &Known, old: Option<&str>) -> String {
    let what = if old.is_some() { "changes a memory" } else { "is new" };
    let origin =
        it.origin.as_ref().map(|origin| format!("from: {}\n", origin.in_words())).unwrap_or_default();
    let flags: String = it.flags.iter().map(|flag| format!("! {flag}\n")).collect();
    format!(
        "== {} ({}) {what}\n{origin}{flags}{}\n",
        it.file,
        it.title(),
        compared(old.unwrap_or_default(), &it.text)
    )
}

/// Marks lines that come and lines that go.
fn compared(old: &str, new: &str) -> String {
    let (before, after): (HashSet<&str>, HashSet<&str>) = (old.lines().collect(), new.lines().collect());
    let gone = old.lines().filter(|line| !after.contains(line)).map(|line| format!("- {line}\n"));
    let now = new.lines().map(|line| format!("{} {line}\n", if before.contains(line) { ' ' } else { '+' }));
    gone.chain(now).collect()
}
