//! The set of tools a conversation has, found by name.

use std::sync::{Arc, OnceLock};

use loci_core::tool::ToolDescriptor;

use crate::{InputCheck, Tool};

/// Tools in the order they are offered; the order is part of the cached prompt and never changes in a session.
#[derive(Clone, Default)]
pub struct Toolbox {
    entries: Vec<Arc<Entry>>,
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
            if toolbox.find(&tool.descriptor().name).is_none() {
                toolbox.entries.push(Arc::new(Entry { tool, check: OnceLock::new() }));
            }
        }
        toolbox
    }

    /// Returns all built-in tools.
    pub fn builtin() -> Self {
        Self::new([
            Arc::new(crate::bash::Bash::default()) as Arc<dyn Tool>,
            Arc::new(crate::edit::Edit::default()),
            Arc::new(crate::glob::Glob::default()),
            Arc::new(crate::grep::Grep::default()),
            Arc::new(crate::notebook_edit::NotebookEdit::default()),
            Arc::new(crate::read::Read::default()),
            Arc::new(crate::recall::Recall::default()),
            Arc::new(crate::task_create::TaskCreate::default()),
            Arc::new(crate::task_get::TaskGet::default()),
            Arc::new(crate::task_list::TaskList::default()),
            Arc::new(crate::task_output::TaskOutput::default()),
            Arc::new(crate::task_stop::TaskStop::default()),
            Arc::new(crate::task_update::TaskUpdate::default()),
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

    /// Keeps only the tools `keep` says yes to.
    pub fn retain(&mut self, keep: impl Fn(&ToolDescriptor) -> bool) {
        self.entries.retain(|entry| keep(entry.tool.descriptor()));
    }

    /// Iterates over the descriptors in order.
    pub fn descriptors(&self) -> impl Iterator<Item = &ToolDescriptor> {
        self.entries.iter().map(|entry| entry.tool.descriptor())
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().map(Arc::as_ref).find(|entry| {
            let descriptor = entry.tool.descriptor();
            descriptor.name == name || descriptor.aliases.contains(&name)
        })
    }
}
