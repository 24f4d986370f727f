//! TaskCreate: puts a task on the list.

use loci_core::task_list::NewTask;
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::todo::{task_store, with_field_names};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The TaskCreate tool.
pub(crate) struct TaskCreate {
    descriptor: ToolDescriptor,
}

impl Default for TaskCreate {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "TaskCreate".to_owned(),
            aliases: &[],
            description: include_str!("task_create.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "subject": {"type": "string", "description": "What is to be done, in a few words"},
                    "description": {"type": "string", "description": "All that whoever does it has to know"},
                    "activeForm": {
                        "type": "string",
                        "description": "What is shown while it is being done, such as \"Running the tests\"",
                    },
                    "metadata": {"type": "object", "description": "Notes to keep with the task"},
                },
                "required": ["subject", "description"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for TaskCreate {
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

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        match input["subject"].as_str().is_some_and(|subject| !subject.trim().is_empty()) {
            true => Ok(()),
            false => Err(Box::new(ToolOutcome::refusal(
                "`subject` is empty. Say in a few words what is to be done.",
            ))),
        }
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let new: NewTask = match serde_json::from_value(call.input) {
                Ok(new) => new,
                Err(error) => return ToolOutcome::refusal(format!("This is no task: {error}")),
            };
            let made = task_store::edit(host, move |list| list.add(new).clone()).await;
            match made {
                Ok(task) => ToolOutcome::text(
                    format!("Task {} is on the list: {}", task.id, task.subject),
                    json!({"task": {"id": task.id, "subject": task.subject}}),
                ),
                Err(outcome) => outcome,
            }
        })
    }
}
