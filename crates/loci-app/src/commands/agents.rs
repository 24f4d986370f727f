//! The agents that can be sent out, with what they are for, where they come from, and what does not count.

use loci_core::agent::AgentDefinition;

use super::{SessionCommands, cell};
use crate::extensions::agents::all_agents;
use crate::settings::InstructionOptions;

/// Tells the definitions as they are on disk now.
pub(super) fn to_markdown(commands: &SessionCommands) -> String {
    let ctx = commands.settings_context();
    let options = InstructionOptions::new(&ctx.places, &ctx.loaded, &[]);
    let registry = all_agents(&ctx.env, &options.definition_places(&ctx.env, &ctx.home), &ctx.plugins());
    let mut text = "## Agents\n\n| Agent | What it is for | Model | From |\n|---|---|---|---|\n".to_owned();
    registry.iter().for_each(|agent| text.push_str(&row(agent, "")));
    registry
        .shadowed
        .iter()
        .for_each(|agent| text.push_str(&row(agent, " (does not count: another comes first)")));
    if !registry.problems.is_empty() {
        text.push('\n');
    }
    registry.problems.iter().for_each(|problem| text.push_str(&format!("- {problem}\n")));
    text.push_str("\nA definition is a Markdown file in `.claude/agents/` of the project or of your home.\n");
    text
}

fn row(agent: &AgentDefinition, note: &str) -> String {
    let model = agent.model.as_deref().unwrap_or("the conversation's");
    format!(
        "| {} | {} | {} | {}{note} |\n",
        cell(&agent.name),
        cell(&agent.description),
        cell(model),
        cell(&agent.source.to_string())
    )
}
