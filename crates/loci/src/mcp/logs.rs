//! `loci mcp logs`: what a server complained about, and what was noticed of it.

use loci_app::UserError;
use loci_app::commands::mcp::server_log;

use super::McpContext;

#[derive(Debug, clap::Args)]
pub(super) struct LogsArgs {
    /// The server.
    name: String,
}

pub(super) fn run(ctx: &McpContext, args: &LogsArgs) -> Result<String, UserError> {
    let text = server_log(&ctx.run.home, &args.name)?;
    match text.is_empty() {
        true => Ok(format!("The MCP server `{}` has no log\n", args.name)),
        false => Ok(text),
    }
}
