//! The journal of memories: every change goes through it, under a lock, and can be undone.
//!
//! A change is written to the journal first and to the files second; then its number goes to `applied`. After a crash
//! in between, whoever takes the lock next finishes it. A file is changed only if it still is what the change was made
//! from, so that what others wrote meanwhile, by hand or by another program, is never written over.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::path::project_slug;
use loci_stdx::{
    Env, FileLock, LockError, WriteError, WriteOptions, read_regular_to_string, rfc3339_millis, write_atomic,
};

use super::change::{self, Author, Change, ChangeKind, FileChange, MemoryArea};
use super::{MemoryContent, MemoryText, files};
use crate::layout::ConfigHome;

/// How long to wait for other processes; each change is short, but there may be many.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The journal of one memory directory.
#[derive(Debug, Clone)]
pub struct MemoryJournal {
    dir: PathBuf,
    state_dir: PathBuf,
}

/// What somebody wants changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRequest {
    /// What is done.
    pub act: ChangeKind,
    /// By whom.
    pub by: Author,
    /// The session it comes from.
    pub session: Option<String>,
    /// The call, message or agent of that session.
    pub message: Option<String>,
}

/// One file of a change, with what it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Where the file lies.
    pub area: MemoryArea,
    /// Its name.
    pub file: String,
    /// What it must hold now.
    pub before: Option<MemoryContent>,
    /// What it is to hold.
    pub after: Option<MemoryContent>,
}

impl Edit {
    /// A change among the memories.
    pub fn memory(file: &str, before: Option<MemoryContent>, after: Option<MemoryContent>) -> Self {
        Self { area: MemoryArea::Memory, file: file.to_owned(), before, after }
    }

    /// A change among the proposals.
    pub fn pending(file: &str, before: Option<MemoryContent>, after: Option<MemoryContent>) -> Self {
        Self { area: MemoryArea::Pending, file: file.to_owned(), before, after }
    }
}

