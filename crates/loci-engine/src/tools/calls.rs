//! Running calls: each in a task of its own, so that a panic is a result and a cancel can be waited for.
//!
//! What wraps a call is one list of [`CallLayer`]s, outermost first ([`layers`]). Each sees the call before it runs and its
//! outcome after, and hands it to the [`Next`] one; behind the last is the tool itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use loci_core::ids::ToolUseId;
use loci_core::tool::{ToolContent, ToolOutcome};
use loci_tools::{Host, Tool, ToolCall, spill_preview};
use tokio_util::sync::CancellationToken;

use crate::conversation::SessionContext;
use crate::conversation::host::ConversationHost;
use crate::session::file_history::FileHistoryLayer;
use crate::session::memory::MemoryLayer;
use crate::tools::prepared_call::PreparedCall;
use crate::tools::result_tags::escape_result_tags;
use loci_storage::memory::Author;

/// How long a cancelled call may take to end before it is given up.
const GRACE: Duration = Duration::from_secs(5);
/// How long any call may take; tools have shorter limits of their own.
const CEILING: Duration = Duration::from_secs(60 * 60);

/// What a layer, and the tool behind it, comes to.
pub(crate) type OutcomeFuture<'a> = Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>>;

/// Something that is done around every call of a conversation.
pub(crate) trait CallLayer: Send + Sync {
    /// Runs the call by way of `next`, with whatever comes before and after.
    fn run<'a>(&'a self, call: PreparedCall, next: Next<'a>) -> OutcomeFuture<'a>;
}

/// What wraps the calls of a conversation, outermost first: the file history looks at the disk right around the tool.
/// Hooks are told when all of it is done (`Conversation::run_call`).
pub(crate) fn layers(ctx: &SessionContext, author: Author) -> Arc<[Arc<dyn CallLayer>]> {
    let memory = ctx.memory.clone();
    let memory = memory.map(|memory| Arc::new(MemoryLayer::new(memory, author)) as Arc<dyn CallLayer>);
    let history = Some(Arc::new(FileHistoryLayer) as Arc<dyn CallLayer>);
    [memory, history].into_iter().flatten().collect()
}

/// The layers that are left, and the tool behind them.
pub(crate) struct Next<'a> {
    pub(crate) layers: &'a [Arc<dyn CallLayer>],
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) host: &'a Arc<ConversationHost>,
    pub(crate) cancel: CancellationToken,
    /// Fires when the call is to go on in the background.
    pub(crate) to_background: CancellationToken,
}

impl<'a> Next<'a> {
    /// Runs the call through what is left.
    pub(crate) fn run(self, call: PreparedCall) -> OutcomeFuture<'a> {
        match self.layers.split_first() {
            Some((layer, rest)) => layer.run(call, Next { layers: rest, ..self }),
            None => Box::pin(run_tool(self.tool, self.host, call, self.cancel, self.to_background)),
        }
    }
}

/// Runs a call to its outcome, whatever the tool does.
async fn run_tool(
    tool: Arc<dyn Tool>,
    host: &Arc<ConversationHost>,
    call: PreparedCall,
    cancel: CancellationToken,
    to_background: CancellationToken,
) -> ToolOutcome {
    let (name, begun) = (call.tool.clone(), tokio::time::Instant::now());
    tracing::debug!(target: "loci::tools", call = %call.id, tool = name, "call begun");
    let limit = tool.descriptor().max_result_chars;
    let has_ceiling = !tool.descriptor().facts.is_unbounded;
    let tool_call = ToolCall {
        id: call.id.clone(),
        input: call.input,
        effects: call.effects,
        cancel: cancel.clone(),
        to_background,
    };
    let task_host = Arc::clone(host);
    let mut task = tokio::spawn(async move { tool.run(tool_call, task_host.as_ref()).await });
    let outcome = tokio::select! {
        joined = &mut task => match joined {
            Ok(outcome) => outcome,
            Err(error) => ToolOutcome::error(panic_text(&name, error)),
        },
        () = give_up(&cancel) => {
            task.abort();
            interrupted()
        }
        () = tokio::time::sleep(CEILING), if has_ceiling => {
            task.abort();
            ToolOutcome::error(format!("{name} did not end within an hour and was given up"))
        }
    };
    let after_ms = begun.elapsed().as_millis() as u64;
    tracing::debug!(target: "loci::tools", call = %call.id, is_error = outcome.is_error.unwrap_or(false), after_ms, "call ended");
    spill(escape_result_tags(&name, outcome), limit, host.as_ref(), &call.id)
}

async fn give_up(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(GRACE).await;
}

/// What a call that the user stopped answers.
pub(crate) fn interrupted() -> ToolOutcome {
    let mut outcome = ToolOutcome::error(
        "The user interrupted this call. It may have taken effect in part; check before relying on it.",
    );
    outcome.structured = serde_json::Value::from("User rejected tool use");
    outcome
}

fn panic_text(name: &str, error: tokio::task::JoinError) -> String {
    let message = match error.try_into_panic() {
        Ok(panic) => panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned()),
        Err(error) => error.to_string(),
    };
    format!(
        "{name} failed inside loci ({message}); this is a defect of loci, not of your input. Try another way"
    )
}

/// Moves a text over the tool's limit to disk and leaves a preview.
pub(crate) fn spill(
    outcome: ToolOutcome,
    limit: Option<usize>,
    host: &dyn Host,
    call: &ToolUseId,
) -> ToolOutcome {
    let (Some(limit), ToolContent::Text(text)) = (limit, &outcome.content) else {
        return outcome;
    };
    if text.len() <= limit || text.chars().count() <= limit {
        return outcome;
    }
    let saved = host.spill_path(call).and_then(|path| std::fs::write(&path, text).map(|()| path));
    let total = text.len() as u64;
    let preview = spill_preview(text, total, saved.map(|path| (path, total)));
    ToolOutcome { content: ToolContent::Text(preview), ..outcome }
}

#[cfg(test)]
mod tests;
