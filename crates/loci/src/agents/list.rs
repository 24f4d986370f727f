//! `loci agents list`: every agent with its source, those that do not count, and files that are no agents.

use loci_core::agent::{AgentDefinition, AgentRegistry};
use loci_stdx::single_line;
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
        out += &format!(
            "{}  ({})  does not count: another of this name comes first\n",
            agent.name, agent.source
        );
    }
    out + &registry.problems.iter().map(|problem| format!("! {problem}\n")).collect::<String>()
}

fn agent_line(agent: &AgentDefinition) -> String {
    let notes: String = agent.notes.iter().map(|note| format!("  ! {note}\n")).collect();
    format!("{}  {}  ({})\n{notes}", agent.name, single_line(&agent.description, MOST_LETTERS), agent.source)
}