/// Why memories were not changed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// A file is no longer what the change was made from.
    #[error("Not changed, because it was edited meanwhile: `{file}`")]
    Conflict {
        /// The file.
        file: String,
    },
    /// There is no such change.
    #[error("No such change: {0}")]
    NoChange(u64),
    /// It was taken back already.
    #[error("Change {0} was taken back already, by change {1}")]
    Undone(u64, u64),
    /// The lock could not be taken.
    #[error("Failed to lock the journal of memories")]
    Lock(#[from] LockError),
    /// A memory could not be read.
    #[error("Failed to read memory: `{file}`")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A memory could not be written.
    #[error("Failed to write memory: `{file}`")]
    Write {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The journal could not be read or written.
    #[error("Failed to keep the journal of memories: `{}`", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The mark of the last change could not be written.
    #[error("Failed to keep the journal of memories")]
    Mark(#[from] WriteError),
}

impl MemoryJournal {
    /// Opens the journal of a memory directory; nothing is made before the first change.
    pub fn new(home: &ConfigHome, memory_dir: &Path) -> Self {
        let slug = project_slug(&memory_dir.to_string_lossy());
        Self { dir: memory_dir.to_owned(), state_dir: home.loci_dir().join("memory").join(slug) }
    }

    /// Returns the directory of memories.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the directory of the journal.
    pub(super) fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// Returns the directory of proposals.
    pub fn pending_dir(&self) -> PathBuf {
        self.state_dir.join("pending")
    }

    /// Returns all changes, oldest first.
    pub fn changes(&self) -> Result<Vec<Change>, MemoryError> {
        // The journal first: what moves to the archive meanwhile is then met twice, not missed.
        let recent = self.recent_changes()?;
        Ok(change::with_archived(&self.archive(), recent))
    }

    /// Returns the changes that are not in the archive, oldest first.
    pub fn recent_changes(&self) -> Result<Vec<Change>, MemoryError> {
        let path = self.journal_file();
        change::read(&path).map_err(|source| MemoryError::Journal { path, source })
    }

    /// Returns the proposals.
    pub fn pending(&self) -> Vec<MemoryText> {
        files::memory_files(&self.pending_dir())
    }

    /// Returns a file's text, for people; `None` when it is not there.
    pub fn text(&self, area: MemoryArea, file: &str) -> Result<Option<String>, MemoryError> {
        let dir = self.area(area);
        files::read_memory(&dir, file).map_err(|source| MemoryError::Read { file: file.to_owned(), source })
    }

    /// Returns what a file holds, as a change is made from it; `None` when it is not there.
    pub fn content(&self, area: MemoryArea, file: &str) -> Result<Option<MemoryContent>, MemoryError> {
        let dir = self.area(area);
        files::read_exact(&dir, file).map_err(|source| MemoryError::Read { file: file.to_owned(), source })
    }

    /// Tells whether a file holds just this.
    fn holds(
        &self,
        area: MemoryArea,
        file: &str,
        content: Option<&MemoryContent>,
    ) -> Result<bool, MemoryError> {
        Ok(self.content(area, file)?.as_ref() == content)
    }

    /// Makes a change, all of it or nothing, and returns it as it is in the journal.
    pub fn apply(&self, env: &Env, request: &ChangeRequest, edits: Vec<Edit>) -> Result<Change, MemoryError> {
        self.locked(|changes| self.commit(env, request, edits, None, changes))
    }

    /// Takes note of a change that a tool has made already. With each edit comes what was found; where it
    /// differs from what the file is to hold (by a stamp), it is brought there, unless it was edited since.
    pub fn record(
        &self,
        env: &Env,
        request: &ChangeRequest,
        edits: Vec<(Edit, Option<MemoryContent>)>,
    ) -> Result<Change, MemoryError> {
        self.locked(|changes| {
            let (edits, found): (Vec<Edit>, Vec<Option<MemoryContent>>) = edits.into_iter().unzip();
            let change = self.numbered(env, request, edits, None, changes);
            self.append(&change)?;
            for (file, found) in change.files.iter().zip(found) {
                let is_as_found = file.after != found && self.holds(file.area, &file.file, found.as_ref())?;
                if let (true, Some(content)) = (is_as_found, &file.after) {
                    files::write(&self.area(file.area), &file.file, content.as_bytes())
                        .map_err(|source| MemoryError::Write { file: file.file.clone(), source })?;
                }
            }
            self.mark(change.id)?;
            self.trim();
            Ok(change)
        })
    }

    /// Takes a change back; what was edited since stays, and nothing is changed then.
    pub fn undo(&self, env: &Env, id: u64) -> Result<Change, MemoryError> {
        self.locked(|changes| {
            let all = self.archived_too(changes, id)?;
            let known = all.as_deref().unwrap_or(changes);
            if let Some(by) = known.iter().find(|change| change.undoes == Some(id)) {
                return Err(MemoryError::Undone(id, by.id));
            }
            let change = known.iter().find(|change| change.id == id).ok_or(MemoryError::NoChange(id))?;
            let touched = change.files.iter().rev().filter(|it| it.before != it.after);
            let back = touched.map(|it| Edit {
                area: it.area,
                file: it.file.clone(),
                before: it.after.clone(),
                after: it.before.clone(),
            });
            let request =
                ChangeRequest { act: ChangeKind::Undo, by: Author::Person, session: None, message: None };
            self.commit(env, &request, back.collect(), Some(id), changes)
        })
    }

    /// Returns all changes, where the one that is asked for is not among the recent ones.
    fn archived_too(&self, recent: &[Change], id: u64) -> Result<Option<Vec<Change>>, MemoryError> {
        let is_recent = recent.iter().any(|change| change.id == id);
        Ok(if is_recent { None } else { Some(self.changes()?) })
    }

    fn commit(
        &self,
        env: &Env,
        request: &ChangeRequest,
        edits: Vec<Edit>,
        undoes: Option<u64>,
        changes: &[Change],
    ) -> Result<Change, MemoryError> {
        for edit in &edits {
            if !self.holds(edit.area, &edit.file, edit.before.as_ref())? {
                return Err(MemoryError::Conflict { file: edit.file.clone() });
            }
        }
        let change = self.numbered(env, request, edits, undoes, changes);
        self.append(&change)?;
        self.carry_out(&change)?;
        self.mark(change.id)?;
        self.trim();
        Ok(change)
    }

    fn numbered(
        &self,
        env: &Env,
        request: &ChangeRequest,
        edits: Vec<Edit>,
        undoes: Option<u64>,
        changes: &[Change],
    ) -> Change {
        let files = edits.into_iter().map(|edit| FileChange {
            area: edit.area,
            file: edit.file,
            before: edit.before,
            after: edit.after,
        });
        Change {
            id: changes.iter().map(|change| change.id).max().unwrap_or(0) + 1,
            at: rfc3339_millis(env.clock.now()),
            act: request.act,
            by: request.by,
            session: request.session.clone(),
            message: request.message.clone(),
            undoes,
            files: files.collect(),
        }
    }

    /// Brings every file that still is as it was before the change to what it is to be; others are left alone.
    fn carry_out(&self, change: &Change) -> Result<(), MemoryError> {
        for file in &change.files {
            if !self.holds(file.area, &file.file, file.before.as_ref())? {
                continue;
            }
            let dir = self.area(file.area);
            let done = match &file.after {
                Some(content) => files::write(&dir, &file.file, content.as_bytes()),
                None if file.before.is_some() => files::remove(&dir, &file.file),
                None => Ok(()),
            };
            done.map_err(|source| MemoryError::Write { file: file.file.clone(), source })?;
        }
        Ok(())
    }

    /// Works under the lock, with what a crash left unfinished finished.
    fn locked<T>(&self, work: impl FnOnce(&[Change]) -> Result<T, MemoryError>) -> Result<T, MemoryError> {
        let _lock = FileLock::acquire(&self.state_dir.join("lock"), LOCK_TIMEOUT)?;
        let changes = self.recent_changes()?;
        if let Some(last) = changes.last().filter(|last| last.id > self.applied()) {
            self.carry_out(last)?;
            self.mark(last.id)?;
        }
        work(&changes)
    }

    fn append(&self, change: &Change) -> Result<(), MemoryError> {
        let path = self.journal_file();
        change::append(&path, change).map_err(|source| MemoryError::Journal { path, source })
    }

    /// Keeps the journal short. The change is made whether or not that works; the next one tries again.
    fn trim(&self) {
        drop(change::trim(&self.journal_file(), &self.archive()));
    }

    /// Returns the last change whose files are all written; a mark that cannot be read means that all are.
    fn applied(&self) -> u64 {
        let text = read_regular_to_string(self.mark_file());
        match text {
            Ok(text) => text.trim().parse().unwrap_or(u64::MAX),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(_) => u64::MAX,
        }
    }

    fn mark(&self, id: u64) -> Result<(), MemoryError> {
        Ok(write_atomic(&self.mark_file(), format!("{id}\n").as_bytes(), &WriteOptions::private())?)
    }

    fn area(&self, area: MemoryArea) -> PathBuf {
        match area {
            MemoryArea::Memory => self.dir.clone(),
            MemoryArea::Pending => self.pending_dir(),
        }
    }

    fn journal_file(&self) -> PathBuf {
        self.state_dir.join("journal.jsonl")
    }

    fn archive(&self) -> PathBuf {
        self.state_dir.join("archive")
    }

    fn mark_file(&self) -> PathBuf {
        self.state_dir.join("applied")
    }
}

#[cfg(test)]
mod tests;
