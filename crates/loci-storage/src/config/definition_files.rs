//! Where definitions of agents, skills and commands lie, and how their files are found, read and compared.
//!
//! Directories are compared by what lies in them before each turn rather than watched: a change counts from the next
//! turn on, on every file system.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loci_stdx::open_regular;

use super::SettingsSources;

/// How deep directories may lie, which also ends links that go in circles.
const DEPTH_LIMIT: usize = 8;
/// How many files a directory may have.
const COUNT_LIMIT: usize = 1_000;
/// What most files are smaller than.
const USUAL_SIZE: usize = 8 * 1024;
/// The largest file that is read.
pub(super) const SIZE_LIMIT: u64 = 1024 * 1024;

/// Where definitions are looked for.
#[derive(Debug, Clone)]
pub struct DefinitionPlaces {
    /// The administrator's directory.
    pub managed_dir: PathBuf,
    /// The user's config home.
    pub user: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// The root of the project around it.
    pub root: PathBuf,
    /// Directories the user added.
    pub extra_dirs: Vec<PathBuf>,
    /// Which of them are read.
    pub sources: SettingsSources,
    /// Whether the user trusts the project.
    pub is_trusted: bool,
}

/// Whose directory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceScope {
    Managed,
    Project,
    User,
}

impl DefinitionPlaces {
    /// Returns the directories called `name`, each with whose it is; of a project, the closest first.
    pub(super) fn dirs(&self, name: &str) -> Vec<(PathBuf, PlaceScope)> {
        let below = |dir: &Path| dir.join(".claude").join(name);
        let user = self.user.join(name);
        let mut dirs = vec![(below(&self.managed_dir), PlaceScope::Managed)];
        if self.sources.project {
            let within = self.cwd.ancestors().take_while(|dir| dir.starts_with(&self.root));
            let projects = within.chain(self.extra_dirs.iter().map(PathBuf::as_path)).map(below);
            // The config home itself is the user's, wherever it lies.
            dirs.extend(projects.filter(|dir| *dir != user).map(|dir| (dir, PlaceScope::Project)));
        }
        if self.sources.user {
            dirs.push((user, PlaceScope::User));
        }
        dirs
    }
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePrint {
    path: PathBuf,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FilePrint {
    /// Looks at a file; none when nothing is there.
    pub(super) fn of(path: &Path) -> Option<Self> {
        Some(Self::new(path, &fs::metadata(path).ok()?))
    }

    /// Takes what a look at a file showed.
    pub(super) fn new(path: &Path, metadata: &fs::Metadata) -> Self {
        Self {
            path: path.to_owned(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Returns what tells these files from what they were or will be.
pub(super) fn prints<'a>(files: impl Iterator<Item = &'a Path>) -> Vec<FilePrint> {
    files.filter_map(FilePrint::of).collect()
}

/// Returns the Markdown files below a directory, in the order of their paths.
pub(super) fn markdown_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(dir, DEPTH_LIMIT, &mut files);
    files.sort();
    files.truncate(COUNT_LIMIT);
    files
}

fn collect(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if files.len() > COUNT_LIMIT * 2 {
            return;
        }
        if path.is_dir() {
            if depth > 0 {
                collect(&path, depth - 1, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

/// Reads a file that is not too large; the error says why not.
pub(super) fn read_limited(path: &Path) -> Result<String, String> {
    let read = || {
        // Room for what most of them hold, so that they are read at once.
        let mut text = String::with_capacity(USUAL_SIZE);
        let file = open_regular(path)?;
        file.take(SIZE_LIMIT + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|error: std::io::Error| format!("cannot be read: {error}"))?;
    match text.len() as u64 > SIZE_LIMIT {
        true => Err("is larger than 1 MiB".to_owned()),
        false => Ok(text),
    }
}
