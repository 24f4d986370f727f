//! What clients want of servers, carried out beside the conversation: a turn does not wait for it.

use loci_mcp::Servers;
use loci_mcp::config::{ServerScope, parse_servers};
use serde_json::{Map, Value, json};

use super::status::status;
use crate::command::McpAction;
use crate::conversation::SessionContext;
use crate::event::EngineEvent;

impl SessionContext {
    /// Sees to a wish; the answer is an event.
    pub(crate) fn answer_mcp(&self, request: String, action: McpAction) {
        let events = self.events.clone();
        let outcome = self.mcp_outcome(action);
        tokio::spawn(async move {
            let outcome = outcome.await;
            // Without a listener there is nobody to answer.
            drop(events.send(EngineEvent::McpAnswered { request, outcome }));
        });
    }

    /// Sees to a wish.
    pub(crate) fn mcp_outcome(
        &self,
        action: McpAction,
    ) -> impl Future<Output = Result<Option<Value>, String>> + Send + 'static {
        let (servers, vars) = (self.mcp.as_ref().map(|mcp| mcp.servers.clone()), self.env.vars.clone());
        async move {
            let lookup = |name: &str| vars.get(name).map(str::to_owned);
            match servers {
                Some(servers) => answer(&servers, action, &lookup).await,
                None => without_servers(&action),
            }
        }
    }
}

fn without_servers(action: &McpAction) -> Result<Option<Value>, String> {
    match action {
        McpAction::Status => Ok(Some(json!({"mcpServers": []}))),
        McpAction::SetServers { .. } => Err("This session cannot take MCP servers".to_owned()),
        McpAction::Reconnect { server }
        | McpAction::Toggle { server, .. }
        | McpAction::Deliver { server, .. } => {
            Err(format!("There is no MCP server `{}`", loci_stdx::single_line(server, 200)))
        }
    }
}

async fn answer(
    servers: &Servers,
    action: McpAction,
    lookup: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Option<Value>, String> {
    match action {
        McpAction::Status => Ok(Some(status(servers))),
        McpAction::Reconnect { server } => servers.reconnect(&server).await.map(|()| None),
        McpAction::Toggle { server, is_on } => servers.toggle(&server, is_on).await.map(|()| None),
        McpAction::Deliver { server, message } => servers.deliver(&server, message).map(|()| Some(json!({}))),
        McpAction::SetServers { servers: wanted } => {
            let (configs, problems) =
                parse_servers(&wanted, ServerScope::Dynamic, "mcp_set_servers", &lookup);
            let change = servers.set_dynamic(configs).await;
            let bad =
                problems.into_iter().filter(|it| it.kind == "invalid_config").map(|it| (it.name, it.message));
            let errors: Map<String, Value> =
                bad.chain(change.errors).map(|(name, why)| (name, Value::from(why))).collect();
            Ok(Some(json!({"added": change.added, "removed": change.removed, "errors": errors})))
        }
    }
}
