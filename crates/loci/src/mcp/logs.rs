//! `loci mcp logs`: what a server complained about, and what was noticed of it.

use loci_app::UserError;
use loci_app::mcp::log_dir;
use loci_mcp::read_log;
use loci_stdx::printable;

use super::McpContext;

#[derive(Debug, clap::Args)]
pub(super) struct LogsArgs {
    /// The server.
    name: String,
}

pub(super) fn run(ctx: &McpContext, args: &LogsArgs) -> Result<String, UserError> {
    let dir = log_dir(&ctx.run.home);
    match read_log(&dir, &args.name) {
        // What it wrote must not talk to the terminal.
        Ok(Some(text)) => Ok(printable(&text)),
        Ok(None) => Ok(format!("The MCP server `{}` has no log\n", args.name)),
        Err(error) => Err(UserError::new(format!(
            "Failed to read the log of `{}` in `{}`: {error}",
            args.name,
            dir.display()
        ))),
    }
}
