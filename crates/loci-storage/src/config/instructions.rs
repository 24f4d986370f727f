//! Finding the instruction files of a working directory.
//!
//! In this order, least specific first: the managed file of the machine, the user's own and the user's rules,
//! then for every directory from the root of the file system down to the working directory `CLAUDE.md`,
//! `.claude/CLAUDE.md`, the rules under `.claude/rules` in the order of their paths, and `CLAUDE.local.md`. Then
//! the same of further directories, where that is wanted. A worktree inside its main checkout has that one's
//! shared files as its own, so they are not read above it again. What lies below the working directory waits
//! until a file there is read ([`LazyInstructions`]).
//!
//! What a file imports with `@path` comes right behind it, depth first, four hops at most. A file that is met
//! twice (the user's own lies in `.claude` of the home directory, which may be above the working directory)
//! counts the first time, so imports that go in circles end. HTML comments of whole lines are taken out, and so
//! is the front matter of rules. The same disk gives the same list, so that the prompt keeps its prefix.
//!
//! Files that cannot be used are reported; they never stop the others. What lies inside a project may not
//! bring in files from outside it, by import or by link, until the user has approved that.

mod discovery;
mod html_comments;
mod imports;
mod lazy;
mod patterns;
mod rules;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::config::settings::SettingsSources;
use discovery::Discovery;
pub use html_comments::strip_html_comments;
pub use lazy::{LazyInstructions, TriggeredInstructions};
pub use patterns::PathPatterns;

/// Where an administrator puts instructions for everybody on a machine.
#[cfg(not(target_os = "macos"))]
pub const MANAGED_INSTRUCTIONS: &str = "/etc/claude-code/CLAUDE.md";
/// Where an administrator puts instructions for everybody on a machine.
#[cfg(target_os = "macos")]
pub const MANAGED_INSTRUCTIONS: &str = "/Library/Application Support/ClaudeCode/CLAUDE.md";

/// Where to look, and what may be taken.
#[derive(Debug, Clone)]
pub struct InstructionPlaces {
    /// The managed file; [`MANAGED_INSTRUCTIONS`] outside tests.
    pub managed: PathBuf,
    /// The administrator's text in the settings.
    pub managed_text: Option<String>,
    /// The user's own file; the user's rules lie in `rules` beside it.
    pub user: PathBuf,
    /// The user's home directory, which `~/` in imports means.
    pub home: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// The root of the project: the working tree around the working directory, or that itself.
    pub root: PathBuf,
    /// The root of the main checkout, where the project is one of its worktrees.
    pub main_checkout: Option<PathBuf>,
    /// Further directories whose files count as the working directory's do.
    pub extra_dirs: Vec<PathBuf>,
    /// Whose files are read; the administrator's always are.
    pub sources: SettingsSources,
    /// Patterns of files to leave out, on whole paths.
    pub excludes: Vec<String>,
    /// Whether the user lets this project's files import from outside it.
    pub allows_external: bool,
    /// Whether `AGENTS.md` is read in directories that have no `CLAUDE.md`.
    pub reads_agents: bool,
}

/// Whose instructions they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstructionScope {
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
    pub scope: InstructionScope,
    /// Its text, without comments.
    pub content: String,
    /// The file that imports it.
    pub imported_by: Option<PathBuf>,
    /// Whether the text differs from the file, so that it does not count as read.
    pub is_partial: bool,
    /// The file behind all links; none for a text of the settings.
    pub real: Option<PathBuf>,
    /// When the file was written, as far as that can be told.
    pub modified: Option<SystemTime>,
}

/// A rule that waits until a file it speaks of is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    /// The rule itself.
    pub file: InstructionFile,
    /// Patterns of the files it speaks of, relative to `base`.
    pub patterns: Vec<String>,
    /// The directory that holds `.claude`.
    pub base: PathBuf,
}

/// What was found, and what could not be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The files in the order they are given to the model.
    pub files: Vec<InstructionFile>,
    /// Rules for certain files only.
    pub path_rules: Vec<PathRule>,
    /// Notes for the user.
    pub diagnostics: Vec<Diagnostic>,
    /// Files that were left out on purpose, and why.
    pub left_out: Vec<Diagnostic>,
    /// Those of them that lie outside the project, and wait for the user's approval.
    pub external: Vec<PathBuf>,
}

impl Instructions {
    /// Leaves out all but the administrator's, for an agent that does without the others.
    pub fn keep_managed(&mut self) {
        self.files.retain(|file| file.scope == InstructionScope::Managed);
        self.path_rules.retain(|rule| rule.file.scope == InstructionScope::Managed);
    }
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
pub fn discover_instructions(places: &InstructionPlaces) -> Instructions {
    let mut discovery = Discovery::new(places);
    discovery.managed();
    if places.sources.user {
        discovery.file(&places.user, InstructionScope::User);
        discovery.rules(&places.user.with_file_name("rules"), &places.root, InstructionScope::User);
    }
    let mut dirs: Vec<&Path> = places.cwd.ancestors().collect();
    dirs.reverse();
    for dir in dirs {
        discovery.dir(dir);
    }
    for dir in &places.extra_dirs {
        discovery.dir(dir);
    }
    discovery.into_found()
}
