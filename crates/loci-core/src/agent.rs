//! Agents as values: how a definition reads, which of several of one name counts, which tools and which permission mode
//! an agent gets, and how what it says is made harmless before another conversation reads it.
//!
//! Files are found in `loci-storage`; agents are run in `loci-engine`. Nothing here refuses a whole set for one bad part:
//! a definition that cannot be read is a [`Problem`], and what a definition asks for in vain is one of its notes.

mod builtin;
mod definition;
mod preload;
mod registry;
mod result_text;
mod tool_access;

pub use builtin::builtin_agents;
pub use definition::{
    AgentDefinition, AgentScope, AgentSource, MemoryScope, Problem, parse_agent, parse_agents_json,
    parse_plugin_agent,
};
pub use preload::preloaded_skills;
pub use registry::AgentRegistry;
pub use result_text::{enclose, sanitize_result};
pub use tool_access::{AgentPlace, ToolAccess};

use crate::permission::Mode;

/// The type of an agent that goes on from the conversation that sends it out.
pub const FORK: &str = "fork";

/// The type of an agent whose call names none.
pub const GENERAL_PURPOSE: &str = "general-purpose";
/// The type for what fits no other; a main conversation that runs as it is an ordinary one.
pub const CATCH_ALL: &str = "claude";
/// The type that answers questions about this program, offered where a person sits.
pub const GUIDE: &str = "claude-code-guide";

/// Returns the mode that an agent's calls are judged in: the session's, or its own where that lets no more run unasked.
/// A definition is no permission (S-48).
pub fn agent_mode(session: Mode, own: Option<Mode>) -> Mode {
    match (session, own) {
        (Mode::Default, Some(own @ (Mode::Plan | Mode::DontAsk))) => own,
        (Mode::Plan, Some(Mode::DontAsk)) => Mode::Plan,
        (session, _) => session,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_mode_is_never_more_than_the_sessions() {
        use Mode::{AcceptEdits, Auto, BypassPermissions, Default, DontAsk, Plan};
        for (session, own, expected) in [
            (Default, None, Default),
            (Default, Some(Plan), Plan),
            (Default, Some(DontAsk), DontAsk),
            (Default, Some(AcceptEdits), Default),
            (Default, Some(Auto), Default),
            (Default, Some(BypassPermissions), Default),
            (AcceptEdits, Some(Plan), AcceptEdits),
            (Auto, Some(Default), Auto),
            (BypassPermissions, Some(Plan), BypassPermissions),
            (Plan, Some(BypassPermissions), Plan),
            (Plan, Some(DontAsk), Plan),
            (DontAsk, Some(AcceptEdits), DontAsk),
        ] {
            assert_eq!(agent_mode(session, own), expected, "{session} {own:?}");
        }
    }
}
