//! `loci agents`: which agents there are, where each comes from, and what a definition says.

mod list;
mod show;

use loci_app::UserError;
use loci_app::extensions::agents::all_agents;
use loci_app::settings::InstructionOptions;
use loci_core::agent::AgentDefinition;
use loci_stdx::Env;
use serde_json::{Value, json};

use crate::config::{SettingsContext, write};

#[derive(Debug, clap::Args)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List all agents, with what they are for and where they come from; what cannot be read is said.
    List(list::ListArgs),
    /// Show one agent: every field, its notes and its prompt.
    Show(show::ShowArgs),
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &AgentsArgs) -> Result<u8, UserError> {
    let ctx = SettingsContext::new(env);
    let options = InstructionOptions::new(&ctx.places, &ctx.loaded, &[]);
    let plugins = ctx.plugins();
    let registry = all_agents(&ctx.env, &options.definition_places(&ctx.env, &ctx.home), &plugins);
    let text = match &args.verb {
        Verb::List(args) => list::run(&registry, args),
        Verb::Show(args) => show::run(&registry, args)?,
    };
    write(&text)?;
    Ok(0)
}

fn agent_json(agent: &AgentDefinition) -> Value {
    json!({
        "name": agent.name,
        "description": agent.description,
        "source": agent.source.scope.as_str(),
        "file": agent.source.file,
        "tools": agent.tools,
        "disallowedTools": agent.disallowed_tools,
        "model": agent.model,
        "permissionMode": agent.permission_mode.map(|mode| mode.as_str()),
        "maxTurns": agent.max_turns,
        "maxTokens": agent.max_tokens,
        "maxSeconds": agent.max_seconds,
        "effort": agent.effort,
        "color": agent.color,
        "background": agent.is_background,
        "skills": agent.skills,
        "mcpServers": agent.mcp_servers,
        "hooks": agent.hooks,
        "memory": agent.memory.map(|scope| format!("{scope:?}").to_lowercase()),
        "isolation": agent.is_isolated.then_some("worktree"),
        "initialPrompt": agent.initial_prompt,
        "omitClaudeMd": agent.omits_instructions,
        "autoCompactWindow": agent.compact_window,
        "notes": agent.notes,
    })
}
