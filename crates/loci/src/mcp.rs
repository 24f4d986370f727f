//! `loci mcp`: MCP servers written down, looked at and taken away again.
//!
//! Servers lie where other programs find them: the user's and the local ones in `.claude.json`, a project's in its
//! `.mcp.json`. Whatever else is in those files stays as it is.

mod add;
mod approve;
mod desktop;
mod entries;
mod health;
mod list;
mod login;
mod logs;
mod remove;
mod reset;
mod serve;
mod words;

use loci_app::settings::RunSettings;
use loci_app::{RunOptions, UserError};
use loci_stdx::Env;

use crate::config::write;
pub(crate) use words::in_order;

#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Add a server: a program behind `--`, or an address.
    Add(add::AddArgs),
    /// Add a server by its entry, as configuration files have it.
    AddJson(add::AddJsonArgs),
    /// Add the servers that Claude Desktop has.
    AddFromClaudeDesktop(desktop::DesktopArgs),
    /// List all servers, and whether they can be used.
    List(list::ListArgs),
    /// Show one server.
    Get(list::GetArgs),
    /// Take a server away.
    Remove(remove::RemoveArgs),
    /// Log in at a server with an address.
    Login(login::LoginArgs),
    /// End the login at a server.
    Logout(login::LogoutArgs),
    /// Approve of servers of this project, as they are now.
    Approve(approve::ApproveArgs),
    /// Do not use servers of this project.
    Reject(approve::RejectArgs),
    /// Show what a server complained about.
    Logs(logs::LogsArgs),
    /// Forget which servers of this project were approved or rejected.
    ResetProjectChoices,
    /// Offer the built-in tools to other programs, over standard input and output.
    Serve(serve::ServeArgs),
}

/// What every verb looks at.
struct McpContext {
    env: Env,
    run: RunSettings,
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &McpArgs) -> Result<u8, UserError> {
    let ctx = McpContext { env: env.clone(), run: RunSettings::load(env, &RunOptions::default())? };
    let text = match &args.verb {
        Verb::Add(args) => add::run(&ctx, args)?,
        Verb::AddJson(args) => add::run_json(&ctx, args)?,
        Verb::AddFromClaudeDesktop(args) => desktop::run(&ctx, args)?,
        Verb::List(args) => list::run(&ctx, args)?,
        Verb::Get(args) => list::run_get(&ctx, args)?,
        Verb::Remove(args) => remove::run(&ctx, args)?,
        Verb::Login(args) => login::run(&ctx, args)?,
        Verb::Logout(args) => login::run_logout(&ctx, args)?,
        Verb::Approve(args) => approve::run(&ctx, args)?,
        Verb::Reject(args) => approve::run_reject(&ctx, args)?,
        Verb::Logs(args) => logs::run(&ctx, args)?,
        Verb::ResetProjectChoices => reset::run(&ctx)?,
        Verb::Serve(args) => return serve::run(env, args),
    };
    write(&text)?;
    Ok(0)
}
