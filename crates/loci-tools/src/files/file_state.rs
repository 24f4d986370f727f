//! What the model has read: the memory behind read-before-edit.
//!
//! At most 100 files and 25 MiB of content, least recently used out; keys are normalised paths. A subagent
//! works on a clone; merging keeps the newer entry of each path.
//!
//! A path is known by the spelling it was read under. Whoever looks one up tries the requested spelling first
//! and the real one next ([`FileStates::find`]), so that a file read by its real path can be edited through a
//! symlink.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use loci_core::tool::PathEffect;
use lru::LruCache;

/// The most files remembered.
const MAX_ENTRIES: usize = 100;

/// The most bytes of content remembered, over all files.
const MAX_BYTES: usize = 25 * 1024 * 1024;

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

impl FileState {
    /// Returns true when the model saw the file from its first line to its last.
    pub fn is_whole(&self) -> bool {
        self.offset.is_none() && self.limit.is_none() && !self.is_partial_view
    }
}

/// The files the model has read.
#[derive(Debug, Clone)]
pub struct FileStates {
    entries: LruCache<PathBuf, Entry>,
    bytes: usize,
}

/// A state is shared between a conversation and the subagents it started.
#[derive(Debug, Clone)]
struct Entry {
    state: Arc<FileState>,
    /// Whether the content stands in the conversation as the result of a Read, as it is here.
    is_shown: bool,
}

impl Default for FileStates {
    fn default() -> Self {
        Self { entries: LruCache::unbounded(), bytes: 0 }
    }
}

impl FileStates {
    /// Returns what is known of `path`, and counts as a use.
    pub fn get(&mut self, path: &Path) -> Option<&FileState> {
        self.entries.get(path).map(|entry| entry.state.as_ref())
    }

    /// Returns what is known of a path under either of its spellings, and counts as a use.
    pub fn find(&mut self, path: &PathEffect) -> Option<&FileState> {
        let key = if self.entries.contains(&path.requested) { &path.requested } else { &path.real };
        self.get(key)
    }

    /// Remembers a file, dropping the least recently used beyond the limits.
    ///
    /// A content too large for the whole cache is not remembered, and what was known of the path is forgotten.
    pub fn insert(&mut self, path: PathBuf, state: FileState) {
        self.put(path, Entry { state: Arc::new(state), is_shown: false });
    }

    /// Remembers a file whose content has just been put before the model by Read.
    pub fn insert_shown(&mut self, path: PathBuf, state: FileState) {
        self.put(path, Entry { state: Arc::new(state), is_shown: true });
    }

    /// Returns true when the conversation already holds exactly this state of `path` as a Read result.
    pub fn is_shown(&mut self, path: &Path, state: &FileState) -> bool {
        self.entries.get(path).is_some_and(|entry| entry.is_shown && *entry.state == *state)
    }

    /// Takes note that earlier Read results have left the conversation, so that reading a file again shows it
    /// again. What has been read stays known.
    pub fn forget_shown(&mut self) {
        for (_, entry) in self.entries.iter_mut() {
            entry.is_shown = false;
        }
    }

    /// Forgets a path.
    pub fn remove(&mut self, path: &Path) -> Option<FileState> {
        let entry = self.entries.pop(path)?;
        self.bytes -= entry.state.content.len();
        Some(Arc::unwrap_or_clone(entry.state))
    }

    /// Takes over another cache's newer entries: those of files modified later than when we saw them, and
    /// those of files we do not know.
    pub fn merge(&mut self, other: &FileStates) {
        let oldest_first = other.entries.iter().rev();
        for (path, theirs) in oldest_first {
            let ours = self.entries.peek(path);
            if ours.is_none_or(|ours| ours.state.modified < theirs.state.modified) {
                // What the other conversation was shown, this one was not.
                self.put(path.clone(), Entry { state: Arc::clone(&theirs.state), is_shown: false });
            }
        }
    }

