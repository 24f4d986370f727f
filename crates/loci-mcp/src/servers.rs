//! All servers of a run: started beside each other, looked at as a whole, used by name.
//!
//! [`Servers`] outlives a conversation: one that is cleared finds them as they are. Whoever wants to know what changes
//! waits for [`Servers::changed`]; changes are counted, not queued. Nothing is made, read or started for a run that has
//! no servers: there is no `Servers` then.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use loci_stdx::Clock;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, watch};

use crate::auth::Logins;
use crate::config::{Plan, ServerConfig, ServerPolicy, ServerScope, Standing, ToolPolicy, client_server};
use crate::connection::{
    CallError, ClientSide, ElicitFuture, Elicitation, ElicitationAnswer, Greeting, OnProgress, SampleFuture,
};
use crate::content::{CallResult, ContentPart};
use crate::limits::Limits;
use crate::log::ServerLog;
use crate::names::server_part;
use crate::program_watch::ProgramWatch;
use crate::sandboxed_program::SandboxMaker;
use crate::server::{Server, ServerStatus, ServerView};
use crate::server_logins::WaitingLogin;
use crate::transport::bridge::Bridge;
use crate::transport::web::HttpClients;

/// The most notices that wait to be told.
const MOST_NOTICES: usize = 50;

/// What servers are started in.
pub struct ServerWorld {
    /// Where programs run.
    pub cwd: PathBuf,
    /// The project, as programs are told.
    pub project: PathBuf,
    /// The session, as programs are told.
    pub session: String,
    /// The environment of programs, without secrets of ours.
    pub child_env: Vec<(String, String)>,
    /// What servers may take.
    pub limits: Limits,
    /// Where logs are kept.
    pub log_dir: PathBuf,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// Our version, as servers are told.
    pub version: String,
    /// The way to servers inside the client.
    pub bridge: Option<Arc<dyn Bridge>>,
    /// Makes HTTP clients, when one is needed.
    pub clients: HttpClients,
    /// What logins need; without it there are none.
    pub logins: Option<Arc<Logins>>,
    /// Ends programs should we be killed.
    pub program_watch: Option<Arc<dyn ProgramWatch>>,
    /// Makes the sandboxes that programs ask for.
    pub sandbox_maker: Option<SandboxMaker>,
    /// Servers that the user lets ask the model.
    pub sampling: Vec<String>,
    /// Looks at servers that have told what they have.
    pub on_connected: Option<OnConnected>,
    /// Where commands of the user's own entries run.
    pub config_dir: PathBuf,
    /// Whether the user trusts this very folder, so that commands of entries for it may run.
    pub may_run_helpers: bool,
}

/// Looks at a server of the project that has told what it has, and returns what people should know. It may read and write files.
pub type OnConnected = Arc<dyn Fn(&ServerView) -> Option<String> + Send + Sync>;

/// The servers of a run. Copies are the same ones.
#[derive(Clone)]
pub struct Servers {
    pub(crate) shared: Arc<ServersShared>,
}

pub(crate) struct ServersShared {
    pub(crate) world: World,
    /// Those that are known, in the order of their names; held to look one up, or to change which there are.
    servers: Mutex<Vec<Arc<Server>>>,
    /// Who answers what servers ask; held to copy or to replace it.
    client: Mutex<Arc<dyn ClientSide>>,
    /// Counts changes.
    changed: watch::Sender<u64>,
    /// What people should know; held to add or to take.
    notices: Mutex<Vec<String>>,
    /// What an administrator lets be used.
    policy: ServerPolicy,
    /// Whether the administrator's servers are all there is.
    is_managed: bool,
    /// Logins that wait for a person, by server; held to add or to take one.
    pub(crate) waiting_logins: Mutex<HashMap<String, WaitingLogin>>,
    pub(crate) local_starts: Semaphore,
    pub(crate) remote_starts: Semaphore,
}

