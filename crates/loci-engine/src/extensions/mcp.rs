//! MCP servers in a session: their tools join the tail of the toolbox, their prompts the commands, what they say of
//! themselves the opening; what they ask goes to hooks and to the client.
//!
//! A session holds an [`McpLink`], which compares how servers are doing with what was offered the last time and says what
//! is to change. It looks before each turn, and when servers change during one; the first turn waits for servers, as long
//! as [`loci_mcp::Limits`] say. A tool whose definition changes keeps the one that it was offered with: the request's
//! beginning is cached, and what was approved must not become something else; the user is told.

mod client_side;
mod outcome;
mod prompts;
mod requests;
mod resource_tools;
mod sampling;
mod status;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};

use loci_context::ServerInstructions;
use loci_core::agent::{AgentDefinition, ToolAccess};
use loci_core::app_state::AppState;
use loci_mcp::config::ConfigProblem;
use loci_mcp::{ServerStatus, ServerView, Servers, ToolSpec};
use loci_stdx::{Store, Subscription};
use loci_tools::{InputCheck, Tool};
use serde_json::Value;
use tokio::sync::watch;

use crate::agents::server_prefixes;
use crate::command::ToolChanges;
use crate::conversation::SessionContext;
use crate::event::ToolServer;
use crate::extensions::slash_command::SlashCommand;
use crate::extensions::{HookFuture, McpToolCaller};
use crate::session::client_request::ClientRequests;
pub use client_side::ClientBridge;
use client_side::SessionClient;
pub use prompts::complete_prompt;
pub(crate) use prompts::{Mention, PromptCall, mentions};
use resource_tools::{LIST_RESOURCES, READ_RESOURCE, SharedTool, WAIT_FOR_SERVERS, is_starting};
pub use status::{McpServerError, McpServerState};
use tool::McpTool;

/// Tools by the names that the model knows them by, with their servers.
type NamedTools<'v> = BTreeMap<&'v str, (&'v ServerView, &'v Arc<ToolSpec>)>;

/// Returns the tools that servers offer; of two that would have one name, that of the user's own server before one that others
/// wrote down, and then of the strongest scope. What is left out is returned with what has its name.
fn tools_by_name(views: &[ServerView]) -> (NamedTools<'_>, Vec<(&ServerView, &ServerView, &str)>) {
    let mut by_rank: Vec<&ServerView> = views.iter().collect();
    by_rank.sort_by_key(|view| (view.scope.is_foreign(), std::cmp::Reverse(view.scope)));
    let (mut named, mut left_out) = (NamedTools::new(), Vec::new());
    for view in by_rank {
        for (name, spec) in &view.offer.tools {
            let (kept, _) = *named.entry(name.as_str()).or_insert((view, spec));
            if kept.name != view.name {
                left_out.push((view, kept, name.as_str()));
            }
        }
    }
    (named, left_out)
}

/// What a session is given of servers.
#[derive(Clone)]
pub struct McpConfig {
    /// The servers; they outlive the session.
    pub servers: Servers,
    /// What is wrong with how they are configured.
    pub problems: Arc<[ConfigProblem]>,
}

impl McpConfig {
    pub(crate) fn states(&self) -> Vec<McpServerState> {
        status::states(&self.servers)
    }

    pub(crate) fn errors(&self) -> Vec<McpServerError> {
        self.problems.iter().map(status::config_error).collect()
    }

    /// Returns the server of a tool, by the name that the model knows it by.
    pub(crate) fn tool_server(&self, tool: &str) -> Option<ToolServer> {
        // What is no tool of a server needs no look at them.
        if !tool.starts_with("mcp__") {
            return None;
        }
        let views = self.servers.views();
        let (view, _) = tools_by_name(&views).0.remove(tool)?;
        Some(ToolServer { name: view.name.clone(), source: status::source(view).into() })
    }

    /// Returns what calls tools for hooks.
    pub(crate) fn tool_caller(&self) -> Arc<dyn McpToolCaller> {
        Arc::new(HookToolCaller(self.servers.clone()))
    }
}

/// Calls tools for hooks.
struct HookToolCaller(Servers);

impl McpToolCaller for HookToolCaller {
    fn server_source(&self, server: &str) -> Option<&'static str> {
        self.0.view(server).as_ref().map(status::source)
    }

    fn call_tool(&self, server: &str, tool: &str, input: Value) -> HookFuture<Result<String, String>> {
        let (servers, server, tool) = (self.0.clone(), server.to_owned(), tool.to_owned());
        Box::pin(async move {
            match servers.call(&server, &tool, input, Value::Null, None).await {
                Ok(result) if result.is_error => Err(result.text()),
                Ok(result) => Ok(result.text()),
                Err(error) => Err(format!("the MCP server `{server}` failed: {error}")),
            }
        })
    }
}

