//! From a plan and the transcript to a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loci_context::{
    ContextCategory, ContextItem, Fragment, PromptParts, ServerClearing, prose_tokens, system_prompt,
};
use loci_core::ids::AgentId;
use loci_core::message::{Block, Message};
use loci_core::model::{ModelFacts, ThinkingStyle};
use loci_core::raw::RawJson;
use loci_core::stream::Failure;
use loci_llm::{ClearResults, Request, SystemBlock, Thinking, ToolSpec};
use loci_tools::{SentTool, TOOL_SEARCH, Toolbox};
use serde::Serialize;
use serde_json::{Value, json};

use crate::conversation::tool_category;
use crate::event::EngineEvent;
use crate::session::config::{CompactionConfig, ModelConfig};
use crate::turn::{OutputLimit, RequestPlan};

/// The part of every request that stays the same: serialised once, shared until tools come or go between turns.
pub(crate) struct RequestBase {
    system: Vec<SystemBlock>,
    tools: Arc<[ToolSpec]>,
    session: String,
    /// The agent that asks, if it is one.
    agent: Option<String>,
    /// The agent that sent that one out, if one did.
    parent_agent: Option<String>,
    user_id: Option<String>,
    tokens: u64,
    /// The parts of the system prompt: name, source, tokens.
    fragments: Arc<[(&'static str, u64)]>,
    compaction: CompactionConfig,
    /// Tools whose results the server keeps.
    lasting: Arc<[String]>,
    /// Whether the server has refused to edit the conversation; known to what is made from it too.
    refuses_edits: Arc<AtomicBool>,
}

impl RequestBase {
    pub(crate) fn new(
        prompt: &PromptParts,
        toolbox: &Toolbox,
        model: &ModelConfig,
        compaction: CompactionConfig,
        session: &str,
    ) -> Self {
        let user_id = model.user_id.as_ref().map(|device| {
            json!({"device_id": device, "account_uuid": "", "session_id": session}).to_string()
        });
        let fragments = system_prompt(prompt);
        let base = Self {
            fragments: fragments.iter().map(|it| (it.name, prose_tokens(&it.text))).collect(),
            system: system_blocks(fragments),
            tools: Arc::from([]),
            session: session.to_owned(),
            agent: None,
            parent_agent: None,
            user_id,
            tokens: 0,
            compaction,
            lasting: Arc::from([]),
            refuses_edits: Arc::default(),
        };
        base.with_tools(toolbox)
    }

    /// Returns the same for tools that have come or gone since. A toolbox changes at its end only, so the bytes of what
    /// was sent before are the beginning of what is sent now.
    pub(crate) fn with_tools(&self, toolbox: &Toolbox) -> Self {
        let sent = toolbox.sent();
        let tools: Arc<[ToolSpec]> = sent.iter().filter_map(tool_spec).collect();
        let texts = self.system.iter().map(|block| block.text.as_str());
        Self {
            tokens: texts.chain(tools.iter().map(|tool| tool.json.as_str())).map(prose_tokens).sum(),
            system: self.system.clone(),
            fragments: Arc::clone(&self.fragments),
            tools,
            session: self.session.clone(),
            agent: self.agent.clone(),
            parent_agent: self.parent_agent.clone(),
            user_id: self.user_id.clone(),
            compaction: self.compaction,
            lasting: sent
                .iter()
                .filter(|tool| !tool.descriptor.facts.is_clearable)
                .map(|tool| tool.descriptor.name.clone())
                .collect(),
            refuses_edits: Arc::clone(&self.refuses_edits),
        }
    }

    /// Returns the same for a conversation that is compacted at another size.
    pub(crate) fn with_compaction(&self, compaction: CompactionConfig) -> Self {
        Self {
            system: self.system.clone(),
            tools: Arc::clone(&self.tools),
            session: self.session.clone(),
            agent: self.agent.clone(),
            parent_agent: self.parent_agent.clone(),
            user_id: self.user_id.clone(),
            tokens: self.tokens,
            fragments: Arc::clone(&self.fragments),
            compaction,
            lasting: Arc::clone(&self.lasting),
            refuses_edits: Arc::clone(&self.refuses_edits),
        }
    }

    /// Returns what every request has, piece by piece.
    pub(crate) fn items(&self) -> Vec<ContextItem> {
        let fragments = self.fragments.iter();
        let fragments = fragments.map(|(name, tokens)| {
            ContextItem::new(ContextCategory::SystemPrompt, *name, "built in", *tokens)
        });
        let tools = self.tools.iter().map(|tool| {
            let category = tool_category(&tool.name);
            let source = if category == ContextCategory::McpTools { "an MCP server" } else { "built in" };
            ContextItem::new(category, tool.name.as_str(), source, prose_tokens(tool.json.as_str()))
        });
        fragments.chain(tools).collect()
    }

    /// Returns the same for an agent, which says who asks, and who sent it out.
    pub(crate) fn for_agent(&self, agent: &AgentId, parent: Option<&AgentId>) -> Self {
        Self {
            agent: Some(agent.to_string()),
            parent_agent: parent.map(ToString::to_string),
            ..self.with_compaction(self.compaction)
        }
    }

    /// Asks for no edits from here on, whoever asks; returns what people are to be told, the first time.
    pub(crate) fn stop_edits(&self, failure: &Failure) -> Option<EngineEvent> {
        let is_news = !self.refuses_edits.swap(true, Ordering::Relaxed);
        is_news.then(|| {
            EngineEvent::Warning(format!(
                "The server does not edit conversations, and is not asked to any more: {}. To never ask, set \
                 compactionSteps.serverClearing to false, or CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1.",
                failure.message
            ))
        })
    }

    /// Returns what the server is to clear, where it may and the model is one of those it does that for.
    fn clear_results(&self, plan: &RequestPlan, model: &ModelConfig) -> Option<ClearResults> {
        let facts = model.catalog.facts(&plan.model);
        let can = facts.thinking != ThinkingStyle::None && !facts.is_named;
        (self.compaction.server_clears && can).then(|| {
            let usual = RequestPlan { output: OutputLimit::Usual, ..plan.clone() };
            let window = self.compaction.window(&facts, self.max_tokens(&usual, model));
            let ServerClearing { above_tokens, keep, at_least } = ServerClearing::of(&window);
            ClearResults { above_tokens, keep, at_least, except: Arc::clone(&self.lasting) }
        })
    }

    /// Returns how much a plan lets the model write.
    pub(crate) fn max_tokens(&self, plan: &RequestPlan, model: &ModelConfig) -> u64 {
        let facts = model.catalog.facts(&plan.model);
        let usual = model.max_output_tokens.unwrap_or(facts.default_output).min(facts.max_output);
        plan.output.tokens(usual, facts.max_output)
    }

    /// Returns about how many tokens every request has besides its messages.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Makes the request that a plan asks for.
    pub(crate) fn request(&self, plan: &RequestPlan, model: &ModelConfig, messages: Vec<Message>) -> Request {
        let facts = model.catalog.facts(&plan.model);
        let max_tokens = self.max_tokens(plan, model);
        Request {
            system: self.system.clone(),
            tools: Arc::clone(&self.tools),
            thinking: thinking(&facts, model.max_thinking_tokens, max_tokens),
            thinking_display: model.thinking_display.clone(),
            task_budget: model.task_budget,
            effort: model.effort_of(&plan.model),
            clear_results: self.clear_results(plan, model),
            edits_context: !self.refuses_edits.load(Ordering::Relaxed),
            betas: model.betas.clone(),
            user_id: self.user_id.clone(),
            session_id: Some(self.session.clone()),
            agent_id: self.agent.clone(),
            parent_agent_id: self.parent_agent.clone(),
            extra_body: model.extra_body.clone(),
            wants_wire_events: model.wants_wire_events,
            is_streaming: plan.is_streaming,
            ..Request::new(plan.model.clone(), max_tokens, with_known_references(messages, &self.tools))
        }
    }
}

/// The identity is a block of its own; all else is one cached block.
fn system_blocks(fragments: Vec<Fragment>) -> Vec<SystemBlock> {
    let mut texts = fragments.into_iter().map(|fragment| fragment.text);
    let first = texts.next().map(|text| SystemBlock { text, is_cached: false });
    let rest = texts.collect::<Vec<_>>().join("\n\n");
    let mut blocks: Vec<SystemBlock> = first.into_iter().collect();
    if !rest.is_empty() {
        blocks.push(SystemBlock { text: rest, is_cached: false });
    }
    if let Some(last) = blocks.last_mut() {
        last.is_cached = true;
    }
    blocks
}

/// A tool as it is sent; written without making a value of it first, which would copy every schema at every start.
#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    defer_loading: bool,
}

fn tool_spec(sent: &SentTool<'_>) -> Option<ToolSpec> {
    let SentTool { descriptor, is_deferred } = *sent;
    let spec = WireTool {
        name: &descriptor.name,
        description: &descriptor.description,
        input_schema: &descriptor.input_schema,
        defer_loading: is_deferred,
    };
    let uses_references = is_deferred || descriptor.name == TOOL_SEARCH;
    let json = RawJson::from_value(&spec).ok()?;
    Some(ToolSpec { name: descriptor.name.clone(), json, uses_references })
}

/// Returns messages in which no result refers to a tool that is not among those that are sent: a server refuses that.
fn with_known_references(messages: Vec<Message>, tools: &[ToolSpec]) -> Vec<Message> {
    let refers = |block: &Block| block.json().as_str().contains("\"tool_reference\"");
    if !messages.iter().flat_map(|message| message.content.iter()).any(refers) {
        return messages;
    }
    let can_refer = tools.iter().any(|tool| tool.uses_references);
    let is_known = |name: &Value| can_refer && tools.iter().any(|tool| *name == tool.name.as_str());
    let known = |block: &Block| {
        let mut value = block.to_value();
        let parts = value.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
        let mut has_changed = false;
        for part in parts.filter(|part| part["type"] == "tool_reference" && !is_known(&part["tool_name"])) {
            let name = part["tool_name"].as_str().unwrap_or_default();
            *part = json!({"type": "text", "text": format!("({name} was found here and is not there any more.)")});
            has_changed = true;
        }
        if has_changed { Block::from_value(&value).unwrap_or_else(|_| block.clone()) } else { block.clone() }
    };
    let messages = messages.into_iter().map(|message| {
        let content = message.content.iter().map(|block| match refers(block) {
            true => known(block),
            false => block.clone(),
        });
        Message::new(message.role, content.collect::<Vec<_>>())
    });
    messages.collect()
}

fn thinking(facts: &ModelFacts, budget: Option<u64>, max_tokens: u64) -> Thinking {
    match (facts.thinking, budget) {
        (ThinkingStyle::None, _) => Thinking::Unset,
        (_, Some(0)) => Thinking::Disabled,
        (ThinkingStyle::Adaptive, _) => Thinking::Adaptive,
        (ThinkingStyle::Budget, budget) => {
            let most = max_tokens.saturating_sub(1);
            let budget = budget.unwrap_or(most).min(most);
            if budget < 1_024 { Thinking::Disabled } else { Thinking::Budget(budget) }
        }
    }
}

#[cfg(test)]
mod tests {
    use loci_core::model::facts;
    use loci_core::stream::FailureKind;
    use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts};
    use loci_tools::{Host, Tool, ToolCall, ToolFuture, Workspace};

