//! `loci sessions audit`: what was archived, removed and brought back.

use std::io;

use loci_app::UserError;
use loci_stdx::{read_regular_to_string, single_line};
use serde_json::Value;

use super::{SessionsContext, format, output};

/// The arguments of `loci sessions audit`.
#[derive(Debug, clap::Args)]
pub(super) struct AuditArgs {
    /// Print the lines as a JSON array.
    #[arg(long)]
    json: bool,
}

/// Prints the log, the oldest first.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &AuditArgs) -> Result<(), UserError> {
    let path = ctx.home.loci_dir().join("audit.log");
    let text = match read_regular_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(UserError::new(format!("Failed to read the log: `{}`: {error}", path.display())));
        }
    };
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if args.json {
        return output::print_json(&Value::from(lines));
    }
    if lines.is_empty() {
        output::print_message("Nothing was archived, removed or mended yet");
        return Ok(());
    }
    let field = |line: &Value, name: &str| single_line(line[name].as_str().unwrap_or("-"), 200);
    let shown = |line: &Value| {
        let time = format::written(line["time"].as_str());
        format!(
            "{time}  {:<9}  {}  {}\n",
            field(line, "action"),
            field(line, "sessionId"),
            field(line, "file")
        )
    };
    output::print(&lines.iter().map(shown).collect::<String>())
}