/// What servers are started in, with what we say of ourselves.
pub(crate) struct World {
    pub(crate) cwd: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) session: String,
    pub(crate) child_env: Vec<(String, String)>,
    pub(crate) limits: Limits,
    pub(crate) greeting: Greeting,
    pub(crate) bridge: Option<Arc<dyn Bridge>>,
    pub(crate) clients: HttpClients,
    pub(crate) logins: Option<Arc<Logins>>,
    pub(crate) program_watch: Option<Arc<dyn ProgramWatch>>,
    pub(crate) sandbox_maker: Option<SandboxMaker>,
    pub(crate) sampling: Vec<String>,
    pub(crate) on_connected: Option<OnConnected>,
    pub(crate) config_dir: PathBuf,
    pub(crate) may_run_helpers: bool,
    pub(crate) clock: Arc<dyn Clock>,
    log_dir: PathBuf,
}

/// Answers for nobody.
struct NoClient(PathBuf);

impl ClientSide for NoClient {
    fn roots(&self) -> Vec<PathBuf> {
        vec![self.0.clone()]
    }

    fn elicit(&self, _elicitation: Elicitation) -> ElicitFuture {
        Box::pin(async { ElicitationAnswer::Cancel })
    }
}

/// Has whoever is there at the time answer: a session that takes another's place takes its questions, too.
struct CurrentClient(Weak<ServersShared>);

impl CurrentClient {
    fn get(&self) -> Option<Arc<dyn ClientSide>> {
        let shared = self.0.upgrade()?;
        let client = shared.client.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&client))
    }
}

impl ClientSide for CurrentClient {
    fn roots(&self) -> Vec<PathBuf> {
        self.get().map(|client| client.roots()).unwrap_or_default()
    }

    fn elicit(&self, elicitation: Elicitation) -> ElicitFuture {
        match self.get() {
            Some(client) => client.elicit(elicitation),
            None => Box::pin(async { ElicitationAnswer::Cancel }),
        }
    }

    fn sample(&self, server: &str, params: Value) -> SampleFuture {
        match self.get() {
            Some(client) => client.sample(server, params),
            None => Box::pin(async { Err("the session is over".to_owned()) }),
        }
    }

    fn elicitation_completed(&self, server: &str, id: &str) {
        if let Some(client) = self.get() {
            client.elicitation_completed(server, id);
        }
    }
}

/// What came of another set of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerSetChange {
    /// Servers that are new.
    pub added: Vec<String>,
    /// Servers that are gone.
    pub removed: Vec<String>,
    /// Servers that could not be added, and why.
    pub errors: Vec<(String, String)>,
}

impl Servers {
    /// Makes the servers of a plan; none is started before [`Servers::start`].
    pub fn new(plan: &Plan, world: ServerWorld) -> Self {
        let ServerWorld {
            cwd,
            project,
            session,
            child_env,
            limits,
            log_dir,
            clock,
            version,
            bridge,
            clients,
            logins,
            program_watch,
            sandbox_maker,
            sampling,
            on_connected,
            config_dir,
            may_run_helpers,
        } = world;
        let greeting = Greeting { name: "loci".to_owned(), title: "loci".to_owned(), version };
        let shared = ServersShared {
            client: Mutex::new(Arc::new(NoClient(cwd.clone()))),
            local_starts: Semaphore::new(limits.local_starts),
            remote_starts: Semaphore::new(limits.remote_starts),
            world: World {
                cwd,
                project,
                session,
                child_env,
                limits,
                greeting,
                bridge,
                clients,
                logins,
                program_watch,
                sandbox_maker,
                sampling,
                on_connected,
                config_dir,
                may_run_helpers,
                clock,
                log_dir,
            },
            servers: Mutex::default(),
            changed: watch::Sender::new(0),
            notices: Mutex::default(),
            policy: plan.policy.clone(),
            is_managed: plan.is_managed,
            waiting_logins: Mutex::default(),
        };
        let servers = Self { shared: Arc::new(shared) };
        for planned in &plan.servers {
            let status = match planned.standing {
                Standing::Used => ServerStatus::Pending,
                Standing::Disabled | Standing::Rejected | Standing::NeedsApproval => ServerStatus::Disabled,
            };
            servers.shared.add(planned.config.clone(), status);
        }
        servers
    }

