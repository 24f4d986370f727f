//! Where definitions of agents, skills and commands lie, and how their files are found, read and compared.
//!
//! Directories are compared by what lies in them before each turn rather than watched: a change counts from the next
//! turn on, on every file system.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use loci_stdx::open_regular;
use rustix::fs::{FileType, Stat};

use super::SettingsSources;
use crate::file_print::FilePrint;

/// How deep directories may lie.
const DEPTH_LIMIT: usize = 8;
/// How many files a directory may have.
const COUNT_LIMIT: usize = 1_000;
/// What most files are smaller than, where their size is not known.
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

/// A file, and what tells one state of it from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DefinitionPrint {
    path: PathBuf,
    print: FilePrint,
}

impl DefinitionPrint {
    /// Looks at a file; none when nothing is there.
    pub(super) fn read(path: &Path) -> Option<Self> {
        Some(Self { path: path.to_owned(), print: FilePrint::read(path)? })
    }

    /// Takes what a look at a file showed.
    pub(super) fn from_stat(path: &Path, stat: &Stat) -> Self {
        Self { path: path.to_owned(), print: FilePrint::from_stat(stat) }
    }
}

/// Returns what tells these files from what they were or will be.
pub(super) fn prints<'a>(files: impl Iterator<Item = &'a Path>) -> Vec<DefinitionPrint> {
    files.filter_map(DefinitionPrint::read).collect()
}

/// Returns the Markdown files below a directory, in the order of their paths.
pub(super) fn markdown_files(dir: &Path) -> Vec<PathBuf> {
    let mut walk = MarkdownWalk { top: dir, files: Vec::new(), linked: HashSet::new() };
    walk.collect(dir, DEPTH_LIMIT);
    let mut files = walk.files;
    files.sort();
    files.truncate(COUNT_LIMIT);
    files
}

/// Tells whether a path is that of a Markdown file, by its name.
pub(super) fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// A walk through a directory.
struct MarkdownWalk<'a> {
    top: &'a Path,
    files: Vec<PathBuf>,
    /// Where links led to. Each is gone into once: many links in circles would have no end that anybody could wait for.
    linked: HashSet<PathBuf>,
}

impl MarkdownWalk<'_> {
    fn collect(&mut self, dir: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        for entry in entries.filter_map(Result::ok) {
            if self.files.len() > COUNT_LIMIT * 2 {
                return;
            }
            let path = entry.path();
            // Only a link has to be looked behind.
            let is_dir = match entry.file_type() {
                Ok(kind) if !kind.is_symlink() => kind.is_dir(),
                _ if !path.is_dir() => false,
                _ if self.is_new(&path) => true,
                _ => continue,
            };
            match is_dir {
                true if depth > 0 => self.collect(&path, depth - 1),
                true => {}
                false if is_markdown(&path) => self.files.push(path),
                false => {}
            }
        }
    }

    fn is_new(&mut self, link: &Path) -> bool {
        if self.linked.is_empty() {
            self.linked.extend(fs::canonicalize(self.top));
        }
        fs::canonicalize(link).is_ok_and(|target| self.linked.insert(target))
    }
}

/// Reads a file that is not too large; the error says why not.
pub(super) fn read_limited(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = open_regular(path).map_err(unreadable)?;
    let stat = rustix::fs::fstat(&file).ok();
    read_opened(file, stat.as_ref(), &mut bytes)?;
    into_text(bytes)
}

/// Takes what was read as text.
pub(super) fn into_text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| unreadable(no_text()))
}

/// Looks at what was read as text.
pub(super) fn as_text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| unreadable(no_text()))
}

fn no_text() -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, "it is not valid UTF-8")
}

/// Reads a file that was opened into a buffer, in one go where it is as long as it looked; the error says why it is not read.
pub(super) fn read_opened(file: File, stat: Option<&Stat>, buffer: &mut Vec<u8>) -> Result<(), String> {
    buffer.clear();
    match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Some(FileType::RegularFile) | None => {}
        Some(FileType::Directory) => return Err(unreadable(ErrorKind::IsADirectory.into())),
        Some(_) => {
            return Err(unreadable(std::io::Error::new(ErrorKind::InvalidInput, "not a regular file")));
        }
    }
    let size = stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0).min(SIZE_LIMIT + 1)) as usize;
    // One byte more than it has shows whether it has grown since.
    buffer.reserve(if size > 0 { size + 1 } else { USUAL_SIZE });
    while buffer.len() as u64 <= SIZE_LIMIT {
        buffer.reserve(1);
        let n_read = match rustix::io::read(&file, rustix::buffer::spare_capacity(buffer)) {
            Err(rustix::io::Errno::INTR) => continue,
            read => read.map_err(|error| unreadable(error.into()))?,
        };
        if n_read == 0 || (size > 0 && buffer.len() == size) {
            break;
        }
    }
    match buffer.len() as u64 > SIZE_LIMIT {
        true => Err("is larger than 1 MiB".to_owned()),
        false => Ok(()),
    }
}

fn unreadable(error: std::io::Error) -> String {
    format!("cannot be read: {error}")
}
