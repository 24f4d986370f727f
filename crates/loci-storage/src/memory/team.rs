//! A team's memories on disk: the directory `team/` below the memories, and what was last agreed on with the server.
//!
//! Texts go through the book like any other memory, so every one that a pull replaces can be brought back. What was
//! agreed on is a small file beside the book. It is written after the texts; when a crash comes in between, the next pull
//! finds both sides alike and only writes the file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_stdx::{Env, FileLock, WriteOptions, is_symlink_error, write_atomic};
use serde::{Deserialize, Serialize};

use super::files::read_exact;
use super::{Act, Author, ChangeWish, Edit, MemoryBook, MemoryError};

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
pub struct TeamShelf<'a> {
    book: &'a MemoryBook,
    dir: &'static str,
    _lock: FileLock,
}

impl<'a> TeamShelf<'a> {
    /// Takes hold of the directory `dir` below the memories.
    pub fn lock(book: &'a MemoryBook, dir: &'static str) -> Result<Self, MemoryError> {
        let lock = FileLock::acquire(&book.desk().join("team.lock"), LOCK_TIMEOUT)?;
        Ok(Self { book, dir, _lock: lock })
    }

    /// Returns what was last agreed on with a server; nothing with another, or where the file cannot be read.
    pub fn state(&self, server: &str) -> TeamState {
        let state = fs::read(self.state_file()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let fresh = TeamState { server: server.to_owned(), entries: BTreeMap::new() };
        state.filter(|state: &TeamState| state.server == server).unwrap_or(fresh)
    }

    /// Writes down what was agreed on.
    pub fn keep(&self, state: &TeamState) -> Result<(), MemoryError> {
        let write = |source| MemoryError::Journal { path: self.state_file(), source };
        let mut text = serde_json::to_vec_pretty(state).map_err(|error| write(error.into()))?;
        text.push(b'\n');
        Ok(write_atomic(&self.state_file(), &text, &WriteOptions::private())?)
    }

    /// Reads every file, in the order of their names. Links are not followed: they are named, as files that cannot be
    /// read are.
    pub fn files(&self) -> io::Result<Vec<TeamFile>> {
        let names = team_names(self.book.dir(), self.dir)?;
        Ok(names.into_iter().map(|name| TeamFile { text: self.read(&name), name }).collect())
    }

    /// Replaces the text of an entry, if it still is what was seen; returns the number of the change. The text that was
    /// there stays in the book.
    pub fn pull(
        &self,
        env: &Env,
        name: &str,
        before: Option<String>,
        text: String,
    ) -> Result<u64, MemoryError> {
        let wish = ChangeWish { act: Act::Pull, by: Author::Team, session: None, message: None };
        let edit = Edit::memory(&format!("{}/{name}", self.dir), before.map(Into::into), Some(text.into()));
        Ok(self.book.apply(env, &wish, vec![edit])?.id)
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let found = read_exact(self.book.dir(), &format!("{}/{name}", self.dir));
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
        self.book.desk().join("team.json")
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
        book: MemoryBook,
    }

    impl World {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let env = Env::for_test(root.path(), root.path());
            let book = MemoryBook::new(&ConfigHome::from_env(&env), &root.path().join("m"));
            Self { root, env, book }
        }

        fn shelf(&self) -> TeamShelf<'_> {
            TeamShelf::lock(&self.book, "team").unwrap()
        }
    }

    fn shown(shelf: &TeamShelf<'_>) -> Vec<(String, Option<String>)> {
        shelf.files().unwrap().into_iter().map(|it| (it.name, it.text.ok())).collect()
    }

    /// Invariant 4 of `docs/design/team-memory.md`.
    #[test]
    fn what_a_pull_replaces_can_be_brought_back() {
        let world = World::new();
        let shelf = world.shelf();
        assert_eq!(shown(&shelf), []);
        shelf.pull(&world.env, "a/x.md", None, "theirs".to_owned()).unwrap();
        let id = shelf.pull(&world.env, "a/x.md", Some("theirs".to_owned()), "newer".to_owned()).unwrap();
        assert_eq!(shown(&shelf), [("a/x.md".to_owned(), Some("newer".to_owned()))]);
        world.book.undo(&world.env, id).unwrap();
        assert_eq!(shown(&shelf), [("a/x.md".to_owned(), Some("theirs".to_owned()))]);
    }

    /// Invariant 4 of `docs/design/team-memory.md`.
    #[test]
    fn what_was_edited_since_it_was_looked_at_stays() {
        let world = World::new();
        let shelf = world.shelf();
        shelf.pull(&world.env, "x.md", None, "theirs".to_owned()).unwrap();
        fs::write(world.book.dir().join("team/x.md"), "by hand").unwrap();
        let pulled = shelf.pull(&world.env, "x.md", Some("theirs".to_owned()), "newer".to_owned());
        assert!(matches!(pulled, Err(MemoryError::Conflict { .. })), "{pulled:?}");
        assert_eq!(shown(&shelf), [("x.md".to_owned(), Some("by hand".to_owned()))]);
    }

    /// Invariant 1 of `docs/design/team-memory.md`.
    #[test]
    fn no_link_among_a_teams_memories_leads_out() {
        let world = World::new();
        let outside = world.root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.md"), "theirs").unwrap();
        let team = world.book.dir().join("team");
        fs::create_dir_all(&team).unwrap();
        symlink(&outside, team.join("dir")).unwrap();
        symlink(outside.join("secret.md"), team.join("file.md")).unwrap();
        let shelf = world.shelf();
        assert_eq!(shown(&shelf), [("dir".to_owned(), None), ("file.md".to_owned(), None)]);
        for name in ["dir/secret.md", "file.md", "dir/new.md", "../up.md"] {
            assert!(shelf.pull(&world.env, name, None, "x".to_owned()).is_err(), "{name}");
            assert!(
                shelf.pull(&world.env, name, Some("theirs".to_owned()), "x".to_owned()).is_err(),
                "{name}"
            );
        }
        assert_eq!(fs::read_to_string(outside.join("secret.md")).unwrap(), "theirs");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);

        let other = World::new();
        fs::create_dir_all(other.book.dir()).unwrap();
        symlink(&outside, other.book.dir().join("team")).unwrap();
        let shelf = other.shelf();
        assert!(shelf.files().is_err());
        assert!(shelf.pull(&other.env, "new.md", None, "x".to_owned()).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn agreements_are_kept_for_the_server_they_were_made_with() {
        let world = World::new();
        let shelf = world.shelf();
        let mut state = shelf.state("https://a r");
        state.entries.insert("x.md".to_owned(), "0".to_owned());
        shelf.keep(&state).unwrap();
        assert_eq!(shelf.state("https://a r"), state);
        assert_eq!(shelf.state("https://b r").entries, BTreeMap::new());
        fs::write(shelf.state_file(), "{\"server\": \"https://a r\", \"entr").unwrap();
        assert_eq!(shelf.state("https://a r").entries, BTreeMap::new(), "torn: everything is compared anew");
    }
}
