//! `loci mcp list` and `get`.

use loci_app::McpOptions;
use loci_app::UserError;
use loci_app::mcp::logins::login_state;
use loci_app::mcp::plan;
use loci_mcp::ServerView;
use loci_mcp::config::{Plan, PlannedServer, RemoteServer, ServerConfig, ServerWay, Standing};
use serde_json::json;

use super::McpContext;
use super::health::{check, status_text};
use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Do not start them to see whether they can be used.
    #[arg(long)]
    no_check: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct GetArgs {
    /// The server.
    name: String,
}

pub(super) fn run(ctx: &McpContext, args: &ListArgs) -> Result<String, UserError> {
    let plan = plan(&who_is_asked(), &ctx.run)?;
    let views = if args.no_check { Vec::new() } else { check(ctx, &plan)? };
    let view = |name: &str| views.iter().find(|view| view.name == name);
    if args.json {
        let rows: Vec<_> = plan
            .servers
            .iter()
            .map(|server| {
                let config = &server.config;
                let view = view(&config.name);
                json!({
                    "name": config.name, "scope": config.scope.name(), "type": config.way.kind(), "file": config.source,
                    "status": view.map(|it| it.status.name()), "error": view.and_then(|it| it.error.as_deref()),
                    "standing": standing(server.standing),
                })
            })
            .collect();
        let problems: Vec<_> = plan.problems.iter().map(ToString::to_string).collect();
        return Ok(pretty(&json!({"servers": rows, "problems": problems})));
    }
    let mut out = String::new();
    for server in &plan.servers {
        let config = &server.config;
        let health = health(server, view(&config.name));
        out += &format!("{}: {} ({}) - {health}\n", config.name, way(config), config.scope.name());
    }
    if plan.servers.is_empty() {
        out += "No MCP servers are configured; `loci mcp add` adds one\n";
    }
    Ok(out + &problems(&plan))
}

pub(super) fn run_get(ctx: &McpContext, args: &GetArgs) -> Result<String, UserError> {
    let mut plan = plan(&who_is_asked(), &ctx.run)?;
    plan.servers.retain(|server| server.config.name == args.name);
    plan.problems.retain(|problem| problem.name == args.name);
    let Some(server) = plan.servers.first().cloned() else {
        let why = problems(&plan);
        return Err(UserError::new(
            format!("No MCP server is called `{}`\n{why}", args.name).trim_end().to_owned(),
        )
        .hint("See `loci mcp list`."));
    };
    let views = check(ctx, &plan)?;
    let config = &server.config;
    let mut out = format!(
        "{}\n  Scope: {} ({})\n  Type: {}\n",
        config.name,
        config.scope.name(),
        config.source,
        config.way.kind()
    );
    match &config.way {
        ServerWay::Stdio { command, args, env } => {
            out += &format!("  Command: {command}\n  Arguments: {}\n", args.join(" "));
            let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
            if !names.is_empty() {
                out += &format!("  Variables: {}\n", names.join(", "));
            }
        }
        ServerWay::Remote(remote) => {
            out += &format!("  Address: {}\n", remote.url);
            // Values are secrets more often than not.
            let names: Vec<&str> = remote.headers.iter().map(|(name, _)| name.as_str()).collect();
            if !names.is_empty() {
                out += &format!("  Headers: {}\n", names.join(", "));
            }
            out += &login_text(ctx, config, remote);
        }
        ServerWay::Sdk => {}
    }
    out += &format!("  Status: {}\n", health(&server, views.first()));
    if let Some(view) = views.first() {
        out += &tools(view);
    }
    out += &problems(&plan);
    Ok(out)
}

/// Says how one logs in at a server, and whether one has.
fn login_text(ctx: &McpContext, config: &ServerConfig, remote: &RemoteServer) -> String {
    let oauth = remote.oauth.as_ref();
    let get = |key: &str| oauth.and_then(|it| it.get(key));
    let mut parts = Vec::new();
    parts.extend(get("clientId").and_then(|it| it.as_str()).map(|id| format!("client {id}")));
    parts.extend(get("callbackPort").map(|port| format!("port {port}")));
    parts.extend(get("scopes").and_then(|it| it.as_str()).map(|scopes| format!("scopes {scopes}")));
    match login_state(&ctx.run.home, &config.name, &remote.url) {
        Ok((is_logged_in, has_secret)) => {
            parts.extend(has_secret.then(|| "with a secret".to_owned()));
            parts.extend(is_logged_in.then(|| "logged in".to_owned()));
        }
        Err(error) => parts.push(error.message().to_owned()),
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("  Login: {}\n", parts.join(", ")),
    }
}

fn tools(view: &ServerView) -> String {
    let names: Vec<&str> = view.offer.tools.iter().map(|(name, _)| name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("  Tools: {}\n", names.join(", ")),
    }
}

fn way(config: &ServerConfig) -> String {
    match &config.way {
        ServerWay::Stdio { command, args, .. } => {
            [std::slice::from_ref(command), &args[..]].concat().join(" ")
        }
        ServerWay::Remote(remote) => remote.url.clone(),
        ServerWay::Sdk => "in the client".to_owned(),
    }
}

/// Servers of a project that nobody has approved are not started to be looked at.
fn who_is_asked() -> McpOptions {
    McpOptions { needs_approval: true, ..McpOptions::default() }
}

/// Returns how a server is doing, or why it was not looked at.
fn health(server: &PlannedServer, view: Option<&ServerView>) -> String {
    let name = &server.config.name;
    match (server.standing, view) {
        (Standing::NeedsApproval, _) => format!("⏸ needs your approval: `loci mcp approve {name}`"),
        (Standing::Rejected, _) => {
            format!("✗ rejected (`disabledMcpjsonServers`); `loci mcp approve {name}` takes that back")
        }
        (Standing::Used | Standing::Disabled, Some(view)) => status_text(view),
        (Standing::Used | Standing::Disabled, None) => standing(server.standing).to_owned(),
    }
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Used => "used",
        Standing::Disabled => "switched off",
        Standing::Rejected => "rejected",
        Standing::NeedsApproval => "needs your approval",
    }
}

fn problems(plan: &Plan) -> String {
    plan.problems.iter().map(|problem| format!("! {problem}\n")).collect()
}
