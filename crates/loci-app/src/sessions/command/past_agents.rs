//! The agents that earlier runs of the session sent out, and what each said and did.

use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::AgentId;
use loci_storage::sessions::{AgentProgressEnd, agent_end, find_agent_file, list_agent_files, load_agent};

use super::CommandContext;
use crate::user_error::UserError;

/// The most that are listed, the newest.
const MOST_AGENTS: usize = 40;

/// An agent that left a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastAgent {
    /// Its id.
    pub id: AgentId,
    /// Its type.
    pub kind: String,
    /// What it was sent out for.
    pub description: String,
    /// Whether it gave its answer; else it was cut off.
    pub has_answered: bool,
}

/// Lists the agents that were sent out in the session, oldest first. Those that loci uses for itself are left out.
pub fn past_agents(ctx: &CommandContext) -> Vec<PastAgent> {
    let mut files = list_agent_files(&ctx.place().subagents_dir());
    files.retain(|file| file.meta.tool_use_id.is_some());
    let n_older = files.len().saturating_sub(MOST_AGENTS);
    let past = files.into_iter().skip(n_older).map(|file| {
        let end = load_agent(&file.transcript).map(|past| agent_end(past.path()).0);
        PastAgent {
            id: file.id,
            kind: file.meta.agent_type,
            description: file.meta.description,
            has_answered: matches!(end, Ok(AgentProgressEnd::Answered)),
        }
    });
    past.collect()
}

/// Returns what an agent of the session said and did.
pub fn agent_entries(ctx: &CommandContext, id: &str) -> Result<Vec<Arc<Entry>>, UserError> {
    let file = find_agent_file(&ctx.place().subagents_dir(), id)
        .ok_or_else(|| UserError::new(format!("The agent `{id}` left no transcript")))?;
    let past = load_agent(&file.transcript).map_err(|error| UserError::from_error(&error))?;
    Ok(past.path().to_vec())
}
