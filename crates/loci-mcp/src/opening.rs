//! From a server's configuration to a connection that has not been greeted yet.

use std::sync::Arc;

use loci_sandbox::Sandbox;
use loci_stdx::prefixed_program;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::auth::authorizer::OauthAuthorizer;
use crate::auth::{LoginTarget, OauthConfig, no_login_reason};
use crate::authorizer::Authorizer;
use crate::config::{RemoteKind, RemoteServer, ServerConfig, ServerScope, ServerWay};
use crate::connection::{Asked, CallError, Connection};
use crate::log::ServerLog;
use crate::servers::ServersShared;
use crate::transport::bridge::BridgeTransport;
use crate::transport::headers::{HeaderSource, HeadersHelper};
use crate::transport::http::HttpTransport;
use crate::transport::legacy_sse::SseTransport;
use crate::transport::stdio::{Program, StdioTransport};
use crate::transport::web::Web;
use crate::transport::web_socket::WebSocketTransport;
use crate::transport::{InboundSender, Transport, TransportError, inbox};

/// Variables that every program needs; all that it gets where the environment is to be small.
const SMALL_ENV: [&str; 8] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];

/// Opens the way to a server.
pub(crate) fn open(
    config: &ServerConfig,
    world: &Arc<ServersShared>,
    log: &Arc<ServerLog>,
) -> Result<Connection, CallError> {
    let (inbound, receiver) = inbox();
    let transport: Box<dyn Transport> = match &config.way {
        ServerWay::Stdio { command, args, env } => {
            let env = program_env(world, env);
            // Whoever is to see every command gets this one as one word, too, and runs it.
            let words = std::iter::once(command.as_str()).chain(args.iter().map(String::as_str));
            let (command, args) = match prefixed_program(&world.world.child_env, words) {
                Some(line) => ("/bin/sh".to_owned(), vec!["-c".to_owned(), line]),
                None => (command.clone(), args.clone()),
            };
            let program = Program {
                command,
                args,
                env,
                cwd: world.world.cwd.clone(),
                watch: world.world.program_watch.clone(),
                sandbox: sandbox_of(config, world)?,
            };
            Box::new(StdioTransport::start(&program, inbound, Arc::clone(log))?)
        }
        ServerWay::Sdk => {
            let bridge = world.world.bridge.clone().ok_or_else(|| {
                TransportError::Closed("it lives in a client, and no client drives this run".to_owned())
            })?;
            let server = config.name.clone();
            Box::new(BridgeTransport { server, bridge, inbound, closed: CancellationToken::new() })
        }
        ServerWay::Remote(remote) => open_remote(config, remote, world, inbound, log)?,
    };
    // A project must not take the name of a server that the user lets ask.
    let may_sample = world.world.sampling.contains(&config.name) && !config.scope.is_foreign();
    let asked = Asked::new(config.name.clone(), world.client_side(), may_sample);
    Ok(Connection::new(transport, receiver, asked, Arc::clone(log)))
}

/// Makes the sandbox that a server asks for; without it the server is not started.
fn sandbox_of(config: &ServerConfig, world: &ServersShared) -> Result<Option<Arc<Sandbox>>, CallError> {
    let Some(profile) = &config.sandbox else { return Ok(None) };
    let failed = |why: String| CallError::Transport(TransportError::Closed(why));
    let Some(make) = &world.world.sandbox_maker else {
        return Err(failed("it asks for a sandbox, which cannot be had here".to_owned()));
    };
    make(profile, &world.world.cwd).map(Some).map_err(failed)
}

fn open_remote(
    config: &ServerConfig,
    remote: &RemoteServer,
    world: &Arc<ServersShared>,
    inbound: InboundSender,
    log: &Arc<ServerLog>,
) -> Result<Box<dyn Transport>, CallError> {
    let no_address = |error| TransportError::Closed(format!("its `url` is no address: {error}"));
    let url = web_url(reqwest::Url::parse(&remote.url).map_err(no_address)?);
    let helper = headers_helper(config, remote, world);
    let greeting = &world.world.greeting;
    let web = Web {
        url,
        clients: Arc::clone(&world.world.clients),
        client: OnceCell::new(),
        headers: HeaderSource {
            fixed: remote.headers.clone(),
            helper,
            authorizer: authorizer(config, remote, world),
            printed: tokio::sync::Mutex::default(),
        },
        user_agent: format!("{}/{}", greeting.name, greeting.version),
        is_web_socket: remote.kind == RemoteKind::WebSocket,
    };
    Ok(match remote.kind {
        RemoteKind::Http => Box::new(HttpTransport::new(web, inbound, Arc::clone(log))),
        RemoteKind::Sse => Box::new(SseTransport::start(web, inbound, Arc::clone(log))),
        RemoteKind::WebSocket => Box::new(WebSocketTransport::start(web, inbound, Arc::clone(log))),
    })
}

/// Returns what puts a login on the requests to a server, where there may be one.
fn authorizer(
    config: &ServerConfig,
    remote: &RemoteServer,
    world: &ServersShared,
) -> Option<Arc<dyn Authorizer>> {
    match no_login_reason(remote) {
        Some(_) => None,
        None => Some(Arc::new(OauthAuthorizer { target: login_target(config, remote, world)? })),
    }
}

