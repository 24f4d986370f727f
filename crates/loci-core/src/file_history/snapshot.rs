//! Snapshots as transcripts have them: which backup holds each tracked file's content at a prompt.
//!
//! ```text
//! {"type":"file-history-snapshot","messageId":"<entry>","snapshot":{"messageId":"<prompt>","trackedFileBackups":
//!   {"<key>":{"backupFileName":"<16 hex>@v<N>"|null,"version":N,"backupTime":"…"}},"timestamp":"…"},"isSnapshotUpdate":false}
//! ```
//!
//! A key is the path relative to the working directory when inside it, absolute otherwise. `null` means that the file
//! did not exist. A snapshot belongs to a prompt; the last entry that names the prompt counts. The first entry of a
//! prompt has `isSnapshotUpdate` false and names it twice; an update names the entry whose call was about to change
//! the file that is new in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::entry::{BadEntry, Entry};
use crate::ids::EntryId;

/// The type of the entries.
const TYPE: &str = "file-history-snapshot";

/// One version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The file that holds the content; `None` when there was no file.
    pub file_name: Option<String>,
    /// Counts up from one, by file.
    pub version: u64,
    /// When it was made.
    pub time: String,
}

/// The tracked files at one prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The prompt.
    pub message: EntryId,
    /// When it was made.
    pub timestamp: String,
    /// A backup for each key, in the order they were first tracked.
    pub backups: Vec<(String, Backup)>,
}

/// A snapshot as one line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// The entry it was written for.
    pub written_for: EntryId,
    /// Whether it repeats a snapshot that has more files now.
    pub is_update: bool,
    /// The snapshot.
    pub snapshot: Snapshot,
}

impl Snapshot {
    /// Returns the backup of a key.
    pub fn find(&self, key: &str) -> Option<&Backup> {
        self.backups.iter().find(|(tracked, _)| tracked == key).map(|(_, backup)| backup)
    }

    fn parse(value: &Value) -> Option<Self> {
        let tracked = value.get("trackedFileBackups").and_then(Value::as_object);
        let backups = tracked.into_iter().flatten().filter_map(|(key, backup)| {
            let time = backup.get("backupTime").and_then(Value::as_str).unwrap_or_default().to_owned();
            let file_name = match backup.get("backupFileName")? {
                Value::Null => None,
                // A name that leads elsewhere is no name of a backup.
                Value::String(name) if is_plain_name(name) => Some(name.clone()),
                _ => return None,
            };
            let version = backup.get("version").and_then(Value::as_u64).unwrap_or(1);
            Some((key.clone(), Backup { file_name, version, time }))
        });
        Some(Self {
            message: EntryId::new(value.get("messageId")?.as_str()?),
            timestamp: value.get("timestamp").and_then(Value::as_str).unwrap_or_default().to_owned(),
            backups: backups.collect(),
        })
    }

    fn to_value(&self) -> Value {
        let backups: Map<String, Value> = self
            .backups
            .iter()
            .map(|(key, backup)| {
                let value = json!({"backupFileName": backup.file_name, "version": backup.version, "backupTime": backup.time});
                (key.clone(), value)
            })
            .collect();
        json!({"messageId": self.message.as_str(), "trackedFileBackups": backups, "timestamp": self.timestamp})
    }
}

impl SnapshotEntry {
    /// Reads the snapshot of an entry; `None` for entries of other kinds.
    pub fn read(entry: &Entry) -> Option<Self> {
        if entry.head().type_name.as_ref() != TYPE {
            return None;
        }
        let fields = entry.fields();
        let snapshot = Snapshot::parse(&fields.read::<Value>("snapshot")?)?;
        let written_for = fields.read::<String>("messageId").map(EntryId::new);
        Some(Self {
            written_for: written_for.unwrap_or_else(|| snapshot.message.clone()),
            is_update: fields.read("isSnapshotUpdate").unwrap_or(false),
            snapshot,
        })
    }

