//! The running notes of a session, beside its transcript.
//!
//! ```text
//! <session>/session-memory/summary.md   the notes, 0600
//! <session>/session-memory/state.json   {"covers": <entry>, "tokens": <n>, "at": <time>}
//! ```
//!
//! Both are replaced as a whole. The state is written after the notes, so after a crash it names an entry that the
//! notes surely cover: they may say more than it claims, never less.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_stdx::{RealDir, WriteError, WriteOptions, read_regular_to_string, write_atomic};
use serde::{Deserialize, Serialize};

use crate::layout::SessionPlace;

/// Notes beyond this are not ours to use; they are bounded to a fraction of it.
const MOST_BYTES: u64 = 1024 * 1024;

/// The notes of one session.
#[derive(Debug, Clone)]
pub struct SessionNotes {
    dir: PathBuf,
}

/// What notes cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesCoverage {
    /// The last entry they cover.
    pub covers: EntryId,
    /// How many tokens the context had then.
    pub tokens: u64,
    /// When that was.
    pub at: String,
}

/// Why notes could not be used.
#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    /// They could not be read.
    #[error("Failed to read session notes: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// They could not be written.
    #[error("Failed to write session notes")]
    Write(#[from] WriteError),
}

impl SessionNotes {
    /// Names the notes of the session whose files lie in `session_dir`.
    pub fn in_dir(session_dir: &Path) -> Self {
        Self { dir: session_dir.join("session-memory") }
    }

    /// Returns the file that holds the notes.
    pub fn file(&self) -> PathBuf {
        self.dir.join("summary.md")
    }

    /// Returns the notes, beginning them with `template` where there are none.
    pub fn begin(&self, template: &str) -> Result<String, NotesError> {
        match self.read()? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            _ => {
                self.write(template)?;
                Ok(template.to_owned())
            }
        }
    }

    /// Returns the notes, if there are any.
    pub fn read(&self) -> Result<Option<String>, NotesError> {
        let path = self.file();
        match self.text() {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(NotesError::Read { path, source }),
        }
    }

    /// Reads the notes; a symlink in their place is not followed.
    fn text(&self) -> io::Result<String> {
        let dir = RealDir::open(&self.dir.canonicalize()?)?;
        let file = dir.open_file(self.file().file_name().unwrap_or_default())?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > MOST_BYTES {
            return Err(io::Error::other("it is not a file of notes"));
        }
        io::read_to_string(file)
    }

    /// Replaces the notes.
    pub fn write(&self, text: &str) -> Result<(), NotesError> {
        let options = WriteOptions::private().creating_parents();
        Ok(write_atomic(&self.file(), text.as_bytes(), &options)?)
    }

    /// Returns what the notes cover; nothing when that is not known.
    pub fn covered(&self) -> Option<NotesCoverage> {
        let text = read_regular_to_string(self.state_file()).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps what the notes, as they are on disk, cover.
    pub fn set_covered(&self, covered: &NotesCoverage) -> Result<(), NotesError> {
        let text = serde_json::json!({"covers": covered.covers, "tokens": covered.tokens, "at": covered.at});
        let options = WriteOptions::private().creating_parents();
        Ok(write_atomic(&self.state_file(), format!("{text}\n").as_bytes(), &options)?)
    }

    /// Tells whether the notes are as they were when it was written down what they cover; an agent that is under way, or
    /// was cut short, has them say more.
    fn is_settled(&self) -> bool {
        let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
        match (modified(&self.file()), modified(&self.state_file())) {
            (Ok(notes), Ok(state)) => notes <= state,
            _ => false,
        }
    }

    fn state_file(&self) -> PathBuf {
        self.dir.join("state.json")
    }
}

