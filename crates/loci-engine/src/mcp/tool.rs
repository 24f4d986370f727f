//! A tool of a server, as the engine runs it.
//!
//! What it does is known to the server alone, so every call is judged as unknown, whatever the server says of itself: its
//! hint that a tool only reads lets calls run side by side and grants nothing.

use std::sync::Arc;

use loci_core::tool::{CallEffects, Interaction, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_mcp::{Progress, ServerView, Servers, ToolSpec};
use loci_tools::{Host, Tool, ToolCall, ToolFuture, ToolProgress, Workspace};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::outcome::{ResultLimits, outcome};
use crate::calls::interrupted;

/// A tool of a server.
pub(super) struct McpTool {
    descriptor: ToolDescriptor,
    servers: Servers,
    server: String,
    spec: Arc<ToolSpec>,
}

impl McpTool {
    pub(super) fn new(servers: &Servers, server: &ServerView, name: &str, spec: &Arc<ToolSpec>) -> Self {
        let is_deferrable = !server.always_load && !spec.always_load;
        let descriptor = ToolDescriptor {
            name: name.to_owned(),
            aliases: &[],
            description: spec.description.clone(),
            input_schema: spec.input_schema.clone(),
            // Long results are seen to here: they may have pictures in them.
            max_result_chars: None,
            facts: ToolFacts { keeps_input: true, is_deferrable, ..ToolFacts::default() },
        };
        Self { descriptor, servers: servers.clone(), server: server.name.clone(), spec: Arc::clone(spec) }
    }
}

impl Tool for McpTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        let why = format!("what it does is known to the MCP server `{}` alone", self.server);
        let interaction = self.spec.requires_user.then_some(Interaction::Confirmation);
        CallEffects { interaction, ..CallEffects::unknown(why) }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        self.spec.is_read_only
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let (heard, mut progress) = watch::channel(None);
            let on_progress = Arc::new(move |news| drop(heard.send_replace(Some(news))));
            let meta = json!({"claudecode/toolUseId": call.id.as_str()});
            let input = call.input.clone();
            let called = self.servers.call(&self.server, &self.spec.name, input, meta, Some(on_progress));
            tokio::pin!(called);
            let result = loop {
                tokio::select! {
                    result = &mut called => break result,
                    // Dropping the call cancels it at the server.
                    () = call.cancel.cancelled() => return interrupted(),
                    Ok(()) = progress.changed() => {
                        let news = progress.borrow_and_update().clone();
                        if let Some(news) = news {
                            host.progress(&call.id, ToolProgress::Output(shown_progress(&news)));
                        }
                    }
                }
            };
            match result {
                Ok(result) => {
                    let most_tokens = self.servers.limits().output_tokens;
                    let limits = ResultLimits::new(most_tokens, self.spec.max_result_chars);
                    outcome(&self.descriptor.name, result, limits, host, &call.id)
                }
                Err(error) => ToolOutcome::error(format!("The MCP server `{}` failed: {error}", self.server)),
            }
        })
    }
}

/// Returns news of a call on one line.
fn shown_progress(progress: &Progress) -> String {
    let total = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
    let message = progress.message.as_deref().map(|text| format!(" {text}")).unwrap_or_default();
    format!("{}{total}{message}\n", progress.done)
}
