//! `loci mcp remove`: one entry of one file.

use loci_app::UserError;
use loci_app::mcp::logins::forget_login;

use super::McpContext;
use super::entries::Scope;

#[derive(Debug, clap::Args)]
pub(super) struct RemoveArgs {
    /// Where it is written down; needed when it is in several places.
    #[arg(short, long, value_enum)]
    scope: Option<Scope>,
    /// The server.
    name: String,
}

pub(super) fn run(ctx: &McpContext, args: &RemoveArgs) -> Result<String, UserError> {
    let name = &args.name;
    let mut found = Vec::new();
    for scope in Scope::ALL.into_iter().filter(|scope| args.scope.is_none_or(|wanted| wanted == *scope)) {
        if ctx.entries(scope)?.contains_key(name) {
            found.push(scope);
        }
    }
    match found[..] {
        [] => Err(UserError::new(format!("No MCP server is called `{name}`")).hint("See `loci mcp list`.")),
        [scope] => {
            let entry = ctx.entries(scope)?.get(name).cloned().unwrap_or_default();
            ctx.remove(scope, name)?;
            if let Some(url) = entry["url"].as_str() {
                forget_login(&ctx.run.home, name, url)?;
            }
            Ok(format!("Took the MCP server `{name}` ({}) out of {}\n", scope.name(), ctx.file(scope)))
        }
        _ => {
            let ways: Vec<String> =
                found.iter().map(|it| format!("`loci mcp remove {name} -s {}`", it.name())).collect();
            Err(UserError::new(format!("The MCP server `{name}` is in several places"))
                .hint(format!("Say which: {}.", ways.join(" or "))))
        }
    }
}