    /// Starts all that are to be used and have not been started, beside each other, and does not wait for them.
    pub fn start(&self) {
        for server in self.shared.all().iter().filter(|it| it.status() == ServerStatus::Pending) {
            server.begin(&self.shared);
        }
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shared.servers().is_empty()
    }

    /// Has somebody else answer what servers ask.
    pub fn set_client(&self, client: Arc<dyn ClientSide>) {
        *self.shared.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    /// What servers may take.
    pub fn limits(&self) -> &Limits {
        &self.shared.world.limits
    }

    /// Returns how all servers are doing, by name.
    pub fn views(&self) -> Vec<ServerView> {
        self.shared.all().iter().map(|server| server.view()).collect()
    }

    /// Returns how one is doing.
    pub fn view(&self, name: &str) -> Option<ServerView> {
        self.shared.find(name).map(|server| server.view())
    }

    /// Returns what changes, to wait for: the number grows with each change.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Returns what people should know and have not been told.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the servers that the first request should have, and no longer than they may take: those of this run and
    /// those that are always loaded as long as a start may take, the others for a shorter while.
    pub async fn wait_for_first_request(&self) {
        let limits = &self.shared.world.limits;
        let is_awaited =
            |server: &Server| server.config.scope == ServerScope::Dynamic || server.config.always_load;
        let all = self.shared.all();
        let (awaited, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|server| is_awaited(server));
        let are_ready = |servers: Vec<Arc<Server>>| {
            move || servers.iter().all(|server| server.status() != ServerStatus::Pending)
        };
        let others_limit = if limits.is_nonblocking { Duration::ZERO } else { limits.first_request };
        tokio::join!(
            self.shared.wait_until(limits.start, are_ready(awaited)),
            self.shared.wait_until(others_limit, are_ready(others)),
        );
    }

    /// Has lists asked for anew that servers do not call fresh any more; what comes of it is a change like any other.
    pub fn refresh_stale(&self) {
        for server in self.shared.all() {
            server.refresh_stale();
        }
    }

    /// Waits until the named servers, or all, are no longer pending, or the time is over.
    pub async fn wait(&self, names: &[String], limit: Duration) {
        let servers = self.shared.all();
        let wanted: Vec<_> =
            servers.into_iter().filter(|it| names.is_empty() || names.contains(&it.config.name)).collect();
        let are_ready = move || wanted.iter().all(|server| server.status() != ServerStatus::Pending);
        self.shared.wait_until(limit, are_ready).await;
    }

    /// Calls a tool of a server, by the server's own name for it. Dropping the future cancels the call.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Value,
        meta: Value,
        on_progress: Option<OnProgress>,
    ) -> Result<CallResult, CallError> {
        self.shared.known(server)?.call(&self.shared, tool, arguments, meta, on_progress).await
    }

    /// Reads a resource of a server.
    pub async fn read(&self, server: &str, uri: &str) -> Result<Vec<ContentPart>, CallError> {
        self.shared.known(server)?.read(&self.shared, uri).await
    }

