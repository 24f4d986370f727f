//! `loci mcp add` and `add-json`.

use std::io::IsTerminal;

use loci_app::UserError;
use loci_app::mcp::logins::set_client_secret;
use serde_json::{Map, Value, json};

use super::McpContext;
use super::entries::Scope;

#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// How it is reached.
    #[arg(short, long, value_enum, default_value = "stdio")]
    transport: Kind,
    /// Where it is written down.
    #[arg(short, long, value_enum, default_value = "local")]
    scope: Scope,
    /// A variable for the program, `NAME=value`; may be repeated.
    #[arg(short, long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A header for every request, `Name: value`; may be repeated.
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    #[command(flatten)]
    oauth: OauthArgs,
    /// What to call it.
    name: String,
    /// The address, or the program and its arguments behind `--`.
    #[arg(required = true, trailing_var_arg = true, value_name = "URL_OR_COMMAND")]
    rest: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// A program.
    Stdio,
    /// An address that speaks streamable HTTP.
    Http,
    /// An address that speaks the older HTTP with events.
    Sse,
}

/// Who we are at the server's authorization server, where that was agreed on beforehand.
#[derive(Debug, clap::Args)]
struct OauthArgs {
    /// The id of a client that you have registered.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Ask for the secret of that client (`MCP_CLIENT_SECRET` has it without asking); it is kept with the logins.
    #[arg(long)]
    client_secret: bool,
    /// The port that a login comes back to, `http://localhost:PORT/callback`.
    #[arg(long, value_name = "PORT")]
    callback_port: Option<u16>,
}

#[derive(Debug, clap::Args)]
pub(super) struct AddJsonArgs {
    /// Where it is written down.
    #[arg(short, long, value_enum, default_value = "local")]
    scope: Scope,
    /// Ask for the secret of the client that `oauth.clientId` names (`MCP_CLIENT_SECRET` has it without asking).
    #[arg(long)]
    client_secret: bool,
    /// What to call it.
    name: String,
    /// The entry: a JSON object.
    json: String,
}

pub(super) fn run(ctx: &McpContext, args: &AddArgs) -> Result<String, UserError> {
    let entry = match args.transport {
        Kind::Stdio => stdio(args)?,
        Kind::Http => remote(args, "http")?,
        Kind::Sse => remote(args, "sse")?,
    };
    let secret = args.oauth.client_secret.then(|| client_secret(ctx, &entry)).transpose()?;
    ctx.add(args.scope, &args.name, &entry)?;
    keep_secret(ctx, &args.name, &entry, secret.as_deref())?;
    let mut said = added(ctx, args.scope, &args.name);
    let looks_remote =
        args.rest.first().is_some_and(|word| word.starts_with("http://") || word.starts_with("https://"));
    if args.transport == Kind::Stdio && looks_remote {
        said += "It is an address, and was added as a program; for an address give `--transport http`.\n";
    }
    Ok(said)
}

pub(super) fn run_json(ctx: &McpContext, args: &AddJsonArgs) -> Result<String, UserError> {
    let entry: Value = serde_json::from_str(&args.json)
        .map_err(|error| UserError::new(format!("The entry is not valid JSON: {error}")))?;
    let secret = args.client_secret.then(|| client_secret(ctx, &entry)).transpose()?;
    ctx.add(args.scope, &args.name, &entry)?;
    keep_secret(ctx, &args.name, &entry, secret.as_deref())?;
    Ok(added(ctx, args.scope, &args.name))
}

/// Returns the secret of a client: of the environment, or asked for.
fn client_secret(ctx: &McpContext, entry: &Value) -> Result<String, UserError> {
    if entry["oauth"]["clientId"].as_str().is_none_or(str::is_empty) {
        return Err(UserError::new("A client's secret needs the client's id, too")
            .hint("Give `--client-id`, or `oauth.clientId` in the entry."));
    }
    let asked = match ctx.env.vars.non_empty("MCP_CLIENT_SECRET") {
        Some(secret) => Some(secret.to_owned()),
        None if std::io::stdin().is_terminal() => ask_for_secret()
            .map_err(|error| UserError::new(format!("The client's secret cannot be read: {error}")))?,
        None => None,
    };
    asked.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).ok_or_else(|| {
        UserError::new("No client's secret was given; nothing has changed")
            .hint("Set MCP_CLIENT_SECRET, or run this at a terminal.")
    })
}

#[cfg(unix)]
fn ask_for_secret() -> std::io::Result<Option<String>> {
    loci_tui::terminal::read_secret("Client secret (it is not shown): ")
}

#[cfg(not(unix))]
fn ask_for_secret() -> std::io::Result<Option<String>> {
    Ok(None)
}

/// Keeps the secret of a client with the logins; the entry never holds it.
fn keep_secret(ctx: &McpContext, name: &str, entry: &Value, secret: Option<&str>) -> Result<(), UserError> {
    match (secret, entry["url"].as_str()) {
        (Some(secret), Some(url)) => set_client_secret(&ctx.run.home, name, url, Some(secret)),
        _ => Ok(()),
    }
}

fn added(ctx: &McpContext, scope: Scope, name: &str) -> String {
    format!("Added the MCP server `{name}` ({}) to {}\n", scope.name(), ctx.file(scope))
}

fn stdio(args: &AddArgs) -> Result<Value, UserError> {
    if !args.header.is_empty() {
        return Err(
            UserError::new("Headers are for servers with an address").hint("Give `--transport http`, too.")
        );
    }
    if args.oauth.client_id.is_some() || args.oauth.client_secret || args.oauth.callback_port.is_some() {
        return Err(
            UserError::new("Logins are for servers with an address").hint("Give `--transport http`, too.")
        );
    }
    let mut env = Map::new();
    for pair in &args.env {
        let (name, value) = pair.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            UserError::new(format!("Not a variable: `{pair}`")).hint("Write `-e NAME=value`.")
        })?;
        env.insert(name.to_owned(), json!(value));
    }
    let (command, rest) = args.rest.split_first().ok_or_else(|| UserError::new("There is no program"))?;
    Ok(json!({"type": "stdio", "command": command, "args": rest, "env": env}))
}

fn remote(args: &AddArgs, kind: &str) -> Result<Value, UserError> {
    let [url] = &args.rest[..] else {
        return Err(UserError::new("A server with an address has nothing behind the address"));
    };
    if !args.env.is_empty() {
        return Err(UserError::new("Variables are for servers that are programs"));
    }
    let mut headers = Map::new();
    for header in &args.header {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| UserError::new("Not a header").hint("Write `-H \"Name: value\"`."))?;
        headers.insert(name.trim().to_owned(), json!(value.trim()));
    }
    let mut entry = json!({"type": kind, "url": url});
    if !headers.is_empty() {
        entry["headers"] = Value::Object(headers);
    }
    if let Some(id) = &args.oauth.client_id {
        entry["oauth"]["clientId"] = json!(id);
    }
    if let Some(port) = args.oauth.callback_port {
        entry["oauth"]["callbackPort"] = json!(port);
    }
    Ok(entry)
}
