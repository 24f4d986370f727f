//! Permission questions that a tool of an MCP server answers (`--permission-prompt-tool mcp__server__tool`).
//!
//! The tool is called with what a call would be, and answers with one text that holds the verdict. Whatever is not a clear
//! yes is a no.

use loci_engine::{Command, McpAction, Question};
use serde_json::{Value, json};

/// What the ids of our calls begin with; clients choose theirs.
const PREFIX: &str = "loci permission ";

/// Returns the call that asks the tool.
pub(super) fn ask_tool(tool: &str, question: &Question) -> Command {
    let input = json!({
        "tool_name": question.tool,
        "input": question.input,
        "tool_use_id": question.call.as_str(),
    });
    let action = McpAction::CallTool { tool: tool.to_owned(), input };
    Command::Mcp { request: format!("{PREFIX}{}", question.id), action }
}

/// Returns the question that an answered request is about, if it is one of ours.
pub(super) fn question_of(request: &str) -> Option<&str> {
    request.strip_prefix(PREFIX)
}

/// Reads what the tool said as a client's answer to the question.
pub(super) fn tool_verdict(outcome: &Result<Option<Value>, String>) -> Result<Value, String> {
    let result = outcome.as_ref().map_err(String::clone)?.as_ref();
    let text = result.and_then(|result| result["content"][0]["text"].as_str()).unwrap_or_default();
    if result.is_some_and(|result| result["isError"] == true) {
        return Err(text.to_owned());
    }
    serde_json::from_str(text)
        .map_err(|error| format!("the permission prompt tool did not answer with JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_block_holds_the_verdict_and_anything_else_is_an_error() {
        let said = |text: &str, is_error: bool| {
            Ok(Some(json!({"content": [{"type": "text", "text": text}], "isError": is_error})))
        };
        let yes = r#"{"behavior":"allow","updatedInput":{"a":1}}"#;
        assert_eq!(
            tool_verdict(&said(yes, false)),
            Ok(json!({"behavior": "allow", "updatedInput": {"a": 1}}))
        );
        for bad in [said("yes", false), said(yes, true), Ok(None), Err("no such tool".to_owned())] {
            assert!(tool_verdict(&bad).is_err(), "{bad:?}");
        }
        assert_eq!(question_of("loci permission q"), Some("q"));
        assert_eq!(question_of("r1"), None);
    }
}
