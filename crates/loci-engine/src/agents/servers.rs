//! MCP servers that a definition brings along: those it names are the session's, those it defines itself are started for
//! the agent and end with it.

use std::path::Path;
use std::sync::Arc;

use loci_core::agent::AgentDefinition;
use loci_mcp::{ServerStatus, ServerView, Servers, server_part};
use loci_tools::Tool;
use tokio_util::sync::CancellationToken;

use super::AgentService;
use super::plan::AgentPlan;
use crate::extensions::mcp::{answer_for_session, server_tools};

/// Makes the servers that a definition has of its own, for an agent that works in a directory.
pub type AgentServersMaker = Arc<dyn Fn(&AgentDefinition, &Path) -> MadeServers + Send + Sync>;

/// Servers of an agent, none of them started, and why others are missing.
#[derive(Default)]
pub struct MadeServers {
    /// The servers; none where there is nothing to start.
    pub servers: Option<Servers>,
    /// What people should know.
    pub problems: Vec<String>,
}

/// The servers of an agent that works.
#[derive(Default)]
pub(super) struct AgentServers {
    own: Option<Servers>,
    /// Tools of its own servers and of those that it names.
    pub(super) tools: Vec<Arc<dyn Tool>>,
}

impl AgentServers {
    /// Ends what was started for the agent.
    pub(super) async fn end(self) {
        if let Some(own) = self.own {
            own.shutdown().await;
        }
    }
}

/// Returns what the names of tools begin with that are of servers which a definition brings along.
pub(crate) fn server_prefixes(definition: &AgentDefinition) -> Vec<String> {
    let own = definition.own_servers();
    let names = definition.named_servers().chain(own.keys().map(String::as_str));
    names.map(|name| format!("mcp__{}__", server_part(name))).collect()
}

impl AgentService {
    /// Starts the servers of an agent and waits for them; what cannot be used is told, and the agent works without.
    pub(super) async fn start_servers(&self, plan: &AgentPlan, stop: &CancellationToken) -> AgentServers {
        let definition = &plan.definition;
        if definition.mcp_servers.is_empty() {
            return AgentServers::default();
        }
        let mut tools = self.named_server_tools(definition, stop).await;
        let made = match (&self.make_servers, definition.own_servers().is_empty()) {
            (Some(make), false) => make(definition, &plan.place.cwd),
            _ => MadeServers::default(),
        };
        for problem in made.problems {
            self.tell_once(format!("The agent `{}`: {problem}", definition.name));
        }
        if let Some(own) = &made.servers {
            let requests = self.base.client_requests.clone();
            answer_for_session(own, &self.deps.ctx, requests, self.deps.max_budget_usd);
            own.start();
            let limit = own.limits().start;
            tokio::select! {
                () = own.wait(&[], limit) => {}
                () = stop.cancelled() => {}
            }
            for view in own.views() {
                self.tell_failure(definition, &view);
                tools.extend(server_tools(own, &view));
            }
        }
        AgentServers { own: made.servers, tools }
    }

    async fn named_server_tools(
        &self,
        definition: &AgentDefinition,
        stop: &CancellationToken,
    ) -> Vec<Arc<dyn Tool>> {
        let session = self.deps.ctx.services.mcp.as_ref().map(|mcp| &mcp.servers);
        let is_there = |name: &&str| session.is_some_and(|servers| servers.view(name).is_some());
        let (known, unknown): (Vec<&str>, Vec<&str>) = definition.named_servers().partition(is_there);
        for name in unknown {
            self.tell_once(format!(
                "The agent `{}` works without the MCP server `{name}`: this session has none of that name",
                definition.name
            ));
        }
        let Some(servers) = session.filter(|_| !known.is_empty()) else { return Vec::new() };
        let names: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
        tokio::select! {
            () = servers.wait(&names, servers.limits().start) => {}
            () = stop.cancelled() => {}
        }
        let views: Vec<ServerView> = known.iter().filter_map(|name| servers.view(name)).collect();
        views.iter().for_each(|view| self.tell_failure(definition, view));
        views.iter().flat_map(|view| server_tools(servers, view)).collect()
    }

    fn tell_failure(&self, definition: &AgentDefinition, view: &ServerView) {
        if view.status != ServerStatus::Connected {
            let why = view.error.clone().unwrap_or_else(|| format!("it is {}", view.status.name()));
            self.tell_once(format!(
                "The agent `{}` works without the MCP server `{}`: {why}",
                definition.name, view.name
            ));
        }
    }
}