/// Returns a server as one logs in there; none where nothing keeps logins, or the address is none.
pub(crate) fn login_target(
    config: &ServerConfig,
    remote: &RemoteServer,
    world: &ServersShared,
) -> Option<LoginTarget> {
    let world = &world.world;
    Some(LoginTarget {
        name: config.name.clone(),
        address: remote.url.clone(),
        url: reqwest::Url::parse(&remote.url).ok()?,
        oauth: OauthConfig::parse(remote.oauth.as_ref()),
        logins: Arc::clone(world.logins.as_ref()?),
        clients: Arc::clone(&world.clients),
        clock: Arc::clone(&world.clock),
        user_agent: format!("{}/{}", world.greeting.name, world.greeting.version),
    })
}

/// Returns an address as requests have it: a web socket begins as one.
fn web_url(mut url: reqwest::Url) -> reqwest::Url {
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return url,
    };
    if url.set_scheme(scheme).is_err() {
        tracing::debug!(target: "loci::mcp", "an address kept its scheme");
    }
    url
}

/// Returns the command that prints headers. One that belongs to a folder waits until the user trusts that very folder.
fn headers_helper(
    config: &ServerConfig,
    remote: &RemoteServer,
    world: &ServersShared,
) -> Option<HeadersHelper> {
    let command = remote.headers_helper.clone()?;
    if matches!(config.scope, ServerScope::Project | ServerScope::Local) && !world.world.may_run_helpers {
        world.notice(format!(
            "MCP server `{}`: its headersHelper is not run, since this folder itself is not trusted; it is connected to \
             with the headers of its entry. `loci config trust` trusts the folder",
            config.name
        ));
        return None;
    }
    let cwd = match config.scope {
        ServerScope::User | ServerScope::Managed => world.world.config_dir.clone(),
        ServerScope::Plugin | ServerScope::Project | ServerScope::Local | ServerScope::Dynamic => {
            world.world.cwd.clone()
        }
    };
    Some(HeadersHelper { command, cwd, env: helper_env(world, config, &remote.url) })
}

/// Returns the environment of a command that prints headers: one that others wrote gets nothing that looks like a secret.
fn helper_env(world: &ServersShared, config: &ServerConfig, url: &str) -> Vec<(String, String)> {
    let mut env = program_env(world, &[]);
    let mut url = url.to_owned();
    if config.scope.is_foreign() {
        for (_, secret) in
            env.iter().filter(|(name, value)| is_credential(name) && value.len() >= MASKED_LENGTH)
        {
            url = url.replace(secret.as_str(), "REDACTED");
        }
        env.retain(|(name, _)| !is_credential(name));
    }
    env.push(("CLAUDE_CODE_MCP_SERVER_NAME".to_owned(), config.name.clone()));
    env.push(("CLAUDE_CODE_MCP_SERVER_URL".to_owned(), url));
    env
}

/// What is shorter stands in too many addresses by chance.
const MASKED_LENGTH: usize = 4;

/// Parts of names that credentials have.
const CREDENTIAL_PARTS: [&str; 12] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "KEY",
    "AUTH",
    "COOKIE",
    "PAT",
    "DSN",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Credentials whose names do not say so.
const CREDENTIALS: [&str; 6] =
    ["ANTHROPIC_CUSTOM_HEADERS", "DATABASE_URL", "SSH_ASKPASS", "GIT_ASKPASS", "KUBECONFIG", "NETRC"];

/// Tells whether a variable is likely to hold a credential.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_git_config = name.strip_prefix("GIT_CONFIG_KEY_").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let has_part = name.split('_').any(|part| CREDENTIAL_PARTS.contains(&part));
    !is_git_config && (has_part || CREDENTIALS.contains(&name.as_str()))
}

/// Returns the environment of a program: ours without secrets, or a few variables, and its own on top.
fn program_env(world: &ServersShared, own: &[(String, String)]) -> Vec<(String, String)> {
    let world = &world.world;
    let passes = |name: &str| !world.limits.has_small_env || SMALL_ENV.contains(&name);
    let mut env: Vec<_> = world.child_env.iter().filter(|(name, _)| passes(name)).cloned().collect();
    env.push(("CLAUDE_PROJECT_DIR".to_owned(), world.project.display().to_string()));
    env.push(("CLAUDE_CODE_SESSION_ID".to_owned(), world.session.clone()));
    env.extend(own.iter().cloned());
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_the_parts_of_their_names() {
        for (name, expected) in [
            ("ANTHROPIC_API_KEY", true),
            ("my_registry_token", true),
            ("GITHUB_PAT", true),
            ("ANTHROPIC_CUSTOM_HEADERS", true),
            ("PATH", false),
            ("KEYBOARD", false),
            ("SSH_AUTH_SOCK", true),
            ("GIT_CONFIG_KEY_0", false),
            ("GIT_CONFIG_KEY_X", true),
            ("HOME", false),
        ] {
            assert_eq!(is_credential(name), expected, "{name}");
        }
    }
}
