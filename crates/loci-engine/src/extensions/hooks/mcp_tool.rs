//! Handlers that are tools of MCP servers: called by whoever holds the connections, and read like a command's output.

use std::time::Duration;

use loci_core::hooks::{HandlerEnd, HookInput, fill_template};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::HookService;

impl HookService {
    /// Calls a tool of a connected server; one that is not connected is an error that blocks nothing.
    pub(super) async fn run_mcp_tool(
        &self,
        (server, tool, template): (&str, &str, &Value),
        input: &HookInput,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> HandlerEnd {
        let Some(caller) = &self.world().mcp_tools else {
            return HandlerEnd::Failed(format!("the MCP server `{server}` is not connected"));
        };
        let called = caller.call_tool(server, tool, fill_template(template, &input.to_value()));
        tokio::select! {
            said = tokio::time::timeout(limit, called) => match said {
                Ok(Ok(text)) => HandlerEnd::Exited { code: 0, stdout: text, stderr: String::new() },
                Ok(Err(why)) => HandlerEnd::Failed(why),
                Err(_) => HandlerEnd::TimedOut { blocks: false },
            },
            () = cancel.cancelled() => HandlerEnd::Cancelled,
        }
    }
}
