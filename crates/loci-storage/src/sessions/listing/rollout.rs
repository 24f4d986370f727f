//! What a list shows of a rollout: read off the two ends of its file, like our own.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use loci_core::entry::{Entry, EntryKind};
use loci_core::message::Block;
use loci_core::passage::{Voice, passages};
use loci_stdx::{open_regular, single_line};
use memchr::memmem;

use super::head_tail::HeadTail;
use super::{Labels, MessageCount, SessionMetadata, SessionSummary, cached_or_read, scan};
use crate::foreign::rollout::{entries_of, head_of, is_compressed, rollout_bytes, rollouts, titles};
use crate::layout::{ConfigHome, SessionPlace};
use crate::project::Project;
use crate::sessions::archive::packed_transcripts;
use crate::sessions::find::{FileStamp, FindError, places_of_all};

/// The most characters of a prompt that are shown.
const PROMPT: usize = 200;

/// Lists the sessions of Codex that began in a project, or all there are, the newest first. One that was imported is
/// not among them: its import is.
pub fn list_rollouts(home: &ConfigHome, project: Option<&Project>) -> Result<Vec<SessionSummary>, FindError> {
    let mut places = rollouts(home);
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let own = own_ids(home)?;
    places.retain(|place| !own.contains(place.id().as_str()));
    let look = |place: SessionPlace| FileStamp::read(place.file()).map(|stamp| (place, stamp));
    let mut sessions =
        cached_or_read(home, places.into_iter().filter_map(look).collect(), usize::MAX).sessions;
    sessions.retain(|session| {
        project.is_none_or(|project| project.covers_recorded(session.facts.cwd.as_deref()))
    });
    let mut titles = titles(home);
    for session in &mut sessions {
        session.facts.labels.custom = titles.remove(session.place.id().as_str());
    }
    Ok(sessions)
}

/// Returns the ids of our own sessions, archived ones included.
fn own_ids(home: &ConfigHome) -> Result<HashSet<String>, FindError> {
    let (places, _) = places_of_all(home)?;
    let mut ids: HashSet<String> = places.into_iter().map(|place| place.id().to_string()).collect();
    ids.extend(packed_transcripts(home).into_iter().map(|packed| packed.session.id().to_string()));
    Ok(ids)
}

/// Reads the facts of a rollout; `None` of a file that is none.
pub(super) fn facts(path: &Path, buffer: &mut Vec<u8>) -> io::Result<Option<SessionMetadata>> {
    let file = open_regular(path)?;
    let metadata = file.metadata()?;
    let age = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (ends, n_bytes) = match is_compressed(path) {
        true => {
            *buffer = rollout_bytes(path)?;
            (HeadTail::from_bytes(buffer), buffer.len() as u64)
        }
        false => (HeadTail::read(&file, metadata.len(), buffer)?, metadata.len()),
    };
    let lines = loci_stdx::lines(ends.head);
    let mut lines = lines.map(|line| line.bytes).filter(|line| !line.trim_ascii().is_empty());
    let Some(head) = lines.next().and_then(head_of) else { return Ok(None) };
    let first_prompt = lines.flat_map(entries_of).find_map(|entry| prompt(&entry));
    let last =
        scan::lines_from_end(ends.tail).find_map(|line| scan::first_text(line, "timestamp")?.parse().ok());
    let messages = match ends.whole {
        Some(whole) => MessageCount::Exactly(n_messages(whole)),
        None => {
            let n_seen = memmem::find_iter(ends.tail, br#""type":"message""#).count() as u64;
            MessageCount::About((n_seen.saturating_mul(n_bytes) / (ends.tail.len() as u64).max(1)).max(1))
        }
    };
    Ok(Some(SessionMetadata {
        size: metadata.len(),
        modified_ms: i64::try_from(age.as_millis()).unwrap_or(i64::MAX),
        last_activity: last,
        created: head.time.as_deref().and_then(|time| time.parse().ok()),
        labels: Labels::default(),
        is_empty: first_prompt.is_none() && messages == MessageCount::Exactly(0),
        first_prompt,
        git_branch: head.branch,
        cwd: head.cwd,
        entrypoint: head.originator,
        first_entry: None,
        forked_from: head.forked_from,
        is_sidechain: head.is_subagent,
        messages,
        cost_usd: None,
    }))
}

fn prompt(entry: &Entry) -> Option<String> {
    let is_said = entry.head().kind == EntryKind::User && !entry.head().is_compact_summary;
    let text = entry.blocks().iter().filter(|_| is_said).find_map(Block::text)?;
    Some(single_line(&text, PROMPT))
}

fn n_messages(whole: &[u8]) -> u64 {
    let entries = loci_stdx::lines(whole).flat_map(|line| entries_of(line.bytes));
    let is_message = |entry: &Entry| {
        passages(entry).iter().any(|it| !matches!(it.voice, Voice::Thinking | Voice::Summary))
    };
    entries.filter(is_message).count() as u64
}
