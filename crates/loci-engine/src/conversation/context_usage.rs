//! What fills the window of a conversation, piece by piece, and how the session stands: for commands and panels about it.

use std::sync::Arc;
use std::time::Duration;

use loci_context::{ContextCategory, ContextItem, ContextUsage, conversation_items, prose_tokens};
use loci_core::entry::{Entry, EntryKind};
use loci_core::usage::Usage;
use loci_llm::CacheLife;
use loci_stdx::Timestamp;
use loci_storage::config::InstructionScope;
use loci_tools::Host as _;
use serde_json::Value;

use super::compaction::Compactor;
use super::context_sources::ContextSources;
use super::host::lock;
use super::scope::ConversationScope;
use super::{Conversation, Prelude};
use crate::conversation::recorder::Recorder;
use crate::extensions::mcp::McpConfig;
use crate::session::instructions::render_instructions;
use crate::snapshot::SessionSnapshot;

/// How long the provider keeps what it read; longer, where that was asked for.
const CACHE_TIME: Duration = Duration::from_secs(5 * 60);
const LONG_CACHE_TIME: Duration = Duration::from_secs(60 * 60);
/// What the names of tools of MCP servers begin with.
const MCP_PREFIX: &str = "mcp__";

impl Conversation {
    /// Returns how the session stands.
    pub(crate) fn snapshot(&self) -> SessionSnapshot {
        let identity = self.scope.ctx.identity.get();
        let state = self.scope.ctx.state.get();
        SessionSnapshot {
            session: identity.id().clone(),
            is_interactive: identity.is_interactive(),
            title: state.session.title.clone(),
            cwd: self.scope.env.cwd.clone(),
            current_dir: self.scope.host.workspace().cwd,
            prompt: self.recorder.prompt_id().cloned(),
            last_usage: last_usage(self.recorder.path()),
            rate_limits: lock(&self.scope.ctx.usage.rate_limits).clone(),
            main_agent: self.scope.ctx.facts.main_agent.clone(),
            worktree: self.scope.ctx.worktrees.record(),
            transcript: identity.is_persistent().then(|| identity.transcript_path()),
            has_messages: !self.recorder.path().is_empty(),
            model: self.scope.current_model(),
            start_model: self.scope.model.main.clone(),
            catalog: self.scope.model.catalog.clone(),
            effort: self.scope.model.effort.clone(),
            max_thinking_tokens: self.scope.model.max_thinking_tokens,
            is_cache_warm: self.recorder.is_cache_warm(&self.scope),
            compact_window: self.compaction.config.window,
            mode: self.scope.ctx.mode(),
            rulebook: state.permission.rulebook.clone(),
            asked: lock(&self.scope.ctx.policy.asked).iter().cloned().collect(),
            recent_denials: state.permission.recent_denials.clone(),
            context: self.compaction.context_usage(&self.scope, &self.recorder, &self.sources),
            totals: self.scope.ctx.totals(),
            now: self.scope.env.clock.monotonic(),
            wall: self.scope.env.clock.monotonic().saturating_sub(self.scope.ctx.facts.started),
            mcp_servers: self
                .scope
                .ctx
                .services
                .mcp
                .as_ref()
                .map(|mcp| mcp.servers.views())
                .unwrap_or_default(),
            mcp_errors: self.scope.ctx.services.mcp.as_ref().map(McpConfig::errors).unwrap_or_default(),
            instructions: self.sources.instruction_files(),
            memory_dir: self.scope.ctx.memory.as_ref().map(|memory| memory.dir().to_owned()),
            skills: self.scope.ctx.skills.registry(),
            hooks: self.scope.ctx.hooks.config(),
            agents: self.scope.host.agent_names(),
            agents_at_work: self.scope.host.agents_at_work(),
            tasks: self.scope.host.tasks().list(),
            timeline: self.scope.ctx.usage.timeline.get(self.scope.env.clock.monotonic()),
            goal: self.scope.ctx.goal.get(),
            plugins: Arc::clone(&self.scope.ctx.facts.plugins),
            sandbox: lock(&self.scope.ctx.services.ambient).sandbox.as_ref().map(|it| it.status()),
            settings: state.settings.clone(),
            api_key_source: self.scope.ctx.facts.api_key_source.clone(),
            output_style: self.scope.ctx.facts.output_style.clone(),
        }
    }
}

