//! Finding a session: the newest of this directory, or the one that a person named by id, title or path.
//!
//! What lies near comes first: this directory, then its repository with all worktrees, then everything. A name
//! that fits several sessions is never guessed at: the error lists them with the commands to run. Which sessions
//! are a directory's own is decided in [`crate::project`]. Files without a chain entry (nothing was ever said) are
//! no sessions.

mod by_title;
mod file_stamp;
mod newest_used;

use std::collections::HashSet;
use std::fs::{self};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use loci_core::entry::Entry;
use loci_core::ids::SessionId;
use loci_stdx::{open_regular, single_line};

pub(crate) use file_stamp::{
    FileStamp, ListedFile, SessionFiles, all_session_files, all_session_files_with, named_sessions_in,
    session_files_in,
};

use crate::layout::{ConfigHome, SessionPlace};
use crate::project::Project;
use crate::sessions::listing::{SessionSummary, session_summary};
use crate::sessions::session_file::each_line;

/// The most candidates that an error lists.
const MOST_CANDIDATES: usize = 10;

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
    /// No session has this id or title.
    #[error("No conversation found with this id or title: `{name}`")]
    NoSuchName {
        /// What was asked for.
        name: String,
        /// Sessions that may have been meant.
        alike: Vec<Candidate>,
    },
    /// Several sessions fit.
    #[error("More than one conversation fits: `{name}`")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The sessions, the newest first.
        candidates: Vec<Candidate>,
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

/// A session that may have been meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its file.
    pub file: PathBuf,
    /// What to call it by, which fits no other: the id, or the path when ids do not tell them apart.
    pub handle: String,
    /// What it is about, in one line.
    pub headline: String,
}

impl Candidate {
    fn from_summary(session: &SessionSummary) -> Self {
        Self {
            file: session.place.file().to_owned(),
            handle: session.place.id().to_string(),
            headline: single_line(session.facts.headline().unwrap_or("(no prompt)"), 60),
        }
    }
}

impl FindError {
    /// Makes the error for a name that fits several sessions.
    fn ambiguous(name: &str, sessions: &[SessionSummary]) -> Self {
        let mut candidates: Vec<Candidate> = sessions.iter().map(Candidate::from_summary).collect();
        let ids: Vec<String> = candidates.iter().map(|candidate| candidate.handle.clone()).collect();
        for candidate in &mut candidates {
            if ids.iter().filter(|id| **id == candidate.handle).count() > 1 {
                candidate.handle = candidate.file.display().to_string();
            }
        }
        Self::Ambiguous { name: name.to_owned(), candidates }
    }

    /// Returns the next step, for people who want to resume.
    pub fn hint(&self) -> Option<String> {
        self.hint_for("loci -r")
    }

    /// Returns the next step; `verb` is the command that takes a session.
    pub fn hint_for(&self, verb: &str) -> Option<String> {
        match self {
            Self::NoneHere { cwd } => Some(format!(
                "Conversations belong to the directory they were started in; this is `{}`",
                cwd.display()
            )),
            Self::NoSuchId { .. } => Some(
                "Give the id or title of a saved conversation or the path of its .jsonl file; `loci sessions list --all` shows them"
                    .to_owned(),
            ),
            Self::NoSuchName { alike, .. } if alike.is_empty() => {
                Some("`loci sessions list --all` shows the conversations there are".to_owned())
            }
            Self::NoSuchName { alike, .. } => Some(format!("Did you mean:\n{}", commands(verb, alike))),
            Self::Ambiguous { candidates, .. } => {
                Some(format!("Choose one of them:\n{}", commands(verb, candidates)))
            }
            Self::NotASession { .. } | Self::Read { .. } => None,
        }
    }
}

fn commands(verb: &str, candidates: &[Candidate]) -> String {
    let line = |candidate: &Candidate| {
        let handle = &candidate.handle;
        let is_plain = handle.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
        let handle = if is_plain { handle.clone() } else { format!("'{}'", handle.replace('\'', r"'\''")) };
        format!("  {verb} {handle}  # {}", candidate.headline)
    };
    let mut lines: Vec<String> = candidates.iter().take(MOST_CANDIDATES).map(line).collect();
    if candidates.len() > MOST_CANDIDATES {
        lines.push(format!(
            "  and {} more; `loci sessions list --all` shows them",
            candidates.len() - MOST_CANDIDATES
        ));
    }
    lines.join("\n")
}

/// Returns the session of `real_cwd` with the latest activity, else that of the working tree around it, else one
/// that lies elsewhere and was last used here.
pub fn newest_session(home: &ConfigHome, real_cwd: &Path) -> Result<SessionPlace, FindError> {
    for project in [Project::directory(real_cwd), Project::working_tree(real_cwd)] {
        if let Some(place) = newest_of(home, &project)? {
            return Ok(place);
        }
    }
    let elsewhere = newest_used::newest_used_in(home, real_cwd)?;
    elsewhere.ok_or_else(|| FindError::NoneHere { cwd: real_cwd.to_owned() })
}

