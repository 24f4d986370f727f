//! The set of tools a conversation has, found by name.

use std::sync::{Arc, OnceLock};

use loci_core::message::Block;
use loci_core::tool::{ToolDescriptor, ToolFactTable};
use serde_json::{Map, Value};

use crate::{InputCheck, RecordDirs, Tool};

/// Tools in the order they are offered; the order is part of the cached prompt and never changes in a session.
#[derive(Clone, Default)]
pub struct Toolbox {
    entries: Vec<Arc<Entry>>,
    /// Of every tool that was ever in it: results of tools that are gone stay in the transcript.
    facts: Arc<ToolFactTable>,
}

struct Entry {
    tool: Arc<dyn Tool>,
    check: OnceLock<InputCheck>,
}

impl Toolbox {
    /// Collects tools; a later tool of the same name is left out.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut toolbox = Self::default();
        for tool in tools {
            let descriptor = tool.descriptor();
            if toolbox.find(&descriptor.name).is_none() {
                Arc::make_mut(&mut toolbox.facts).insert(&descriptor.name, descriptor.facts);
                toolbox.entries.push(Arc::new(Entry { tool, check: OnceLock::new() }));
            }
        }
        toolbox
    }

    /// Returns all built-in tools; Recall looks up this conversation alone.
    pub fn builtin() -> Self {
        Self::with_record(None)
    }

    /// Returns all built-in tools; Recall may look up the record of the project.
    pub fn with_record(record: Option<RecordDirs>) -> Self {
        Self::new([
            Arc::new(crate::bash::Bash::default()) as Arc<dyn Tool>,
            Arc::new(crate::edit::Edit::default()),
            Arc::new(crate::glob::Glob::default()),
            Arc::new(crate::grep::Grep::default()),
            Arc::new(crate::notebook_edit::NotebookEdit::default()),
            Arc::new(crate::read::Read::default()),
            Arc::new(crate::recall::Recall::new(record)),
            Arc::new(crate::todo::task_create::TaskCreate::default()),
            Arc::new(crate::todo::task_get::TaskGet::default()),
            Arc::new(crate::todo::task_list::TaskList::default()),
            Arc::new(crate::shell_tasks::task_output::TaskOutput::default()),
            Arc::new(crate::shell_tasks::task_stop::TaskStop::default()),
            Arc::new(crate::todo::task_update::TaskUpdate::default()),
            Arc::new(crate::write::Write::default()),
        ])
    }

    /// Finds a tool by its name or one of its aliases.
    pub fn find(&self, name: &str) -> Option<&dyn Tool> {
        self.entry(name).map(|entry| entry.tool.as_ref())
    }

    /// Finds a tool to be held beyond the toolbox's borrow.
    pub fn find_shared(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.entry(name).map(|entry| Arc::clone(&entry.tool))
    }

    /// Returns the input check of a tool, compiled at its first use.
    pub fn input_check(&self, name: &str) -> Option<&InputCheck> {
        let entry = self.entry(name)?;
        Some(entry.check.get_or_init(|| InputCheck::new(&entry.tool.descriptor().input_schema)))
    }

    /// Returns a call's block as it is kept: with the defaults its schema has for what the model left out, first,
    /// as the shared format has them.
    pub fn with_defaults(&self, block: Block) -> Block {
        let Some(call) = block.tool_use() else { return block };
        let (Some(tool), Value::Object(given)) = (self.find(&call.name), &call.input) else { return block };
        let mut input = defaults(&tool.descriptor().input_schema);
        input.retain(|name, _| !given.contains_key(name));
        if input.is_empty() {
            return block;
        }
        input.extend(given.clone());
        let mut value = block.to_value();
        value["input"] = Value::Object(input);
        Block::from_value(&value).unwrap_or(block)
    }

    /// Offers only the tools `keep` says yes to; the facts of the others stay known.
    pub fn retain(&mut self, keep: impl Fn(&ToolDescriptor) -> bool) {
        self.entries.retain(|entry| keep(entry.tool.descriptor()));
    }

    /// Iterates over the descriptors in order.
    pub fn descriptors(&self) -> impl Iterator<Item = &ToolDescriptor> {
        self.entries.iter().map(|entry| entry.tool.descriptor())
    }

    /// Returns the facts of tools by name, of those that were taken out too.
    pub fn facts(&self) -> &ToolFactTable {
        &self.facts
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().map(Arc::as_ref).find(|entry| {
            let descriptor = entry.tool.descriptor();
            descriptor.name == name || descriptor.aliases.contains(&name)
        })
    }
}

fn defaults(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let defaults = properties.into_iter().flatten();
    defaults.filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use loci_core::tool::ToolFacts;
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_of_the_built_in_tools() {
        let tools = Toolbox::builtin();
        let with = |has: fn(&ToolFacts) -> bool| {
            let names = tools.descriptors().filter(|tool| has(&tool.facts)).map(|tool| tool.name.as_str());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(with(|facts| facts.is_clearable), "Bash Edit Glob Grep Read Write");
        assert_eq!(with(|facts| facts.keeps_files), "Edit NotebookEdit Write");
        assert_eq!(with(|facts| facts.is_bare), "Bash Edit Read");
        assert_eq!(with(|facts| facts.read_argument.is_some()), "Read");
        assert_eq!(with(|facts| facts.main_argument.is_some()), "Bash Edit Glob Grep Read Write");
    }

    /// A fact that names an argument which the schema does not have would be silently without effect.
    #[test]
    fn arguments_named_by_facts_are_in_the_schema() {
        for tool in Toolbox::builtin().descriptors() {
            let main = tool.facts.main_argument;
            let others = main.iter().flat_map(|main| main.others).map(|(name, _)| *name);
            let named = main.iter().map(|main| main.name).chain(others).chain(tool.facts.read_argument);
            for name in named {
                assert!(tool.input_schema["properties"].get(name).is_some(), "{} has no {name}", tool.name);
            }
        }
    }

    #[test]
    fn facts_of_a_tool_that_was_taken_out_stay_known() {
        let mut tools = Toolbox::builtin();
        tools.retain(|tool| tool.name == "Bash");
        assert!(tools.find("Read").is_none() && tools.facts().facts("Read").is_clearable);
    }

    #[test]
    fn what_a_model_left_out_is_filled_in_first() {
        let tools = Toolbox::builtin();
        let kept =
            |json: &Value| tools.with_defaults(Block::from_value(json).unwrap()).to_value().to_string();
        for (name, input, expected) in [
            ("Edit", json!({"file_path": "/a"}), r#"{"replace_all":false,"file_path":"/a"}"#),
            (
                "Edit",
                json!({"file_path": "/a", "replace_all": true}),
                r#"{"file_path":"/a","replace_all":true}"#,
            ),
            ("NotebookEdit", json!({}), r#"{"edit_mode":"replace"}"#),
            ("Read", json!({"file_path": "/a"}), r#"{"file_path":"/a"}"#),
            ("Unknown", json!({"a": 1}), r#"{"a":1}"#),
            ("Edit", json!("not an object"), r#""not an object""#),
        ] {
            let call = json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input, "caller": {"type": "direct"}});
            let expected = format!(
                r#"{{"type":"tool_use","id":"toolu_1","name":"{name}","input":{expected},"caller":{{"type":"direct"}}}}"#
            );
            assert_eq!(kept(&call), expected);
        }
        let text = json!({"type": "text", "text": "hi"});
        assert_eq!(kept(&text), text.to_string());
    }
}
