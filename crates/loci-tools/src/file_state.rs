//! What the model has read: the memory behind read-before-edit.
//!
//! At most 100 files and 25 MiB of content, least recently used out; keys are normalised paths. A subagent
//! works on a clone; merging keeps the newer entry of each path.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// One file as the model saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// The text shown (decoded, line endings as shown).
    pub content: String,
    /// The file's modification time when it was read.
    pub modified: SystemTime,
    /// First line shown, when a part was asked for.
    pub offset: Option<u64>,
    /// Number of lines asked for.
    pub limit: Option<u64>,
    /// Whether the model saw something other than the file's own text (an injected, shortened form).
    pub is_partial_view: bool,
}

/// The files the model has read.
#[derive(Debug, Clone, Default)]
pub struct FileStates {}

impl FileStates {
    /// Returns what is known of `path`, and counts as a use.
    pub fn get(&mut self, _path: &Path) -> Option<&FileState> {
        None
    }

    /// Remembers a file, dropping the least recently used beyond the limits.
    pub fn insert(&mut self, _path: PathBuf, _state: FileState) {}

    /// Takes over another cache's newer entries.
    pub fn merge(&mut self, _other: &FileStates) {}
}
