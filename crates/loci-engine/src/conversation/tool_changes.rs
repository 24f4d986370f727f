//! Tools that come and go while a conversation runs.
//!
//! A change waits for the next request, so the calls of one answer all see the tools that the answer was given for. What
//! was offered keeps its place in the request until a compaction makes the cached beginning worthless.

use std::sync::Arc;

use loci_tools::TOOL_SEARCH;

use super::Conversation;
use super::context_sources::ContextSources;
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use crate::command::ToolChanges;
use crate::conversation::recorder::Recorder;
use crate::event::EngineEvent;

impl Conversation {
    /// Offers, from the next request on, the tools that are there by now.
    pub(crate) fn apply_tool_changes(&mut self) {
        if self.tools.changes.is_empty() {
            return;
        }
        let changes = std::mem::take(&mut self.tools.changes);
        self.tools.consider_search(
            &self.scope,
            &self.recorder,
            &self.compaction,
            changes.iter().flat_map(|it| &it.added).map(|tool| tool.descriptor()),
        );
        for ToolChanges { added, removed } in changes {
            for name in removed {
                self.tools.toolbox.retire(&name);
            }
            let rulebook = &self.scope.ctx.state.get().permission.rulebook;
            // What a rule denies as a whole is not offered at all, now as at the start.
            for tool in added.into_iter().filter(|tool| !rulebook.is_tool_denied(&tool.descriptor().name)) {
                if let Err(problem) = self.tools.append_tool(tool) {
                    self.scope.tell(EngineEvent::Warning(format!("A tool is not offered: {problem}")));
                }
            }
        }
        self.tools.offer_found(&self.scope, &mut self.sources);
        if let Some(agents) = self.scope.host.agent_service().filter(|_| self.scope.agent.is_none()) {
            // Agents are short: they are told of all tools, and look for none.
            let mut all = self.tools.toolbox.undeferred();
            all.retain(|tool| tool.name != TOOL_SEARCH);
            agents.set_toolbox(all);
        }
    }
}

impl ToolSet {
    /// Takes note of tools that came or went.
    pub(crate) fn change_tools(&mut self, changes: ToolChanges) {
        self.changes.push(changes);
    }

    /// Forgets tools that are gone, now that nothing of the conversation is cached any more.
    pub(super) fn drop_retired_tools(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        sources: &mut ContextSources,
    ) {
        if self.toolbox.drop_retired() {
            sources.base = Arc::new(sources.base.with_tools(&self.toolbox));
        }
        self.settle_found(scope, recorder, sources);
    }
}
