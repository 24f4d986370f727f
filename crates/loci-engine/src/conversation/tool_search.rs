//! Tools that the model looks for: which are deferred, what it is told of them, and what it has found.
//!
//! All of it can be told from the transcript. The model is told the names in an attachment (`deferred_tools_delta`), which
//! grows by further ones; what it found is named in results (`tool_reference`); and what it had found before a compaction is
//! named in the first attachment behind it. So a resumed session sends the bytes that the live one would have.

use std::sync::Arc;

use loci_context::prose_tokens;
use loci_core::entry::{Attachment, AttachmentKind, Entry, EntryKind};
use loci_core::message::BlockKind;
use loci_core::tool::{ToolContent, ToolDescriptor, ToolOutcome};
use loci_tools::{SearchableTool, TOOL_SEARCH, Tool, ToolSearch, Toolbox};
use serde_json::Value;

use super::Conversation;
use super::compaction::Compactor;
use super::context_sources::ContextSources;
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use crate::conversation::recorder::Recorder;
use crate::extensions::mcp::McpConfig;
use crate::session::config::ToolSearchMode;

/// How tools are looked for in a conversation.
#[derive(Debug, Default)]
pub(crate) struct ToolSearchState {
    mode: ToolSearchMode,
    /// Whether tools are deferred by now; that is never taken back.
    is_on: bool,
    /// What was found, in order: before the last compaction, and since. Tools that are not there yet are among them.
    settled: Vec<String>,
    loaded: Vec<String>,
}

impl ToolSearchState {
    /// Goes on from the tools of another conversation, as they stand there.
    pub(super) fn of(toolbox: &Toolbox) -> Self {
        let is_on = toolbox.find(TOOL_SEARCH).is_some();
        Self { mode: ToolSearchMode::Off, is_on, settled: toolbox.settled(), loaded: toolbox.loaded() }
    }
}

/// Returns what can be looked for.
pub(super) fn searchable(toolbox: &Toolbox) -> Vec<SearchableTool> {
    let tools = toolbox.deferred();
    tools
        .map(|tool| SearchableTool { name: tool.name.clone(), description: tool.description.clone() })
        .collect()
}

impl Conversation {
    /// Begins with what a conversation has found so far.
    pub(crate) fn set_tool_search(&mut self, mode: ToolSearchMode) {
        if mode == ToolSearchMode::Off {
            return;
        }
        let (settled, loaded) = found_in(self.recorder.path());
        self.tools.search = ToolSearchState { mode, is_on: false, settled, loaded };
        if self.tools.search.mode.is_on(0, 1) {
            self.tools.begin_search(&self.recorder);
        }
        self.tools.offer_found(&self.scope, &mut self.sources);
    }
}

impl ToolSet {
    /// Has tools looked for from now on; those that were sent stay as they are.
    fn begin_search(&mut self, recorder: &Recorder) {
        if std::mem::replace(&mut self.search.is_on, true) {
            return;
        }
        let path = recorder.path();
        // What was deferred before is again; what was sent before stays where it was.
        match deferred_in(path) {
            Some(names) => self.toolbox.defer(|tool| names.contains(&tool.name)),
            None if path.is_empty() || self.search.mode == ToolSearchMode::On => {
                self.toolbox.defer(|tool| tool.facts.is_deferrable);
            }
            None => {}
        }
        if let Err(problem) = self.toolbox.append_own(Arc::new(ToolSearch::default())) {
            tracing::debug!(target: "loci::tools", %problem, "tools cannot be looked for");
        }
    }

    /// Adds a tool, to be looked for where that is how it is done.
    pub(super) fn append_tool(&mut self, tool: Arc<dyn Tool>) -> Result<(), loci_tools::AppendError> {
        let is_deferred = self.search.is_on && tool.descriptor().facts.is_deferrable;
        match is_deferred {
            true => self.toolbox.append_deferred(tool),
            false => self.toolbox.append(tool),
        }
    }