    use super::*;

    /// A tool that was there from the beginning, under another name.
    struct Late(ToolDescriptor);

    impl Late {
        fn new(name: &str) -> Self {
            let glob = Toolbox::builtin().find("Glob").unwrap().descriptor().clone();
            Self(ToolDescriptor { name: name.to_owned(), facts: ToolFacts::default(), ..glob })
        }
    }

    impl Tool for Late {
        fn descriptor(&self) -> &ToolDescriptor {
            &self.0
        }

        fn effects(&self, _: &Value, _: &Workspace) -> CallEffects {
            CallEffects::unknown("a test")
        }

        fn is_concurrency_safe(&self, _: &Value) -> bool {
            false
        }

        fn run<'a>(&'a self, _: ToolCall, _: &'a dyn Host) -> ToolFuture<'a> {
            unreachable!("it is only offered")
        }
    }

    #[test]
    fn tools_that_come_and_go_leave_the_bytes_of_the_earlier_ones_alone() {
        let model = ModelConfig::new("claude-opus-4-8");
        let plan = RequestPlan {
            model: model.main.clone(),
            output: OutputLimit::Usual,
            is_streaming: true,
            may_compact: true,
        };
        let sent = |base: &RequestBase| {
            let request = base.request(&plan, &model, Vec::new());
            let tools: Vec<&str> = request.tools.iter().map(|tool| tool.json.as_str()).collect();
            (request.system, tools.join(","))
        };
        let mut toolbox = Toolbox::builtin();
        let first =
            RequestBase::new(&PromptParts::default(), &toolbox, &model, CompactionConfig::default(), "s");
        let (system, tools) = sent(&first);

        toolbox.append(Arc::new(Late::new("mcp__late__tool"))).unwrap();
        toolbox.retire("Bash");
        let second = first.with_tools(&toolbox);
        let (same_system, more_tools) = sent(&second);
        assert_eq!(same_system, system);
        let tail = more_tools.strip_prefix(&tools).expect("the earlier tools, byte for byte");
        assert!(tail.starts_with(r#",{"name":"mcp__late__tool""#), "{tail}");
        assert!(second.tokens() > first.tokens());
        assert!(!first.lasting.contains(&"mcp__late__tool".to_owned()));
        assert!(second.lasting.contains(&"mcp__late__tool".to_owned()));

        toolbox.drop_retired();
        assert!(!sent(&second.with_tools(&toolbox)).1.contains(r#""name":"Bash""#));
    }

    #[test]
    fn refusal_of_edits_is_known_to_the_base_with_other_tools() {
        let (model, toolbox) = (ModelConfig::new("m"), Toolbox::builtin());
        let first =
            RequestBase::new(&PromptParts::default(), &toolbox, &model, CompactionConfig::default(), "s");
        let second = first.with_tools(&toolbox);
        let failure = Failure::new(FailureKind::InvalidRequest, "no edits");
        assert!(first.stop_edits(&failure).is_some() && second.stop_edits(&failure).is_none());
    }

    #[test]
    fn thinking_follows_the_model() {
        for (model, budget, max_tokens, expected) in [
            ("claude-sonnet-4-5", None, 32_000, Thinking::Budget(31_999)),
            ("claude-sonnet-4-5", Some(2_000), 32_000, Thinking::Budget(2_000)),
            ("claude-sonnet-4-5", Some(0), 32_000, Thinking::Disabled),
            ("claude-sonnet-4-5", Some(500), 32_000, Thinking::Disabled),
            ("claude-sonnet-4-5", None, 1_000, Thinking::Disabled),
            ("claude-opus-4-8", None, 64_000, Thinking::Adaptive),
            ("claude-opus-4-8", Some(0), 64_000, Thinking::Disabled),
            ("claude-3-5-haiku", None, 8_192, Thinking::Unset),
            ("unknown-model", None, 8_192, Thinking::Unset),
        ] {
            assert_eq!(thinking(&facts(model), budget, max_tokens), expected, "{model} {budget:?}");
        }
    }
}
