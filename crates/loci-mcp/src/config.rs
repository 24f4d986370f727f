//! What files and flags say of servers: read leniently, with what is wrong said by name.
//!
//! An entry is read in two steps: [`parse_servers`] makes [`ServerConfig`]s of what somebody wrote, and
//! [`plan_servers`] decides which of them count. An entry that cannot be read costs itself alone.

mod expand;
mod plan;
mod policy;
mod tool_policy;

use std::fmt;
use std::time::Duration;

use loci_core::sandbox_profile::SandboxProfile;
use serde_json::{Value, json};

use crate::names::{brief, is_reserved, server_part};
use expand::Expansion;
pub use plan::{Approvals, Plan, PlanInputs, PlannedServer, Standing, plan_servers};
pub use policy::ServerPolicy;
pub use tool_policy::{ToolPolicies, ToolPolicy};

/// Where an entry was written, the strongest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerScope {
    /// A plugin brings it.
    Plugin,
    /// The user's, everywhere.
    User,
    /// The project's, for everybody.
    Project,
    /// The user's, for this project.
    Local,
    /// This run's: a flag, or the client that drives it.
    Dynamic,
    /// The administrator's.
    Managed,
}

impl ServerScope {
    /// Returns its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Dynamic => "dynamic",
            Self::Managed => "enterprise",
        }
    }

    /// Tells whether other people may have written it.
    pub fn is_foreign(self) -> bool {
        matches!(self, Self::Project | Self::Plugin)
    }
}

/// One server, as it is configured.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    /// What it is called.
    pub name: String,
    /// Where that was written.
    pub scope: ServerScope,
    /// The file, for people.
    pub source: String,
    /// How it is reached.
    pub way: ServerWay,
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// Whether the first request waits for it.
    pub always_load: bool,
    /// Tools whose calls are asked about, or do not run.
    pub tool_policies: ToolPolicies,
    /// The sandbox that its program runs in, where it asks for one.
    pub sandbox: Option<SandboxProfile>,
    /// The entry as it was written; variables are not filled in.
    pub written: Value,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum ServerWay {
    /// It is a program.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// What its environment has besides ours.
        env: Vec<(String, String)>,
    },
    /// It has an address.
    Remote(RemoteServer),
    /// It lives inside the client that drives us.
    Sdk,
}

/// A server with an address.
#[derive(Clone, PartialEq)]
pub struct RemoteServer {
    /// What is spoken there.
    pub kind: RemoteKind,
    /// The address.
    pub url: String,
    /// Headers of every request; they may hold secrets.
    pub headers: Vec<(String, String)>,
    /// A command that prints more of them.
    pub headers_helper: Option<String>,
    /// How to log in there, as it was written.
    pub oauth: Option<Value>,
}

/// What is spoken at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteKind {
    /// Streamable HTTP.
    Http,
    /// HTTP with a stream of events beside it, as it was done before.
    Sse,
    /// A web socket.
    WebSocket,
}

impl fmt::Debug for ServerConfig {
    /// Names no header and no variable's value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.scope.name(), self.way.kind())
    }
}

impl ServerWay {
    /// Returns the word for it in configuration files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Remote(remote) => remote.kind.name(),
            Self::Sdk => "sdk",
        }
    }
}

impl RemoteKind {
    /// Returns the word for it in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "ws",
        }
    }
}

/// Something that is wrong with what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The server, or the file.
    pub name: String,
    /// The kind, for programs.
    pub kind: &'static str,
    /// What it is and what comes of it.
    pub message: String,
}

impl ConfigProblem {
    /// Makes a problem.
    pub fn new(name: &str, kind: &'static str, message: impl Into<String>) -> Self {
        Self { name: name.to_owned(), kind, message: message.into() }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCP server `{}`: {}", brief(&self.name), self.message)
    }
}

