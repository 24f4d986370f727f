//! TodoWrite: the list of what is to be done, written whole each time.

use loci_core::task_list::Todo;
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The TodoWrite tool.
pub(crate) struct TodoWrite {
    descriptor: ToolDescriptor,
}

impl Default for TodoWrite {
    fn default() -> Self {
        let item = json!({
            "type": "object",
            "properties": {
                "content": {"type": "string", "minLength": 1, "description": "What is to be done"},
                "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                "activeForm": {"type": "string", "minLength": 1, "description": "What is shown while it is being done"},
            },
            "required": ["content", "status", "activeForm"],
            "additionalProperties": false,
        });
        let descriptor = ToolDescriptor {
            name: "TodoWrite".to_owned(),
            aliases: &[],
            description: include_str!("todo_write.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"todos": {"type": "array", "items": item, "description": "The whole list"}},
                "required": ["todos"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for TodoWrite {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
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
            let todos: Vec<Todo> = match serde_json::from_value(call.input["todos"].clone()) {
                Ok(todos) => todos,
                Err(error) => return ToolOutcome::refusal(format!("This is no list: {error}")),
            };
            let old = host.set_todos(todos.clone());
            ToolOutcome::text("The list is written.", json!({"oldTodos": old, "newTodos": todos}))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;

    #[tokio::test]
    async fn each_list_takes_the_place_of_the_one_before() {
        let (tool, host) = (TodoWrite::default(), TestHost::new());
        let list = |status: &str| json!([{"content": "Build", "status": status, "activeForm": "Building"}]);
        let first = host.call(&tool, json!({"todos": list("pending")})).await;
        assert_eq!(first.structured, json!({"oldTodos": [], "newTodos": list("pending")}));
        let second = host.call(&tool, json!({"todos": list("completed")})).await;
        assert_eq!(second.structured, json!({"oldTodos": list("pending"), "newTodos": list("completed")}));
        assert!(host.call(&tool, json!({"todos": list("done")})).await.is_failure());
    }
}
