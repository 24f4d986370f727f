//! What a transcript says lies in other files: backups of the file history, and results too long for the conversation.
//!
//! Pure: what is there and what is missing is for others to see; what a missing file held is told from the transcript,
//! as far as that says it.

use std::collections::BTreeMap;
use std::path::Path;

use loci_core::entry::Entry;
use loci_core::file_history::SnapshotEntry;
use loci_core::ids::SessionId;
use memchr::memmem;
use serde_json::Value;

use super::transcript::{CheckedTranscript, LocatedEntry};

/// Snapshots before the last so many have given their backups up.
const MOST_SNAPSHOTS: usize = 100;

/// A backup that a snapshot names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedBackup {
    pub(super) name: String,
    /// The file it is of.
    pub(super) key: String,
    /// Where the entry is that names it first.
    pub(super) offset: u64,
    /// The entry whose call was about to change the file, if it was made for one.
    made_for: Option<String>,
}

/// A result that lies in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedResult {
    pub(super) name: String,
    pub(super) offset: u64,
    /// How long it was, if that is said.
    pub(super) size: Option<u64>,
    /// What the transcript still has of it.
    pub(super) known: String,
}

/// Returns the backups that the last snapshots name, each once.
pub(super) fn backups(reading: &CheckedTranscript) -> Vec<NamedBackup> {
    let read = |kept: &LocatedEntry| Some((kept.offset, SnapshotEntry::read(&kept.entry)?));
    let snapshots: Vec<(u64, SnapshotEntry)> = reading.entries.iter().filter_map(read).collect();
    let mut last: Vec<&SnapshotEntry> = Vec::new();
    for (_, entry) in snapshots.iter().rev() {
        if last.len() < MOST_SNAPSHOTS && last.iter().all(|it| it.snapshot.message != entry.snapshot.message)
        {
            last.push(entry);
        }
    }
    let mut named: BTreeMap<&str, NamedBackup> = BTreeMap::new();
    for (key, backup) in last.iter().flat_map(|entry| &entry.snapshot.backups) {
        let Some(name) = backup.file_name.as_deref().filter(|name| !named.contains_key(name)) else {
            continue;
        };
        let names = |entry: &SnapshotEntry| {
            entry.snapshot.backups.iter().any(|(_, it)| it.file_name.as_deref() == Some(name))
        };
        let Some((offset, first)) = snapshots.iter().find(|(_, entry)| names(entry)) else { continue };
        let made_for = first.is_update.then(|| first.written_for.to_string());
        named
            .insert(name, NamedBackup { name: name.to_owned(), key: key.clone(), offset: *offset, made_for });
    }
    named.into_values().collect()
}

/// Returns what a backup held: the call that it was made for says what the file was before.
pub(super) fn recorded_content(reading: &CheckedTranscript, backup: &NamedBackup) -> Option<String> {
    let made_for = backup.made_for.as_deref()?;
    let is_it =
        |kept: &&LocatedEntry| kept.entry.head().uuid.as_ref().is_some_and(|uuid| uuid.as_str() == made_for);
    let caller = reading.entries.iter().rev().find(is_it)?;
    let calls: Vec<String> = field_of_blocks(&caller.entry, "id");
    reading.entries.iter().find_map(|kept| {
        memmem::find(kept.entry.line().as_bytes(), b"\"originalFile\"")?;
        let answers = field_of_blocks(&kept.entry, "tool_use_id");
        let result: Value = kept.entry.fields().read("toolUseResult")?;
        let is_meant = result["filePath"].as_str().is_some_and(|path| Path::new(path).ends_with(&backup.key));
        let is_answer = answers.iter().any(|id| calls.contains(id));
        (is_meant && is_answer).then(|| result["originalFile"].as_str().map(str::to_owned))?
    })
}

fn field_of_blocks(entry: &Entry, field: &str) -> Vec<String> {
    let message: Value = entry.fields().read("message").unwrap_or_default();
    let blocks = message["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().filter_map(|block| block[field].as_str().map(str::to_owned)).collect()
}

/// Returns the results of this session that lie in files. Those of a session that this one was forked from are its own.
pub(super) fn results(reading: &CheckedTranscript, session: &SessionId) -> Vec<NamedResult> {
    let mut named: BTreeMap<String, NamedResult> = BTreeMap::new();
    for kept in &reading.entries {
        let line = kept.entry.line().as_bytes();
        if memmem::find(line, b"tool-results").is_none()
            || memmem::find(line, b"<persisted-output>").is_none()
        {
            continue;
        }
        if let Some(result) = result_of(kept, session) {
            named.entry(result.name.clone()).or_insert(result);
        }
    }
    named.into_values().collect()
}

fn result_of(kept: &LocatedEntry, session: &SessionId) -> Option<NamedResult> {
    let fields = kept.entry.fields();
    let message: Value = fields.read("message")?;
    let texts = message["content"].as_array()?.iter().filter(|block| block["type"] == "tool_result");
    let shown = texts.filter_map(|block| block["content"].as_str());
    let shown = shown.filter(|text| text.starts_with("<persisted-output>")).find_map(saved_to)?;
    let (path, preview) = shown;
    let name = name_in(path, session)?;
    let structured: Value = fields.read("toolUseResult").unwrap_or_default();
    let known = structured["stdout"].as_str().unwrap_or(preview);
    Some(NamedResult {
        name,
        offset: kept.offset,
        size: structured["persistedOutputSize"].as_u64(),
        known: known.to_owned(),
    })
}

/// Returns the path that a result says it was saved to, and the preview it gives.
fn saved_to(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("saved to: ")?;
    let (path, rest) = rest.split_once('\n')?;
    let preview = rest.split_once(":\n").map_or("", |(_, preview)| preview);
    let preview = preview.strip_suffix("\n...\n</persisted-output>").unwrap_or(preview);
    Some((path, preview))
}

/// Returns the name of a result of this session: `…/<session>/tool-results/<name>`.
fn name_in(path: &str, session: &SessionId) -> Option<String> {
    let path = Path::new(path);
    let dir = path.parent()?;
    let is_ours = dir.file_name()? == "tool-results" && dir.parent()?.file_name()? == session.as_str();
    is_ours.then(|| path.file_name()?.to_str().map(str::to_owned))?
}