    /// Has a prompt of a server filled in; returns roles and parts.
    pub async fn prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: Map<String, Value>,
    ) -> Result<Vec<(String, ContentPart)>, CallError> {
        self.shared.known(server)?.prompt(&self.shared, prompt, arguments).await
    }

    /// Asks what an argument of a prompt could be; nothing where the server does not say.
    pub async fn complete(
        &self,
        server: &str,
        prompt: &str,
        argument: (&str, &str),
        others: Map<String, Value>,
    ) -> Result<Vec<String>, CallError> {
        self.shared.known(server)?.complete(prompt, argument, others).await
    }

    /// Tells servers that the directories that are worked in have changed.
    pub fn tell_roots_changed(&self) {
        for server in self.shared.all() {
            server.tell_roots_changed();
        }
    }

    /// Connects to a server anew and waits for it; the error says why it cannot be used.
    pub async fn reconnect(&self, name: &str) -> Result<(), String> {
        let server = self.shared.find(name).ok_or_else(|| unknown(name))?;
        if server.status() == ServerStatus::Disabled {
            return Err(format!("The MCP server `{name}` is switched off"));
        }
        server.start(&self.shared).await;
        self.settled(&server).await
    }

    /// Switches a server on or off; the error says that there is none, or why it cannot be used.
    pub async fn toggle(&self, name: &str, is_on: bool) -> Result<(), String> {
        let server = self.shared.find(name).ok_or_else(|| unknown(name))?;
        match (is_on, server.status()) {
            (false, _) => {
                server.stop(ServerStatus::Disabled).await;
                self.shared.announce();
                Ok(())
            }
            (true, ServerStatus::Disabled) => {
                server.start(&self.shared).await;
                self.settled(&server).await
            }
            (true, _) => Ok(()),
        }
    }

    /// Puts another set in the place of the servers that the client asked for; the others stay.
    pub async fn set_dynamic(&self, wanted: Vec<ServerConfig>) -> ServerSetChange {
        let mut change = ServerSetChange::default();
        let current: Vec<_> =
            self.shared.all().into_iter().filter(|it| it.config.scope == ServerScope::Dynamic).collect();
        for server in current {
            if wanted.iter().any(|it| it.name == server.config.name && it.written == server.config.written) {
                continue;
            }
            self.shared.remove(&server.config.name);
            server.stop(ServerStatus::Disabled).await;
            change.removed.push(server.config.name.clone());
        }
        let mut started = Vec::new();
        for config in wanted {
            if let Some(why) = self.shared.refusal(&config) {
                change.errors.push((config.name, why));
                continue;
            }
            match self.shared.conflict(&config.name) {
                Some(other) if other == config.name && self.is_dynamic(&other) => {}
                Some(other) => {
                    change.errors.push((config.name, format!("There is a server `{other}` already")));
                }
                None => {
                    change.added.push(config.name.clone());
                    let server = self.shared.add(config, ServerStatus::Pending);
                    server.start(&self.shared).await;
                    started.push(server);
                }
            }
        }
        self.shared.announce();
        for server in started {
            if let Err(problem) = self.settled(&server).await {
                change.errors.push((server.config.name.clone(), problem));
            }
        }
        change
    }

    /// Takes a message of a server that lives in the client; the error says why not.
    pub fn deliver(&self, server: &str, message: Value) -> Result<(), String> {
        self.shared.find(server).ok_or_else(|| unknown(server))?.deliver(message)
    }

    /// Adds servers that live in the client, with what it says of them; those of this run that are known stay as they are,
    /// and one of a file gives way. What an administrator does not let be used is told and left out.
    pub async fn add_sdk(&self, names: &[String], settings: &Map<String, Value>) {
        for name in names {
            let config = client_server(name, settings.get(name));
            if let Some(why) = self.shared.refusal(&config) {
                self.shared.notice(format!("MCP server `{}`: {why}", crate::names::brief(name)));
                continue;
            }
            match self.shared.conflict(name) {
                Some(other) if self.is_dynamic(&other) => {}
                other => {
                    if let Some(server) = other.and_then(|other| self.shared.find(&other)) {
                        self.shared.remove(&server.config.name);
                        server.stop(ServerStatus::Disabled).await;
                        self.shared.notice(format!(
                            "The MCP server `{}` of the client takes the place of that in {}",
                            crate::names::brief(name),
                            server.config.source
                        ));
                    }
                    self.shared.add(config, ServerStatus::Pending);
                }
            }
        }
    }

    /// Returns what becomes of the calls of a server's tool, by the server's own name for it, where anything was said.
    pub fn tool_policy(&self, server: &str, tool: &str) -> Option<ToolPolicy> {
        self.shared.find(server)?.config.tool_policies.of(tool)
    }

    /// Ends all servers, and waits for that.
    pub async fn shutdown(&self) {
        let endings = self.shared.all().into_iter().map(|server| async move {
            server.stop(ServerStatus::Disabled).await;
        });
        futures_util::future::join_all(endings).await;
    }

    fn is_dynamic(&self, name: &str) -> bool {
        self.shared.find(name).is_some_and(|server| server.config.scope == ServerScope::Dynamic)
    }

    /// Waits until a server that was started has come to something.
    async fn settled(&self, server: &Arc<Server>) -> Result<(), String> {
        let watched = Arc::clone(server);
        let is_ready = move || watched.status() != ServerStatus::Pending;
        self.shared.wait_until(self.shared.world.limits.start, is_ready).await;
        let view = server.view();
        match view.status {
            ServerStatus::Connected => Ok(()),
            status => Err(view.error.unwrap_or_else(|| format!("it is {}", status.name()))),
        }
    }
}

