//! A project: the directory at hand and the repository around it, and which sessions are its own.
//!
//! A session's directory under `projects/` is named after the working directory, but not one to one: `a.b` and
//! `a-b` share a name, and long paths are cut. So the `cwd` recorded in the file decides:
//!
//! 1. A session that began in one of the project's directories belongs to it.
//! 2. So does one in the project's own directory that began somewhere with another name: it was forked or moved
//!    here on purpose, or the folder was renamed.
//! 3. One that began in another directory of the same name does not.

pub(crate) mod git;
mod repository;

use std::fs;
use std::path::{Path, PathBuf};

use loci_core::path::project_slug;

use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::find::{FindError, SessionFiles, places_in, session_files_in, subdirectories_by};
use crate::sessions::listing::{SessionSummary, dir_of};
pub use git::{GitSnapshot, git_snapshot, head_branch, working_changes};
pub use repository::{Repository, checkout_root, find_repository, main_checkout};

/// The part of a long project directory name that does not depend on the hash.
const SHARED_PREFIX: usize = 200;

/// The directories that sessions are looked for in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The directory itself, symlinks resolved.
    dir: PathBuf,
    /// Roots below which every directory counts.
    roots: Vec<PathBuf>,
}

impl Project {
    /// Takes one directory alone.
    pub fn directory(real_dir: &Path) -> Self {
        Self { dir: real_dir.to_owned(), roots: Vec::new() }
    }

    /// Takes a directory with the working tree that it lies in.
    pub fn working_tree(real_dir: &Path) -> Self {
        let root = find_repository(real_dir).map(|repository| repository.root);
        Self { dir: real_dir.to_owned(), roots: root.into_iter().collect() }
    }

    /// Takes a directory with the repository that it lies in, all worktrees included.
    pub fn repository(real_dir: &Path) -> Self {
        let roots = find_repository(real_dir).map(|repository| repository.worktrees).unwrap_or_default();
        Self { dir: real_dir.to_owned(), roots }
    }

    /// Returns the session files that may belong to the project.
    pub(crate) fn session_files(&self, home: &ConfigHome) -> Result<Vec<SessionPlace>, FindError> {
        Ok(places_in(&self.dirs(home)?).0)
    }

    /// Returns the same files, each looked at once.
    pub(crate) fn list_files(&self, home: &ConfigHome) -> Result<SessionFiles, FindError> {
        Ok(session_files_in(&self.dirs(home)?))
    }

    /// Returns the directories under `projects/` that may hold the project's sessions.
    pub(crate) fn dirs(&self, home: &ConfigHome) -> Result<Vec<PathBuf>, FindError> {
        let own = home.project_dir(&self.dir);
        let is_long = own.file_name().is_some_and(|name| name.len() > SHARED_PREFIX);
        if self.roots.is_empty() && !is_long {
            return Ok(vec![own]);
        }
        let mut dirs = subdirectories_by(&home.projects_dir(), |dir| *dir == own)?;
        dirs.retain(|dir| *dir == own || self.may_hold(home, dir));
        dirs.sort_by_key(|dir| *dir != own);
        Ok(dirs)
    }

    fn may_hold(&self, home: &ConfigHome, dir: &Path) -> bool {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        // Other builds hash long paths in another way, so any directory with the same long prefix counts.
        let is_alike = |path: &Path| {
            let ours = home.project_dir(path);
            let ours = ours.file_name().unwrap_or_default().to_string_lossy().into_owned();
            ours == name
                || ours.get(..SHARED_PREFIX).is_some_and(|prefix| {
                    ours.len() > SHARED_PREFIX
                        && name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-'))
                })
        };
        let is_below = |root: &PathBuf| {
            let slug = project_slug(&root.to_string_lossy());
            name.strip_prefix(&slug).is_some_and(|rest| rest.starts_with('-'))
        };
        is_alike(&self.dir) || self.roots.iter().any(|root| is_alike(root) || is_below(root))
    }

    /// Leaves out the sessions that are not the project's. Many have the same directories, which are judged once.
    pub(crate) fn retain_own(&self, home: &ConfigHome, sessions: &mut Vec<SessionSummary>) {
        let mut judged: Option<(PathBuf, Option<String>, bool)> = None;
        sessions.retain(|session| {
            let dir = session.place.file().parent().unwrap_or(Path::new("")).as_os_str();
            let is_same = |(known, cwd, _): &&(PathBuf, Option<String>, bool)| {
                known.as_os_str() == dir && *cwd == session.facts.cwd
            };
            if let Some((_, _, is_own)) = judged.as_ref().filter(is_same) {
                return *is_own;
            }
            let is_own = self.owns(home, session);
            judged = Some((PathBuf::from(dir), session.facts.cwd.clone(), is_own));
            is_own
        });
    }

    /// Returns true when the session is one of the project's.
    pub fn owns(&self, home: &ConfigHome, session: &SessionSummary) -> bool {
        self.owns_recorded(home, &session.place, session.facts.cwd.as_deref())
    }

    pub(crate) fn owns_recorded(&self, home: &ConfigHome, place: &SessionPlace, cwd: Option<&str>) -> bool {
        let dir = dir_of(place);
        let is_own_dir =
            std::iter::once(&self.dir).chain(&self.roots).any(|path| home.project_dir(path) == dir);
        let Some(cwd) = cwd else { return is_own_dir };
        let is_moved_here = || {
            let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            is_own_dir && project_slug(cwd) != name
        };
        self.covers_recorded(Some(cwd)) || is_moved_here()
    }

    /// Returns true when a session that began in `cwd` and lies elsewhere is about the project.
    pub(crate) fn covers_recorded(&self, cwd: Option<&str>) -> bool {
        let real = |cwd: &str| fs::canonicalize(cwd).is_ok_and(|real| self.covers(&real));
        cwd.is_some_and(|cwd| self.covers(Path::new(cwd)) || self.covers_text(cwd) || real(cwd))
    }

    /// The same for names that are no UTF-8, which an entry records with every such byte replaced.
    fn covers_text(&self, cwd: &str) -> bool {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        cwd.contains(char::REPLACEMENT_CHARACTER)
            && (cwd == text(&self.dir)
                || self.roots.iter().any(|root| Path::new(cwd).starts_with(text(root))))
    }

    fn covers(&self, path: &Path) -> bool {
        path == self.dir || self.roots.iter().any(|root| path.starts_with(root))
    }
}
