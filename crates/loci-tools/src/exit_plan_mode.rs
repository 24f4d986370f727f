//! ExitPlanMode: puts the plan before the user and ends plan mode when they approve it.
//!
//! The plan is what the plan file says; it is put into the call's input (`plan`, `planFilePath`), so that whoever is
//! asked, a hook or a person, sees it. A plan that comes back changed is what was approved, and goes to the file.

use std::path::Path;

use loci_core::tool::{CallEffects, Interaction, ToolAttachment, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_stdx::{WriteOptions, write_atomic};
use serde_json::{Value, json};

use crate::{Host, PlanView, Tool, ToolCall, ToolFuture, Workspace};

/// The ExitPlanMode tool.
pub(crate) struct ExitPlanMode {
    descriptor: ToolDescriptor,
}

impl Default for ExitPlanMode {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "ExitPlanMode".to_owned(),
            aliases: &[],
            description: include_str!("exit_plan_mode.md").trim_end().to_owned(),
            // Other programs' models send a plan, or permissions they would like: neither is an error.
            input_schema: json!({"type": "object", "properties": {}}),
            max_result_chars: None,
            facts: ToolFacts { needs_person: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for ExitPlanMode {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::interaction(Interaction::PlanApproval)
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    /// Puts the plan and its file into the input. A plan that the model sent itself counts only while the file has none.
    fn model_input(&self, input: Value, host: &dyn Host) -> Value {
        let Some(file) = host.plan().file else { return input };
        let mut input = if input.is_object() { input } else { json!({}) };
        if let Some(text) = read_plan(&file) {
            input["plan"] = Value::from(text);
        }
        input["planFilePath"] = Value::from(file.display().to_string());
        input
    }

    fn validate(&self, input: &Value, host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let refuse = |why: String| Err(Box::new(ToolOutcome::refusal(why)));
        let plan = host.plan();
        match plan_text(input) {
            _ if !plan.is_active => refuse("Plan mode is not on, so there is nothing to leave.".to_owned()),
            None => refuse(match plan.file {
                Some(file) => format!("There is no plan yet. Write it to {} first.", file.display()),
                None => "There is no plan yet.".to_owned(),
            }),
            Some(_) => Ok(()),
        }
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let plan = plan_text(&call.input).unwrap_or_default().to_owned();
            let PlanView { file, is_agents, .. } = host.plan();
            let before = file.as_deref().and_then(read_plan);
            let was_edited = before.as_deref() != Some(&plan);
            if let (Some(file), true) = (&file, was_edited) {
                let options = WriteOptions::private().creating_parents();
                if let Err(error) = write_atomic(file, plan.as_bytes(), &options) {
                    let place = file.display();
                    return ToolOutcome::error(format!(
                        "The approved plan could not be kept: `{place}`: {error}"
                    ));
                }
            }
            let reminder = host.end_plan(&plan);
            let mut structured = json!({"plan": plan, "isAgent": is_agents});
            if let Some(file) = &file {
                structured["filePath"] = Value::from(file.display().to_string());
            }
            if was_edited && before.is_some() {
                structured["planWasEdited"] = Value::from(true);
            }
            let is_other = was_edited && before.is_some();
            ToolOutcome {
                attachments: reminder.map(|attachment| ToolAttachment { attachment }).into_iter().collect(),
                ..ToolOutcome::text(approval_text(&plan, file.as_deref(), is_other, is_agents), structured)
            }
        })
    }
}

fn plan_text(input: &Value) -> Option<&str> {
    input.get("plan").and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

fn read_plan(file: &Path) -> Option<String> {
    loci_stdx::read_regular_to_string(file).ok().filter(|text| !text.trim().is_empty())
}

fn approval_text(plan: &str, file: Option<&Path>, was_edited: bool, is_agents: bool) -> String {
    let place = file.map(|file| format!(" It is kept in {}.", file.display())).unwrap_or_default();
    let how = if was_edited {
        "The user has changed the plan and approved it"
    } else {
        "The user has approved the plan"
    };
    let next = match is_agents {
        false => "You may begin; put its steps on the task list if there are several.",
        true => "Your part is done: answer with the plan, and carry nothing of it out.",
    };
    format!("{how}. {next}{place}\n\nThe plan:\n{plan}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;

    #[tokio::test]
    async fn plan_of_the_file_goes_into_the_input_and_an_edited_one_into_the_file() {
        let (tool, host) = (ExitPlanMode::default(), TestHost::new());
        assert!(host.call(&tool, json!({"plan": "x"})).await.is_failure(), "not planning");
        host.begin_plan().unwrap();
        let file = host.plan().file.unwrap();
        assert!(host.call(&tool, json!({})).await.is_failure(), "nothing is planned");
        std::fs::write(&file, "1. Build").unwrap();
        let input = tool.model_input(json!({"plan": "of the model"}), &host);
        assert_eq!(input["plan"], "1. Build");
        assert_eq!(input["planFilePath"], file.display().to_string());

        let mut edited = input.clone();
        edited["plan"] = json!("1. Build\n2. Test");
        let outcome = host.call(&tool, edited).await;
        assert_eq!(outcome.structured["planWasEdited"], true);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1. Build\n2. Test");
        assert!(!host.plan().is_active);
    }

    #[test]
    fn a_plan_always_needs_approval() {
        let (tool, host) = (ExitPlanMode::default(), TestHost::new());
        let effects = tool.effects(&json!({"plan": "x"}), &host.workspace());
        assert_eq!(effects.interaction, Some(Interaction::PlanApproval));
    }
}
