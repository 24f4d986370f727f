//! Finding a session: the newest of this directory, one by its id, one by its path.
//!
//! A project's directory is named after the working directory, but not one to one: `a.b` and `a-b` share a
//! name, and long paths are cut. So the `cwd` recorded in the entries decides. Files without a chain entry
//! (nothing was ever said) are no sessions.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use loci_core::entry::Entry;
use loci_core::ids::SessionId;

use crate::layout::{ConfigHome, SessionPlace};
use crate::session_file::each_line;

/// The part of a long project directory name that does not depend on the hash.
const SHARED_PREFIX: usize = 200;

/// Why a session was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No session was ever started in this directory.
    #[error("No conversation found to continue")]
    NoneHere {
        /// The directory.
        cwd: PathBuf,
    },
    /// No session has this id.
    #[error("No conversation found with session ID: {id}")]
    NoSuchId {
        /// What was asked for.
        id: String,
    },
    /// Several projects have a session with this id.
    #[error("More than one project has a conversation with session ID: {id}")]
    Ambiguous {
        /// The id.
        id: String,
        /// The files.
        files: Vec<PathBuf>,
    },
    /// The file named is not a session.
    #[error("Not a conversation: `{}`", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
    },
    /// A file or directory could not be read.
    #[error("Failed to read: `{}`", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FindError {
    /// Returns the next step, for people.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoneHere { cwd } => Some(format!(
                "Conversations belong to the directory they were started in; this is `{}`",
                cwd.display()
            )),
            Self::NoSuchId { .. } => {
                Some("Give the id of a saved conversation or the path of its .jsonl file".to_owned())
            }
            Self::Ambiguous { files, .. } => {
                let files: Vec<String> = files.iter().map(|file| format!("`{}`", file.display())).collect();
                Some(format!("Give the path of one of them: {}", files.join(", ")))
            }
            Self::NotASession { .. } | Self::Read { .. } => None,
        }
    }
}

/// Returns the session of `real_cwd` with the latest activity.
pub fn newest_here(home: &ConfigHome, real_cwd: &Path) -> Result<SessionPlace, FindError> {
    let mut candidates = Vec::new();
    for dir in project_dirs(home, real_cwd)? {
        candidates.extend(session_files(&dir)?);
    }
    candidates
        .sort_by(|left, right| right.modified.cmp(&left.modified).then_with(|| left.file.cmp(&right.file)));
    for candidate in candidates {
        // A file that cannot be read must not hide the others.
        if belongs_to(&candidate.file, real_cwd).unwrap_or(false) {
            return Ok(SessionPlace::new(candidate.file, candidate.id));
        }
    }
    Err(FindError::NoneHere { cwd: real_cwd.to_owned() })
}

/// Returns the session with this id: of this project if it has one, else of the one project that has.
pub fn by_id(home: &ConfigHome, real_cwd: &Path, id: &SessionId) -> Result<SessionPlace, FindError> {
    let here = project_dirs(home, real_cwd)?;
    if let Some(file) = here.iter().map(|dir| file_in(dir, id)).find(|file| is_session(file)) {
        return Ok(SessionPlace::new(file, id.clone()));
    }
    let mut dirs = subdirectories(&home.projects_dir())?;
    dirs.sort();
    let mut files: Vec<PathBuf> =
        dirs.iter().map(|dir| file_in(dir, id)).filter(|file| is_session(file)).collect();
    match (files.pop(), files.is_empty()) {
        (Some(file), true) => Ok(SessionPlace::new(file, id.clone())),
        (Some(file), false) => {
            files.push(file);
            Err(FindError::Ambiguous { id: id.to_string(), files })
        }
        (None, _) => Err(FindError::NoSuchId { id: id.to_string() }),
    }
}

/// Returns the session that a person named: by the path of a `.jsonl` file or by id.
pub fn resolve(home: &ConfigHome, real_cwd: &Path, name: &str) -> Result<SessionPlace, FindError> {
    if name.ends_with(".jsonl") {
        return by_path(&real_cwd.join(name));
    }
    let id = SessionId::parse(name).map_err(|_| FindError::NoSuchId { id: name.to_owned() })?;
    by_id(home, real_cwd, &id)
}

