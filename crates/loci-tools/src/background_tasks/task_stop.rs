//! TaskStop: ends a background task.

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::background_tasks::BackgroundStatus;
use crate::background_tasks::task_output::unknown_task;
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The TaskStop tool.
pub(crate) struct TaskStop {
    descriptor: ToolDescriptor,
}

impl Default for TaskStop {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "TaskStop".to_owned(),
            aliases: &["KillShell"],
            description: include_str!("task_stop.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "task_id": {"type": "string", "description": "The id of the task to stop"},
                    "shell_id": {"type": "string", "description": "The same under its older name"},
                },
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for TaskStop {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// A task is the session's own: stopping it needs nobody's leave.
    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn validate(&self, input: &Value, host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let refusal = |text: String| Err(Box::new(ToolOutcome::refusal(text)));
        let Some(id) = task_id(input) else {
            return refusal("`task_id` is missing. Give the id of the task to stop.".to_owned());
        };
        let id = &host.agents().and_then(|agents| agents.resolve(id)).unwrap_or_else(|| id.to_owned());
        match host.tasks().find(id) {
            None => refusal(unknown_task(host.tasks(), id)),
            Some(task) if task.status != BackgroundStatus::Running => {
                refusal(format!("Task `{id}` is not running: it is {}.", task.status.name()))
            }
            Some(_) => Ok(()),
        }
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let named = task_id(&call.input).unwrap_or_default();
            let id =
                &host.agents().and_then(|agents| agents.resolve(named)).unwrap_or_else(|| named.to_owned());
            match host.tasks().stop(id).await {
                Some(task) if task.status == BackgroundStatus::Running => {
                    ToolOutcome::error(format!("Task {id} was told to stop but still runs."))
                }
                Some(task) => {
                    host.tasks().mark_known(id);
                    let what = match task.agent_type() {
                        Some(_) => task.label(),
                        None => &task.command,
                    };
                    let message = format!("Task {id} has been stopped: {what}");
                    let structured = json!({
                        "message": message,
                        "task_id": id,
                        "task_type": task.kind.name(),
                        "command": what,
                    });
                    ToolOutcome::text(message, structured)
                }
                None => ToolOutcome::refusal(unknown_task(host.tasks(), id)),
            }
        })
    }
}

fn task_id(input: &Value) -> Option<&str> {
    let field = |name| input.get(name).and_then(Value::as_str).filter(|id| !id.is_empty());
    field("task_id").or_else(|| field("shell_id"))
}
