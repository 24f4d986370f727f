//! The agents that a model can send out, as it is told of them.

use loci_core::agent::{AgentDefinition, AgentRegistry, FORK};
use loci_core::entry::Attachment;
use loci_core::permission::{Call, RuleList, Rulebook, Verdict, decide};
use loci_core::tool::CallEffects;
use serde_json::json;

/// The tool that sends agents out.
const AGENT: &str = "Agent";
/// The most letters of a description that are told.
const MOST_LETTERS: usize = 1_536;

const FORK_LINE: &str = "- fork: goes on from this conversation, with all that was said in it, and answers with what it found. \
                         It costs little, since what it shares is cached; it cannot fork again.";

/// Returns the agents a line each, without those that a rule takes away.
pub fn agent_listing(
    registry: &AgentRegistry,
    spawnable: Option<&[String]>,
    can_fork: bool,
    book: &Rulebook,
) -> String {
    // Where no rule is about agents, each of them is judged as any other is.
    let lists = [RuleList::Deny, RuleList::Ask, RuleList::Allow];
    let has_rules = lists.into_iter().any(|list| book.list(list).iter().any(|rule| rule.names(AGENT)));
    let is_judged_alike = spawnable.is_none() && !has_rules;
    let mut any = None;
    let offered = registry.iter().filter(|agent| {
        let judge = || is_offered(&agent.name, spawnable, book);
        if is_judged_alike { *any.get_or_insert_with(judge) } else { judge() }
    });
    let mut lines: Vec<String> = offered.map(|agent| agent_summary(agent)).collect();
    if can_fork && is_offered(FORK, spawnable, book) {
        lines.push(FORK_LINE.to_owned());
    }
    lines.join("\n")
}

/// Tells whether a type can be sent out.
pub(crate) fn is_offered(name: &str, spawnable: Option<&[String]>, book: &Rulebook) -> bool {
    let is_named = spawnable.is_none_or(|names| names.iter().any(|named| named == name));
    let input = json!({"subagent_type": name, "description": "", "prompt": ""});
    let effects = CallEffects::default();
    let call = Call { tool: AGENT, command: None, input: &input, effects: &effects, hook: None };
    is_named && decide(&call, book).verdict != Verdict::Deny
}

/// Returns the attachment that says how the agents have changed; none when they have not.
pub(crate) fn agent_changes(before: &AgentRegistry, after: &AgentRegistry) -> Option<Attachment> {
    let is_same = |agent: &AgentDefinition, other: &AgentRegistry| {
        other
            .find(&agent.name)
            .is_some_and(|it| it.description == agent.description && it.tools == agent.tools)
    };
    let added: Vec<_> = after.iter().filter(|agent| !is_same(agent, before)).collect();
    let gone = before.iter().filter(|agent| after.find(&agent.name).is_none());
    let removed: Vec<String> = gone.map(|agent| agent.name.clone()).collect();
    (!added.is_empty() || !removed.is_empty()).then(|| Attachment::AgentListingDelta {
        added_types: added.iter().map(|agent| agent.name.clone()).collect(),
        added_lines: added.iter().map(|agent| agent_summary(agent)).collect(),
        removed_types: removed,
        is_initial: false,
        show_concurrency_note: false,
    })
}

fn agent_summary(agent: &AgentDefinition) -> String {
    let description = loci_stdx::truncate_chars(&agent.description, MOST_LETTERS);
    let tools = match (&agent.tools, agent.disallowed_tools.is_empty()) {
        (Some(tools), _) => tools.join(", "),
        (None, true) => "all".to_owned(),
        (None, false) => format!("all but {}", agent.disallowed_tools.join(", ")),
    };
    format!("- {}: {description} (Tools: {tools})", agent.name)
}
