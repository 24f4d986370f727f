//! CronList: what is scheduled in the session.

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use super::{task_json, with_schedule};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The CronList tool.
pub(crate) struct CronList {
    descriptor: ToolDescriptor,
}

impl Default for CronList {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "CronList".to_owned(),
            aliases: &[],
            description: include_str!("cron_list.md").trim_end().to_owned(),
            input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
            max_result_chars: None,
            facts: ToolFacts { needs_conversation: true, is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for CronList {
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
            with_schedule(host, |schedule| {
                let tasks = schedule.tasks();
                let line = |task: &loci_core::schedule::ScheduledTask| {
                    let next = task.next().map(|at| schedule.local_text(at)).unwrap_or_default();
                    let kind = match (task.is_wakeup(), task.is_recurring()) {
                        (true, _) => "wake-up",
                        (false, true) => "recurring",
                        (false, false) => "once",
                    };
                    let durable = if task.is_durable { " · outlives the session" } else { "" };
                    format!(
                        "{} · {} · {kind}{durable} · next at {next} · {}",
                        task.id,
                        task.schedule_text(),
                        task.prompt
                    )
                };
                let text = match tasks.is_empty() {
                    true => "Nothing is scheduled.".to_owned(),
                    false => tasks.iter().map(line).collect::<Vec<_>>().join("\n"),
                };
                let jobs: Vec<Value> = tasks.iter().map(|task| task_json(task, schedule)).collect();
                Ok(ToolOutcome::text(text, json!({"jobs": jobs})))
            })
        })
    }
}