    /// Iterates over the files, most recently used first, without counting as a use.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &FileState)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry.state.as_ref()))
    }

    /// Returns how many files are remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true when nothing has been read.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn put(&mut self, path: PathBuf, entry: Entry) {
        self.remove(&path);
        let size = entry.state.content.len();
        if size > MAX_BYTES {
            return;
        }
        self.bytes += size;
        self.entries.put(path, entry);
        while self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let Some((_, dropped)) = self.entries.pop_lru() else { break };
            self.bytes -= dropped.state.content.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn state(size: usize, second: u64) -> FileState {
        FileState {
            content: "x".repeat(size),
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(second),
            offset: None,
            limit: None,
            is_partial_view: false,
        }
    }

    fn filled(files: &[(&str, usize, u64)]) -> FileStates {
        let mut states = FileStates::default();
        for (path, size, second) in files {
            states.insert(PathBuf::from(path), state(*size, *second));
        }
        states
    }

    fn names(states: &FileStates) -> Vec<String> {
        states.iter().map(|(path, _)| path.display().to_string()).collect()
    }

    #[test]
    fn the_hundred_and_first_pushes_out_the_least_recently_used() {
        let mut states = FileStates::default();
        for n in 0..100 {
            states.insert(PathBuf::from(format!("/{n}")), state(1, 0));
        }
        assert!(states.get(Path::new("/0")).is_some());
        states.insert("/new".into(), state(1, 0));
        assert_eq!(states.len(), 100);
        assert!(states.get(Path::new("/0")).is_some(), "was used, stays");
        assert!(states.get(Path::new("/1")).is_none(), "least recently used, goes");
    }

    #[test]
    fn remembered_bytes_are_bounded() {
        let mib = 1024 * 1024;
        let mut states = filled(&[("/a", 10 * mib, 0), ("/b", 10 * mib, 0), ("/c", 5 * mib, 0)]);
        assert_eq!(names(&states), ["/c", "/b", "/a"]);
        states.insert("/d".into(), state(1, 0));
        assert_eq!(names(&states), ["/d", "/c", "/b"]);
        states.insert("/b".into(), state(25 * mib + 1, 0));
        assert_eq!(names(&states), ["/d", "/c"], "too large for the cache: forgotten, others kept");
    }

    #[test]
    fn merge_keeps_the_newer_entry_of_each_path() {
        for (ours, theirs, expected) in [
            (1, 2, 2), // theirs is newer
            (2, 1, 2), // ours is newer
        ] {
            let mut states = filled(&[("/both", 1, ours), ("/ours", 1, 9)]);
            states.merge(&filled(&[("/both", 1, theirs), ("/theirs", 1, 0)]));
            assert_eq!(states.get(Path::new("/both")), Some(&state(1, expected)));
            assert!(states.get(Path::new("/ours")).is_some() && states.get(Path::new("/theirs")).is_some());
        }
        let mut states = filled(&[("/same", 1, 5)]);
        states.merge(&filled(&[("/same", 2, 5)]));
        assert_eq!(states.get(Path::new("/same")), Some(&state(1, 5)), "a tie stays ours");
    }

    #[test]
    fn clone_of_file_states_is_independent() {
        let original = filled(&[("/a", 1, 0)]);
        let mut clone = original.clone();
        clone.insert("/b".into(), state(1, 0));
        clone.remove(Path::new("/a"));
        assert_eq!((names(&original), names(&clone)), (vec!["/a".to_owned()], vec!["/b".to_owned()]));
    }

    #[test]
    fn is_shown_holds_for_one_conversation_and_one_state() {
        let (path, seen) = (PathBuf::from("/a"), state(3, 1));
        let mut states = FileStates::default();
        states.insert(path.clone(), seen.clone());
        assert!(!states.is_shown(&path, &seen), "known, but not from a Read");
        states.insert_shown(path.clone(), seen.clone());
        assert!(states.is_shown(&path, &seen));
        assert!(!states.is_shown(&path, &state(3, 2)), "modified since");
        let mut parent = FileStates::default();
        parent.merge(&states);
        assert!(!parent.is_shown(&path, &seen), "the subagent saw it, the parent did not");
        states.forget_shown();
        assert!(!states.is_shown(&path, &seen) && states.get(&path).is_some());
    }

    #[test]
    fn either_spelling_finds_a_file() {
        let mut states = filled(&[("/real", 1, 0)]);
        let path = PathEffect { requested: "/link".into(), real: "/real".into() };
        assert!(states.find(&path).is_some());
        states.insert("/link".into(), state(2, 0));
        assert_eq!(states.find(&path), Some(&state(2, 0)), "the requested spelling wins");
    }

    #[test]
    fn whole_means_from_the_first_line_to_the_last() {
        assert!(state(1, 0).is_whole());
        assert!(!FileState { offset: Some(1), ..state(1, 0) }.is_whole());
        assert!(!FileState { limit: Some(1), ..state(1, 0) }.is_whole());
        assert!(!FileState { is_partial_view: true, ..state(1, 0) }.is_whole());
    }

    /// The cache as a plain list, most recently used first.
    #[derive(Default)]
    struct Model(Vec<(PathBuf, usize)>);

    impl Model {
        fn insert(&mut self, path: PathBuf, size: usize) {
            self.0.retain(|(known, _)| *known != path);
            if size <= MAX_BYTES {
                self.0.insert(0, (path, size));
            }
            while self.0.len() > MAX_ENTRIES || self.0.iter().map(|(_, size)| size).sum::<usize>() > MAX_BYTES
            {
                self.0.pop();
            }
        }

        fn get(&mut self, path: &Path) {
            if let Some(idx) = self.0.iter().position(|(known, _)| known == path) {
                let entry = self.0.remove(idx);
                self.0.insert(0, entry);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
        #[test]
        fn limits_and_order_hold_after_any_sequence(
            steps in prop::collection::vec((0u8..3, 0u16..130, 0usize..4), 0..300)
        ) {
            let (mut states, mut model) = (FileStates::default(), Model::default());
            for (verb, name, size) in steps {
                let path = PathBuf::from(format!("/{name}"));
                let size = [0, 10, 3 * 1024 * 1024, MAX_BYTES + 1][size];
                match verb {
                    0 => {
                        states.insert(path.clone(), state(size, 0));
                        model.insert(path, size);
                    }
                    1 => {
                        states.get(&path);
                        model.get(&path);
                    }
                    _ => {
                        states.remove(&path);
                        model.0.retain(|(known, _)| *known != path);
                    }
                }
                let seen: Vec<_> =
                    states.iter().map(|(path, state)| (path.to_path_buf(), state.content.len())).collect();
                prop_assert_eq!(&seen, &model.0);
                prop_assert_eq!(states.bytes, seen.iter().map(|(_, size)| size).sum::<usize>());
            }
        }
    }
}
