//! The tool `ToolSearch`: brings tools that the model knows by name only.
//!
//! Its result names what was found (`tool_reference`); whoever runs the conversation offers those tools from the next
//! request on, and the provider puts their descriptions where the result stands.

mod rank;

use loci_core::message::Block;
use loci_core::tool::{CallEffects, ToolContent, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The tool's name.
pub const TOOL_SEARCH: &str = "ToolSearch";

/// How many tools come where the model does not say, and at most.
const USUAL_RESULTS: u64 = 5;
const MOST_RESULTS: u64 = 50;

/// A tool that can be looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchableTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
}

/// Looks for tools.
pub struct ToolSearch {
    descriptor: ToolDescriptor,
}

impl Default for ToolSearch {
    fn default() -> Self {
        let input_schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "`select:Name,Other`, or words to look for"},
                "max_results": {"type": "number", "description": "The most tools that come", "default": USUAL_RESULTS},
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        Self {
            descriptor: ToolDescriptor {
                name: TOOL_SEARCH.to_owned(),
                aliases: &[],
                description: include_str!("tool_search.md").trim_end().to_owned(),
                input_schema,
                max_result_chars: None,
                facts: ToolFacts { needs_conversation: true, ..ToolFacts::default() },
            },
        }
    }
}

impl Tool for ToolSearch {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let query = call.input.get("query").and_then(Value::as_str).unwrap_or_default();
            let most =
                call.input.get("max_results").and_then(Value::as_f64).map_or(USUAL_RESULTS, |n| n as u64);
            let tools = host.searchable_tools();
            let found = rank::find(query, most.clamp(1, MOST_RESULTS) as usize, &tools);
            outcome(query, &found, &tools, host)
        })
    }
}

fn outcome(query: &str, found: &[String], tools: &[SearchableTool], host: &dyn Host) -> ToolOutcome {
    let structured = json!({"matches": found, "query": query, "total_deferred_tools": tools.len()});
    if found.is_empty() {
        let note = host.search_note().map(|note| format!(" {note}")).unwrap_or_default();
        return ToolOutcome::text(
            format!("No tool fits `{}`.{note}", loci_stdx::single_line(query, 200)),
            structured,
        );
    }
    let blocks = found
        .iter()
        .filter_map(|name| Block::from_value(&json!({"type": "tool_reference", "tool_name": name})).ok());
    let content = ToolContent::Blocks(blocks.collect());
    ToolOutcome { content, is_error: None, structured, attachments: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_tools_are_named_by_references() {
        let tools = vec![SearchableTool { name: "a".to_owned(), description: String::new() }];
        let host = crate::testing::TestHost::new();
        let found = outcome("a", &["a".to_owned()], &tools, &host);
        assert_eq!(found.content.to_value(), json!([{"type": "tool_reference", "tool_name": "a"}]));
        let none = outcome("b", &[], &tools, &host);
        assert_eq!(none.content.to_value(), json!("No tool fits `b`."));
    }
}
