//! `loci mcp add-from-claude-desktop`: the servers of Claude Desktop, copied.

use loci_app::UserError;
use loci_stdx::read_regular_to_string;
use serde_json::Value;

use super::McpContext;
use super::entries::Scope;

#[cfg(target_os = "macos")]
const FILE: &str = "Library/Application Support/Claude/claude_desktop_config.json";
#[cfg(not(target_os = "macos"))]
const FILE: &str = ".config/Claude/claude_desktop_config.json";

#[derive(Debug, clap::Args)]
pub(super) struct DesktopArgs {
    /// Where they are written down.
    #[arg(short, long, value_enum, default_value = "local")]
    scope: Scope,
}

pub(super) fn run(ctx: &McpContext, args: &DesktopArgs) -> Result<String, UserError> {
    let path = ctx.env.home.join(FILE);
    let text = read_regular_to_string(&path).map_err(|error| {
        UserError::new(format!(
            "Failed to read the configuration of Claude Desktop: `{}`: {error}",
            path.display()
        ))
    })?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| UserError::new(format!("Not valid JSON in `{}`: {error}", path.display())))?;
    let servers = value.get("mcpServers").and_then(Value::as_object);
    let mut said = String::new();
    for (name, entry) in servers.into_iter().flatten() {
        said += &match ctx.add(args.scope, name, entry) {
            Ok(()) => format!("Added `{name}`\n"),
            Err(error) => format!("Left out `{name}`: {}\n", error.message()),
        };
    }
    match said.is_empty() {
        true => Ok(format!("There are no MCP servers in {}\n", path.display())),
        false => Ok(said),
    }
}
