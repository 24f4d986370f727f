//! `loci agents list`: every agent with its source, those that do not count, and files that are no agents.

use loci_context::prose_tokens;
use loci_core::agent::{AgentDefinition, AgentRegistry};
use loci_stdx::{printable, single_line};
use serde_json::{Value, json};

use super::agent_json;
use crate::config::pretty;

/// The most letters of a description that are shown.
const MOST_LETTERS: usize = 100;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(registry: &AgentRegistry, args: &ListArgs) -> String {
    if args.json {
        let rows: Vec<Value> = registry.iter().map(|agent| agent_json(agent)).collect();
        let shadowed: Vec<Value> = registry.shadowed.iter().map(|agent| agent_json(agent)).collect();
        let problems: Vec<Value> = registry
            .problems
            .iter()
            .map(|it| json!({"file": it.source.file, "message": it.message}))
            .collect();
        return pretty(&json!({"agents": rows, "shadowed": shadowed, "problems": problems}));
    }
    let mut out: String = registry.iter().map(|agent| agent_line(agent)).collect();
    for agent in &registry.shadowed {
        let winner = registry.find(&agent.name).map(|it| it.source.to_string()).unwrap_or_default();
        out += &format!("{}  ({})  does not count: that of {winner} comes first\n", agent.name, agent.source);
    }
    out += &registry.problems.iter().map(|problem| format!("! {problem}\n")).collect::<String>();
    printable(&out)
}

fn agent_line(agent: &AgentDefinition) -> String {
    let notes: String = agent.notes.iter().map(|note| format!("  ! {note}\n")).collect();
    let description = single_line(&agent.description, MOST_LETTERS);
    let (listed, prompt) = (prose_tokens(&agent.description), prose_tokens(&agent.prompt));
    let cost = format!("about {listed} tokens in every conversation, {prompt} when it is sent out");
    format!("{}  {description}  ({})\n  {}; {cost}\n{notes}", agent.name, agent.source, may_use(agent))
}

/// Says which tools an agent has.
fn may_use(agent: &AgentDefinition) -> String {
    let but = match agent.disallowed_tools.is_empty() {
        true => String::new(),
        false => format!(" but {}", agent.disallowed_tools.join(", ")),
    };
    match &agent.tools {
        Some(tools) => format!("tools: {}{but}", tools.join(", ")),
        None => format!("all tools{but}"),
    }
}