/// Looks at the files last changed first and stops as soon as no other can be newer.
fn newest_of(home: &ConfigHome, project: &Project) -> Result<Option<SessionPlace>, FindError> {
    let changed = |place: SessionPlace| {
        let modified = fs::metadata(place.file()).and_then(|metadata| metadata.modified());
        (modified.unwrap_or(SystemTime::UNIX_EPOCH), place)
    };
    let mut places: Vec<_> = project.session_files(home)?.into_iter().map(changed).collect();
    places.sort_by(|(left, left_place), (right, right_place)| {
        right.cmp(left).then_with(|| left_place.file().cmp(right_place.file()))
    });
    let mut newest: Option<(i64, SessionPlace)> = None;
    for (modified, place) in places {
        let modified = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let modified_ms = i64::try_from(modified.as_millis()).unwrap_or(i64::MAX);
        if newest.as_ref().is_some_and(|(activity, _)| *activity >= modified_ms) {
            break;
        }
        // A file that cannot be read must not hide the others.
        let Ok(Some(session)) = session_summary(&place) else { continue };
        if !project.owns(home, &session) || !is_session(place.file()) {
            continue;
        }
        let activity = session.facts.newest_ms();
        if newest.as_ref().is_none_or(|(best, _)| activity > *best) {
            newest = Some((activity, place));
        }
    }
    Ok(newest.map(|(_, place)| place))
}

/// Returns the session with this id: of this project, else of its repository, else of the one project that has it.
pub fn session_by_id(home: &ConfigHome, real_cwd: &Path, id: &SessionId) -> Result<SessionPlace, FindError> {
    for project in [Project::directory(real_cwd), Project::repository(real_cwd)] {
        let files = project.dirs(home)?.into_iter().map(|dir| file_in(&dir, id));
        if let Some(place) = only(id.as_str(), files)? {
            return Ok(place);
        }
    }
    let files = subdirectories(&home.projects_dir())?.into_iter().map(|dir| file_in(&dir, id));
    only(id.as_str(), files)?.ok_or_else(|| FindError::NoSuchId { id: id.to_string() })
}

fn only(name: &str, files: impl Iterator<Item = PathBuf>) -> Result<Option<SessionPlace>, FindError> {
    let place = |file: PathBuf| Some(SessionPlace::new(file.clone(), id_of(&file)?));
    let mut places: Vec<SessionPlace> = files.filter(|file| is_session(file)).filter_map(place).collect();
    if places.len() > 1 {
        places.sort_by(|left, right| left.file().cmp(right.file()));
        let sessions: Vec<SessionSummary> =
            places.iter().filter_map(|place| session_summary(place).ok().flatten()).collect();
        return Err(FindError::ambiguous(name, &sessions));
    }
    Ok(places.pop())
}

/// Returns the session that a person named: by the path of a `.jsonl` file, by id, or by title.
pub fn resolve_session(home: &ConfigHome, real_cwd: &Path, name: &str) -> Result<SessionPlace, FindError> {
    if name.ends_with(".jsonl") {
        return by_path(&real_cwd.join(name));
    }
    match SessionId::parse(name) {
        Ok(id) => session_by_id(home, real_cwd, &id),
        Err(_) => by_title::by_title(home, real_cwd, name),
    }
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

/// Returns the session files of all projects' directories, and the directories that could not be listed.
pub(crate) fn places_of_all(home: &ConfigHome) -> Result<(Vec<SessionPlace>, Vec<FindError>), FindError> {
    Ok(places_in(&subdirectories(&home.projects_dir())?))
}

/// Returns the session files of some projects' directories. One that cannot be listed does not hide the others.
pub(crate) fn places_in(dirs: &[PathBuf]) -> (Vec<SessionPlace>, Vec<FindError>) {
    let (mut places, mut unread) = (Vec::new(), Vec::new());
    for dir in dirs {
        match session_places(dir) {
            Ok(found) => places.extend(found),
            Err(error) => unread.push(error),
        }
    }
    (places, unread)
}

/// Returns the session files of a project's directory.
fn session_places(dir: &Path) -> Result<Vec<SessionPlace>, FindError> {
    let place = |entry: fs::DirEntry| {
        let file = entry.path();
        let id = id_of(&file)?;
        let is_file =
            entry.file_type().is_ok_and(|kind| kind.is_file() || (kind.is_symlink() && file.is_file()));
        is_file.then(|| SessionPlace::new(file, id))
    };
    Ok(entries_of(dir)?.into_iter().filter_map(place).collect())
}

/// Returns the directories in a directory, each once: a link to one that is there as well is left out.
pub(crate) fn subdirectories(dir: &Path) -> Result<Vec<PathBuf>, FindError> {
    subdirectories_by(dir, |_| false)
}

/// Does the same; of several names for one directory the preferred one stays, else the one that is no link.
pub(crate) fn subdirectories_by(
    dir: &Path,
    is_preferred: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, FindError> {
    let entries = entries_of(dir)?.into_iter().filter(|entry| entry.path().is_dir());
    let is_link = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
    let mut dirs: Vec<(bool, PathBuf)> = entries.map(|entry| (is_link(&entry), entry.path())).collect();
    if dirs.iter().any(|(is_link, _)| *is_link) {
        dirs.sort_by_key(|(is_link, path)| (!is_preferred(path), *is_link));
        let mut seen = HashSet::new();
        dirs.retain(|(_, path)| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    }
    Ok(dirs.into_iter().map(|(_, path)| path).collect())
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

/// Reads as far as the first chain entry of a main conversation.
fn first_chain_entry(file: &Path) -> io::Result<Option<Entry>> {
    let mut first = None;
    each_line(&mut open_regular(file)?, |line| {
        let text = String::from_utf8_lossy(line.bytes);
        let entry = Entry::parse(text.as_ref()).ok();
        first = entry.filter(|entry| entry.head().kind.is_chain() && entry.head().uuid.is_some());
        first.is_none()
    })?;
    Ok(first)
}