/// Takes the notes of a session over into a fork that begins with `entries`; tells whether it did.
///
/// Notes that cover more than the fork has, or may do so, stay behind: it would know of a conversation that it never had.
pub fn copy_notes(
    from: &SessionPlace,
    to: &SessionPlace,
    entries: &[Arc<Entry>],
) -> Result<bool, NotesError> {
    let (source, target) = (SessionNotes::in_dir(&from.dir()), SessionNotes::in_dir(&to.dir()));
    let Some(covered) = source.covered() else { return Ok(false) };
    let is_known = entries.iter().any(|entry| entry.head().uuid.as_ref() == Some(&covered.covers));
    let Some(text) = source.read()?.filter(|_| is_known) else { return Ok(false) };
    // Looked at after the text was read: what was written before that is in the text, and shows here.
    if !source.is_settled() || source.covered().as_ref() != Some(&covered) {
        return Ok(false);
    }
    target.write(&text)?;
    target.set_covered(&covered)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn notes_begin_with_the_template_and_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let notes = SessionNotes::in_dir(&dir.path().join("s"));
        assert_eq!(notes.read().unwrap(), None);
        assert_eq!(notes.begin("# Title\n").unwrap(), "# Title\n");
        notes.write("# Title\nmine\n").unwrap();
        assert_eq!(notes.begin("# Title\n").unwrap(), "# Title\nmine\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&notes.file()), mode(notes.file().parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn notes_coverage_survives_a_restart_and_is_ignored_when_torn() {
        let dir = tempfile::tempdir().unwrap();
        let notes = SessionNotes::in_dir(dir.path());
        assert_eq!(notes.covered(), None);
        let covered = NotesCoverage { covers: "e1".into(), tokens: 12_000, at: "t".to_owned() };
        notes.set_covered(&covered).unwrap();
        assert_eq!(SessionNotes::in_dir(dir.path()).covered(), Some(covered));
        let state = dir.path().join("session-memory/state.json");
        let whole = fs::read_to_string(&state).unwrap();
        for n in 0..whole.len() - 2 {
            fs::write(&state, &whole[..n]).unwrap();
            assert_eq!(notes.covered(), None, "cut after {n} bytes");
        }
    }

    /// Invariant 10 of `docs/design/memory.md`.
    #[test]
    fn a_fork_takes_over_notes_of_what_it_has_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let place = |id: &str| {
            let id = loci_core::ids::SessionId::parse(id).unwrap();
            SessionPlace::new(dir.path().join(format!("{id}.jsonl")), id)
        };
        let source = place("11111111-1111-4111-8111-111111111111");
        let entry = |uuid: &str| {
            Arc::new(Entry::parse(format!(r#"{{"type":"user","uuid":"{uuid}","parentUuid":null}}"#)).unwrap())
        };
        let all = [entry("e1"), entry("e2")];
        let notes = SessionNotes::in_dir(&source.dir());
        let check = |entries: &[Arc<Entry>], n: u32, expected: Option<&str>| {
            let fork = place(&format!("22222222-2222-4222-8222-{n:012}"));
            assert_eq!(copy_notes(&source, &fork, entries).unwrap(), expected.is_some(), "{n}");
            let taken = SessionNotes::in_dir(&fork.dir());
            assert_eq!(taken.read().unwrap().as_deref(), expected, "{n}");
            assert_eq!(taken.covered(), notes.covered().filter(|_| expected.is_some()), "{n}");
        };
        check(&all, 1, None);
        notes.write("about e1 and e2").unwrap();
        check(&all, 2, None);
        notes.set_covered(&NotesCoverage { covers: "e2".into(), tokens: 5, at: "t".to_owned() }).unwrap();
        check(&all, 3, Some("about e1 and e2"));
        check(&all[..1], 4, None);
        // An agent is at work on them.
        notes.write("about e1, e2 and what came after").unwrap();
        let later =
            fs::metadata(notes.state_file()).unwrap().modified().unwrap() + std::time::Duration::from_secs(1);
        fs::File::options().write(true).open(notes.file()).unwrap().set_modified(later).unwrap();
        check(&all, 5, None);
    }

    #[test]
    fn a_link_in_the_place_of_notes_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let notes = SessionNotes::in_dir(dir.path());
        fs::create_dir_all(notes.file().parent().unwrap()).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), notes.file()).unwrap();
        assert!(notes.read().is_err());
    }
}
