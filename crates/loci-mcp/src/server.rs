//! One server and its life: started, asked what it has, listened to, ended; reached again when it was lost.
//!
//! The states, as clients of the headless protocol know them: `pending` until it has told what it has, `connected`,
//! `needs-auth`, `failed` with the reason, `disabled`. A program that ended is not started again by itself; a server with
//! an address is tried again, a few times, with longer pauses.

mod discovery;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::catalog::{PromptSpec, Resource, ToolSpec};
use crate::config::{RemoteKind, RemoteServer, ServerConfig, ServerScope, ServerWay};
use crate::connection::{
    Beginning, CallError, Connection, Handshake, Negotiation, OnProgress, RequestLimits,
};
use crate::content::{CallResult, ContentPart};
use crate::log::ServerLog;
use crate::message::{Message, is_stateless};
use crate::opening::open;
use crate::servers::ServersShared;
use crate::transport::TransportError;

/// How often a first connection is tried.
const FIRST_TRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How often a lost one is tried again, and the first pause, which doubles.
const AGAIN_TRIES: u32 = 5;
const AGAIN_PAUSE: Duration = Duration::from_secs(1);
/// How long somebody who types waits for what an argument could be.
const COMPLETION: Duration = Duration::from_secs(5);

/// How a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStatus {
    /// It has not told yet what it has.
    Pending,
    /// It can be used.
    Connected,
    /// It cannot be used.
    Failed,
    /// A person must log in first.
    NeedsAuth,
    /// It is switched off.
    Disabled,
}

impl ServerStatus {
    /// Returns its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs-auth",
            Self::Disabled => "disabled",
        }
    }
}

/// A server as others see it.
#[derive(Debug, Clone)]
pub struct ServerView {
    /// What it is called.
    pub name: String,
    /// Where it was written down.
    pub scope: ServerScope,
    /// How it is reached, in a word.
    pub kind: &'static str,
    /// How it is doing.
    pub status: ServerStatus,
    /// Why it cannot be used.
    pub error: Option<String>,
    /// What it says of itself.
    pub handshake: Option<Handshake>,
    /// Its entry, as it was written.
    pub written: Value,
    /// Whether its tools are always offered.
    pub always_load: bool,
    /// What it has.
    pub offer: Arc<Offer>,
}

/// What a server has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// Tools by the names they have for the model, in order.
    pub tools: Vec<(String, Arc<ToolSpec>)>,
    /// Resources.
    pub resources: Vec<Resource>,
    /// Whether it has resources at all: a list may be empty and reading work.
    pub has_resources: bool,
    /// Prompts.
    pub prompts: Vec<PromptSpec>,
}

pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    log: Arc<ServerLog>,
    /// How it is doing; held to read or to replace.
    state: Mutex<State>,
    /// The task of its life; held to replace it.
    life: Mutex<Option<tokio::task::JoinHandle<()>>>,
    /// Which era it was found to belong to: not known, with a handshake, without one.
    era: AtomicU8,
}

const UNKNOWN_ERA: u8 = 0;
const HANDSHAKE_ERA: u8 = 1;
const STATELESS_ERA: u8 = 2;

struct State {
    status: ServerStatus,
    error: Option<String>,
    /// The connection that can be used.
    connection: Option<Connection>,
    /// The one that is being made or used, so that it can be ended.
    held: Option<Connection>,
    handshake: Option<Handshake>,
    offer: Arc<Offer>,
    /// What it said when it last wanted a login.
    challenge: Option<String>,
}

impl Server {
    pub(crate) fn new(config: ServerConfig, log: ServerLog, status: ServerStatus) -> Self {
        let state = State {
            status,
            error: None,
            connection: None,
            held: None,
            handshake: None,
            offer: Arc::default(),
            challenge: None,
        };
        let era = AtomicU8::new(UNKNOWN_ERA);
        Self { config, log: Arc::new(log), state: Mutex::new(state), life: Mutex::default(), era }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self) -> ServerStatus {
        self.state().status
    }

    pub(crate) fn view(&self) -> ServerView {
        let state = self.state();
        ServerView {
            name: self.config.name.clone(),
            scope: self.config.scope,
            kind: self.config.way.kind(),
            status: state.status,
            error: state.error.clone(),
            handshake: state.handshake.clone(),
            written: self.config.written.clone(),
            always_load: self.config.always_load,
            offer: Arc::clone(&state.offer),
        }
    }

