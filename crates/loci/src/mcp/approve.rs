//! `loci mcp approve` and `loci mcp reject`: which servers of a project are used, one by one.

use loci_app::mcp::approvals::{ServerDecision, decide};
use loci_app::mcp::plan;
use loci_app::settings::RunSettings;
use loci_app::{McpOptions, RunOptions, UserError};
use loci_mcp::config::{PlannedServer, ServerScope, Standing};

use super::McpContext;

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArgs {
    /// The servers; all of the project that were not rejected unless some are given.
    names: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RejectArgs {
    /// The servers.
    #[arg(required = true)]
    names: Vec<String>,
}

pub(super) fn run(ctx: &McpContext, args: &ApproveArgs) -> Result<String, UserError> {
    if !ctx.run.mcp.trust().is_trusted {
        return Err(UserError::new("This folder is not trusted, so its MCP servers cannot be approved")
            .hint("Look at its `.mcp.json`, then run `loci config trust`."));
    }
    let approved = match args.names.is_empty() {
        true => {
            let is_open = |it: &PlannedServer| it.standing != Standing::Rejected;
            project_servers(&ctx.run)?.into_iter().filter(is_open).map(|it| it.config.name).collect()
        }
        false => known_names(&ctx.run, &args.names)?,
    };
    if approved.is_empty() {
        return Ok("This project has no MCP servers that wait for approval\n".to_owned());
    }
    keep(ctx, &ServerDecision { approved: approved.clone(), ..ServerDecision::default() })?;
    // Other files may have a say as well.
    let now = RunSettings::load(&ctx.env, &RunOptions::default())?;
    let rejected: Vec<String> = project_servers(&now)?
        .into_iter()
        .filter(|it| it.standing == Standing::Rejected && approved.contains(&it.config.name))
        .map(|it| it.config.name)
        .collect();
    if !rejected.is_empty() {
        return Err(UserError::new(format!(
            "Another settings file rejects what you approve: {}",
            rejected.join(", ")
        ))
        .hint("`loci config explain disabledMcpjsonServers` says which."));
    }
    Ok(format!("Approved of what is written down now: {}\n", approved.join(", ")))
}

pub(super) fn run_reject(ctx: &McpContext, args: &RejectArgs) -> Result<String, UserError> {
    // What a folder that is not trusted names is not looked at; no is an answer all the same.
    let rejected = match ctx.run.mcp.trust().is_trusted {
        true => known_names(&ctx.run, &args.names)?,
        false => args.names.clone(),
    };
    keep(ctx, &ServerDecision { rejected: rejected.clone(), ..ServerDecision::default() })?;
    Ok(format!("Not used in this project from now on: {}\n", rejected.join(", ")))
}

fn keep(ctx: &McpContext, decision: &ServerDecision) -> Result<(), UserError> {
    decide(&plan(&McpOptions::default(), &ctx.run)?, &ctx.run, decision)
}

fn project_servers(run: &RunSettings) -> Result<Vec<PlannedServer>, UserError> {
    let servers = plan(&McpOptions::default(), run)?.servers;
    Ok(servers.into_iter().filter(|it| it.config.scope == ServerScope::Project).collect())
}

/// Returns the names, all of which must be servers of the project.
fn known_names(run: &RunSettings, names: &[String]) -> Result<Vec<String>, UserError> {
    let servers = project_servers(run)?;
    match names.iter().find(|name| !servers.iter().any(|it| it.config.name == **name)) {
        Some(name) => Err(UserError::new(format!("No MCP server of this project is called `{name}`"))
            .hint("See `loci mcp list`.")),
        None => Ok(names.to_vec()),
    }
}