/// Has what servers ask be answered by a session.
pub(crate) fn answer_for_session(
    servers: &Servers,
    ctx: &Arc<SessionContext>,
    client_requests: ClientRequests,
    max_budget: Option<f64>,
) {
    let ctx = Arc::downgrade(ctx);
    let n_samples = AtomicU32::new(0);
    let open_pages = Arc::default();
    servers.set_client(Arc::new(SessionClient { ctx, client_requests, max_budget, n_samples, open_pages }));
}

/// Returns the tools that a server offers by now.
pub(crate) fn server_tools(servers: &Servers, view: &ServerView) -> Vec<Arc<dyn Tool>> {
    let tool = |(name, spec): &(String, Arc<ToolSpec>)| -> Arc<dyn Tool> {
        // What an agent calls, it waits for.
        Arc::new(McpTool::new(servers, view, name, spec, false))
    };
    view.offer.tools.iter().map(tool).collect()
}

/// What is to change since the last look.
#[derive(Default)]
pub(crate) struct ServerSync {
    pub(crate) tools: Option<ToolChanges>,
    /// All commands that are prompts of servers, where they are others than before.
    pub(crate) commands: Option<Vec<SlashCommand>>,
    pub(crate) instructions: Vec<ServerInstructions>,
    pub(crate) notices: Vec<String>,
}

/// A session's hold on the servers.
pub(crate) struct McpLink {
    servers: Servers,
    changed: watch::Receiver<u64>,
    /// Tools that are offered, by name, as they were when they were offered.
    offered: BTreeMap<String, Arc<ToolSpec>>,
    /// Shared tools that are offered.
    shared: BTreeSet<&'static str>,
    /// Prompts that are commands, with their servers.
    commands: Vec<(String, SlashCommand)>,
    /// What people were told of servers that cannot be used.
    told: BTreeMap<String, String>,
    /// Tools whose definition was told to have changed.
    told_changed: BTreeSet<String>,
    has_waited: bool,
    /// Whether somebody sits at a terminal.
    is_interactive: bool,
    /// The agent that the main conversation runs as, which may not have all tools.
    main: Option<Arc<AgentDefinition>>,
    /// Has servers told when directories are added.
    _roots: Subscription,
}

/// Has servers told when the directories that are worked in change.
fn follow_roots(servers: &Servers, state: &Store<AppState>) -> Subscription {
    let known = Mutex::new(state.get().permission.rulebook.dirs.clone());
    let servers = servers.clone();
    state.subscribe(move |state| {
        let dirs = &state.permission.rulebook.dirs;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != *dirs {
            known.clone_from(dirs);
            drop(known);
            servers.tell_roots_changed();
        }
    })
}

