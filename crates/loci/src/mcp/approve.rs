//! `loci mcp approve`: what the servers of a project are now is what they may be.

use loci_app::mcp::plan;
use loci_app::mcp_approvals::approve;
use loci_app::{McpOptions, UserError};

use super::McpContext;

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArgs {
    /// The server; all of the project unless it is given.
    name: Option<String>,
}

pub(super) fn run(ctx: &McpContext, args: &ApproveArgs) -> Result<String, UserError> {
    if !ctx.run.mcp.trust().is_trusted {
        return Err(UserError::new("This folder is not trusted, so its MCP servers cannot be approved")
            .hint("Look at its `.mcp.json`, then run `loci config trust`."));
    }
    let plan = plan(&McpOptions::default(), &ctx.run)?;
    let approved = approve(&plan, &ctx.run, args.name.as_deref())?;
    match (approved.is_empty(), &args.name) {
        (true, Some(name)) => {
            Err(UserError::new(format!("No MCP server of this project is called `{name}`"))
                .hint("See `loci mcp list`."))
        }
        (true, None) => Ok("This project has no MCP servers\n".to_owned()),
        (false, _) => Ok(format!("Approved of what is written down now: {}\n", approved.join(", "))),
    }
}
