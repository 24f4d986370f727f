//! TaskUpdate: changes a task of the list.

use loci_core::task_list::{Changed, TaskChange, TaskListError};
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::todo::{task_store, with_field_names};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The TaskUpdate tool.
pub(crate) struct TaskUpdate {
    descriptor: ToolDescriptor,
}

impl Default for TaskUpdate {
    fn default() -> Self {
        let ids = |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
        let descriptor = ToolDescriptor {
            name: "TaskUpdate".to_owned(),
            aliases: &[],
            description: include_str!("task_update.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "taskId": {"type": "string", "description": "The number of the task"},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "deleted"]},
                    "subject": {"type": "string", "description": "A new subject"},
                    "description": {"type": "string", "description": "A new description"},
                    "activeForm": {"type": "string", "description": "What is shown while it is being done"},
                    "owner": {"type": "string", "description": "Who does it; empty releases the task"},
                    "addBlocks": ids("Numbers of tasks that have to wait for this one"),
                    "addBlockedBy": ids("Numbers of tasks that this one has to wait for"),
                    "metadata": {"type": "object", "description": "Notes to add; null takes one away"},
                },
                "required": ["taskId"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for TaskUpdate {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn model_input(&self, input: Value, _host: &dyn Host) -> Value {
        with_field_names(input)
    }

    /// The list is the session's own: writing on it needs nobody's leave.
    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let id = call.input["taskId"].as_str().unwrap_or_default().trim_start_matches('#').to_owned();
            let change: TaskChange = match serde_json::from_value(call.input) {
                Ok(change) => change,
                Err(error) => return ToolOutcome::refusal(format!("This is no change of a task: {error}")),
            };
            let wanted = id.clone();
            match task_store::edit(host, move |list| list.change(&wanted, change)).await {
                Ok(Ok(changed)) => ToolOutcome::text(result_text(&id, &changed), result_json(&id, &changed)),
                Ok(Err(error @ TaskListError::Unknown { .. })) => not_found(&id, &error),
                Ok(Err(error)) => ToolOutcome::refusal(format!("{error}.")),
                Err(outcome) => outcome,
            }
        })
    }
}

/// A task that is not there is no failure of the call.
fn not_found(id: &str, error: &TaskListError) -> ToolOutcome {
    let structured = json!({"success": false, "taskId": id, "updatedFields": [], "error": "Task not found"});
    ToolOutcome::text(format!("{error}."), structured)
}

fn result_json(id: &str, changed: &Changed) -> Value {
    let mut value = json!({"success": true, "taskId": id, "updatedFields": changed.fields});
    if let Some((from, to)) = changed.status {
        value["statusChange"] = json!({"from": from, "to": to});
    }
    value
}

fn result_text(id: &str, changed: &Changed) -> String {
    match (changed.status, changed.fields.as_slice()) {
        (Some((_, "deleted")), _) => format!("Task {id} is off the list."),
        (_, []) => format!("Task {id} was like this already."),
        (Some((_, to)), _) => format!("Task {id} is now {to}."),
        (None, fields) => format!("Task {id} was changed: {}.", fields.join(", ")),
    }
}