impl Compactor {
    /// Returns what fills the window.
    pub(crate) fn context_usage(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
    ) -> ContextUsage {
        let mut items = sources.base.items();
        items.extend(sources.opening_items(scope));
        items.extend(conversation_items(recorder.path(), recorder.replaced()));
        ContextUsage::new(
            scope.current_model(),
            items,
            self.fullness(scope, recorder, sources),
            self.config.is_automatic,
        )
    }
}

impl ContextSources {
    /// What opens the conversation: instruction files, the index of memories, what servers say of themselves.
    fn opening_items(&self, scope: &ConversationScope) -> Vec<ContextItem> {
        let Prelude::Opening(opening) = &self.prelude else { return Vec::new() };
        let files = render_instructions(&self.instructions.files);
        let memory = scope.ctx.memory.iter().flat_map(|memory| memory.memory_indexes());
        let mut items: Vec<ContextItem> = files
            .into_iter()
            .chain(memory)
            .map(|it| {
                let source = it.scope.split([',', '.']).next().unwrap_or_default();
                ContextItem::new(ContextCategory::MemoryFiles, it.path, source, prose_tokens(&it.text))
            })
            .collect();
        items.extend(self.instructions.servers.iter().map(|it| {
            let name = format!("instructions of {}", it.server);
            ContextItem::new(ContextCategory::McpTools, name, "an MCP server", prose_tokens(&it.text))
        }));
        let named: u64 = items.iter().map(|item| item.tokens).sum();
        let whole = opening.as_ref().map_or(0, crate::session::instructions::Opening::tokens);
        let frame = whole.saturating_sub(named);
        items.push(ContextItem::new(ContextCategory::SystemPrompt, "date and headings", "built in", frame));
        items
    }

    fn instruction_files(&self) -> Vec<(std::path::PathBuf, &'static str)> {
        let whose = |scope| match scope {
            InstructionScope::Managed => "managed",
            InstructionScope::User => "user",
            InstructionScope::Project => "project",
            InstructionScope::Local => "local",
        };
        let files = self.instructions.files.files.iter();
        files.map(|file| (file.path.clone(), whose(file.scope))).collect()
    }
}

impl ConversationScope {
    /// Returns how long the provider keeps what the main line says.
    pub(super) fn cache_life(&self) -> CacheLife {
        let state = self.ctx.state.get();
        let setting = state.settings.get("promptCacheTtl").and_then(serde_json::Value::as_str);
        CacheLife::of_main(&self.host.env().vars, setting)
    }
}

impl Recorder {
    /// Tells whether the last answer is so recent that what was said before it is still in the provider's cache.
    pub(super) fn is_cache_warm(&self, scope: &ConversationScope) -> bool {
        let time = match scope.cache_life() {
            CacheLife::Short => CACHE_TIME,
            CacheLife::Long => LONG_CACHE_TIME,
        };
        let path = self.path();
        let last = path.iter().rev().find(|entry| entry.head().kind == EntryKind::Assistant);
        let at = last.and_then(|entry| entry.fields().read::<String>("timestamp"));
        let at = at.and_then(|text| text.parse::<Timestamp>().ok());
        at.is_some_and(|at| {
            let age = scope.env.clock.now().as_millisecond().saturating_sub(at.as_millisecond());
            u64::try_from(age).is_ok_and(|age| Duration::from_millis(age) < time)
        })
    }
}

/// Returns what a tool of this name counts as.
pub(crate) fn tool_category(name: &str) -> ContextCategory {
    match name.starts_with(MCP_PREFIX) {
        true => ContextCategory::McpTools,
        false => ContextCategory::Tools,
    }
}

/// Returns what the last answer used, unless the conversation was compacted since.
fn last_usage(path: &[Arc<Entry>]) -> Option<Usage> {
    let since = path.iter().rev().take_while(|entry| !entry.is_compact_boundary());
    let mut answers = since.filter(|entry| entry.head().kind == EntryKind::Assistant);
    answers.find_map(|entry| {
        let message: Value = entry.fields().read("message")?;
        let usage: Usage = serde_json::from_value(message.get("usage")?.clone()).ok()?;
        (usage.input_tokens + usage.output_tokens > 0).then_some(usage)
    })
}
