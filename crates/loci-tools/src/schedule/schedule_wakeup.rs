//! ScheduleWakeup: the session goes on by itself after a while.

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use super::{ScheduleRequest, with_schedule};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The least and the most seconds that a session sleeps.
const DELAYS: (u64, u64) = (60, 3600);

/// The ScheduleWakeup tool.
pub(crate) struct ScheduleWakeup {
    descriptor: ToolDescriptor,
}

impl Default for ScheduleWakeup {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "ScheduleWakeup".to_owned(),
            aliases: &[],
            description: include_str!("schedule_wakeup.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "delaySeconds": {"type": "number", "description": "After how many seconds: 60 to 3600"},
                    "prompt": {"type": "string", "description": "What is said to you then"},
                    "reason": {"type": "string", "description": "Why then, in a few words for the user"},
                    "stop": {"type": "boolean", "description": "true: do not wake up; the loop is over. Nothing else is needed then"},
                    "noop": {"type": "boolean", "description": "Whether this round found nothing new"},
                },
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { needs_conversation: true, is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for ScheduleWakeup {
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
        let refusal = |text: &str| Err(Box::new(ToolOutcome::refusal(text)));
        let is_blank = input["prompt"].as_str().unwrap_or_default().trim().is_empty();
        match input["stop"] == true {
            true => Ok(()),
            false if is_blank => refusal("`prompt` is empty: say what is to be done then."),
            false if input["delaySeconds"].is_null() => {
                refusal("`delaySeconds` is missing: say after how many seconds, 60 to 3600.")
            }
            false => Ok(()),
        }
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            with_schedule(host, |schedule| {
                if call.input["stop"] == true {
                    let told = match schedule.cancel_wakeup()? {
                        true => "The session does not wake up again by itself.",
                        false => "No wake-up was scheduled.",
                    };
                    return Ok(ToolOutcome::text(told, json!({"stopped": true})));
                }
                let asked = call.input["delaySeconds"].as_f64().unwrap_or_default().clamp(0.0, 1e9) as u64;
                let delay = asked.clamp(DELAYS.0, DELAYS.1);
                let prompt = call.input["prompt"].as_str().unwrap_or_default().to_owned();
                let task = schedule.add(ScheduleRequest::Wakeup { delay, prompt })?;
                let at = task.next().unwrap_or_default();
                let moved = match delay == asked {
                    true => String::new(),
                    false => format!(" {asked} seconds were asked for; it is {} to {}.", DELAYS.0, DELAYS.1),
                };
                let told = format!(
                    "The session wakes up in {delay} seconds, at {}.{moved}",
                    schedule.local_text(at)
                );
                let structured = json!({"scheduledFor": at * 1000, "clampedDelaySeconds": delay, "wasClamped": delay != asked});
                Ok(ToolOutcome::text(told, structured))
            })
        })
    }
}