pub(crate) fn unknown(name: &str) -> String {
    format!("There is no MCP server `{}`", crate::names::brief(name))
}

impl ServersShared {
    fn servers(&self) -> MutexGuard<'_, Vec<Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<Server>> {
        self.servers().clone()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Server>> {
        self.servers().iter().find(|server| server.config.name == name).map(Arc::clone)
    }

    fn known(&self, name: &str) -> Result<Arc<Server>, CallError> {
        let closed = |why| CallError::Transport(crate::transport::TransportError::Closed(why));
        self.find(name).ok_or_else(|| closed(unknown(name)))
    }

    /// Returns the server whose name is the same to the model.
    fn conflict(&self, name: &str) -> Option<String> {
        let part = server_part(name);
        let servers = self.servers();
        servers.iter().find(|it| server_part(&it.config.name) == part).map(|it| it.config.name.clone())
    }

    /// Returns why a server that comes later may not be used, if it may not.
    fn refusal(&self, config: &ServerConfig) -> Option<String> {
        match self.is_managed {
            true => Some("the administrator's servers are all there is (`managed-mcp.json`)".to_owned()),
            false => self.policy.refusal(config).map(str::to_owned),
        }
    }

    fn add(&self, config: ServerConfig, status: ServerStatus) -> Arc<Server> {
        let log = ServerLog::new(&self.world.log_dir, &config.name, Arc::clone(&self.world.clock));
        let server = Arc::new(Server::new(config, log, status));
        let mut servers = self.servers();
        servers.push(Arc::clone(&server));
        servers.sort_by(|a, b| a.config.name.cmp(&b.config.name));
        server
    }

    fn remove(&self, name: &str) {
        self.servers().retain(|server| server.config.name != name);
    }

    /// Returns whoever answers at the moment that a server asks.
    pub(crate) fn client_side(self: &Arc<Self>) -> Arc<dyn ClientSide> {
        Arc::new(CurrentClient(Arc::downgrade(self)))
    }

    pub(crate) fn announce(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    pub(crate) fn notice(&self, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < MOST_NOTICES {
            notices.push(text);
        }
        drop(notices);
        self.announce();
    }

    /// Waits until something is so, as far as changes of servers make it so, or the time is over.
    pub(crate) async fn wait_until(&self, limit: Duration, is_so: impl Fn() -> bool) {
        let mut changes = self.changed.subscribe();
        let waiting = async {
            while !is_so() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        drop(tokio::time::timeout(limit, waiting).await);
    }
}
