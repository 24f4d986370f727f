//! The task list of a conversation: what the model noted to be done, and the tools that write and read it.
//!
//! Not to be mixed up with the shell tasks of `background_tasks`, which are running commands.

pub(crate) mod task_create;
pub(crate) mod task_get;
pub(crate) mod task_list;
pub(crate) mod task_store;
pub(crate) mod task_update;
pub(crate) mod todo_write;

use serde_json::Value;

/// What models call fields of tasks, and what these are called.
const ALMOST: [(&str, &str); 3] = [("task_id", "taskId"), ("id", "taskId"), ("active_form", "activeForm")];

/// Gives fields their names that a model wrote almost right; one that is there already stays.
pub(crate) fn with_field_names(mut input: Value) -> Value {
    let Some(fields) = input.as_object_mut() else { return input };
    for (almost, name) in ALMOST {
        if !fields.contains_key(name)
            && let Some(value) = fields.remove(almost)
        {
            fields.insert(name.to_owned(), value);
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_a_task_that_are_almost_right_get_their_names() {
        for (input, expected) in [
            (json!({"task_id": "1", "status": "completed"}), json!({"status": "completed", "taskId": "1"})),
            (json!({"id": 2, "active_form": "Doing"}), json!({"taskId": 2, "activeForm": "Doing"})),
            (json!({"taskId": "3", "id": "4"}), json!({"taskId": "3", "id": "4"})),
            (json!([]), json!([])),
        ] {
            assert_eq!(with_field_names(input.clone()), expected, "{input}");
        }
    }
}
