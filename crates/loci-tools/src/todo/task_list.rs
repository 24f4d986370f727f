//! TaskList: the whole list, a line a task.

use loci_core::task_list::{Task, TaskList as Tasks};
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::todo::task_store;
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The TaskList tool.
pub(crate) struct TaskList {
    descriptor: ToolDescriptor,
}

impl Default for TaskList {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "TaskList".to_owned(),
            aliases: &[],
            description: include_str!("task_list.md").trim_end().to_owned(),
            input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
            max_result_chars: None,
            facts: ToolFacts { is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for TaskList {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, _call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            match task_store::read(host).await {
                Ok(list) => ToolOutcome::text(result_text(&list), json!({"tasks": result_json(&list)})),
                Err(outcome) => outcome,
            }
        })
    }
}

fn result_json(list: &Tasks) -> Vec<Value> {
    let row = |task: &Task| {
        let blockers: Vec<&str> = list.open_blockers(task).collect();
        json!({"id": task.id, "subject": task.subject, "status": task.status, "blockedBy": blockers})
    };
    list.tasks().iter().map(row).collect()
}

fn result_text(list: &Tasks) -> String {
    if list.tasks().is_empty() {
        return "The task list is empty.".to_owned();
    }
    list.tasks().iter().map(|task| list.line(task)).collect::<Vec<_>>().join("\n")
}
