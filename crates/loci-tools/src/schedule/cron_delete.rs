//! CronDelete: takes a scheduled prompt out.

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use super::with_schedule;
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The CronDelete tool.
pub(crate) struct CronDelete {
    descriptor: ToolDescriptor,
}

impl Default for CronDelete {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "CronDelete".to_owned(),
            aliases: &[],
            description: include_str!("cron_delete.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"id": {"type": "string", "description": "The id that CronCreate returned"}},
                "required": ["id"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { needs_conversation: true, is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for CronDelete {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// The schedule is the session's own.
    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let id = call.input["id"].as_str().unwrap_or_default();
            with_schedule(host, |schedule| match schedule.remove(id)? {
                true => Ok(ToolOutcome::text(format!("Deleted {id}."), json!({"id": id}))),
                false => {
                    let known: Vec<String> = schedule.tasks().into_iter().map(|task| task.id).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    Err(format!("There is no scheduled task `{id}`. There are: {known}."))
                }
            })
        })
    }
}