/// Looks a variable up.
pub type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Reads the entries of one file: an object of names and entries.
pub fn parse_servers(
    servers: &Value,
    scope: ServerScope,
    source: &str,
    vars: &Lookup<'_>,
) -> (Vec<ServerConfig>, Vec<ConfigProblem>) {
    let (mut good, mut problems) = (Vec::new(), Vec::new());
    let Value::Object(entries) = servers else {
        if !servers.is_null() {
            let message = format!("the `mcpServers` of {source} are no object");
            problems.push(ConfigProblem::new(source, "invalid_config", message));
        }
        return (good, problems);
    };
    for (name, entry) in entries {
        match parse_server(name, entry, scope, source, vars) {
            Ok((server, warnings)) => {
                good.push(server);
                problems
                    .extend(warnings.into_iter().map(|it| ConfigProblem::new(name, "config_warning", it)));
            }
            Err(problem) => {
                let message = format!("{problem} ({source}); the entry is left out");
                problems.push(ConfigProblem::new(name, "invalid_config", message));
            }
        }
    }
    (good, problems)
}

/// Reads one entry; returns it with what should be said about it, or what is wrong.
pub fn parse_server(
    name: &str,
    entry: &Value,
    scope: ServerScope,
    source: &str,
    vars: &Lookup<'_>,
) -> Result<(ServerConfig, Vec<String>), String> {
    if !entry.is_object() {
        return Err("its entry is no object".to_owned());
    }
    if is_reserved(name) {
        return Err("its name is reserved; choose another".to_owned());
    }
    if server_part(name).is_empty() {
        return Err("its name has no letter or digit".to_owned());
    }
    let mut expansion = Expansion::new(vars);
    let way = parse_way(entry, &mut expansion)?;
    let mut sandbox = SandboxProfile::parse(entry.get("sandbox"))?;
    if sandbox.is_some() && !matches!(way, ServerWay::Stdio { .. }) {
        return Err("it asks for a `sandbox` and is no program of ours; leave it out".to_owned());
    }
    for path in sandbox.iter_mut().flat_map(|sandbox| &mut sandbox.allow_write) {
        *path = expansion.expand("sandbox", path);
    }
    let mut warnings = expansion.warnings();
    if name.trim() != name {
        warnings.push("its name begins or ends with a space".to_owned());
    }
    let padded = padded_fields(&way);
    if !padded.is_empty() {
        warnings.push(format!("white space at the beginning or the end of: {}", padded.join(", ")));
    }
    let server = ServerConfig {
        name: name.to_owned(),
        scope,
        source: source.to_owned(),
        way,
        timeout: parse_timeout(entry),
        always_load: entry.get("alwaysLoad").and_then(Value::as_bool).unwrap_or(false),
        tool_policies: ToolPolicies::parse(entry),
        sandbox,
        written: entry.clone(),
    };
    Ok((server, warnings))
}

/// Makes a server that lives in the client, of what that says of it.
pub(crate) fn client_server(name: &str, settings: Option<&Value>) -> ServerConfig {
    let mut written = settings.filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({}));
    (written["type"], written["name"]) = (json!("sdk"), json!(name));
    ServerConfig {
        name: name.to_owned(),
        scope: ServerScope::Dynamic,
        source: "the client".to_owned(),
        way: ServerWay::Sdk,
        timeout: parse_timeout(&written),
        always_load: false,
        tool_policies: ToolPolicies::parse(&written),
        sandbox: None,
        written,
    }
}

/// Reads how long a call may take; what is too short to be meant is not.
fn parse_timeout(entry: &Value) -> Option<Duration> {
    entry.get("timeout").and_then(Value::as_u64).filter(|ms| *ms >= 1000).map(Duration::from_millis)
}

/// Returns the names of fields that begin or end with white space, as what was pasted often does; values are used as they
/// are, and not shown.
fn padded_fields(way: &ServerWay) -> Vec<String> {
    let is_padded = |text: &str| text.trim() != text;
    let pairs = |key: &str, pairs: &[(String, String)]| -> Vec<String> {
        let padded = pairs.iter().filter(|(name, value)| is_padded(name) || is_padded(value));
        padded.map(|(name, _)| format!("{key}.{}", brief(name.trim()))).collect()
    };
    let one = |key: &str, text: &str| is_padded(text).then(|| key.to_owned());
    match way {
        ServerWay::Stdio { command, args, env } => one("command", command)
            .into_iter()
            .chain(args.iter().any(|arg| is_padded(arg)).then(|| "args".to_owned()))
            .chain(pairs("env", env))
            .collect(),
        ServerWay::Remote(remote) => {
            one("url", &remote.url).into_iter().chain(pairs("headers", &remote.headers)).collect()
        }
        ServerWay::Sdk => Vec::new(),
    }
}