    /// Defers tools that are about to be added, where they are too many to be told of.
    pub(super) fn consider_search<'a>(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        compactor: &Compactor,
        coming: impl Iterator<Item = &'a ToolDescriptor>,
    ) {
        if self.search.is_on || self.search.mode == ToolSearchMode::Off {
            return;
        }
        let tokens = deferrable_tokens(self.toolbox.available()) + deferrable_tokens(coming);
        let window = compactor.config.window.unwrap_or(scope.model.catalog.facts(&scope.model.main).window);
        if self.search.mode.is_on(tokens, window) {
            self.begin_search(recorder);
        }
    }

    /// Offers what was found and is there by now, and tells the tool what can be found.
    pub(super) fn offer_found(&mut self, scope: &ConversationScope, sources: &mut ContextSources) {
        for (order, name) in self.search.settled.iter().enumerate() {
            self.toolbox.settle(name, order);
        }
        for (order, name) in self.search.loaded.iter().enumerate() {
            self.toolbox.load(name, order);
        }
        scope.host.set_searchable(searchable(&self.toolbox));
        sources.base = Arc::new(sources.base.with_tools(&self.toolbox));
    }

    /// Offers the tools that a result names.
    pub(super) fn load_referenced(
        &mut self,
        scope: &ConversationScope,
        sources: &mut ContextSources,
        outcome: &ToolOutcome,
    ) {
        let ToolContent::Blocks(blocks) = &outcome.content else { return };
        let names: Vec<String> = blocks.iter().filter_map(|block| referenced(&block.to_value())).collect();
        if names.is_empty() {
            return;
        }
        for name in names {
            if !self.search.settled.contains(&name) && !self.search.loaded.contains(&name) {
                self.search.loaded.push(name);
            }
        }
        self.offer_found(scope, sources);
    }

    /// Makes what was found ordinary, now that nothing of the conversation is cached any more.
    pub(super) fn settle_found(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        sources: &mut ContextSources,
    ) {
        let loaded = std::mem::take(&mut self.search.loaded);
        self.search.settled.extend(loaded);
        if self.toolbox.settle_loaded() {
            sources.base = Arc::new(sources.base.with_tools(&self.toolbox));
        }
        // The session may end before another request is made.
        self.tell_deferred(scope, recorder);
    }

    /// Tells the model the names of tools that it can look for and has not been told of, and of those that are gone.
    pub(super) fn tell_deferred(&self, scope: &ConversationScope, recorder: &mut Recorder) {
        if !self.search.is_on || !scope.is_main() {
            return;
        }
        let path = recorder.path();
        let (told, said) = (announced_in(path), settled_in(path));
        let names: Vec<String> = self.toolbox.deferred().map(|tool| tool.name.clone()).collect();
        let added: Vec<&String> = names.iter().filter(|name| !told.contains(name)).collect();
        let is_there = |name: &String| names.contains(name) || self.toolbox.find(name).is_some();
        // What a server has that is still starting is not gone.
        let states = scope.ctx.services.mcp.as_ref().map(McpConfig::states).unwrap_or_default();
        let is_complete = states.iter().all(|server| server.status != "pending");
        let removed: Vec<&String> = told.iter().filter(|name| is_complete && !is_there(name)).collect();
        let unsaid: Vec<&String> = self.search.settled.iter().filter(|name| !said.contains(name)).collect();
        if added.is_empty() && removed.is_empty() && unsaid.is_empty() {
            return;
        }
        let mut text = Vec::new();
        let listed =
            |names: &[&String]| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("\n");
        if !unsaid.is_empty() {
            text.push(format!("Tools that were looked for earlier and can be called:\n{}", listed(&unsaid)));
        }
        if !added.is_empty() {
            let head = "Tools that ToolSearch can bring; they are known by name only until then:";
            text.push(format!("{head}\n{}", listed(&added)));
        }
        if !removed.is_empty() {
            text.push(format!("Tools that are gone and cannot be called any more:\n{}", listed(&removed)));
        }
        let text = format!("<system-reminder>\n{}\n</system-reminder>", text.join("\n\n"));
        recorder.attachment(Attachment::DeferredToolsDelta {
            added_names: added.into_iter().cloned().collect(),
            removed_names: removed.into_iter().cloned().collect(),
            loaded_names: self.search.settled.clone(),
            rendered: Some(text),
            rendered_role: Some("user".to_owned()),
        });
    }
}