fn by_path(file: &Path) -> Result<SessionPlace, FindError> {
    let read = |source| FindError::Read { path: file.to_owned(), source };
    let first = first_chain_entry(file).map_err(read)?;
    let not_a_session = || FindError::NotASession { path: file.to_owned() };
    let first = first.ok_or_else(not_a_session)?;
    let recorded = || SessionId::parse(&first.fields().read::<String>("sessionId")?).ok();
    let id = id_of(file).or_else(recorded).ok_or_else(not_a_session)?;
    Ok(SessionPlace::new(file.to_owned(), id))
}

/// Returns the directories that may hold sessions of `real_cwd`.
///
/// Other builds hash long paths in another way, so any directory with the same long prefix counts.
fn project_dirs(home: &ConfigHome, real_cwd: &Path) -> Result<Vec<PathBuf>, FindError> {
    let dir = home.project_dir(real_cwd);
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut dirs = vec![dir.clone()];
    if name.len() > SHARED_PREFIX {
        let prefix = format!("{}-", &name[..SHARED_PREFIX]);
        let alike = |other: &PathBuf| {
            *other != dir && other.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
        };
        dirs.extend(subdirectories(&home.projects_dir())?.into_iter().filter(alike));
    }
    Ok(dirs)
}

struct Candidate {
    file: PathBuf,
    id: SessionId,
    modified: SystemTime,
}

fn session_files(dir: &Path) -> Result<Vec<Candidate>, FindError> {
    let candidate = |entry: fs::DirEntry| {
        let file = entry.path();
        let id = id_of(&file)?;
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Candidate { file, id, modified: metadata.modified().ok()? })
    };
    Ok(entries_of(dir)?.into_iter().filter_map(candidate).collect())
}

fn subdirectories(dir: &Path) -> Result<Vec<PathBuf>, FindError> {
    let is_dir = |entry: &fs::DirEntry| entry.path().is_dir();
    Ok(entries_of(dir)?.into_iter().filter(is_dir).map(|entry| entry.path()).collect())
}

/// Lists a directory; one that does not exist is empty.
fn entries_of(dir: &Path) -> Result<Vec<fs::DirEntry>, FindError> {
    match fs::read_dir(dir) {
        Ok(entries) => Ok(entries.filter_map(Result::ok).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(FindError::Read { path: dir.to_owned(), source }),
    }
}

fn id_of(file: &Path) -> Option<SessionId> {
    let name = file.file_name()?.to_str()?;
    SessionId::parse(name.strip_suffix(".jsonl")?).ok()
}

fn file_in(dir: &Path, id: &SessionId) -> PathBuf {
    dir.join(format!("{id}.jsonl"))
}

fn is_session(file: &Path) -> bool {
    matches!(first_chain_entry(file), Ok(Some(_)))
}

/// Returns true when the session was started in `cwd`, or its file does not say where.
fn belongs_to(file: &Path, cwd: &Path) -> io::Result<bool> {
    let Some(first) = first_chain_entry(file)? else { return Ok(false) };
    let recorded: Option<PathBuf> = first.fields().read::<String>("cwd").map(PathBuf::from);
    Ok(recorded
        .is_none_or(|recorded| recorded == cwd || fs::canonicalize(&recorded).is_ok_and(|real| real == cwd)))
}

/// Reads as far as the first chain entry of a main conversation.
fn first_chain_entry(file: &Path) -> io::Result<Option<Entry>> {
    let mut first = None;
    each_line(&mut File::open(file)?, |line| {
        let text = String::from_utf8_lossy(line.bytes);
        let entry = Entry::parse(text.as_ref()).ok();
        first = entry.filter(|entry| entry.head().kind.is_chain() && entry.head().uuid.is_some());
        first.is_none()
    })?;
    Ok(first)
}
