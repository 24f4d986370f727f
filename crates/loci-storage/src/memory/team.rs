//! A team's memories on disk: the directory `team/` below the memories, and what was last agreed on with the server.
//!
//! Texts go through the journal like any other memory, so every one that a pull replaces can be brought back. What was
//! agreed on is a small file beside the journal. It is written after the texts; when a crash comes in between, the next pull
//! finds both sides alike and only writes the file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_stdx::{Env, FileLock, WriteOptions, is_symlink_error, read_regular, write_atomic};
use serde::{Deserialize, Serialize};

use super::files::read_exact;
use super::{Author, ChangeKind, ChangeRequest, Edit, MemoryError, MemoryJournal};

/// How long to wait for another process that speaks with the server.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Directories below `team/` that are looked into.
const MOST_DEPTH: usize = 8;
/// Files that are looked at.
const MOST_FILES: usize = 20_000;

/// What this side and a server last agreed on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamState {
    /// The server's address and the repository there; agreements with one mean nothing to another.
    pub server: String,
    /// The hash of each entry's text.
    pub entries: BTreeMap<String, String>,
}

/// A file of `team/`, or why it cannot be read.
#[derive(Debug)]
pub struct TeamFile {
    /// Its name below `team/`, with `/`.
    pub name: String,
    /// Its text.
    pub text: io::Result<String>,
}

/// The memories of a team, held by one process at a time.
#[derive(Debug)]
pub struct TeamMemory<'a> {
    journal: &'a MemoryJournal,
    dir: &'static str,
    _lock: FileLock,
}

impl<'a> TeamMemory<'a> {
    /// Takes hold of the directory `dir` below the memories.
    pub fn lock(journal: &'a MemoryJournal, dir: &'static str) -> Result<Self, MemoryError> {
        let lock = FileLock::acquire(&journal.state_dir().join("team.lock"), LOCK_TIMEOUT)?;
        Ok(Self { journal, dir, _lock: lock })
    }

    /// Returns what was last agreed on with a server; nothing with another, or where the file cannot be read.
    pub fn state(&self, server: &str) -> TeamState {
        let state =
            read_regular(self.state_file()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let fresh = TeamState { server: server.to_owned(), entries: BTreeMap::new() };
        state.filter(|state: &TeamState| state.server == server).unwrap_or(fresh)
    }

    /// Writes down what was agreed on.
    pub fn save_state(&self, state: &TeamState) -> Result<(), MemoryError> {
        let write = |source| MemoryError::Journal { path: self.state_file(), source };
        let mut text = serde_json::to_vec_pretty(state).map_err(|error| write(error.into()))?;
        text.push(b'\n');
        Ok(write_atomic(&self.state_file(), &text, &WriteOptions::private())?)
    }

    /// Reads every file, in the order of their names. Links are not followed: they are named, as files that cannot be
    /// read are.
    pub fn files(&self) -> io::Result<Vec<TeamFile>> {
        let names = team_names(self.journal.dir(), self.dir)?;
        Ok(names.into_iter().map(|name| TeamFile { text: self.read(&name), name }).collect())
    }

    /// Replaces the text of an entry, if it still is what was seen; returns the number of the change. The text that was
    /// there stays in the journal.
    pub fn pull(
        &self,
        env: &Env,
        name: &str,
        before: Option<String>,
        text: String,
    ) -> Result<u64, MemoryError> {
        let request = ChangeRequest { act: ChangeKind::Pull, by: Author::Team, session: None, message: None };
        let edit = Edit::memory(&format!("{}/{name}", self.dir), before.map(Into::into), Some(text.into()));
        Ok(self.journal.apply(env, &request, vec![edit])?.id)
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let found = read_exact(self.journal.dir(), &format!("{}/{name}", self.dir));
        let found = found.map_err(|error| match is_symlink_error(&error) {
            true => io::Error::new(error.kind(), "it is a link, or lies behind one"),
            false => error,
        })?;
        let content = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        // Others would get a text that nobody wrote.
        let text = content.as_text().map(str::to_owned);
        text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
    }

    fn state_file(&self) -> PathBuf {
        self.journal.state_dir().join("team.json")
    }
}

/// Names every file of the directory `team` below the memories, in order. Links are named, not followed.
pub fn team_names(memory_dir: &Path, team: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    let root = memory_dir.join(team);
    match fs::symlink_metadata(&root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_dir() => {
            return Err(io::Error::other(format!("not a directory: `{}`", root.display())));
        }
        Ok(_) => collect(&root, "", MOST_DEPTH, &mut names)?,
    }
    names.sort();
    Ok(names)
}

/// Names everything below a directory that is not a directory; hidden files, as editors and systems leave them, are
/// passed over.
fn collect(dir: &Path, prefix: &str, depth: usize, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let file = entry.file_name();
        let name = format!("{prefix}{}", file.to_string_lossy());
        if file.to_string_lossy().starts_with('.') {
            continue;
        }
        if names.len() >= MOST_FILES {
            return Err(io::Error::other(format!("more than {MOST_FILES} files")));
        }
        match entry.file_type()?.is_dir() {
            true if depth > 0 => collect(&entry.path(), &format!("{name}/"), depth - 1, names)?,
            _ => names.push(name),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::ConfigHome;
    use std::os::unix::fs::symlink;

    struct World {
        root: tempfile::TempDir,
        env: Env,
        journal: MemoryJournal,
    }

    impl World {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let env = Env::for_test(root.path(), root.path());
            let journal = MemoryJournal::new(&ConfigHome::from_env(&env), &root.path().join("m"));
            Self { root, env, journal }
        }

        fn area(&self) -> TeamMemory<'_> {
            TeamMemory::lock(&self.journal, "team").unwrap()
        }
    }

