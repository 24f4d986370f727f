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
pub use result_text::{enclose, escape_our_tags, sanitize_result, unescape_our_tags};
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

/// The permission mode that an agent asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedMode {
    mode: Mode,
    /// Whether whoever wrote the definition may let the agent edit unasked.
    may_accept_edits: bool,
}

impl AskedMode {
    /// The mode that a call asks for. The model wrote it, so it only restricts.
    pub fn of_call(mode: Mode) -> Self {
        Self { mode, may_accept_edits: false }
    }

    /// The mode that a definition asks for which the user wrote, or trusts.
    pub(crate) fn of_trusted(mode: Mode) -> Self {
        Self { mode, may_accept_edits: true }
    }

    /// Returns the mode.
    pub fn mode(self) -> Mode {
        self.mode
    }
}

/// Returns the mode that an agent's calls are judged in: the session's, or its own where that lets no more run unasked. The
/// one thing that a definition of the user's own, or of a trusted folder, grants is to edit in the working directories (S-48).
pub fn agent_mode(session: Mode, own: Option<AskedMode>) -> Mode {
    let Some(AskedMode { mode: own, may_accept_edits }) = own else { return session };
    match (session, own) {
        (Mode::Default, Mode::Plan | Mode::DontAsk) => own,
        (Mode::Default, Mode::AcceptEdits) if may_accept_edits => own,
        (Mode::Plan, Mode::DontAsk) => Mode::Plan,
        (session, _) => session,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_mode_is_never_more_than_the_sessions_but_for_edits_of_trusted_definitions() {
        use Mode::{AcceptEdits, Auto, BypassPermissions, Default, DontAsk, Plan};
        for (session, own, expected, trusted) in [
            (Default, Plan, Plan, Plan),
            (Default, DontAsk, DontAsk, DontAsk),
            (Default, AcceptEdits, Default, AcceptEdits),
            (Default, Auto, Default, Default),
            (Default, BypassPermissions, Default, Default),
            (AcceptEdits, Plan, AcceptEdits, AcceptEdits),
            (Auto, Default, Auto, Auto),
            (Auto, AcceptEdits, Auto, Auto),
            (BypassPermissions, Plan, BypassPermissions, BypassPermissions),
            (Plan, BypassPermissions, Plan, Plan),
            (Plan, AcceptEdits, Plan, Plan),
            (Plan, DontAsk, Plan, Plan),
            (DontAsk, AcceptEdits, DontAsk, DontAsk),
        ] {
            assert_eq!(agent_mode(session, Some(AskedMode::of_call(own))), expected, "{session} {own:?}");
            assert_eq!(agent_mode(session, Some(AskedMode::of_trusted(own))), trusted, "{session} {own:?}");
        }
        assert_eq!(agent_mode(AcceptEdits, None), AcceptEdits);
    }
}
