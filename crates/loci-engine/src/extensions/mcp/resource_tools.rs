//! The tools that every server shares: listing and reading resources, and waiting for servers that are still starting.

use std::time::Duration;

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_mcp::{ServerStatus, Servers};
use loci_tools::{Host, Tool, ToolCall, ToolFuture, Workspace};
use serde_json::{Value, json};

use super::outcome::{ResultLimits, content};
use crate::tools::calls::interrupted;

/// The names, as other programs know them.
pub(super) const LIST_RESOURCES: &str = "ListMcpResourcesTool";
pub(super) const READ_RESOURCE: &str = "ReadMcpResourceTool";
pub(super) const WAIT_FOR_SERVERS: &str = "WaitForMcpServers";

/// The longest that servers are waited for at once.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Which of them it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Read,
    Wait,
}

/// One of the shared tools.
pub(super) struct SharedTool {
    descriptor: ToolDescriptor,
    kind: Kind,
    servers: Servers,
}

impl SharedTool {
    /// Lists resources.
    pub(super) fn list(servers: &Servers) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {"server": {"type": "string", "description": "Only the resources of this server"}},
        });
        Self::new(servers, Kind::List, LIST_RESOURCES, include_str!("list_resources.md"), schema)
    }

    /// Reads one.
    pub(super) fn read(servers: &Servers) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "server": {"type": "string", "description": "The server that has it"},
                "uri": {"type": "string", "description": "Its address"},
            },
            "required": ["server", "uri"],
        });
        Self::new(servers, Kind::Read, READ_RESOURCE, include_str!("read_resource.md"), schema)
    }

    /// Waits for servers.
    pub(super) fn wait(servers: &Servers) -> Self {
        let names = json!({"type": "array", "items": {"type": "string"}, "description": "Servers to wait for; all without it"});
        let schema = json!({"type": "object", "properties": {"servers": names}});
        Self::new(servers, Kind::Wait, WAIT_FOR_SERVERS, include_str!("wait_for_servers.md"), schema)
    }

    fn new(servers: &Servers, kind: Kind, name: &str, text: &str, input_schema: Value) -> Self {
        let descriptor = ToolDescriptor {
            name: name.to_owned(),
            aliases: &[],
            description: text.trim_end().to_owned(),
            input_schema,
            max_result_chars: Some(100_000),
            facts: ToolFacts::default(),
        };
        Self { descriptor, kind, servers: servers.clone() }
    }

    fn list_resources(&self, wanted: Option<&str>) -> ToolOutcome {
        let views = self.servers.views();
        if let Some(name) = wanted.filter(|name| !views.iter().any(|view| view.name == *name)) {
            let names: Vec<&str> = views.iter().map(|view| view.name.as_str()).collect();
            return ToolOutcome::error(format!(
                "No MCP server is called `{name}`; there are: {}",
                names.join(", ")
            ));
        }
        let shown = views.iter().filter(|view| wanted.is_none_or(|name| name == view.name));
        let rows: Vec<Value> = shown
            .flat_map(|view| {
                view.offer.resources.iter().map(|resource| {
                    let mut row = json!({"uri": resource.uri, "name": resource.name, "server": view.name});
                    if let Some(mime_type) = &resource.mime_type {
                        row["mimeType"] = json!(mime_type);
                    }
                    if let Some(description) = &resource.description {
                        row["description"] = json!(description);
                    }
                    row
                })
            })
            .collect();
        match rows.is_empty() {
            true => ToolOutcome::text(
                "No resources are listed. Servers may have some that can be read all the same.",
                json!([]),
            ),
            false => ToolOutcome::text(Value::from(rows.clone()).to_string(), Value::from(rows)),
        }
    }

    async fn read_resource(&self, call: &ToolCall, host: &dyn Host) -> ToolOutcome {
        let text = |key: &str| call.input.get(key).and_then(Value::as_str).unwrap_or_default();
        match self.servers.read(text("server"), text("uri")).await {
            Ok(parts) => {
                let limits = ResultLimits::new(self.servers.limits().output_tokens, None);
                let content = content(parts, limits, &|| host.spill_path(&call.id));
                let structured = content.to_value();
                ToolOutcome { content, is_error: None, structured, attachments: Vec::new() }
            }
            Err(error) => ToolOutcome::error(format!(
                "`{}` of `{}` cannot be read: {error}",
                text("uri"),
                text("server")
            )),
        }
    }

    async fn wait_for_servers(&self, input: &Value) -> ToolOutcome {
        let names = input.get("servers").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<String> = names.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        self.servers.wait(&names, LONGEST_WAIT).await;
        let lines: Vec<String> = self
            .servers
            .views()
            .iter()
            .filter(|view| names.is_empty() || names.contains(&view.name))
            .map(|view| {
                let why = view.error.as_deref().map(|error| format!(" ({error})")).unwrap_or_default();
                format!("{}: {}{why}", view.name, view.status.name())
            })
            .collect();
        ToolOutcome::text(
            format!("{}\nThe tools of connected servers can be called now.", lines.join("\n")),
            json!(lines),
        )
    }
}

impl Tool for SharedTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let work = async {
                match self.kind {
                    Kind::List => self.list_resources(call.input.get("server").and_then(Value::as_str)),
                    Kind::Read => self.read_resource(&call, host).await,
                    Kind::Wait => self.wait_for_servers(&call.input).await,
                }
            };
            tokio::select! {
                outcome = work => outcome,
                () = call.cancel.cancelled() => interrupted(),
            }
        })
    }
}

/// Tells whether some server is still starting.
pub(super) fn is_starting(servers: &Servers) -> bool {
    servers.views().iter().any(|view| view.status == ServerStatus::Pending)
}