    /// Begins its life, unless it has one.
    pub(crate) fn begin(self: &Arc<Self>, world: &Arc<ServersShared>) {
        let mut life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        if life.is_none() {
            let (server, world) = (Arc::clone(self), Arc::clone(world));
            *life = Some(tokio::spawn(async move { server.live(&world).await }));
        }
    }

    /// Begins its life anew; what it had is ended first.
    pub(crate) async fn start(self: &Arc<Self>, world: &Arc<ServersShared>) {
        self.stop(ServerStatus::Pending).await;
        world.announce();
        self.begin(world);
    }

    /// Ends it.
    pub(crate) async fn stop(&self, status: ServerStatus) {
        let life = self.life.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(life) = life {
            life.abort();
            // It was stopped; there is nothing to know of how it ended.
            drop(life.await);
        }
        let connection = {
            let mut state = self.state();
            state.status = status;
            (state.error, state.handshake) = (None, None);
            state.offer = Arc::default();
            state.connection = None;
            state.held.take()
        };
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    /// Asks what an argument of a prompt could be.
    pub(crate) async fn complete(
        &self,
        prompt: &str,
        argument: (&str, &str),
        others: Map<String, Value>,
    ) -> Result<Vec<String>, CallError> {
        let can_complete = self.state().handshake.as_ref().is_some_and(|it| it.has("completions"));
        match can_complete {
            true => self.connection()?.complete(prompt, argument, others, COMPLETION).await,
            false => Ok(Vec::new()),
        }
    }

    /// Tells it that the directories that are worked in have changed.
    pub(crate) fn tell_roots_changed(&self) {
        if let Some(connection) = &self.state().connection {
            connection.tell_roots_changed();
        }
    }

    /// Calls a tool by the server's own name for it. A session that the server has forgotten is begun anew, once.
    pub(crate) async fn call(
        self: &Arc<Self>,
        world: &Arc<ServersShared>,
        tool: &str,
        arguments: Value,
        meta: Value,
        on_progress: Option<OnProgress>,
    ) -> Result<CallResult, CallError> {
        let limits = self.call_limits(world, on_progress);
        let known = self.tool(tool);
        let connection = self.connection()?;
        let called =
            connection.call(tool, known.as_deref(), arguments.clone(), meta.clone(), limits.clone()).await;
        if !matches!(called, Err(CallError::Transport(TransportError::SessionExpired))) {
            self.note_refusal(world, &called);
            return called;
        }
        self.begin_anew(world).await;
        self.connection()?.call(tool, known.as_deref(), arguments, meta, limits).await
    }

    /// Returns what is known of a tool, by the server's own name for it.
    fn tool(&self, name: &str) -> Option<Arc<ToolSpec>> {
        let offer = Arc::clone(&self.state().offer);
        offer.tools.iter().find(|(_, tool)| tool.name == name).map(|(_, tool)| Arc::clone(tool))
    }

    /// Has lists asked for anew that are not fresh any more.
    pub(crate) fn refresh_stale(&self) {
        let connection = self.state().connection.clone();
        if let Some(connection) = connection {
            connection.refresh_stale();
        }
    }

    pub(crate) async fn read(
        self: &Arc<Self>,
        world: &Arc<ServersShared>,
        uri: &str,
    ) -> Result<Vec<ContentPart>, CallError> {
        let limits = self.call_limits(world, None);
        let read = self.connection()?.read(uri, limits.clone()).await;
        if !matches!(read, Err(CallError::Transport(TransportError::SessionExpired))) {
            self.note_refusal(world, &read);
            return read;
        }
        self.begin_anew(world).await;
        self.connection()?.read(uri, limits).await
    }

    pub(crate) async fn prompt(
        self: &Arc<Self>,
        world: &Arc<ServersShared>,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Vec<(String, ContentPart)>, CallError> {
        self.connection()?.prompt(name, arguments, self.call_limits(world, None)).await
    }

    /// Takes a message that came by another way than the connection's own.
    pub(crate) fn deliver(&self, message: Value) -> Result<(), String> {
        let message = Message::from_value(message)?;
        let held = self.state().held.clone();
        held.ok_or_else(|| format!("The MCP server `{}` is not connected", self.config.name))?.take(message);
        Ok(())
    }

    fn call_limits(&self, world: &ServersShared, on_progress: Option<OnProgress>) -> RequestLimits {
        let limits = &world.world.limits;
        let silence = match self.config.way {
            ServerWay::Stdio { .. } | ServerWay::Sdk => limits.silence.0,
            ServerWay::Remote(_) => limits.silence.1,
        };
        RequestLimits {
            time: Some(self.config.timeout.unwrap_or(limits.call)),
            silence: Some(silence),
            on_progress,
        }
    }

    fn connection(&self) -> Result<Connection, CallError> {
        let state = self.state();
        let why = || match (state.status, &state.error) {
            (_, Some(error)) => error.clone(),
            (status, None) => format!("it is {}", status.name()),
        };
        match &state.connection {
            Some(connection) => Ok(connection.clone()),
            None => Err(CallError::Transport(TransportError::Closed(why()))),
        }
    }

    async fn begin_anew(self: &Arc<Self>, world: &Arc<ServersShared>) {
        self.log.note("the server has forgotten the session; beginning another");
        self.start(world).await;
        let server = Arc::clone(self);
        world.wait_until(world.world.limits.start, move || server.status() != ServerStatus::Pending).await;
    }

    async fn live(self: Arc<Self>, world: &Arc<ServersShared>) {
        let mut is_first = true;
        loop {
            match self.connect_patiently(world, is_first).await {
                Ok((connection, handshake, offer)) => {
                    {
                        let mut state = self.state();
                        (state.status, state.error) = (ServerStatus::Connected, None);
                        state.connection = Some(connection.clone());
                        (state.handshake, state.offer) = (Some(handshake.clone()), Arc::new(offer));
                    }
                    self.review_tools(world).await;
                    world.announce();
                    tokio::select! {
                        () = self.follow(world, &connection) => {}
                        () = connection.keep_listening(&handshake) => {}
                    }
                    let why = connection.closed().unwrap_or_default();
                    connection.close().await;
                    self.lost(world, ServerStatus::Pending, why.clone());
                    if matches!(self.config.way, ServerWay::Stdio { .. } | ServerWay::Sdk) {
                        self.lost(world, ServerStatus::Failed, why.clone());
                        world.notice(format!("MCP server `{}` is gone: {why}", self.config.name));
                        return;
                    }
                    is_first = false;
                }
                Err(error) => return self.fail(world, &error),
            }
        }
    }

    /// Has somebody look at what a server of the project is now, and tells what they find.
    async fn review_tools(&self, world: &ServersShared) {
        let on_connected = world.world.on_connected.clone();
        // Nobody waits for a thread in whose place there is nothing to do.
        let Some(on_connected) = on_connected.filter(|_| self.config.scope == ServerScope::Project) else {
            return;
        };
        let view = self.view();
        // It may read and write files.
        let looked = tokio::task::spawn_blocking(move || on_connected(&view)).await;
        if let Ok(Some(notice)) = looked {
            self.log.note(&notice);
            world.notice(notice);
        }
    }

    fn lost(&self, world: &ServersShared, status: ServerStatus, why: String) {
        {
            let mut state = self.state();
            (state.status, state.error) = (status, Some(why));
            state.connection = None;
            state.offer = Arc::default();
        }
        world.announce();
    }

    /// A server that takes no login of ours any more is of no use before there is another.
    fn note_refusal<T>(&self, world: &ServersShared, done: &Result<T, CallError>) {
        let Err(error) = done else { return };
        if let CallError::Transport(TransportError::Unauthorized { status, challenge }) = error {
            self.state().challenge.clone_from(challenge);
            // What the login allows may still be used when it does not allow this.
            if *status == 401 {
                self.lost(world, ServerStatus::NeedsAuth, error.to_string());
            }
        }
    }

    /// Returns what it said when it last wanted a login.
    pub(crate) fn challenge(&self) -> Option<String> {
        self.state().challenge.clone()
    }

    fn fail(&self, world: &ServersShared, error: &CallError) {
        let status = match error {
            CallError::Transport(TransportError::Unauthorized { challenge, .. }) => {
                self.state().challenge.clone_from(challenge);
                ServerStatus::NeedsAuth
            }
            _ => ServerStatus::Failed,
        };
        self.log.note(&format!("not connected: {error}"));
        self.lost(world, status, error.to_string());
    }

    /// Connects; what may pass is tried again.
    async fn connect_patiently(
        &self,
        world: &Arc<ServersShared>,
        is_first: bool,
    ) -> Result<(Connection, Handshake, Offer), CallError> {
        let (tries, mut pause) = match is_first {
            true => (FIRST_TRIES, FIRST_PAUSE),
            false => (AGAIN_TRIES, AGAIN_PAUSE),
        };
        let mut tried = 0;
        loop {
            if !is_first {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            tried += 1;
            match self.connect(world).await {
                // A program that was written for the handshake may not have survived another beginning.
                Err(CallError::Transport(TransportError::Closed(why))) if self.may_want_handshake(world) => {
                    self.log.note(&format!("did not take the newest revision, trying the handshake: {why}"));
                    self.era.store(HANDSHAKE_ERA, Ordering::Relaxed);
                }
                Err(CallError::Transport(error))
                    if tried < tries
                        && error.is_transient()
                        && !matches!(self.config.way, ServerWay::Stdio { .. }) =>
                {
                    self.log.note(&format!("could not connect, trying again: {error}"));
                    if is_first {
                        tokio::time::sleep(pause).await;
                        pause *= 2;
                    }
                }
                done => return done,
            }
        }
    }

    /// Opens a connection and asks what the server has.
    async fn connect(&self, world: &Arc<ServersShared>) -> Result<(Connection, Handshake, Offer), CallError> {
        let starts: &Semaphore = match self.config.way {
            ServerWay::Remote(_) => &world.remote_starts,
            ServerWay::Stdio { .. } | ServerWay::Sdk => &world.local_starts,
        };
        // It is never closed.
        let _permit = starts.acquire().await.ok();
        let limit = world.world.limits.start;
        let work = async {
            let connection = open(&self.config, world, &self.log)?;
            self.state().held = Some(connection.clone());
            let greeted = async {
                let beginning = self.beginning(world.world.limits.negotiation);
                let handshake = connection.greet(&world.world.greeting, beginning, limit).await?;
                let era = if is_stateless(&handshake.protocol) { STATELESS_ERA } else { HANDSHAKE_ERA };
                self.era.store(era, Ordering::Relaxed);
                let offer = self.discover(world, &connection, &handshake).await?;
                Ok((handshake, offer))
            };
            match greeted.await {
                Ok((handshake, offer)) => Ok((connection, handshake, offer)),
                // Why it ended says more than that it did not answer.
                Err(
                    error @ (CallError::TimedOut(_)
                    | CallError::Silent(_)
                    | CallError::Transport(TransportError::Closed(_))),
                ) => Err(connection
                    .closed()
                    .map_or(error, |why| CallError::Transport(TransportError::Closed(why)))),
                Err(error) => Err(error),
            }
        };
        let done = tokio::time::timeout(limit, work).await.unwrap_or(Err(CallError::TimedOut(limit)));
        if done.is_err() {
            let held = self.state().held.take();
            if let Some(connection) = held {
                connection.close().await;
            }
        }
        done
    }

    /// Says how to begin with it: as was found out the last time, or as its kind wants it.
    fn beginning(&self, negotiation: Negotiation) -> Beginning {
        let can_discover = match &self.config.way {
            ServerWay::Remote(RemoteServer { kind: RemoteKind::Http, .. }) => {
                negotiation != Negotiation::Legacy
            }
            ServerWay::Stdio { .. } => negotiation == Negotiation::Auto,
            ServerWay::Remote(_) | ServerWay::Sdk => false,
        };
        match self.era.load(Ordering::Relaxed) {
            STATELESS_ERA => Beginning::Discovery,
            UNKNOWN_ERA if can_discover => Beginning::Discovery,
            _ => Beginning::Handshake,
        }
    }

    fn may_want_handshake(&self, world: &ServersShared) -> bool {
        matches!(self.config.way, ServerWay::Stdio { .. })
            && self.era.load(Ordering::Relaxed) == UNKNOWN_ERA
            && self.beginning(world.world.limits.negotiation) == Beginning::Discovery
    }
}