/// Returns about how many tokens the definitions take that need not be told.
fn deferrable_tokens<'a>(tools: impl Iterator<Item = &'a ToolDescriptor>) -> u64 {
    let texts = |tool: &ToolDescriptor| {
        prose_tokens(&tool.name)
            + prose_tokens(&tool.description)
            + prose_tokens(&tool.input_schema.to_string())
    };
    tools.filter(|tool| tool.facts.is_deferrable).map(texts).sum()
}

fn referenced(block: &Value) -> Option<String> {
    (block["type"] == "tool_reference").then(|| block["tool_name"].as_str().map(str::to_owned)).flatten()
}

/// What the model was told of tools at one time.
struct Delta {
    added: Vec<String>,
    removed: Vec<String>,
    loaded: Vec<String>,
}

/// Returns what the model was told, oldest first. This is asked before every request, so most entries are passed over
/// without being read.
fn deltas(path: &[Arc<Entry>]) -> impl Iterator<Item = Delta> + '_ {
    path.iter().filter_map(|entry| match entry.attachment_of_kind(AttachmentKind::DeferredToolsDelta)? {
        Attachment::DeferredToolsDelta { added_names, removed_names, loaded_names, .. } => {
            Some(Delta { added: added_names, removed: removed_names, loaded: loaded_names })
        }
        _ => None,
    })
}

/// Returns the names that the model knows and that were not said to be gone since.
fn announced_in(path: &[Arc<Entry>]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for delta in deltas(path) {
        told.retain(|name| !delta.removed.contains(name));
        told.extend(delta.added);
    }
    told
}

/// Returns the names of all tools that were ever deferred; none where nothing was.
fn deferred_in(path: &[Arc<Entry>]) -> Option<Vec<String>> {
    let named = |delta: Delta| [delta.added, delta.loaded].concat();
    deltas(path).map(named).reduce(|all, more| [all, more].concat())
}

/// Returns what was found before the last compaction, in order.
fn settled_in(path: &[Arc<Entry>]) -> Vec<String> {
    let mut settled: Vec<String> = Vec::new();
    for name in deltas(path).flat_map(|delta| delta.loaded) {
        if !settled.contains(&name) {
            settled.push(name);
        }
    }
    settled
}

/// Returns what was found before the last compaction, and since.
fn found_in(path: &[Arc<Entry>]) -> (Vec<String>, Vec<String>) {
    let settled = settled_in(path);
    let mut loaded: Vec<String> = Vec::new();
    let results = path.iter().filter(|entry| entry.head().kind == EntryKind::User);
    for entry in results.filter(|entry| entry.line().contains("\"tool_reference\"")) {
        for block in entry.blocks().iter().filter(|block| block.kind() == BlockKind::ToolResult) {
            let parts = block.to_value()["content"].as_array().cloned().unwrap_or_default();
            for name in parts.iter().filter_map(referenced) {
                if !settled.contains(&name) && !loaded.contains(&name) {
                    loaded.push(name);
                }
            }
        }
    }
    (settled, loaded)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(value: Value) -> Arc<Entry> {
        Arc::new(Entry::parse(value.to_string()).unwrap())
    }

    #[test]
    fn told_and_found_tools_are_read_from_the_transcript() {
        let delta = |added: &[&str], removed: &[&str], loaded: &[&str]| {
            entry(json!({"type": "attachment", "uuid": "u", "attachment": {
                "type": AttachmentKind::DeferredToolsDelta.name(), "addedNames": added, "removedNames": removed, "loadedNames": loaded}}))
        };
        let found = |names: &[&str]| {
            let parts: Vec<Value> =
                names.iter().map(|name| json!({"type": "tool_reference", "tool_name": name})).collect();
            entry(json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": parts}]}}))
        };
        let path = [
            delta(&["a", "b", "c"], &[], &["z"]),
            found(&["b"]),
            delta(&["d"], &["c"], &["z"]),
            found(&["d", "b"]),
        ];
        assert_eq!(announced_in(&path), ["a", "b", "d"]);
        assert_eq!(found_in(&path), (vec!["z".to_owned()], vec!["b".to_owned(), "d".to_owned()]));
    }
}
