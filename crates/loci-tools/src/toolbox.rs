//! The set of tools a conversation has, found by name.
//!
//! Providers cache a request by its beginning, and the tools stand at the beginning. So what was offered keeps its place
//! and its bytes for as long as a conversation may have them cached: a tool that comes later is appended, one that goes
//! is only retired. Its descriptor stays in the list, a call of it finds nothing, and once the conversation is compacted
//! or begins anew, [`Toolbox::drop_retired`] forgets it.

mod deferral;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use loci_core::message::Block;
use loci_core::tool::{ToolDescriptor, ToolFactTable};
use serde_json::{Map, Value};

use crate::{InputCheck, RecordDirs, Tool, agent_tool};
use deferral::Deferral;
pub use deferral::SentTool;

/// Tools in the order they are offered; the order is part of the cached prompt.
#[derive(Clone, Default)]
pub struct Toolbox {
    offers: Vec<Offer>,
    /// Of every tool that was ever in it: results of tools that are gone stay in the transcript.
    facts: Arc<ToolFactTable>,
    /// Tools that are called in the place of others, by the name that the model says.
    redirects: Arc<BTreeMap<String, String>>,
}

/// A tool that the model was told of.
#[derive(Clone)]
struct Offer {
    entry: Arc<Entry>,
    /// Whether it is only listed for the sake of the cache.
    is_retired: bool,
    /// Whether the model has to look for it.
    deferral: Deferral,
}

struct Entry {
    tool: Arc<dyn Tool>,
    check: OnceLock<InputCheck>,
}

