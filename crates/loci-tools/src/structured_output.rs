//! StructuredOutput: the call by which the model gives an answer of the shape that was asked for.
//!
//! Its input schema is the one of whoever asked, so a call that fits is the answer: the engine ends the turn with it.
//! `format` is an annotation and checks nothing, as the reference has it.

use loci_core::entry::Attachment;
use loci_core::tool::{CallEffects, ToolAttachment, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Map, Value, json};

use crate::{Host, InputCheck, Tool, ToolCall, ToolFuture, Workspace};

/// The tool's name.
pub const STRUCTURED_OUTPUT_TOOL: &str = "StructuredOutput";

/// The StructuredOutput tool.
pub struct StructuredOutput {
    descriptor: ToolDescriptor,
    check: InputCheck,
}

impl StructuredOutput {
    /// Makes the tool for a schema; the error says what is wrong with that.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let schema = object_schema(schema)?;
        let check = InputCheck::compile(&schema)?;
        let descriptor = ToolDescriptor {
            name: STRUCTURED_OUTPUT_TOOL.to_owned(),
            aliases: &[],
            description: include_str!("structured_output.md").trim_end().to_owned(),
            input_schema: schema,
            max_result_chars: None,
            // The answer is what the model wrote: nothing is filled in, and no argument of it names a file or a command.
            facts: ToolFacts { keeps_input: true, ..ToolFacts::default() },
        };
        Ok(Self { descriptor, check })
    }
}

/// Returns a schema that describes an object, as the input of a call must be one.
fn object_schema(schema: &Value) -> Result<Value, String> {
    let Value::Object(fields) = schema else { return Err("it is not a JSON object".to_owned()) };
    let has_type = fields.contains_key("type");
    let mut fields: Map<String, Value> = fields.clone();
    if !has_type {
        fields.insert("type".to_owned(), json!("object"));
    }
    Ok(Value::Object(fields))
}

impl Tool for StructuredOutput {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        self.check.check_exactly(input).map_err(|problem| {
            Box::new(ToolOutcome::invalid_input(format!("the answer does not fit its schema:\n{problem}")))
        })
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, call: ToolCall, _host: &'a dyn Host) -> ToolFuture<'a> {
        let attachment = Attachment::StructuredOutput { data: call.input.clone() };
        let mut outcome = ToolOutcome::text("The answer was taken.", call.input);
        outcome.attachments.push(ToolAttachment { attachment });
        Box::pin(std::future::ready(outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_validated_at_start() {
        for (schema, problem) in [
            (json!({"type": "object", "properties": {"a": {"type": "string"}}}), None),
            (json!({"properties": {"a": {"type": "string", "format": "email"}}}), None),
            (json!({}), None),
            (json!({"type": "array"}), Some("object")),
            (json!({"type": "nonsense"}), Some("object")),
            (json!({"type": "object", "properties": {"a": {"type": "nonsense"}}}), Some("nonsense")),
            (json!("text"), Some("JSON object")),
        ] {
            let found = StructuredOutput::new(&schema).err();
            assert_eq!(found.is_some(), problem.is_some(), "{schema}: {found:?}");
            assert!(found.unwrap_or_default().contains(problem.unwrap_or_default()), "{schema}");
        }
    }

    #[test]
    fn format_is_not_enforced() {
        for draft in
            ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
        {
            let schema =
                json!({"$schema": draft, "properties": {"a": {"type": "string", "format": "email"}}});
            let tool = StructuredOutput::new(&schema).unwrap();
            assert_eq!(tool.check.check_exactly(&json!({"a": "no address"})), Ok(()), "{draft}");
            assert!(tool.check.check_exactly(&json!({"a": 1})).is_err(), "{draft}");
        }
    }
}
