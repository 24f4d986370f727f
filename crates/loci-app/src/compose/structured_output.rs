//! An answer of a given shape: the tool that takes it, and how often the model may miss.

use std::sync::Arc;

use loci_engine::SessionConfig;
use loci_engine::turn::StructuredAnswerRule;
use loci_stdx::Env;
use loci_tools::{STRUCTURED_OUTPUT_TOOL, StructuredOutput};

use crate::options::RunOptions;
use crate::user_error::UserError;

/// How many attempts the model has, unless somebody says otherwise.
const ATTEMPTS: u32 = 5;
/// The variable that does.
const ATTEMPTS_VARIABLE: &str = "MAX_STRUCTURED_OUTPUT_RETRIES";

/// Asks for an answer of the shape that the options want, if they want one.
pub(super) fn offer_structured_output(
    config: &mut SessionConfig,
    options: &RunOptions,
) -> Result<(), UserError> {
    let Some(schema) = &options.json_schema else { return Ok(()) };
    let invalid = |problem: String| {
        UserError::new(format!("The JSON Schema of the answer cannot be used: {problem}"))
            .hint("It must be a valid JSON Schema that describes an object.")
    };
    let tool = StructuredOutput::new(schema).map_err(invalid)?;
    config.toolbox.retain(|tool| tool.name != STRUCTURED_OUTPUT_TOOL);
    config.toolbox.append(Arc::new(tool)).map_err(|error| invalid(error.to_string()))?;
    config.limits.structured = Some(StructuredAnswerRule {
        tool: STRUCTURED_OUTPUT_TOOL.to_owned(),
        max_attempts: attempts(&config.env),
    });
    Ok(())
}

fn attempts(env: &Env) -> u32 {
    let said = env.vars.non_empty(ATTEMPTS_VARIABLE).and_then(|text| text.trim().parse().ok());
    said.filter(|n| *n > 0).unwrap_or(ATTEMPTS)
}