    /// Writes the line.
    pub fn seal(&self) -> Result<Entry, BadEntry> {
        let line = json!({
            "type": TYPE,
            "messageId": self.written_for.as_str(),
            "snapshot": self.snapshot.to_value(),
            "isSnapshotUpdate": self.is_update,
        });
        Entry::parse(line.to_string())
    }
}

/// Returns the snapshots of a transcript, oldest first, each as it was written last.
pub fn snapshots_of(entries: &[Arc<Entry>]) -> Vec<Snapshot> {
    let mut found: Vec<Snapshot> = Vec::new();
    for entry in entries.iter().filter_map(|entry| SnapshotEntry::read(entry)) {
        match found.iter_mut().find(|known| known.message == entry.snapshot.message) {
            Some(known) => *known = entry.snapshot,
            None => found.push(entry.snapshot),
        }
    }
    found
}

/// Returns the key under which a file is tracked; `None` for a name that JSON cannot hold.
pub fn tracked_key(cwd: &Path, path: &Path) -> Option<String> {
    let key = path.strip_prefix(cwd).unwrap_or(path);
    key.to_str().filter(|key| !key.is_empty()).map(str::to_owned)
}

/// Returns the name of a backup; `digest` is the SHA-256 of the absolute path, in hex.
pub fn backup_file_name(digest: &str, version: u64) -> String {
    format!("{}@v{version}", digest.get(..16).unwrap_or(digest))
}

/// Returns the path that a key stands for.
pub fn path_of_key(cwd: &Path, key: &str) -> PathBuf {
    cwd.join(key)
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"type":"file-history-snapshot","messageId":"a-2","snapshot":{"messageId":"u-1","trackedFileBackups":{"code.txt":{"backupFileName":"b8547272bf2ad8b8@v1","version":1,"backupTime":"2026-11-15T18:47:14.257Z"},"made.txt":{"backupFileName":null,"version":1,"backupTime":"2026-11-15T18:47:14.370Z"}},"timestamp":"2026-11-15T18:47:13.851Z"},"isSnapshotUpdate":true}"#;

    /// Invariant 3 of `docs/design/file-history.md`.
    #[test]
    fn a_line_of_the_reference_is_written_as_it_was_read() {
        let read = SnapshotEntry::read(&Entry::parse(LINE).unwrap()).unwrap();
        assert_eq!(read.seal().unwrap().line(), LINE);
        assert_eq!(read.snapshot.find("made.txt").unwrap().file_name, None);
    }

    #[test]
    fn the_last_entry_of_a_prompt_counts() {
        let earlier = LINE.replace("made.txt", "other.txt");
        let later = LINE.replace("u-1", "u-2");
        let entries: Vec<Arc<Entry>> =
            [&earlier, LINE, &later].iter().map(|line| Arc::new(Entry::parse(*line).unwrap())).collect();
        let found = snapshots_of(&entries);
        let messages: Vec<&str> = found.iter().map(|snapshot| snapshot.message.as_str()).collect();
        assert_eq!(messages, ["u-1", "u-2"]);
        assert!(found[0].find("made.txt").is_some() && found[0].find("other.txt").is_none());
    }

    #[test]
    fn names_that_lead_elsewhere_are_not_read() {
        for name in ["../../x", "/etc/passwd", ""] {
            let line = LINE.replace("b8547272bf2ad8b8@v1", name);
            let read = SnapshotEntry::read(&Entry::parse(line).unwrap()).unwrap();
            assert_eq!(read.snapshot.find("code.txt"), None, "{name}");
        }
    }

    #[test]
    fn keys_are_relative_inside_the_directory_only() {
        let cwd = Path::new("/p");
        for (path, key) in [("/p/a/b", "a/b"), ("/q/a", "/q/a"), ("/pp", "/pp")] {
            assert_eq!(tracked_key(cwd, Path::new(path)).as_deref(), Some(key));
            assert_eq!(path_of_key(cwd, key), Path::new(path));
        }
    }
}
