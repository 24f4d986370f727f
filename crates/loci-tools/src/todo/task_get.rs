//! TaskGet: one task with all that is known about it.

use loci_core::task_list::Task;
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::todo::{task_store, with_field_names};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The TaskGet tool.
pub(crate) struct TaskGet {
    descriptor: ToolDescriptor,
}

impl Default for TaskGet {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "TaskGet".to_owned(),
            aliases: &[],
            description: include_str!("task_get.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"taskId": {"type": "string", "description": "The number of the task"}},
                "required": ["taskId"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for TaskGet {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn model_input(&self, input: Value, _host: &dyn Host) -> Value {
        with_field_names(input)
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let list = match task_store::read(host).await {
                Ok(list) => list,
                Err(outcome) => return outcome,
            };
            match list.find(call.input["taskId"].as_str().unwrap_or_default()) {
                Ok(task) => ToolOutcome::text(result_text(task), json!({"task": result_json(task)})),
                // A task that is not there is no failure of the call.
                Err(error) => ToolOutcome::text(format!("{error}."), json!({"task": null})),
            }
        })
    }
}

fn result_json(task: &Task) -> Value {
    json!({
        "id": task.id,
        "subject": task.subject,
        "description": task.description,
        "status": task.status,
        "blocks": task.blocks,
        "blockedBy": task.blocked_by,
    })
}

fn result_text(task: &Task) -> String {
    let mut lines =
        vec![format!("Task {}: {}", task.id, task.subject), format!("Status: {}", task.status.as_str())];
    let mut add = |name: &str, text: &str| {
        if !text.is_empty() {
            lines.push(format!("{name}: {text}"));
        }
    };
    add("Owner", task.owner.as_deref().unwrap_or_default());
    add("Waits for", &task.blocked_by.join(", "));
    add("Others wait for it", &task.blocks.join(", "));
    add(
        "Notes",
        &task.metadata.as_ref().map(|notes| Value::Object(notes.clone()).to_string()).unwrap_or_default(),
    );
    add("Description", &task.description);
    lines.join("\n")
}