/// Why a tool was not appended. The others are not touched by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Another tool is offered under this name.
    #[error("There is a tool `{0}` already")]
    Taken(String),
    /// It is retired and was another tool then: one request cannot have both.
    #[error("The tool `{0}` has changed since it was offered; it is offered anew after a compaction")]
    Changed(String),
    /// Its input could not be checked, and a server would refuse the whole request.
    #[error("The input schema of the tool `{name}` is invalid: {problem}")]
    Schema {
        /// The tool.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl Toolbox {
    /// Collects tools; a later tool of the same name is left out.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut toolbox = Self::default();
        for tool in tools {
            let descriptor = tool.descriptor();
            if toolbox.find(&descriptor.name).is_none() {
                toolbox.offer(Entry { tool, check: OnceLock::new() });
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
            agent_tool(""),
            Arc::new(crate::bash::Bash::default()),
            Arc::new(crate::edit::Edit::default()),
            Arc::new(crate::glob::Glob::default()),
            Arc::new(crate::grep::Grep::default()),
            Arc::new(crate::agents::list_agents::ListAgents::default()),
            Arc::new(crate::notebook_edit::NotebookEdit::default()),
            Arc::new(crate::read::Read::default()),
            Arc::new(crate::recall::Recall::new(record)),
            Arc::new(crate::agents::send_message::SendMessage::default()),
            Arc::new(crate::todo::task_create::TaskCreate::default()),
            Arc::new(crate::todo::task_get::TaskGet::default()),
            Arc::new(crate::todo::task_list::TaskList::default()),
            Arc::new(crate::background_tasks::task_output::TaskOutput::default()),
            Arc::new(crate::background_tasks::task_stop::TaskStop::default()),
            Arc::new(crate::todo::task_update::TaskUpdate::default()),
            Arc::new(crate::write::Write::default()),
            Arc::new(crate::ask_user_question::AskUserQuestion::default()),
            Arc::new(crate::enter_plan_mode::EnterPlanMode::default()),
            Arc::new(crate::exit_plan_mode::ExitPlanMode::default()),
            Arc::new(crate::todo::todo_write::TodoWrite::default()),
            Arc::new(crate::enter_worktree::EnterWorktree::default()),
            Arc::new(crate::exit_worktree::ExitWorktree::default()),
            Arc::new(crate::schedule::cron_create::CronCreate::default()),
            Arc::new(crate::schedule::cron_delete::CronDelete::default()),
            Arc::new(crate::schedule::cron_list::CronList::default()),
            Arc::new(crate::schedule::schedule_wakeup::ScheduleWakeup::default()),
            Arc::new(crate::web_fetch::WebFetch::default()),
            Arc::new(crate::web_search::WebSearch::default()),
            Arc::new(crate::monitor::Monitor::default()),
        ])
    }

    /// Offers one more tool, behind the others. A retired tool of this name comes back if it is the same.
    pub fn append(&mut self, tool: Arc<dyn Tool>) -> Result<(), AppendError> {
        let descriptor = tool.descriptor();
        let name = descriptor.name.clone();
        let check = InputCheck::compile(&descriptor.input_schema)
            .map_err(|problem| AppendError::Schema { name: name.clone(), problem })?;
        self.append_entry(name, Entry { check: OnceLock::from(check), tool })
    }

    /// The same for a tool of ours, whose schema is known to be one: it is compiled when it is first called, since the
    /// first compilation in a process takes milliseconds.
    pub fn append_own(&mut self, tool: Arc<dyn Tool>) -> Result<(), AppendError> {
        self.append_entry(tool.descriptor().name.clone(), Entry { check: OnceLock::new(), tool })
    }

    fn append_entry(&mut self, name: String, entry: Entry) -> Result<(), AppendError> {
        match self.offers.iter_mut().find(|offer| offer.has_name(&name)) {
            None => self.offer(entry),
            Some(offer) if !offer.is_retired => return Err(AppendError::Taken(name)),
            Some(offer) if offer.entry.is_sent_as(&entry) => {
                (offer.entry, offer.is_retired) = (Arc::new(entry), false);
            }
            // What was never sent may become another.
            Some(offer) if offer.is_deferred() => (offer.entry, offer.is_retired) = (Arc::new(entry), false),
            Some(_) => return Err(AppendError::Changed(name)),
        }
        Ok(())
    }

    /// Puts a tool in the place of the one of its name, where there is one; for the time before anything was sent.
    pub fn replace(&mut self, tool: Arc<dyn Tool>) {
        let name = tool.descriptor().name.clone();
        if let Some(offer) = self.offers.iter_mut().find(|offer| offer.has_name(&name)) {
            (offer.entry, offer.is_retired) = (Arc::new(Entry { tool, check: OnceLock::new() }), false);
        }
    }

    /// Takes a tool away and leaves its descriptor where it is; false when it is not on offer.
    pub fn retire(&mut self, name: &str) -> bool {
        let mut offers = self.offers.iter_mut().filter(|offer| !offer.is_retired);
        let offer = offers.find(|offer| offer.has_name(name));
        offer.map(|offer| offer.is_retired = true).is_some()
    }

    /// Tells whether a tool was offered and is no longer available.
    pub fn is_retired(&self, name: &str) -> bool {
        self.offers.iter().any(|offer| offer.is_retired && offer.has_name(name))
    }

    /// Forgets retired tools, as soon as nothing of the conversation is cached any more; true when there were any.
    pub fn drop_retired(&mut self) -> bool {
        let n_before = self.offers.len();
        self.offers.retain(|offer| !offer.is_retired);
        self.offers.len() < n_before
    }

    /// Has tools called in the place of others, by the name that the model says.
    pub fn set_redirects(&mut self, redirects: BTreeMap<String, String>) {
        self.redirects = Arc::new(redirects);
    }

    /// Returns the tool that is meant by what the model says; it is not redirected once more.
    pub fn redirected<'a>(&'a self, name: &'a str) -> &'a str {
        self.redirects.get(name).map_or(name, String::as_str)
    }

    /// Finds a tool by its name or one of its aliases; neither a retired one nor one that has to be looked for is found.
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
        let tool = self.find(&call.name).filter(|tool| !tool.descriptor().facts.keeps_input);
        let (Some(tool), Value::Object(given)) = (tool, &call.input) else { return block };
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
        self.offers.retain(|offer| keep(offer.entry.tool.descriptor()));
    }

    /// Iterates in order over all tools there are, retired and deferred ones included.
    pub fn descriptors(&self) -> impl Iterator<Item = &ToolDescriptor> {
        self.offers.iter().map(|offer| offer.entry.tool.descriptor())
    }

    /// Iterates in order over the tools that can be called.
    pub fn available(&self) -> impl Iterator<Item = &ToolDescriptor> {
        self.offers.iter().filter(|offer| !offer.is_retired).map(|offer| offer.entry.tool.descriptor())
    }

    /// Returns the facts of tools by name, of those that were taken out too.
    pub fn facts(&self) -> &ToolFactTable {
        &self.facts
    }

    fn offer(&mut self, entry: Entry) {
        let descriptor = entry.tool.descriptor();
        Arc::make_mut(&mut self.facts).insert(&descriptor.name, descriptor.facts);
        self.offers.push(Offer { entry: Arc::new(entry), is_retired: false, deferral: Deferral::Offered });
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        let mut offers = self.offers.iter().filter(|offer| !offer.is_retired && !offer.is_deferred());
        offers.find(|offer| offer.has_name(name)).map(|offer| offer.entry.as_ref())
    }
}

impl Offer {
    fn is_deferred(&self) -> bool {
        self.deferral == Deferral::Deferred
    }

    fn has_name(&self, name: &str) -> bool {
        let descriptor = self.entry.tool.descriptor();
        descriptor.name == name || descriptor.aliases.contains(&name)
    }
}

impl Entry {
    /// Tells whether the model is told the same of another tool.
    fn is_sent_as(&self, other: &Self) -> bool {
        let [ours, theirs] = [self, other].map(|entry| entry.tool.descriptor());
        (&ours.name, &ours.description, &ours.input_schema)
            == (&theirs.name, &theirs.description, &theirs.input_schema)
    }
}

fn defaults(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let defaults = properties.into_iter().flatten();
    defaults.filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone()))).collect()
}

#[cfg(test)]
mod tests;