fn parse_way(entry: &Value, expansion: &mut Expansion<'_>) -> Result<ServerWay, String> {
    let kind = match entry.get("type") {
        None | Some(Value::Null) => None,
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(_) => return Err("its `type` is no text".to_owned()),
    };
    match kind {
        None if entry.get("url").is_some() => {
            Err("it has a `url` and no `type`; add \"type\": \"http\" (or \"sse\", \"ws\")".to_owned())
        }
        None | Some("stdio") => parse_stdio(entry, expansion),
        Some("http" | "streamable-http" | "streamableHttp") => {
            parse_remote(entry, RemoteKind::Http, expansion)
        }
        Some("sse") => parse_remote(entry, RemoteKind::Sse, expansion),
        Some("ws" | "websocket") => parse_remote(entry, RemoteKind::WebSocket, expansion),
        Some("sdk") => Ok(ServerWay::Sdk),
        Some(other) => Err(format!("its type `{}` is unknown", brief(other))),
    }
}

fn parse_stdio(entry: &Value, expansion: &mut Expansion<'_>) -> Result<ServerWay, String> {
    let command = match entry.get("command") {
        Some(Value::String(command)) if !command.trim().is_empty() => expansion.expand("command", command),
        Some(Value::String(_)) | None => return Err("it has no `command`".to_owned()),
        Some(_) => return Err("its `command` is no text".to_owned()),
    };
    let args = match entry.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) => args
            .iter()
            .map(|arg| arg.as_str().map(|arg| expansion.expand("args", arg)))
            .collect::<Option<_>>()
            .ok_or("its `args` are no list of texts")?,
        Some(_) => return Err("its `args` are no list of texts".to_owned()),
    };
    let env = parse_texts(entry, "env", expansion)?;
    Ok(ServerWay::Stdio { command, args, env })
}

fn parse_remote(entry: &Value, kind: RemoteKind, expansion: &mut Expansion<'_>) -> Result<ServerWay, String> {
    let url = match entry.get("url").and_then(Value::as_str) {
        Some(url) => expansion.expand("url", url),
        None => return Err("it has no `url`".to_owned()),
    };
    let parsed = reqwest::Url::parse(&url).map_err(|error| format!("its `url` is no address: {error}"))?;
    let schemes: &[&str] = match kind {
        RemoteKind::WebSocket => &["ws", "wss", "http", "https"],
        RemoteKind::Http | RemoteKind::Sse => &["http", "https"],
    };
    if !schemes.contains(&parsed.scheme()) {
        return Err(format!("its `url` begins with `{}:`, which is not spoken here", parsed.scheme()));
    }
    let oauth = entry.get("oauth").filter(|oauth| oauth.is_object()).cloned();
    Ok(ServerWay::Remote(RemoteServer {
        kind,
        url,
        headers: parse_texts(entry, "headers", expansion)?,
        headers_helper: entry.get("headersHelper").and_then(Value::as_str).map(str::to_owned),
        oauth: oauth.filter(|_| kind != RemoteKind::WebSocket),
    }))
}

fn parse_texts(
    entry: &Value,
    key: &'static str,
    expansion: &mut Expansion<'_>,
) -> Result<Vec<(String, String)>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(texts)) => texts
            .iter()
            .map(|(name, value)| Some((name.clone(), expansion.expand(key, value.as_str()?))))
            .collect::<Option<_>>()
            .ok_or_else(|| format!("its `{key}` has a value that is no text")),
        Some(_) => Err(format!("its `{key}` are no object")),
    }
}

#[cfg(test)]
mod tests;
