//! What clients want of servers, carried out beside the conversation: a turn does not wait for it.

use loci_mcp::config::{ServerScope, parse_servers};
use loci_mcp::{ContentPart, LoginOptions, LoginPrompt, Servers};
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
        let (servers, vars) =
            (self.services.mcp.as_ref().map(|mcp| mcp.servers.clone()), self.services.env.vars.clone());
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
        McpAction::CallTool { tool, .. } => Err(no_tool(tool)),
        McpAction::Reconnect { server }
        | McpAction::Toggle { server, .. }
        | McpAction::ReadResource { server, .. }
        | McpAction::Authenticate { server, .. }
        | McpAction::LoginAnswer { server, .. }
        | McpAction::ClearAuth { server }
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
        McpAction::CallTool { tool, input } => call_tool(servers, &tool, input).await.map(Some),
        McpAction::ReadResource { server, uri } => {
            let parts = servers.read(&server, &uri).await.map_err(|error| error.to_string())?;
            let contents: Vec<Value> = parts.into_iter().map(|part| resource_to_json(&uri, part)).collect();
            Ok(Some(json!({"contents": contents})))
        }
        McpAction::Authenticate { server, redirect_uri } => {
            let wish = LoginOptions { only_if_needed: true, redirect_uri };
            Ok(Some(login_answer(servers.begin_login(&server, wish).await?)))
        }
        McpAction::LoginAnswer { server, address } => {
            servers.answer_login(&server, &address).await.map(|()| Some(json!({})))
        }
        McpAction::ClearAuth { server } => servers.logout(&server).await.map(|_| Some(json!({}))),
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

/// Calls a tool by the name that the model knows it by.
async fn call_tool(servers: &Servers, tool: &str, input: Value) -> Result<Value, String> {
    let views = servers.views();
    let offered = views.iter().find_map(|view| {
        let (_, spec) = view.offer.tools.iter().find(|(name, _)| name == tool)?;
        Some((view.name.as_str(), spec.name.as_str()))
    });
    let (server, name) = offered.ok_or_else(|| no_tool(tool))?;
    match servers.call(server, name, input, Value::Null, None).await {
        Ok(result) => {
            let content: Vec<Value> = result.parts.iter().map(part_to_json).collect();
            let mut answer = json!({"content": content, "isError": result.is_error});
            if let Some(structured) = result.structured {
                answer["structuredContent"] = structured;
            }
            Ok(answer)
        }
        Err(error) => Err(format!("The MCP server `{server}` failed: {error}")),
    }
}

/// Returns a part of a result in the protocol's words.
fn part_to_json(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text(text) => json!({"type": "text", "text": text}),
        ContentPart::Image { mime_type, base64 } => {
            json!({"type": "image", "mimeType": mime_type, "data": base64})
        }
        ContentPart::Blob { mime_type, base64, uri: None } if mime_type.starts_with("audio/") => {
            json!({"type": "audio", "mimeType": mime_type, "data": base64})
        }
        ContentPart::Blob { mime_type, base64, uri } => {
            json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "blob": base64}})
        }
        ContentPart::Link { uri, name, description } => {
            json!({"type": "resource_link", "uri": uri, "name": name, "description": description})
        }
    }
}

fn no_tool(tool: &str) -> String {
    format!("There is no MCP tool `{}`", loci_stdx::single_line(tool, 200))
}

fn resource_to_json(uri: &str, part: ContentPart) -> Value {
    match part {
        ContentPart::Text(text) => json!({"uri": uri, "text": text}),
        ContentPart::Image { mime_type, base64 } => {
            json!({"uri": uri, "mimeType": mime_type, "blob": base64})
        }
        ContentPart::Blob { mime_type, base64, uri: own } => {
            json!({"uri": own.unwrap_or_else(|| uri.to_owned()), "mimeType": mime_type, "blob": base64})
        }
        ContentPart::Link { uri, name, description } => {
            json!({"uri": uri, "name": name, "description": description})
        }
    }
}

/// Returns what a client is told of a login that has begun. It opens the page: nothing here does.
fn login_answer(prompt: Option<LoginPrompt>) -> Value {
    let Some(prompt) = prompt else { return json!({"requiresUserAction": false}) };
    let mut answer = json!({
        "authUrl": prompt.page,
        "requiresUserAction": true,
        "callbackExpected": true,
        "redirectScheme": if prompt.port.is_some() { "localhost" } else { "custom" },
    });
    if let Some(port) = prompt.port {
        answer["callbackPort"] = json!(port);
    }
    answer
}