impl McpLink {
    /// Takes hold of servers; what they ask is answered for this session from now on.
    pub(crate) fn new(
        config: &McpConfig,
        ctx: &Arc<SessionContext>,
        client_requests: ClientRequests,
        main: Option<Arc<AgentDefinition>>,
        max_budget: Option<f64>,
    ) -> Self {
        answer_for_session(&config.servers, ctx, client_requests, max_budget);
        let is_interactive = ctx.identity.get().is_interactive();
        // Their schemas will be compiled; what that needs is read while they start.
        if let (false, Ok(runtime)) = (config.servers.is_empty(), tokio::runtime::Handle::try_current()) {
            drop(runtime.spawn_blocking(InputCheck::warm_up));
        }
        Self {
            _roots: follow_roots(&config.servers, &ctx.state),
            main,
            servers: config.servers.clone(),
            changed: config.servers.changed(),
            offered: BTreeMap::new(),
            shared: BTreeSet::new(),
            commands: Vec::new(),
            told: BTreeMap::new(),
            told_changed: BTreeSet::new(),
            // Whoever sits at a terminal never waits for a server; what comes later joins the tail.
            has_waited: is_interactive,
            is_interactive,
        }
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Tells whether the first turn has not waited yet.
    pub(crate) fn is_to_wait(&mut self) -> bool {
        !std::mem::replace(&mut self.has_waited, true)
    }

    /// Compares how servers are doing with what was offered.
    pub(crate) fn sync(&mut self) -> ServerSync {
        self.changed.mark_unchanged();
        let views = self.servers.views();
        let mut sync = ServerSync { notices: self.servers.take_notices(), ..ServerSync::default() };
        self.sync_tools(&views, &mut sync);
        self.sync_failures(&views, &mut sync);
        sync.commands = self.sync_commands(&views);
        let said = views.iter().filter_map(|view| {
            let text = view.handshake.as_ref()?.instructions.clone()?;
            (view.status == ServerStatus::Connected)
                .then(|| ServerInstructions { server: view.name.clone(), text })
        });
        sync.instructions = said.collect();
        sync
    }

    /// Returns the commands that prompts of servers are, where they are others than before. Those of a server that may come
    /// back stay: whoever uses one is told that it is gone, and does not send its name to the model.
    fn sync_commands(&mut self, views: &[ServerView]) -> Option<Vec<SlashCommand>> {
        let mut now = Vec::new();
        for view in views {
            match view.status {
                ServerStatus::Connected => now.extend(
                    view.offer.prompts.iter().map(|it| (view.name.clone(), prompts::command(view, it))),
                ),
                ServerStatus::Pending | ServerStatus::Failed | ServerStatus::NeedsAuth => {
                    now.extend(self.commands.iter().filter(|(server, _)| *server == view.name).cloned());
                }
                ServerStatus::Disabled => {}
            }
        }
        if now == self.commands {
            return None;
        }
        self.commands = now;
        Some(self.commands.iter().map(|(_, command)| command.clone()).collect())
    }

    fn sync_tools(&mut self, views: &[ServerView], sync: &mut ServerSync) {
        let mut changes = ToolChanges::default();
        let main = self.main.clone();
        let access = main.as_ref().map(|agent| ToolAccess::main(agent).with_servers(server_prefixes(agent)));
        let is_for_agent = |name: &str| access.as_ref().is_none_or(|access| access.has(name));
        let (mut now, left_out) = tools_by_name(views);
        now.retain(|name, _| is_for_agent(name));
        for (server, kept, name) in left_out {
            if self.told_changed.insert(name.to_owned()) {
                sync.notices.push(format!(
                    "The tool `{name}` of the MCP server `{}` is not offered: `{}` has one of that name",
                    server.name, kept.name
                ));
            }
        }
        let gone: Vec<String> =
            self.offered.keys().filter(|name| !now.contains_key(name.as_str())).cloned().collect();
        for name in gone {
            self.offered.remove(&name);
            changes.removed.push(name);
        }
        for (name, (server, spec)) in now {
            match self.offered.get(name) {
                None => {
                    self.offered.insert(name.to_owned(), Arc::clone(spec));
                    let tool = McpTool::new(&self.servers, server, name, spec, self.is_interactive);
                    changes.added.push(Arc::new(tool));
                }
                Some(before) if before != spec && self.told_changed.insert(name.to_owned()) => {
                    sync.notices.push(format!(
                        "The MCP server `{}` has changed its tool `{name}`; this conversation keeps what it was told of it. \
                         Begin a new one to use what it is now",
                        server.name
                    ));
                }
                Some(_) => {}
            }
        }
        self.sync_shared(views, &mut changes);
        if !changes.added.is_empty() || !changes.removed.is_empty() {
            sync.tools = Some(changes);
        }
    }

    /// Offers the shared tools while there is a use for them.
    fn sync_shared(&mut self, views: &[ServerView], changes: &mut ToolChanges) {
        let has_resources = views.iter().any(|view| view.offer.has_resources);
        for (name, is_wanted) in [
            (LIST_RESOURCES, has_resources),
            (READ_RESOURCE, has_resources),
            (WAIT_FOR_SERVERS, is_starting(&self.servers)),
        ] {
            if is_wanted && self.shared.insert(name) {
                changes.added.push(match name {
                    LIST_RESOURCES => Arc::new(SharedTool::list(&self.servers)) as Arc<dyn Tool>,
                    READ_RESOURCE => Arc::new(SharedTool::read(&self.servers)),
                    _ => Arc::new(SharedTool::wait(&self.servers)),
                });
            } else if !is_wanted && self.shared.remove(name) {
                changes.removed.push(name.to_owned());
            }
        }
    }

    /// Says once why a server cannot be used.
    fn sync_failures(&mut self, views: &[ServerView], sync: &mut ServerSync) {
        for view in views {
            let (name, error) = (&view.name, view.error.as_deref().unwrap_or_default());
            let text = match view.status {
                ServerStatus::Failed => format!("The MCP server `{name}` cannot be used: {error}"),
                ServerStatus::NeedsAuth => {
                    let here = if self.is_interactive { "/mcp, or with " } else { "" };
                    format!(
                        "The MCP server `{name}` cannot be used before you log in with {here}`loci mcp login {name}`: \
                         {error}"
                    )
                }
                ServerStatus::Pending | ServerStatus::Connected | ServerStatus::Disabled => continue,
            };
            if self.told.insert(name.clone(), text.clone()).as_ref() != Some(&text) {
                sync.notices.push(text);
            }
        }
        sync.notices.sort();
        sync.notices.dedup();
    }
}

/// Ends when servers have changed since the last look; never, without any.
pub(crate) async fn servers_changed(link: &mut Option<McpLink>) {
    let Some(link) = link else { return std::future::pending().await };
    if link.changed.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
