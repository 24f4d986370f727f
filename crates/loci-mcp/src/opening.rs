//! From a server's configuration to a connection that has not been greeted yet.

use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::auth::authorizer::OauthAuthorizer;
use crate::auth::{LoginTarget, OauthConfig, no_login_reason};
use crate::authorizer::Authorizer;
use crate::config::{RemoteKind, RemoteServer, ServerConfig, ServerWay};
use crate::connection::{Asked, CallError, Connection};
use crate::log::ServerLog;
use crate::servers::ServersShared;
use crate::transport::bridge::BridgeTransport;
use crate::transport::headers::{HeaderSource, HeadersHelper};
use crate::transport::http::HttpTransport;
use crate::transport::legacy_sse::SseTransport;
use crate::transport::stdio::{Program, StdioTransport};
use crate::transport::web::Web;
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
            let program = Program {
                command: command.clone(),
                args: args.clone(),
                env: program_env(world, env),
                cwd: world.world.cwd.clone(),
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
    let asked = Asked::new(config.name.clone(), world.client_side());
    Ok(Connection::new(transport, receiver, asked, Arc::clone(log)))
}

fn open_remote(
    config: &ServerConfig,
    remote: &RemoteServer,
    world: &Arc<ServersShared>,
    inbound: InboundSender,
    log: &Arc<ServerLog>,
) -> Result<Box<dyn Transport>, CallError> {
    let no_address = |error| TransportError::Closed(format!("its `url` is no address: {error}"));
    let url = reqwest::Url::parse(&remote.url).map_err(no_address)?;
    let helper = remote.headers_helper.clone().map(|command| HeadersHelper {
        command,
        cwd: world.world.cwd.clone(),
        env: helper_env(world, config, &remote.url),
    });
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
    };
    Ok(match remote.kind {
        RemoteKind::Http => Box::new(HttpTransport::new(web, inbound, Arc::clone(log))),
        RemoteKind::Sse => Box::new(SseTransport::start(web, inbound, Arc::clone(log))),
        RemoteKind::WebSocket => {
            let why = "servers of type `ws` are not supported by this version of loci".to_owned();
            return Err(CallError::Transport(TransportError::Closed(why)));
        }
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
        kind: remote.kind,
        oauth: OauthConfig::parse(remote.oauth.as_ref()),
        headers: remote.headers.clone(),
        logins: Arc::clone(world.logins.as_ref()?),
        clients: Arc::clone(&world.clients),
        clock: Arc::clone(&world.clock),
        user_agent: format!("{}/{}", world.greeting.name, world.greeting.version),
    })
}

/// Returns the environment of a command that prints headers.
fn helper_env(world: &ServersShared, config: &ServerConfig, url: &str) -> Vec<(String, String)> {
    let own = [("CLAUDE_CODE_MCP_SERVER_NAME", config.name.as_str()), ("CLAUDE_CODE_MCP_SERVER_URL", url)];
    let own: Vec<(String, String)> =
        own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    program_env(world, &own)
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
