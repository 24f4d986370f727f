//! A result that a hook put in the place of a tool's own.

use loci_core::message::Block;
use loci_core::tool::{ToolContent, ToolOutcome};
use serde_json::Value;

/// Puts `output` in the place of what a call came to; the error says why it does not fit.
pub(super) fn replace_output(outcome: ToolOutcome, output: Value) -> Result<ToolOutcome, String> {
    let content = match &output {
        Value::String(text) => ToolContent::Text(text.clone()),
        Value::Array(items) => {
            let blocks: Result<Vec<Block>, _> = items.iter().map(Block::from_value).collect();
            ToolContent::Blocks(
                blocks.map_err(|_| "`updatedToolOutput` is no list of content blocks".to_owned())?,
            )
        }
        Value::Object(fields) => {
            let own = outcome.structured.as_object();
            let missing =
                own.into_iter().flatten().map(|(key, _)| key).find(|key| !fields.contains_key(*key));
            match (own, missing) {
                (Some(_), None) => ToolContent::Text(text_of(&output)),
                (Some(_), Some(key)) => {
                    return Err(format!("`updatedToolOutput` has no `{key}`, as the tool's own has"));
                }
                (None, _) => {
                    return Err("`updatedToolOutput` is an object, and the tool's own is none".to_owned());
                }
            }
        }
        other => return Err(format!("`updatedToolOutput` cannot be {other}")),
    };
    Ok(ToolOutcome { content, structured: output, ..outcome })
}

/// Returns what of a structured output the model reads: the output of a command, the text of a file, or all of it.
fn text_of(output: &Value) -> String {
    let text =
        |pointer: &str| output.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let streams: Vec<&str> = ["/stdout", "/stderr"].into_iter().filter_map(text).collect();
    match (streams.is_empty(), text("/file/content").or_else(|| text("/content"))) {
        (false, _) => streams.join("\n"),
        (true, Some(content)) => content.to_owned(),
        (true, None) => output.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_of_a_hook_must_have_the_shape_of_the_tools_own() {
        let own = || ToolOutcome::text("secret", json!({"stdout": "secret", "stderr": ""}));
        for (output, expected) in [
            (json!({"stdout": "[gone]", "stderr": ""}), Ok("[gone]")),
            (json!("words"), Ok("words")),
            (json!({"stdout": "x"}), Err("`updatedToolOutput` has no `stderr`, as the tool's own has")),
            (json!(5), Err("`updatedToolOutput` cannot be 5")),
            (json!(["x"]), Err("`updatedToolOutput` is no list of content blocks")),
        ] {
            let replaced = replace_output(own(), output.clone());
            match (replaced, expected) {
                (Ok(outcome), Ok(text)) => {
                    assert_eq!(
                        (outcome.content, outcome.structured),
                        (ToolContent::Text(text.to_owned()), output)
                    );
                }
                (Err(problem), Err(expected)) => assert_eq!(problem, expected),
                (replaced, expected) => panic!("{replaced:?} is not {expected:?}"),
            }
        }
        let blocks = replace_output(own(), json!([{"type": "text", "text": "b"}])).unwrap();
        assert!(matches!(blocks.content, ToolContent::Blocks(blocks) if blocks.len() == 1));
    }
}
