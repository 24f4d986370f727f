//! Finding the instruction files of a working directory.
//!
//! In this order, least specific first: the managed file of the machine, the user's own, then for every
//! directory from the root of the file system down to the working directory `CLAUDE.md`, `.claude/CLAUDE.md` and
//! `CLAUDE.local.md`. A file that is met twice (the user's own lies in `.claude` of the home directory, which
//! may be above the working directory) counts the first time. HTML comments of whole lines are taken out.
//! Files that cannot be used are reported; they never stop the others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::html_comments::strip_html_comments;

/// Where an administrator puts instructions for everybody on a machine.
pub const MANAGED_INSTRUCTIONS: &str = "/etc/claude-code/CLAUDE.md";

/// The largest file that is read.
const SIZE_LIMIT: u64 = 4 * 1024 * 1024;

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub struct InstructionPlaces<'a> {
    /// The managed file; [`MANAGED_INSTRUCTIONS`] outside tests.
    pub managed: &'a Path,
    /// The user's own file.
    pub user: &'a Path,
    /// The working directory.
    pub cwd: &'a Path,
}

/// Whose instructions they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The administrator's, for everybody on the machine.
    Managed,
    /// The user's, for all projects.
    User,
    /// The project's, shared by all who work on it.
    Project,
    /// The user's for this project, not shared.
    Local,
}

/// One instruction file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Whose it is.
    pub scope: Scope,
    /// Its text, without comments.
    pub content: String,
}

/// What was found, and what could not be used.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The files in the order they are given to the model.
    pub files: Vec<InstructionFile>,
    /// Notes for the user.
    pub diagnostics: Vec<Diagnostic>,
}

/// An instruction file that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub message: String,
}

/// Finds and reads the instruction files.
pub fn discover_instructions(places: &InstructionPlaces<'_>) -> Instructions {
    let mut discovery = Discovery::default();
    discovery.add(places.managed.to_owned(), Scope::Managed);
    discovery.add(places.user.to_owned(), Scope::User);
    let mut dirs: Vec<&Path> = places.cwd.ancestors().collect();
    dirs.reverse();
    for dir in dirs {
        discovery.add(dir.join("CLAUDE.md"), Scope::Project);
        discovery.add(dir.join(".claude").join("CLAUDE.md"), Scope::Project);
        discovery.add(dir.join("CLAUDE.local.md"), Scope::Local);
    }
    discovery.found
}

#[derive(Default)]
struct Discovery {
    found: Instructions,
    /// The real paths of the files read so far.
    seen: Vec<PathBuf>,
}

impl Discovery {
    fn add(&mut self, path: PathBuf, scope: Scope) {
        match self.read(&path) {
            Ok(Some(content)) => self.found.files.push(InstructionFile { path, scope, content }),
            Ok(None) => {}
            Err(message) => self.found.diagnostics.push(Diagnostic { path, message }),
        }
    }

    /// Reads a file; `None` when there is none, or it was read before.
    fn read(&mut self, path: &Path) -> Result<Option<String>, String> {
        let said = |error: io::Error| format!("Failed to read instructions: {error}");
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(said(error)),
        };
        if self.seen.contains(&real) {
            return Ok(None);
        }
        let metadata = fs::metadata(&real).map_err(said)?;
        if !metadata.is_file() {
            return Err("Not a regular file, so it was not read".to_owned());
        }
        if metadata.len() > SIZE_LIMIT {
            return Err(format!("Larger than 4 MiB ({} bytes), so it was not read", metadata.len()));
        }
        let bytes = fs::read(&real).map_err(said)?;
        self.seen.push(real);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        Ok(Some(strip_html_comments(text)))
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
