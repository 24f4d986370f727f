//! A result that a hook put in the place of a tool's own.
//!
//! A hook that redacts must never be passed over in silence, so whatever can be understood counts: a text, content blocks,
//! and an object in the shape of a result, of which only what the model reads is needed. Nothing of the tool's own result is
//! kept beside it. What cannot be understood is told the user, and the tool's own stays.

use loci_core::message::Block;
use loci_core::tool::{ToolContent, ToolOutcome};
use serde_json::{Map, Value, json};

/// What the model reads where a command printed nothing.
const NO_OUTPUT: &str = "(no output)";

/// Why an output of a hook cannot take the place of a result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum UnusableOutput {
    #[error("`updatedToolOutput` cannot be {0}")]
    NoResult(Value),
    #[error("`updatedToolOutput` is no list of content blocks")]
    NoBlocks,
    #[error("`updatedToolOutput` has no `{0}`, as the tool's own has")]
    Lacks(String),
    #[error("`updatedToolOutput` is an object, and the tool's own is none")]
    OwnIsNoObject,
}

/// Puts `output` in the place of what a call came to; the error says why it does not fit.
pub(super) fn replace_output(outcome: ToolOutcome, output: Value) -> Result<ToolOutcome, UnusableOutput> {
    let (content, structured) = match output {
        Value::String(text) => (ToolContent::Text(text.clone()), Value::String(text)),
        Value::Array(items) => (blocks(&items)?, Value::Array(items)),
        Value::Object(fields) => {
            let own = outcome.structured.as_object();
            let content = content_of(own, &fields)?;
            (content, Value::Object(completed(fields)))
        }
        other => return Err(UnusableOutput::NoResult(other)),
    };
    Ok(ToolOutcome { content, structured, ..outcome })
}

fn blocks(items: &[Value]) -> Result<ToolContent, UnusableOutput> {
    let blocks: Result<Vec<Block>, _> = items.iter().map(Block::from_value).collect();
    let blocks = blocks.map_err(|_| UnusableOutput::NoBlocks)?;
    Ok(ToolContent::Blocks(blocks))
}

/// Returns what of an object the model reads: the output of a command, the text of a file, names of files, content blocks;
/// or all of it, where it has every key of the tool's own.
fn content_of(
    own: Option<&Map<String, Value>>,
    fields: &Map<String, Value>,
) -> Result<ToolContent, UnusableOutput> {
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    if let Some(stdout) = text("stdout") {
        let streams: Vec<&str> =
            [stdout, text("stderr").unwrap_or_default()].into_iter().filter(|it| !it.is_empty()).collect();
        let shown = if streams.is_empty() { NO_OUTPUT.to_owned() } else { streams.join("\n") };
        return Ok(ToolContent::Text(shown));
    }
    let of_file = fields.get("file").and_then(|file| file.get("content")).and_then(Value::as_str);
    if let Some(content) = of_file {
        return Ok(ToolContent::Text(content.to_owned()));
    }
    if let Some(items) = fields.get("content").and_then(Value::as_array) {
        return blocks(items);
    }
    let names = fields.get("filenames").and_then(Value::as_array);
    let names = names.map(|names| names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"));
    if let Some(said) = text("content").map(str::to_owned).filter(|said| !said.is_empty()).or(names) {
        return Ok(ToolContent::Text(if said.is_empty() { NO_OUTPUT.to_owned() } else { said }));
    }
    match own {
        Some(own) => match own.keys().find(|key| !fields.contains_key(*key)) {
            None => Ok(ToolContent::Text(Value::Object(fields.clone()).to_string())),
            Some(key) => Err(UnusableOutput::Lacks(key.clone())),
        },
        None => Err(UnusableOutput::OwnIsNoObject),
    }
}

/// Adds what every result of a command has. Nothing comes from the result that was replaced: that may be what is hidden.
fn completed(mut fields: Map<String, Value>) -> Map<String, Value> {
    if fields.contains_key("stdout") {
        let usual = [("stderr", json!("")), ("interrupted", json!(false)), ("isImage", json!(false))];
        for (key, value) in usual {
            fields.entry(key).or_insert(value);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_result() -> ToolOutcome {
        let own = json!({"stdout": "secret", "stderr": "secret", "interrupted": false, "isImage": false,
            "noOutputExpected": false, "persistedOutputPath": "/secret"});
        ToolOutcome::text("secret\nsecret", own)
    }

    #[test]
    fn documented_shape_of_a_command_replaces_without_further_keys() {
        for (output, shown, kept) in [
            (
                json!({"stdout": "[gone]", "stderr": "", "interrupted": false, "isImage": false}),
                "[gone]",
                json!({"stdout": "[gone]", "stderr": "", "interrupted": false, "isImage": false}),
            ),
            (
                json!({"stdout": "[gone]"}),
                "[gone]",
                json!({"stdout": "[gone]", "stderr": "", "interrupted": false, "isImage": false}),
            ),
            (
                json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false, "more": 1}),
                "(no output)",
                json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false, "more": 1}),
            ),
            (json!("words"), "words", json!("words")),
        ] {
            let outcome = replace_output(command_result(), output.clone()).unwrap();
            assert_eq!(outcome.content, ToolContent::Text(shown.to_owned()), "{output}");
            assert_eq!(outcome.structured, kept, "{output}");
        }
    }

    #[test]
    fn results_of_other_tools_are_replaced_by_what_the_model_reads_of_them() {
        for (own, output, shown) in [
            (
                json!({"type": "text", "file": {"content": "secret"}}),
                json!({"type": "text", "file": {"filePath": "/f", "content": "[gone]", "numLines": 1}}),
                "[gone]",
            ),
            (
                json!({"mode": "content", "content": "secret", "numLines": 3, "appliedLimit": 3}),
                json!({"mode": "content", "numFiles": 0, "filenames": [], "content": "[gone]", "numLines": 1}),
                "[gone]",
            ),
            (
                json!({"mode": "files_with_matches", "filenames": ["/secret"], "numFiles": 1, "totalFiles": 1}),
                json!({"mode": "files_with_matches", "filenames": ["/a", "/b"], "numFiles": 2}),
                "/a\n/b",
            ),
            (json!({"own": 1}), json!({"own": 2}), r#"{"own":2}"#),
        ] {
            let outcome = replace_output(ToolOutcome::text("secret", own), output.clone()).unwrap();
            assert_eq!(outcome.content, ToolContent::Text(shown.to_owned()), "{output}");
        }
        for output in
            [json!([{"type": "text", "text": "b"}]), json!({"content": [{"type": "text", "text": "b"}]})]
        {
            let outcome = replace_output(ToolOutcome::text("secret", "secret".into()), output).unwrap();
            assert!(matches!(outcome.content, ToolContent::Blocks(blocks) if blocks.len() == 1));
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused_with_the_reason() {
        let by_words = ToolOutcome::text("secret", "secret".into());
        for (own, output, expected) in [
            (command_result(), json!({"x": 1}), "has no `stdout`, as the tool's own has"),
            (command_result(), json!(5), "cannot be 5"),
            (command_result(), json!(["x"]), "is no list of content blocks"),
            (by_words, json!({"x": 1}), "is an object, and the tool's own is none"),
        ] {
            let problem = replace_output(own, output.clone()).unwrap_err();
            assert_eq!(problem.to_string(), format!("`updatedToolOutput` {expected}"), "{output}");
        }
    }
}
