//! Forking a session: the live conversation in a new file, the old one untouched.
//!
//! Copied are the entries on the path, with whatever links them, in the order of the file, byte for byte but for
//! `sessionId`; then content replacements (without them the new session would send other bytes, and the prompt
//! cache would be lost), then the file checkpoints of the copied prompts, newest first. Backups of checkpoints are
//! hard-linked into the new session's directory, or copied where links cannot be made. Running notes go along where they
//! cover no more than is copied (`session_notes`).
//!
//! 1. What the fork would send next is what the source would have sent.
//! 2. No byte of the source is changed, and a fork never writes over a file.

mod backups;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use loci_core::conversation::Conversation;
use loci_core::entry::{BadEntry, Entry};
use loci_core::ids::SessionId;
use loci_stdx::{AppendError, AppendFile};
use serde_json::{Value, json};

use crate::layout::SessionPlace;

pub use backups::link_backups;

/// Whether copied entries say where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkOrigin {
    /// They do not, as after `--fork-session`.
    None,
    /// Each names its original, as after a branch.
    Recorded,
}

/// Why a fork was not made.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// There is nothing to copy.
    #[error("The conversation has no messages to copy")]
    Nothing,
    /// An entry could not be rewritten.
    #[error("Failed to copy an entry")]
    Copy(#[source] BadEntry),
    /// The new file exists already.
    #[error("Session ID {id} is already in use")]
    InUse {
        /// The id.
        id: SessionId,
    },
    /// The new file could not be written.
    #[error("Failed to write session: `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Returns the entries that a fork begins with; `conversation` is the live path of the source, `entries` as much of its file
/// as that path comes from ([`load_fork_source`](super::load_fork_source)), or all of it.
pub fn fork_entries(
    entries: &[Arc<Entry>],
    conversation: &Conversation,
    source: &SessionId,
    id: &SessionId,
    trace: ForkOrigin,
) -> Result<Vec<Arc<Entry>>, ForkError> {
    let chosen = entries_to_copy(entries, conversation);
    if chosen.is_empty() {
        return Err(ForkError::Nothing);
    }
    let chain = chosen.iter().map(|entry| match (trace, &entry.head().uuid) {
        (ForkOrigin::Recorded, Some(uuid)) => {
            let origin = json!({"sessionId": source.as_str(), "messageUuid": uuid.as_str()});
            renamed(entry, id)?.with_field("forkedFrom", &origin)
        }
        (ForkOrigin::Recorded, None) | (ForkOrigin::None, _) => renamed(entry, id),
    });
    let is_replacement =
        |entry: &&Arc<Entry>| is_type(entry, "content-replacement") || is_type(entry, "context-collapse");
    let replacements = entries.iter().filter(is_replacement);
    let copied: Result<Vec<Entry>, BadEntry> =
        chain.chain(replacements.map(|entry| renamed(entry, id))).collect();
    let mut copied: Vec<Arc<Entry>> = copied.map_err(ForkError::Copy)?.into_iter().map(Arc::new).collect();
    copied.extend(snapshots(entries, &chosen));
    Ok(copied)
}

/// Writes a new session file that must not exist yet.
pub fn write_fork(place: &SessionPlace, entries: &[Arc<Entry>]) -> Result<(), ForkError> {
    let path = place.file();
    if path.exists() {
        return Err(ForkError::InUse { id: place.id().clone() });
    }
    let failed = |source| ForkError::Write { path: path.to_owned(), source };
    let lines: String = entries.iter().map(|entry| format!("{}\n", entry.line())).collect();
    let write = || -> Result<(), AppendError> {
        let mut file = AppendFile::open(path, AppendFile::PRIVATE)?;
        file.append_lines(lines.as_bytes())?;
        file.sync().map(drop)
    };
    write().map_err(|error| match error {
        AppendError::Open { source, .. }
        | AppendError::Append { source, .. }
        | AppendError::Sync { source, .. } => failed(source),
    })
}

/// Returns the entries of the path and whatever links them, in file order.
///
/// Entries that the path goes without (a call that was never answered) are links of the chain all the same. What a
/// compaction preserved is on the path; what lies above it is not followed.
fn entries_to_copy<'a>(entries: &'a [Arc<Entry>], conversation: &Conversation) -> Vec<&'a Arc<Entry>> {
    let index: HashMap<&str, usize> =
        entries.iter().enumerate().filter_map(|(idx, entry)| Some((uuid(entry)?, idx))).collect();
    let path: Vec<usize> =
        conversation.path().iter().filter_map(|entry| index.get(uuid(entry)?).copied()).collect();
    let boundary = path.first().copied().filter(|idx| entries[*idx].is_compact_boundary());
    let mut taken: HashSet<usize> = path.iter().copied().collect();
    let mut open: Vec<usize> = path.into_iter().filter(|idx| Some(*idx) >= boundary).collect();
    while let Some(idx) = open.pop() {
        let parent =
            entries[idx].head().parent.as_ref().and_then(|parent| index.get(parent.as_str()).copied());
        if let Some(parent) = parent.filter(|parent| Some(*parent) >= boundary && taken.insert(*parent)) {
            open.push(parent);
        }
    }
    let mut taken: Vec<usize> = taken.into_iter().collect();
    taken.sort_unstable();
    taken.into_iter().map(|idx| &entries[idx]).collect()
}

fn uuid(entry: &Entry) -> Option<&str> {
    entry.head().uuid.as_ref().map(|uuid| uuid.as_str())
}

fn renamed(entry: &Entry, id: &SessionId) -> Result<Entry, BadEntry> {
    entry.with_field("sessionId", &Value::from(id.as_str()))
}

fn is_type(entry: &Entry, name: &str) -> bool {
    entry.head().type_name.as_ref() == name
}

/// Returns the last checkpoint of each copied entry that has one, newest first; they name no session.
fn snapshots(entries: &[Arc<Entry>], chosen: &[&Arc<Entry>]) -> Vec<Arc<Entry>> {
    let chosen: HashSet<&str> = chosen.iter().filter_map(|entry| uuid(entry)).collect();
    let mut seen = HashSet::new();
    let newest_first = entries.iter().rev().filter(|entry| is_type(entry, "file-history-snapshot"));
    newest_first
        .filter(|entry| {
            let snapshot: Option<Value> = entry.fields().read("snapshot");
            let message =
                snapshot.as_ref().and_then(|snapshot| snapshot["messageId"].as_str()).unwrap_or_default();
            chosen.contains(message) && seen.insert(message.to_owned())
        })
        .cloned()
        .collect()
}
