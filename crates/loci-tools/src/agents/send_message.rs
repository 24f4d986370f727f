//! SendMessage: speaks to an agent that was sent out.

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_stdx::truncate_chars;
use serde_json::{Value, json};

use super::agent::launch_text;
use super::{MAIN, MessageReceipt, NO_AGENTS};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// How much of a summary is told.
const SUMMARY_CHARS: usize = 200;

/// The SendMessage tool.
pub(crate) struct SendMessage {
    descriptor: ToolDescriptor,
}

impl Default for SendMessage {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "SendMessage".to_owned(),
            aliases: &[],
            description: include_str!("send_message.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "to": {"type": "string", "description": "The agent's id or name, or `main`"},
                    "message": {"type": "string", "default": "", "description": "What it is told"},
                    "summary": {
                        "type": "string",
                        "description": "What the message is about, in a few words, for the user",
                    },
                    "notify_when_idle": {
                        "type": "boolean",
                        "description": "Not needed: agents of this session say by themselves when they are done",
                    },
                },
                "required": ["to"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { needs_conversation: true, is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for SendMessage {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// An agent's calls are judged by themselves, whatever it was told.
    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn validate(&self, input: &Value, host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let refusal = |text: &str| Err(Box::new(ToolOutcome::refusal(text)));
        if host.agents().is_none() {
            return refusal(NO_AGENTS);
        }
        match input["message"].as_str().is_some_and(|text| !text.trim().is_empty()) {
            true => Ok(()),
            false if input["notify_when_idle"] == true => refusal(
                "There is nothing to wait for: agents of this session say by themselves when they are done, and agents of \
                 other sessions cannot be watched.",
            ),
            false => refusal("`message` is empty. Say what the agent is to know."),
        }
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let text = |key: &str| call.input[key].as_str().unwrap_or_default().to_owned();
            let Some(agents) = host.agents() else { return ToolOutcome::refusal(NO_AGENTS) };
            let to = text("to");
            match agents.send(&to, text("message"), &call).await {
                Ok(MessageReceipt::Queued { id }) => {
                    let said = format!("The agent {id} gets the message before its next step.");
                    ToolOutcome::text(
                        said,
                        json!({"success": true, "agentId": id.as_str(), "status": "queued"}),
                    )
                }
                Ok(MessageReceipt::ToMain) => {
                    let said = "The main conversation gets the message before its next step.";
                    ToolOutcome::text(said, json!({"success": true, "to": MAIN, "status": "queued"}))
                }
                Ok(MessageReceipt::Resumed(agent)) => {
                    let structured = json!({
                        "success": true,
                        "isAsync": true,
                        "status": "async_launched",
                        "agentId": agent.id.as_str(),
                        "description": truncate_chars(&text("summary"), SUMMARY_CHARS),
                        "resolvedModel": agent.model,
                        "prompt": text("message"),
                        "outputFile": agent.output,
                        "canReadOutputFile": true,
                    });
                    ToolOutcome::text(launch_text(&agent), structured)
                }
                Err(why) => ToolOutcome::error(why),
            }
        })
    }
}
