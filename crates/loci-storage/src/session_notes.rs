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

use loci_core::ids::EntryId;
use loci_stdx::{WriteError, WriteOptions, write_atomic};
use serde::{Deserialize, Serialize};

/// Notes beyond this are not ours to use; they are bounded to a fraction of it.
const MOST_BYTES: u64 = 1024 * 1024;

/// The notes of one session.
#[derive(Debug, Clone)]
pub struct SessionNotes {
    dir: PathBuf,
}

/// What notes cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
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
    pub fn of(session_dir: &Path) -> Self {
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
        let read = fs::symlink_metadata(&path).and_then(|metadata| {
            if !metadata.is_file() || metadata.len() > MOST_BYTES {
                return Err(io::Error::other("it is not a file of notes"));
            }
            fs::read_to_string(&path)
        });
        match read {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(NotesError::Read { path, source }),
        }
    }

    /// Replaces the notes.
    pub fn write(&self, text: &str) -> Result<(), NotesError> {
        let options = WriteOptions::private().creating_parents();
        Ok(write_atomic(&self.file(), text.as_bytes(), &options)?)
    }

    /// Returns what the notes cover; nothing when that is not known.
    pub fn covered(&self) -> Option<Covered> {
        let text = fs::read_to_string(self.state_file()).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps what the notes, as they are on disk, cover.
    pub fn set_covered(&self, covered: &Covered) -> Result<(), NotesError> {
        let text = serde_json::json!({"covers": covered.covers, "tokens": covered.tokens, "at": covered.at});
        let options = WriteOptions::private().creating_parents();
        Ok(write_atomic(&self.state_file(), format!("{text}\n").as_bytes(), &options)?)
    }

    fn state_file(&self) -> PathBuf {
        self.dir.join("state.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn notes_begin_with_the_template_and_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let notes = SessionNotes::of(&dir.path().join("s"));
        assert_eq!(notes.read().unwrap(), None);
        assert_eq!(notes.begin("# Title\n").unwrap(), "# Title\n");
        notes.write("# Title\nmine\n").unwrap();
        assert_eq!(notes.begin("# Title\n").unwrap(), "# Title\nmine\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&notes.file()), mode(notes.file().parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn what_is_covered_is_known_after_a_restart_and_doubted_when_torn() {
        let dir = tempfile::tempdir().unwrap();
        let notes = SessionNotes::of(dir.path());
        assert_eq!(notes.covered(), None);
        let covered = Covered { covers: "e1".into(), tokens: 12_000, at: "t".to_owned() };
        notes.set_covered(&covered).unwrap();
        assert_eq!(SessionNotes::of(dir.path()).covered(), Some(covered));
        let state = dir.path().join("session-memory/state.json");
        let whole = fs::read_to_string(&state).unwrap();
        for n in 0..whole.len() - 2 {
            fs::write(&state, &whole[..n]).unwrap();
            assert_eq!(notes.covered(), None, "cut after {n} bytes");
        }
    }

    #[test]
    fn a_link_in_the_place_of_notes_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let notes = SessionNotes::of(dir.path());
        fs::create_dir_all(notes.file().parent().unwrap()).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), notes.file()).unwrap();
        assert!(notes.read().is_err());
    }
}
