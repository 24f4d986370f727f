//! Sessions that begin or go on: `session/new`, `session/load` and `session/resume`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use loci_app::start::{SessionStart, StartQuestion, StartStep, StartedSession};
use loci_app::{RunOptions, SessionOptions, SessionSource};
use loci_core::conversation::history;
use loci_core::entry::Entry;
use loci_core::ids::SessionId;
use loci_engine::{ClientMessage, ClientRequests, EditorAbilities};
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::{load_transcript, session_by_id};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::auth;
use super::capabilities::ClientCapabilities;
use super::editor::Editor;
use super::mcp_servers;
use super::peer::Peer;
use super::rpc::{INVALID_REQUEST, RESOURCE_NOT_FOUND, RpcError};

/// Which session a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A new one.
    New,
    /// The one with this id, with all that was said told again.
    Load(String),
    /// The one with this id.
    Resume(String),
}

impl Wanted {
    /// Reads a request.
    pub(super) fn parse(method: &str, params: &Value) -> Result<Self, RpcError> {
        let id = || {
            let id =
                params["sessionId"].as_str().ok_or_else(|| RpcError::params("`sessionId` is missing"))?;
            // A path or a title would name a session, too; the protocol has ids.
            let id = SessionId::parse(id).map_err(|_| no_session(id))?;
            Ok(id.to_string())
        };
        match method {
            "session/load" => Ok(Self::Load(id()?)),
            "session/resume" => Ok(Self::Resume(id()?)),
            _ => Ok(Self::New),
        }
    }

    /// Returns the id of a session that goes on.
    pub(super) fn id(&self) -> Option<&str> {
        match self {
            Self::New => None,
            Self::Load(id) | Self::Resume(id) => Some(id),
        }
    }
}

/// Says that there is no such session.
pub(super) fn no_session(id: &str) -> RpcError {
    RpcError::new(RESOURCE_NOT_FOUND, format!("There is no session `{id}`"))
}

/// What sessions are opened with.
#[derive(Clone)]
pub(super) struct OpenContext {
    /// The world as the process was given it.
    pub(super) env: Env,
    /// What every session is asked to be.
    pub(super) options: RunOptions,
    pub(super) peer: Peer,
    pub(super) client: ClientCapabilities,
    /// Whether commands run in terminals of the editor.
    pub(super) uses_client_terminals: bool,
}

/// A session that is there, and has not begun.
pub(super) struct Opened {
    /// What the client calls it.
    pub(super) id: String,
    pub(super) started: StartedSession,
    /// What the process asks of the client about it.
    pub(super) messages: UnboundedReceiver<ClientMessage>,
    /// What was said before, where that is to be told.
    pub(super) history: Vec<Arc<Entry>>,
    /// Whether the answer to the client has its id.
    pub(super) is_new: bool,
}

impl OpenContext {
    /// Opens a session. Blocks: reads settings, files and the past.
    pub(super) fn open(&self, wanted: &Wanted, params: &Value) -> Result<Opened, RpcError> {
        let cwd = directory(&params["cwd"], "cwd")?;
        let mut env = self.env.clone();
        env.cwd = cwd.canonicalize().map_err(|error| {
            RpcError::params(format!("`cwd` cannot be entered: `{}`: {error}", cwd.display()))
        })?;
        if !env.cwd.is_dir() {
            return Err(RpcError::params(format!("`cwd` is no directory: `{}`", cwd.display())));
        }
        let id = wanted.id().map_or_else(|| env.random.uuid_v4().to_string(), str::to_owned);
        let (client_requests, messages) = ClientRequests::channel(Arc::clone(&env.random));
        let mut options = self.options.clone();
        options.session = match wanted {
            Wanted::New => SessionOptions { id: Some(id.clone()), ..SessionOptions::default() },
            Wanted::Load(_) | Wanted::Resume(_) => {
                SessionOptions { source: SessionSource::Named(id.clone()), ..SessionOptions::default() }
            }
        };
        options.permissions.dirs.extend(directories(&params["additionalDirectories"])?);
        options.mcp.configs.extend(mcp_servers::configuration(&params["mcpServers"])?);
        options.client_requests = client_requests;
        let abilities = self.abilities();
        options.editor = (abilities != EditorAbilities::default())
            .then(|| Arc::new(Editor { peer: self.peer.clone(), session: id.clone(), abilities }) as _);
        let past = match wanted {
            Wanted::New => Vec::new(),
            Wanted::Load(_) | Wanted::Resume(_) => past(&env, &id, matches!(wanted, Wanted::Load(_)))?,
        };
        let started = start(env, options)?;
        if abilities.runs_commands && started.settings["sandbox"]["enabled"] == true {
            let why = "Commands cannot run in the editor's terminals here: settings want them in the sandbox, which \
                       does not reach there. Start loci without --client-terminal, or turn the sandbox off";
            return Err(RpcError::new(INVALID_REQUEST, why));
        }
        Ok(Opened { id, started, messages, history: past, is_new: *wanted == Wanted::New })
    }

    fn abilities(&self) -> EditorAbilities {
        EditorAbilities {
            reads_files: self.client.reads_files,
            writes_files: self.client.writes_files,
            runs_commands: self.client.has_terminals && self.uses_client_terminals,
        }
    }
}

fn start(env: Env, options: RunOptions) -> Result<StartedSession, RpcError> {
    match SessionStart::new(env, options, None, Instant::now()).unattended().proceed() {
        StartStep::Ready(started) => Ok(*started),
        StartStep::Ask(StartQuestion::NoCredentials(_)) => Err(auth::required()),
        StartStep::Ask(StartQuestion::InUse(holder)) => Err(RpcError::new(INVALID_REQUEST, holder)),
        StartStep::Ask(_) | StartStep::View(_) => {
            Err(RpcError::internal("The session needs an answer to start"))
        }
        StartStep::Failed(error) => Err(RpcError::internal(error.to_string())),
    }
}

/// Finds a session, and what was said in it where that is wanted.
fn past(env: &Env, id: &str, is_wanted: bool) -> Result<Vec<Arc<Entry>>, RpcError> {
    let known = SessionId::parse(id).map_err(|_| no_session(id))?;
    let place = session_by_id(&ConfigHome::from_env(env), &env.cwd, &known).map_err(|_| no_session(id))?;
    if !is_wanted {
        return Ok(Vec::new());
    }
    let loaded = load_transcript(place.file()).map_err(|error| RpcError::internal(error.to_string()))?;
    Ok(history(&loaded.entries))
}

fn directory(value: &Value, name: &str) -> Result<PathBuf, RpcError> {
    let path = value.as_str().map(Path::new).filter(|path| path.is_absolute());
    path.map(Path::to_owned).ok_or_else(|| RpcError::params(format!("`{name}` must be an absolute path")))
}

fn directories(value: &Value) -> Result<Vec<PathBuf>, RpcError> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(paths) => paths.iter().map(|path| directory(path, "additionalDirectories")).collect(),
        _ => Err(RpcError::params("`additionalDirectories` must be a list")),
    }
}
