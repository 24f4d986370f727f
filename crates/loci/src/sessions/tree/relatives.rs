//! What belongs to a session beside its own file: subagents, and sessions that share its beginning.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use loci_app::UserError;
use loci_core::conversation::Outline;
use loci_core::entry::Entry;
use loci_core::ids::SessionId;
use loci_stdx::{read_regular, single_line};
use loci_storage::layout::SessionPlace;
use loci_storage::sessions::{SessionSummary, list_all, load_transcript};
use serde::Deserialize;
use serde_json::Value;

use super::super::SessionsContext;

/// A subagent's transcript.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) id: String,
    pub(super) kind: Option<String>,
    pub(super) description: Option<String>,
    /// The call that started it.
    pub(super) call: Option<String>,
    pub(super) n_entries: usize,
    pub(super) file: PathBuf,
}

/// A session that has entries in common with this one.
#[derive(Debug, Clone)]
pub(super) struct Fork {
    pub(super) id: SessionId,
    pub(super) headline: Option<String>,
    /// Whether this session came from that one, rather than the other way round.
    pub(super) is_source: bool,
    /// The last entry that both have, by its name here.
    pub(super) last_shared: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    agent_type: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    tool_use_id: Option<String>,
}

/// Returns the subagents of a session, in the order of their names.
pub(super) fn agents(place: &SessionPlace) -> Vec<Agent> {
    // No directory means no subagents.
    let Ok(entries) = fs::read_dir(place.subagents_dir()) else { return Vec::new() };
    let mut agents: Vec<Agent> =
        entries.filter_map(Result::ok).filter_map(|entry| agent(&entry.path())).collect();
    agents.sort_by(|left, right| left.id.cmp(&right.id));
    agents
}

fn agent(file: &Path) -> Option<Agent> {
    let id = file.file_name()?.to_str()?.strip_prefix("agent-")?.strip_suffix(".jsonl")?.to_owned();
    let meta: Meta = read_regular(file.with_extension("meta.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    Some(Agent {
        id,
        kind: meta.agent_type,
        description: meta.description,
        call: meta.tool_use_id,
        n_entries: load_transcript(file).map_or(0, |loaded| loaded.entries.len()),
        file: file.to_owned(),
    })
}

/// Returns the sessions that were forked from this one, and the one it was forked from.
///
/// A fork keeps the uuids of what it copied, or says of each entry where it comes from.
pub(super) fn forks(
    ctx: &SessionsContext<'_>,
    ours: &SessionSummary,
    outline: &Outline,
) -> Result<Vec<Fork>, UserError> {
    let known: HashSet<&str> = outline.nodes().iter().filter_map(|node| uuid(&node.entry)).collect();
    let id = ours.place.id().as_str();
    let is_relative = |other: &&SessionSummary| {
        let facts = &other.facts;
        other.place.id() != ours.place.id()
            && (facts.forked_from.as_deref() == Some(id)
                || ours.facts.forked_from.as_deref() == Some(other.place.id().as_str())
                || facts.first_entry.as_deref().is_some_and(|first| known.contains(first)))
    };
    let all = list_all(&ctx.home).map_err(|error| UserError::from_error(&error))?;
    let fork = |other: &SessionSummary| {
        Some(Fork {
            id: other.place.id().clone(),
            headline: other.facts.headline().map(|text| single_line(text, 60)),
            is_source: ours.facts.forked_from.as_deref() == Some(other.place.id().as_str())
                || (other.facts.forked_from.is_none() && other.facts.created < ours.facts.created),
            last_shared: last_shared(other, &known)?,
        })
    };
    Ok(all.iter().filter(is_relative).filter_map(fork).collect())
}

/// Returns the last entry of another session that this one has too.
fn last_shared(other: &SessionSummary, known: &HashSet<&str>) -> Option<String> {
    let loaded = load_transcript(other.place.file()).ok()?;
    let name = |entry: &Entry| {
        let origin: Option<Value> = entry.fields().read("forkedFrom");
        let origin = origin.and_then(|origin| Some(origin["messageUuid"].as_str()?.to_owned()));
        [uuid(entry).map(str::to_owned), origin]
            .into_iter()
            .flatten()
            .find(|name| known.contains(name.as_str()))
    };
    loaded.entries.iter().rev().filter(|entry| entry.head().kind.is_chain()).find_map(|entry| name(entry))
}

fn uuid(entry: &Entry) -> Option<&str> {
    entry.head().uuid.as_ref().map(|uuid| uuid.as_str())
}
