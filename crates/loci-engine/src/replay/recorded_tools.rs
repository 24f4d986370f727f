//! Tools that answer with recorded results.
//!
//! A stand-in takes any input, is harmless to the session that calls it, and hands over what was recorded; whether the
//! real tool runs beside it is for the [`SandboxRunner`] to say, by the rules. Results are handed over in the order in which
//! they were recorded, each when the one before it is in the transcript.

use std::sync::{Arc, Mutex};

use loci_core::ids::ToolUseId;
use loci_core::tool::{CallEffects, ToolDescriptor, ToolOutcome};
use loci_tools::{Host, Tool, ToolCall, ToolFuture, Toolbox, Workspace};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::recorded::RecordedResult;
use super::report::{CallCheck, CallOutcome};
use super::sandbox::SandboxRunner;
use super::score::Score;
use crate::conversation::host::lock;

const NOT_RECORDED: &str = "The recording has no result of this call";

/// What the parts of a replay share.
#[derive(Default)]
pub(super) struct ReplayState {
    pub(super) score: Mutex<Score>,
    /// Rung when a result is in the transcript.
    pub(super) answered: Notify,
    /// Rung when the recording does not go on by an answer.
    pub(super) stuck: Notify,
    /// Runs calls for real, where that is wanted.
    pub(super) sandbox: Option<SandboxRunner>,
}

/// Returns stand-ins of these names.
pub(super) fn recorded_tools(state: &Arc<ReplayState>, names: Vec<String>) -> Toolbox {
    // A stand-in is cleared and counted as the tool it stands for.
    let builtin = Toolbox::builtin();
    Toolbox::new(names.into_iter().map(|name| {
        let descriptor = ToolDescriptor {
            facts: builtin.facts().facts(&name),
            name,
            aliases: &[],
            description: String::new(),
            input_schema: json!({"type": "object"}),
            max_result_chars: None,
        };
        Arc::new(RecordedTool { descriptor, state: Arc::clone(state) }) as Arc<dyn Tool>
    }))
}

struct RecordedTool {
    descriptor: ToolDescriptor,
    state: Arc<ReplayState>,
}

impl Tool for RecordedTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _: &Value, _: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, call: ToolCall, _: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let cancelled = call.cancel.clone();
            tokio::select! {
                outcome = self.state.play(&self.descriptor.name, call) => outcome,
                () = cancelled.cancelled() => ToolOutcome::error("The replay was stopped"),
            }
        })
    }
}

impl ReplayState {
    async fn play(&self, tool: &str, call: ToolCall) -> ToolOutcome {
        let Some(recorded) = self.turn_of(&call.id).await else { return ToolOutcome::error(NOT_RECORDED) };
        let outcome = match &self.sandbox {
            Some(sandbox) => sandbox.perform(tool, &call, &recorded.outcome).await,
            None => CallOutcome::Recorded,
        };
        let check = CallCheck { id: call.id, tool: tool.to_owned(), input: call.input, outcome };
        lock(&self.score).report.calls.push(check);
        recorded.outcome
    }

    /// Waits until the results before it are recorded.
    async fn turn_of(&self, call: &ToolUseId) -> Option<RecordedResult> {
        loop {
            let answered = self.answered.notified();
            if let Ok(result) = lock(&self.score).result_of(call) {
                return result;
            }
            answered.await;
        }
    }
}
