//! Skill: the model uses a skill by itself.
//!
//! The tool says which skills may be used and what using one needs of a person; the text of a skill is put together by
//! the engine, which wraps the call (`SkillLayer` there).

use std::sync::Arc;

use loci_core::skill::SkillDefinition;
use loci_core::tool::{CallEffects, MainArgument, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The tool's name.
pub const SKILL_TOOL: &str = "Skill";

/// The skills there are, right now.
pub trait SkillCatalog: Send + Sync {
    /// Returns a skill by its name.
    fn find(&self, name: &str) -> Option<Arc<SkillDefinition>>;

    /// Returns the whole names that end in this one and that the model may use: those of plugins, and of directories.
    fn whole_names(&self, name: &str) -> Vec<String>;
}

/// The Skill tool.
pub struct SkillTool {
    descriptor: ToolDescriptor,
    catalog: Arc<dyn SkillCatalog>,
}

impl SkillTool {
    /// Makes the tool for the skills of a catalog.
    pub fn new(catalog: Arc<dyn SkillCatalog>) -> Self {
        let descriptor = ToolDescriptor {
            name: SKILL_TOOL.to_owned(),
            aliases: &[],
            description: include_str!("skill.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "skill": {"type": "string", "description": "The name of the skill, as it is listed"},
                    "args": {"type": "string", "description": "What to hand to it"},
                },
                "required": ["skill"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts {
                needs_conversation: true,
                main_argument: Some(MainArgument::alone("skill")),
                ..ToolFacts::default()
            },
        };
        Self { descriptor, catalog }
    }

    /// Returns the skill that a call names, if the model may use it.
    fn skill(&self, input: &Value) -> Result<Arc<SkillDefinition>, String> {
        let name = skill_name(input);
        match self.catalog.find(name) {
            Some(skill) if skill.is_for_model => Ok(skill),
            Some(_) => Err(format!(
                "The skill `{name}` is for the user alone; ask them to type /{name}, and do not do its steps in another way"
            )),
            None => Err(match self.catalog.whole_names(name).join("`, `") {
                whole if whole.is_empty() => {
                    format!("There is no skill `{name}`; only those that are listed exist")
                }
                whole => format!("There is no skill `{name}`; the whole name counts: `{whole}`"),
            }),
        }
    }
}

/// Returns the name in a call's input; a slash before it is left out.
pub fn skill_name(input: &Value) -> &str {
    let name = input["skill"].as_str().unwrap_or_default().trim();
    name.strip_prefix('/').unwrap_or(name)
}

impl Tool for SkillTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, _place: &Workspace) -> CallEffects {
        match self.skill(input) {
            Ok(skill) => CallEffects { grants: skill.allowed_tools.clone(), ..CallEffects::default() },
            Err(why) => CallEffects::unknown(why),
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        self.skill(input).map(drop).map_err(|why| Box::new(ToolOutcome::refusal(format!("{why}."))))
    }

    fn run<'a>(&'a self, call: ToolCall, _host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let name = skill_name(&call.input);
            ToolOutcome::error(format!("The skill `{name}` cannot be used in this conversation."))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;
    use loci_core::skill::{SkillRegistry, SkillSource, parse_skill};

    struct Skills(SkillRegistry);

    impl SkillCatalog for Skills {
        fn find(&self, name: &str) -> Option<Arc<SkillDefinition>> {
            self.0.find(name).cloned()
        }

        fn whole_names(&self, name: &str) -> Vec<String> {
            if name == "go" { vec!["kit:go".to_owned(), "tools:go".to_owned()] } else { Vec::new() }
        }
    }

    fn tool() -> SkillTool {
        let skill = |name: &str, text: &str| parse_skill(text, name, SkillSource::bundled());
        let found = vec![
            skill("plain", "x"),
            skill("granting", "---\nallowed-tools: Bash(git *), Read\n---\nx"),
            skill("own", "---\ndisable-model-invocation: true\n---\nx"),
        ];
        SkillTool::new(Arc::new(Skills(SkillRegistry::new(found, Default::default()))))
    }

    #[test]
    fn skill_that_grants_nothing_needs_no_permission() {
        let place = TestHost::new().workspace();
        let effects = |name: &str| tool().effects(&json!({"skill": name}), &place);
        assert!(effects("plain").is_read_only() && effects("/plain").is_read_only());
        assert_eq!(effects("granting").grants, ["Bash(git *)", "Read"]);
        assert!(!effects("granting").is_read_only());
    }

    #[test]
    fn unknown_skills_and_those_of_people_are_refused() {
        let host = TestHost::new();
        let said = |name: &str| {
            let refused = tool().validate(&json!({"skill": name}), &host).err();
            refused.map(|outcome| outcome.structured.as_str().unwrap().to_owned())
        };
        assert_eq!(said("plain"), None);
        let own = "Error: The skill `own` is for the user alone; ask them to type /own, and do not do its steps in another way.";
        assert_eq!(said("own").as_deref(), Some(own));
        let none = "Error: There is no skill `none`; only those that are listed exist.";
        assert_eq!(said("none").as_deref(), Some(none));
        let several = "Error: There is no skill `go`; the whole name counts: `kit:go`, `tools:go`.";
        assert_eq!(said("go").as_deref(), Some(several));
    }
}
