//! Running calls: each in a task of its own, so that a panic is a result and a cancel can be waited for.

use std::sync::Arc;
use std::time::Duration;

use loci_core::ids::ToolUseId;
use loci_core::tool::{ToolContent, ToolOutcome};
use loci_tools::{Host, Tool, ToolCall, persisted_output};
use tokio_util::sync::CancellationToken;

use crate::host::SessionHost;
use crate::judge::PreparedCall;

/// How long a cancelled call may take to end before it is given up.
const GRACE: Duration = Duration::from_secs(5);
/// How long any call may take; tools have shorter limits of their own.
const CEILING: Duration = Duration::from_secs(60 * 60);

/// Runs a call to its outcome, whatever the tool does.
pub(crate) async fn run(
    tool: Arc<dyn Tool>,
    host: Arc<SessionHost>,
    call: PreparedCall,
    cancel: CancellationToken,
) -> ToolOutcome {
    if let Some(keeper) = host.keeper() {
        host.tell_trouble(keeper.before(&call, host.has_background()).await);
    }
    let outcome = run_kept(tool, &host, call.clone(), cancel).await;
    if let Some(keeper) = host.keeper() {
        host.tell_trouble(keeper.after(&call, host.has_background()).await);
    }
    outcome
}

async fn run_kept(
    tool: Arc<dyn Tool>,
    host: &Arc<SessionHost>,
    call: PreparedCall,
    cancel: CancellationToken,
) -> ToolOutcome {
    let name = call.tool.clone();
    let limit = tool.descriptor().max_result_chars;
    let tool_call =
        ToolCall { id: call.id.clone(), input: call.input, effects: call.effects, cancel: cancel.clone() };
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
        () = tokio::time::sleep(CEILING) => {
            task.abort();
            ToolOutcome::error(format!("{name} did not end within an hour and was given up"))
        }
    };
    spill(outcome, limit, host.as_ref(), &call.id)
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
    let preview = persisted_output(text, total, saved.map(|path| (path, total)));
    ToolOutcome { content: ToolContent::Text(preview), ..outcome }
}

#[cfg(test)]
mod tests;