    fn to_text_lossy(area: &TeamMemory<'_>) -> Vec<(String, Option<String>)> {
        area.files().unwrap().into_iter().map(|it| (it.name, it.text.ok())).collect()
    }

    /// Invariant 4 of `docs/design/team-memory.md`.
    #[test]
    fn memory_replaced_by_a_pull_can_be_restored() {
        let world = World::new();
        let area = world.area();
        assert_eq!(to_text_lossy(&area), []);
        area.pull(&world.env, "a/x.md", None, "theirs".to_owned()).unwrap();
        let id = area.pull(&world.env, "a/x.md", Some("theirs".to_owned()), "newer".to_owned()).unwrap();
        assert_eq!(to_text_lossy(&area), [("a/x.md".to_owned(), Some("newer".to_owned()))]);
        world.journal.undo(&world.env, id).unwrap();
        assert_eq!(to_text_lossy(&area), [("a/x.md".to_owned(), Some("theirs".to_owned()))]);
    }

    /// Invariant 4 of `docs/design/team-memory.md`.
    #[test]
    fn pull_keeps_a_memory_edited_meanwhile() {
        let world = World::new();
        let area = world.area();
        area.pull(&world.env, "x.md", None, "theirs".to_owned()).unwrap();
        fs::write(world.journal.dir().join("team/x.md"), "by hand").unwrap();
        let pulled = area.pull(&world.env, "x.md", Some("theirs".to_owned()), "newer".to_owned());
        assert!(matches!(pulled, Err(MemoryError::Conflict { .. })), "{pulled:?}");
        assert_eq!(to_text_lossy(&area), [("x.md".to_owned(), Some("by hand".to_owned()))]);
    }

    /// Invariant 1 of `docs/design/team-memory.md`.
    #[test]
    fn symlink_among_team_memories_is_not_followed() {
        let world = World::new();
        let outside = world.root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.md"), "theirs").unwrap();
        let team = world.journal.dir().join("team");
        fs::create_dir_all(&team).unwrap();
        symlink(&outside, team.join("dir")).unwrap();
        symlink(outside.join("secret.md"), team.join("file.md")).unwrap();
        let area = world.area();
        assert_eq!(to_text_lossy(&area), [("dir".to_owned(), None), ("file.md".to_owned(), None)]);
        for name in ["dir/secret.md", "file.md", "dir/new.md", "../up.md"] {
            assert!(area.pull(&world.env, name, None, "x".to_owned()).is_err(), "{name}");
            assert!(
                area.pull(&world.env, name, Some("theirs".to_owned()), "x".to_owned()).is_err(),
                "{name}"
            );
        }
        assert_eq!(fs::read_to_string(outside.join("secret.md")).unwrap(), "theirs");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);

        let other = World::new();
        fs::create_dir_all(other.journal.dir()).unwrap();
        symlink(&outside, other.journal.dir().join("team")).unwrap();
        let area = other.area();
        assert!(area.files().is_err());
        assert!(area.pull(&other.env, "new.md", None, "x".to_owned()).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn team_state_is_kept_per_server() {
        let world = World::new();
        let area = world.area();
        let mut state = area.state("https://a r");
        state.entries.insert("x.md".to_owned(), "0".to_owned());
        area.save_state(&state).unwrap();
        assert_eq!(area.state("https://a r"), state);
        assert_eq!(area.state("https://b r").entries, BTreeMap::new());
        fs::write(area.state_file(), "{\"server\": \"https://a r\", \"entr").unwrap();
        assert_eq!(area.state("https://a r").entries, BTreeMap::new(), "torn: everything is compared anew");
    }
}
