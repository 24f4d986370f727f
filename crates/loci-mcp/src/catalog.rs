//! What a server offers: tools, resources and prompts, read leniently.
//!
//! One item that cannot be read costs itself: it is left out and named, and the others are as if it were not there.

mod header_params;

use serde_json::{Value, json};

pub(crate) use header_params::HeaderParam;

use crate::names::{brief, visible_excerpt};
use crate::schema::input_schema;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name, as the server knows it.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, fit to be shown.
    pub description: String,
    /// The schema of its input, fit to be sent.
    pub input_schema: Value,
    /// The schema of the data that it returns, where the server says so.
    pub output_schema: Option<Value>,
    /// The schema of its input as the server wrote it, where that is different.
    pub declared_schema: Option<Value>,
    /// Which parameters a header says again, or why that cannot be told.
    pub(crate) header_params: Result<Vec<HeaderParam>, String>,
    /// Whether the server says that it only reads.
    pub is_read_only: bool,
    /// What the server says of it, as it came.
    pub annotations: Value,
    /// Whether it is offered even where tools are looked up.
    pub always_load: bool,
    /// Whether a person must be asked, whatever rules say.
    pub requires_user: bool,
    /// How long its results may be, where the server says so.
    pub max_result_chars: Option<usize>,
    /// Whether it can only be called as a task.
    pub needs_task: bool,
}

/// Something that can be read from a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Its type.
    pub mime_type: Option<String>,
}

/// A prompt that a server has ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSpec {
    /// Its name, as the server knows it.
    pub name: String,
    /// What it asks, for people.
    pub description: String,
    /// What is to be filled in, in order.
    pub arguments: Vec<PromptArgument>,
}

/// What is to be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Whether the prompt needs it.
    pub is_required: bool,
}

/// The longest result that a tool may ask for.
const MOST_RESULT_CHARS: u64 = 500_000;

impl ToolSpec {
    /// Reads one item of a list of tools.
    pub fn parse(item: &Value) -> Result<Self, String> {
        let name = text(item, "name").ok_or("it has no name")?;
        let annotations = item.get("annotations").cloned().unwrap_or(Value::Null);
        let meta = |key: &str| item.get("_meta").and_then(|meta| meta.get(key));
        let is_set = |key: &str| meta(key).and_then(Value::as_bool).unwrap_or(false);
        let declared = item.get("inputSchema").unwrap_or(&Value::Null);
        let input_schema = input_schema(declared)?;
        Ok(Self {
            title: text(item, "title").or_else(|| text(&annotations, "title")),
            description: visible_excerpt(item.get("description").and_then(Value::as_str).unwrap_or_default()),
            declared_schema: (input_schema != *declared).then(|| declared.clone()),
            header_params: HeaderParam::find(declared),
            output_schema: item.get("outputSchema").filter(|schema| schema.is_object()).cloned(),
            input_schema,
            is_read_only: annotations.get("readOnlyHint").and_then(Value::as_bool).unwrap_or(false),
            annotations,
            always_load: is_set("anthropic/alwaysLoad"),
            needs_task: item.get("execution").and_then(|it| it.get("taskSupport"))
                == Some(&json!("required")),
            requires_user: is_set("anthropic/requiresUserInteraction"),
            max_result_chars: meta("anthropic/maxResultSizeChars")
                .and_then(Value::as_u64)
                .map(|limit| limit.min(MOST_RESULT_CHARS) as usize),
            name,
        })
    }
}

impl Resource {
    /// Reads one item of a list of resources.
    pub(crate) fn parse(item: &Value) -> Result<Self, String> {
        let uri = text(item, "uri").ok_or("it has no address")?;
        Ok(Self {
            name: text(item, "name").unwrap_or_else(|| uri.clone()),
            description: text(item, "description").map(|text| visible_excerpt(&text)),
            mime_type: text(item, "mimeType"),
            uri,
        })
    }
}

impl PromptSpec {
    /// Reads one item of a list of prompts.
    pub(crate) fn parse(item: &Value) -> Result<Self, String> {
        let arguments = item.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let arguments = arguments.filter_map(|argument| {
            Some(PromptArgument {
                name: text(argument, "name")?,
                is_required: argument.get("required").and_then(Value::as_bool).unwrap_or(false),
            })
        });
        Ok(Self {
            name: text(item, "name").ok_or("it has no name")?,
            description: visible_excerpt(item.get("description").and_then(Value::as_str).unwrap_or_default()),
            arguments: arguments.collect(),
        })
    }
}

/// Reads the items of a page; returns those that can be read and what is wrong with the others.
pub(crate) fn parse_items<T>(
    page: &Value,
    key: &str,
    parse: impl Fn(&Value) -> Result<T, String>,
) -> (Vec<T>, Vec<String>) {
    let mut items = Vec::new();
    let mut problems = Vec::new();
    let Some(Value::Array(list)) = page.get(key) else {
        return (items, vec![format!("the answer has no list of {key}")]);
    };
    for (at, item) in list.iter().enumerate() {
        match parse(item) {
            Ok(item) => items.push(item),
            Err(problem) => {
                let name =
                    text(item, "name").map_or_else(|| format!("number {}", at + 1), |name| brief(&name));
                problems.push(format!("`{name}` of its {key} is left out: {problem}"));
            }
        }
    }
    (items, problems)
}

fn text(item: &Value, key: &str) -> Option<String> {
    item.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn malformed_tool_costs_itself_only() {
        let page = json!({"tools": [
            {"name": "good", "inputSchema": {"type": "object"}},
            {"name": "bad", "inputSchema": "object"},
            {"inputSchema": {"type": "object"}},
            7,
            {"name": "other", "description": "d", "inputSchema": {}, "annotations": {"readOnlyHint": true},
             "_meta": {"anthropic/maxResultSizeChars": 9_999_999}},
        ]});
        let (tools, problems) = parse_items(&page, "tools", ToolSpec::parse);
        let names: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.is_read_only)).collect();
        assert_eq!(names, [("good", false), ("other", true)]);
        assert_eq!(tools[1].max_result_chars, Some(500_000));
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("`bad`") && problems[1].contains("number 3"), "{problems:?}");
        assert_eq!(parse_items(&json!({}), "tools", ToolSpec::parse).1.len(), 1);
    }

    #[test]
    fn prompts_have_their_arguments_in_order() {
        let item =
            json!({"name": "review", "arguments": [{"name": "file", "required": true}, {}, {"name": "how"}]});
        let prompt = PromptSpec::parse(&item).unwrap();
        let arguments: Vec<_> =
            prompt.arguments.iter().map(|it| (it.name.as_str(), it.is_required)).collect();
        assert_eq!(arguments, [("file", true), ("how", false)]);
    }
}
