//! CronCreate: schedules a prompt by a cron expression.

use loci_core::schedule::Cron;
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use super::{ScheduleRequest, with_schedule};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The CronCreate tool.
pub(crate) struct CronCreate {
    descriptor: ToolDescriptor,
}

impl Default for CronCreate {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "CronCreate".to_owned(),
            aliases: &[],
            description: include_str!("cron_create.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "cron": {"type": "string", "description": "Five fields, in local time: minute hour day-of-month month day-of-week"},
                    "prompt": {"type": "string", "description": "What is said to you each time"},
                    "recurring": {"type": "boolean", "description": "false: only the next time that matches; otherwise every time"},
                    "durable": {"type": "boolean", "description": "true: kept in .claude/scheduled_tasks.json of the project, so that a later session there says it, too; only when the user asks for that"},
                },
                "required": ["cron", "prompt"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { needs_conversation: true, is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for CronCreate {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// What is said later is judged then, call by call.
    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let refusal = |text: String| Err(Box::new(ToolOutcome::refusal(text)));
        if let Err(error) = Cron::parse(input["cron"].as_str().unwrap_or_default()) {
            return refusal(format!("`cron`: {error}."));
        }
        if input["prompt"].as_str().unwrap_or_default().trim().is_empty() {
            return refusal("`prompt` is empty: say what is to be done then.".to_owned());
        }
        Ok(())
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            with_schedule(host, |schedule| {
                let text = |name: &str| call.input[name].as_str().unwrap_or_default().to_owned();
                let cron = Cron::parse(&text("cron")).map_err(|error| error.to_string())?;
                let is_recurring = call.input["recurring"].as_bool().unwrap_or(true);
                let is_durable = call.input["durable"].as_bool().unwrap_or(false);
                let prompt = text("prompt");
                let task = schedule.add(ScheduleRequest::Cron { cron, prompt, is_recurring, is_durable })?;
                let next = task.next().map(|at| schedule.local_text(at)).unwrap_or_default();
                let how = match is_recurring {
                    true => "It recurs until it is deleted, for seven days at most.",
                    false => "It is said once.",
                };
                let lasts = match is_durable {
                    true => {
                        "It outlives the session: whichever session is open in this project then says it."
                    }
                    false => "It ends with the session, and is there again when that is resumed.",
                };
                let told = format!(
                    "Scheduled {} ({}), next at {next}, once nothing else is under way. {how} {lasts}",
                    task.id,
                    task.schedule_text()
                );
                let structured = json!({
                    "id": task.id,
                    "humanSchedule": task.schedule_text(),
                    "recurring": is_recurring,
                    "durable": is_durable,
                });
                Ok(ToolOutcome::text(told, structured))
            })
        })
    }
}
