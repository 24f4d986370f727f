//! Facts about tools that others act on: whoever clears results, keeps files or writes calls by hand reads them here
//! and keeps no list of tool names of his own.
//!
//! A tool says them in its descriptor. Where only a name is at hand (a resumed transcript, a call written by hand),
//! [`ToolFactTable`] finds them: it has the tools of a toolbox, those that were taken out of it too, since their results
//! may stand in the transcript, and then [`FOREIGN`], names that no toolbox has by itself.

use std::collections::BTreeMap;

use serde_json::Value;

/// What is so for every call of a tool. The default is a tool of which nothing is known, such as one of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolFacts {
    /// Whether its old results may be cleared: calling it again gives them again.
    pub is_clearable: bool,
    /// Whether it keeps a checkpoint of each file that it changes, so that the tree need not be compared around its
    /// calls.
    pub keeps_files: bool,
    /// Whether a bare run offers it.
    pub is_bare: bool,
    /// Whether it runs code, or programs beside loci; a restricted run does not offer it.
    pub runs_code: bool,
    /// Whether it is of use only where somebody can be asked.
    pub needs_person: bool,
    /// Whether it is of no use outside a conversation: it changes, looks up or sends something of it.
    pub needs_conversation: bool,
    /// Whether the model can do without being told of it until it looks for it.
    pub is_deferrable: bool,
    /// Whether a call may take as long as it takes: it has limits of its own, such as an agent's.
    pub is_unbounded: bool,
    /// The argument with the path of the one file that a call reads for the model.
    pub read_argument: Option<&'static str>,
    /// Whether its input goes out as the model wrote it: no defaults are filled in, and whoever runs it checks it.
    pub keeps_input: bool,
    /// How a call is written by hand; without it, only as JSON.
    pub main_argument: Option<MainArgument>,
}

/// The argument that a person writes behind a tool's name, as in `Read src/a.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MainArgument {
    /// Its name.
    pub name: &'static str,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// What stands for the other arguments that a call must have.
    pub others: &'static [(&'static str, &'static str)],
}

impl MainArgument {
    /// Returns an argument that must be there and is enough for a call.
    pub const fn alone(name: &'static str) -> Self {
        Self { name, is_optional: false, others: &[] }
    }

    /// Returns the input of a call that was written with this text behind the tool's name.
    pub fn input(&self, text: &str) -> Value {
        let main = (!self.is_optional || !text.is_empty()).then_some((self.name, text));
        let arguments = main.into_iter().chain(self.others.iter().copied());
        arguments.map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
    }
}

/// Names that the built-in toolbox does not have, but that transcripts, rules and people write: the Skill tool is made
/// for the skills of a session, and `Task` is the older name of the Agent tool.
const FOREIGN: [(&str, ToolFacts); 2] = [("Skill", foreign("skill")), ("Task", foreign("subagent_type"))];

const fn foreign(main: &'static str) -> ToolFacts {
    ToolFacts {
        is_clearable: false,
        keeps_files: false,
        is_bare: false,
        runs_code: false,
        needs_person: false,
        needs_conversation: false,
        is_deferrable: false,
        is_unbounded: false,
        read_argument: None,
        keeps_input: false,
        main_argument: Some(MainArgument::alone(main)),
    }
}

/// The facts of tools by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFactTable(BTreeMap<String, ToolFacts>);

impl ToolFactTable {
    /// Adds a tool; the first of a name stays.
    pub fn insert(&mut self, name: &str, facts: ToolFacts) {
        self.0.entry(name.to_owned()).or_insert(facts);
    }

    /// Returns the facts of a tool; of one that nobody knows, the default.
    pub fn facts(&self, name: &str) -> ToolFacts {
        let foreign = || FOREIGN.iter().find(|(foreign, _)| *foreign == name).map(|(_, facts)| *facts);
        self.0.get(name).copied().or_else(foreign).unwrap_or_default()
    }
}

impl<'a> FromIterator<(&'a str, ToolFacts)> for ToolFactTable {
    fn from_iter<T: IntoIterator<Item = (&'a str, ToolFacts)>>(tools: T) -> Self {
        let mut table = Self::default();
        tools.into_iter().for_each(|(name, facts)| table.insert(name, facts));
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_from_the_table_then_from_foreign_tools() {
        let mine = ToolFacts { is_bare: true, ..ToolFacts::default() };
        let table = ToolFactTable::from_iter([("WebFetch", mine), ("WebFetch", ToolFacts::default())]);
        assert_eq!(table.facts("WebFetch"), mine);
        assert_eq!(table.facts("Skill").main_argument, Some(MainArgument::alone("skill")));
        assert_eq!(table.facts("mcp__server__tool"), ToolFacts::default());
    }
}
