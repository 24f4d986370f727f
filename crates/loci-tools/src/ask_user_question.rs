//! AskUserQuestion: puts questions to the user and returns what they said.
//!
//! The tool itself asks nobody. Its calls need a person ([`Interaction::Answers`]), so they become a permission question;
//! whoever answers that hands the input back with the answers in it, and the call runs with them.

use loci_core::tool::{CallEffects, Interaction, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_core::user_question::{
    AnsweredQuestions, check_questions, is_answered, parse_questions, without_answers,
};
use serde_json::{Value, json};

use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The AskUserQuestion tool.
pub(crate) struct AskUserQuestion {
    descriptor: ToolDescriptor,
}

impl Default for AskUserQuestion {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "AskUserQuestion".to_owned(),
            aliases: &[],
            description: include_str!("ask_user_question.md").trim_end().to_owned(),
            input_schema: input_schema(),
            max_result_chars: None,
            facts: ToolFacts { needs_person: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

/// What is filled in by whoever asks the user is not in it, and not forbidden by it.
fn input_schema() -> Value {
    let option = json!({
        "type": "object",
        "properties": {
            "label": {"type": "string", "description": "What is chosen, in one to five words"},
            "description": {"type": "string", "description": "What choosing it means"},
            "preview": {"type": "string", "description": "Something to show beside it, in Markdown"},
        },
        "required": ["label", "description"],
        "additionalProperties": false,
    });
    let question = json!({
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "The whole question, ending with a question mark"},
            "header": {"type": "string", "description": "A word or two for its tab, 12 characters at most"},
            "options": {"type": "array", "minItems": 2, "maxItems": 4, "items": option},
            "multiSelect": {
                "type": "boolean",
                "default": false,
                "description": "Whether more than one option may be chosen",
            },
        },
        "required": ["question", "header", "options", "multiSelect"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {
            "questions": {"type": "array", "minItems": 1, "maxItems": 4, "items": question},
            "metadata": {
                "type": "object",
                "properties": {"source": {"type": "string", "description": "What the questions belong to"}},
            },
        },
        "required": ["questions"],
    })
}

impl Tool for AskUserQuestion {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, _place: &Workspace) -> CallEffects {
        match is_answered(input) {
            true => CallEffects::default(),
            false => CallEffects::interaction(Interaction::Answers),
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn model_input(&self, input: Value, _host: &dyn Host) -> Value {
        without_answers(input)
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let checked = parse_questions(input).and_then(|questions| check_questions(&questions));
        checked.map_err(|why| Box::new(ToolOutcome::refusal(format!("{why}."))))
    }

    fn run<'a>(&'a self, call: ToolCall, _host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let AnsweredQuestions { text, structured } = AnsweredQuestions::read(&call.input);
            ToolOutcome::text(text, structured)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;

    fn input() -> Value {
        json!({"questions": [{"question": "Tabs?", "header": "Style", "options": [
            {"label": "Tabs", "description": "one a level"}, {"label": "Spaces", "description": "four a level"},
        ]}]})
    }

    #[tokio::test]
    async fn answers_that_came_back_are_told_in_the_shared_shape() {
        let (tool, host) = (AskUserQuestion::default(), TestHost::new());
        let mut filled = input();
        filled["answers"] = json!({"Tabs?": "Tabs"});
        let outcome = host.call(&tool, filled).await;
        assert!(!outcome.is_failure());
        assert_eq!(outcome.structured["answers"], json!({"Tabs?": "Tabs"}));
        assert_eq!(outcome.structured["questions"][0]["multiSelect"], false, "defaults are filled in");
    }

    #[test]
    fn call_needs_a_person_until_it_is_answered_and_the_model_answers_nothing() {
        let (tool, host) = (AskUserQuestion::default(), TestHost::new());
        let needs = |input: &Value| tool.effects(input, &host.workspace()).interaction;
        assert_eq!(needs(&input()), Some(Interaction::Answers));
        let mut filled = input();
        filled["answers"] = json!({"Tabs?": "Tabs"});
        assert_eq!(needs(&filled), None);
        assert_eq!(needs(&tool.model_input(filled, &host)), Some(Interaction::Answers));
        assert!(!tool.effects(&input(), &host.workspace()).is_read_only());
    }

    #[tokio::test]
    async fn questions_that_do_not_fit_are_refused() {
        let (tool, host) = (AskUserQuestion::default(), TestHost::new());
        for change in [
            (|it| it["questions"] = json!([])) as fn(&mut Value),
            |it| it["questions"][0]["options"] = json!([{"label": "One", "description": ""}]),
            |it| it["questions"][0]["options"][1]["label"] = json!("Tabs"),
            |it| it["questions"] = json!("Tabs?"),
        ] {
            let mut input = input();
            change(&mut input);
            assert!(host.call(&tool, input.clone()).await.is_failure(), "{input}");
        }
    }
}
