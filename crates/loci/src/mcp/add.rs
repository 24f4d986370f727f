//! `loci mcp add` and `add-json`.

use loci_app::UserError;
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

#[derive(Debug, clap::Args)]
pub(super) struct AddJsonArgs {
    /// Where it is written down.
    #[arg(short, long, value_enum, default_value = "local")]
    scope: Scope,
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
    ctx.add(args.scope, &args.name, &entry)?;
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
    ctx.add(args.scope, &args.name, &entry)?;
    Ok(added(ctx, args.scope, &args.name))
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
    Ok(entry)
}
