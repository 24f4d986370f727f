//! `loci memory history`.

use loci_app::UserError;
use loci_storage::memory::Change;
use serde_json::{Value, json};

use super::{MemoryContext, to_user_error};
use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct HistoryArgs {
    /// Only changes of this file.
    file: Option<String>,
    /// Print a JSON array, with every text before and after.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &HistoryArgs) -> Result<String, UserError> {
    let mut changes = ctx.journal.changes().map_err(|error| to_user_error(&error))?;
    if let Some(file) = &args.file {
        let wanted = file.trim_end_matches(".md");
        changes.retain(|change| change.files.iter().any(|it| it.file.trim_end_matches(".md") == wanted));
    }
    if args.json {
        let values: Vec<Value> = changes.iter().map(|change| json!(change)).collect();
        return Ok(pretty(&Value::from(values)));
    }
    if changes.is_empty() {
        return Ok("No change is known\n".to_owned());
    }
    Ok(changes.iter().map(change_line).collect())
}

fn change_line(change: &Change) -> String {
    let touched = change.files.iter().filter(|it| it.before != it.after);
    let files: Vec<&str> = touched.map(|it| it.file.as_str()).collect();
    let session = change.session.as_ref().map(|it| format!("  session {it}")).unwrap_or_default();
    let undoes = change.undoes.map(|id| format!(" of {id}")).unwrap_or_default();
    format!(
        "{:>5}  {}  {:<10} {}{undoes}  {}{session}\n",
        change.id,
        change.at,
        change.by.as_str(),
        change.act.as_str(),
        files.join(" ")
    )
}
