//! EnterPlanMode: begins to plan before anything is changed.

use loci_core::tool::{CallEffects, ToolAttachment, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

const ENTERED: &str = "Plan mode is on. What that means is said below.";

/// The EnterPlanMode tool.
pub(crate) struct EnterPlanMode {
    descriptor: ToolDescriptor,
}

impl Default for EnterPlanMode {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "EnterPlanMode".to_owned(),
            aliases: &[],
            description: include_str!("enter_plan_mode.md").trim_end().to_owned(),
            input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
            max_result_chars: None,
            facts: ToolFacts { needs_person: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for EnterPlanMode {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// It allows less than before: that needs nobody's leave.
    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn validate(&self, _input: &Value, host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        match host.plan().is_active {
            true => Err(Box::new(ToolOutcome::refusal("Plan mode is on already."))),
            false => Ok(()),
        }
    }

    fn run<'a>(&'a self, _call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            match host.begin_plan() {
                Ok(reminder) => ToolOutcome {
                    attachments: vec![ToolAttachment { attachment: reminder }],
                    ..ToolOutcome::text(ENTERED, json!({"message": ENTERED}))
                },
                Err(why) => ToolOutcome::error(format!("Plan mode cannot be used: {why}")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use loci_core::entry::AttachmentKind;

    use super::*;
    use crate::testing::TestHost;

    #[tokio::test]
    async fn entering_brings_the_reminder_and_is_refused_twice() {
        let (tool, host) = (EnterPlanMode::default(), TestHost::new());
        let outcome = host.call(&tool, json!({})).await;
        assert!(!outcome.is_failure());
        assert_eq!(outcome.attachments[0].attachment.kind(), Some(AttachmentKind::PlanMode));
        assert!(host.call(&tool, json!({})).await.is_failure());
    }
}
