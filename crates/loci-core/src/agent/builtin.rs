//! The agents that are always there.

use super::definition::{AgentDefinition, AgentScope, AgentSource};
use super::{CATCH_ALL, GENERAL_PURPOSE, GUIDE};

/// Tools that change files, or send out others that do.
const NOT_FOR_LOOKING: [&str; 4] = ["Agent", "Edit", "Write", "NotebookEdit"];

/// Returns the built-in agents.
pub fn builtin_agents() -> Vec<AgentDefinition> {
    let agent = |name: &str, description: &str, prompt: &str| {
        AgentDefinition::new(name, description, prompt.trim_end(), AgentSource::inline(AgentScope::BuiltIn))
    };
    let looking = |agent: AgentDefinition| AgentDefinition {
        disallowed_tools: NOT_FOR_LOOKING.map(str::to_owned).to_vec(),
        has_project_context: false,
        is_resumable: false,
        ..agent
    };
    let tools = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    vec![
        agent(CATCH_ALL, "For work that fits no other type.", include_str!("builtin/claude.md")),
        AgentDefinition {
            tools: tools(&["Read", "Edit", "Write"]),
            model: Some("sonnet".to_owned()),
            ..agent(
                "statusline-setup",
                "Sets up the user's status line.",
                include_str!("builtin/statusline_setup.md"),
            )
        },
        agent(
            GENERAL_PURPOSE,
            "Researches questions, searches code and carries out tasks of several steps. For when it would take many \
             searches, or work whose details this conversation does not need.",
            include_str!("builtin/general_purpose.md"),
        ),
        AgentDefinition {
            tools: tools(&["Bash", "Glob", "Grep", "Read", "WebFetch", "WebSearch"]),
            model: Some("haiku".to_owned()),
            has_project_context: false,
            ..agent(
                GUIDE,
                "Answers questions about this program: what it can do, its settings, commands, keys, hooks, MCP servers, \
                 skills and agents, and how to set them up.",
                include_str!("builtin/guide.md"),
            )
        },
        AgentDefinition {
            is_capped_at_opus: true,
            ..looking(agent(
                "Explore",
                "Finds things in code quickly and changes nothing: files by name, code by content, answers to how something \
             works. Say how thorough it should be: quick, medium or very thorough.",
                include_str!("builtin/explore.md"),
            ))
        },
        looking(agent(
            "Plan",
            "Designs how a change should be built and changes nothing: steps, files that matter, what was weighed against \
             what.",
            include_str!("builtin/plan.md"),
        )),
    ]
}
