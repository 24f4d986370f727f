//! Finding the instruction files of a working directory.
//!
//! In this order, least specific first: the managed file of the machine, the user's own and the user's rules,
//! then for every directory from the root of the file system down to the working directory `CLAUDE.md`,
//! `.claude/CLAUDE.md`, the rules under `.claude/rules` in the order of their paths, and `CLAUDE.local.md`.
//! What a file imports with `@path` comes right behind it, depth first, four hops at most. A file that is met
//! twice (the user's own lies in `.claude` of the home directory, which may be above the working directory)
//! counts the first time, so imports that go in circles end. HTML comments of whole lines are taken out, and so
//! is the front matter of rules. The same disk gives the same list, so that the prompt keeps its prefix.
//!
//! Files that cannot be used are reported; they never stop the others. What lies inside a project may not
//! bring in files from outside it, by import or by link, until the user has approved that.

mod imports;
mod rules;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use loci_core::path::{expand_home, normalise};

use crate::html_comments::strip_html_comments;
use crate::settings::SettingsSources;

/// Where an administrator puts instructions for everybody on a machine.
pub const MANAGED_INSTRUCTIONS: &str = "/etc/claude-code/CLAUDE.md";

/// The largest file that is read.
const SIZE_LIMIT: u64 = 4 * 1024 * 1024;
/// The most that is taken in all; a project with more has lost its thread, or means harm.
const TOTAL_LIMIT: usize = 16 * 1024 * 1024;
/// How many imports may lie between a file and one it brings in.
const HOP_LIMIT: usize = 4;

/// Where to look, and what may be taken.
#[derive(Debug, Clone, Copy)]
pub struct InstructionPlaces<'a> {
    /// The managed file; [`MANAGED_INSTRUCTIONS`] outside tests.
    pub managed: &'a Path,
    /// The administrator's text in the settings.
    pub managed_text: Option<&'a str>,
    /// The user's own file; the user's rules lie in `rules` beside it.
    pub user: &'a Path,
    /// The user's home directory, which `~/` in imports means.
    pub home: &'a Path,
    /// The working directory.
    pub cwd: &'a Path,
    /// The root of the project: the working tree around the working directory, or that itself.
    pub root: &'a Path,
    /// Whose files are read; the administrator's always are.
    pub sources: SettingsSources,
    /// Patterns of files to leave out, on whole paths.
    pub excludes: &'a [String],
    /// Whether the user lets this project's files import from outside it.
    pub allows_external: bool,
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
    /// The file that imports it.
    pub imported_by: Option<PathBuf>,
    /// Whether the text differs from the file, so that it does not count as read.
    pub is_partial: bool,
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
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The files in the order they are given to the model.
    pub files: Vec<InstructionFile>,
    /// Rules for certain files only.
    pub path_rules: Vec<PathRule>,
    /// Notes for the user.
    pub diagnostics: Vec<Diagnostic>,
    /// Files that were left out on purpose, and why.
    pub left_out: Vec<Diagnostic>,
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
    let mut discovery = Discovery {
        places,
        excludes: GlobSet::empty(),
        found: Instructions::default(),
        seen: Vec::new(),
        total: 0,
    };
    discovery.excludes = discovery.excludes();
    discovery.managed();
    if places.sources.user {
        discovery.file(places.user, Scope::User);
        discovery.rules(&places.user.with_file_name("rules"), places.home, Scope::User);
    }
    let mut dirs: Vec<&Path> = places.cwd.ancestors().collect();
    dirs.reverse();
    for dir in dirs {
        let inner = dir.join(".claude");
        if places.sources.project {
            discovery.file(&dir.join("CLAUDE.md"), Scope::Project);
            // The config home itself is the user's, wherever it lies.
            if places.user.parent() != Some(&inner) {
                discovery.file(&inner.join("CLAUDE.md"), Scope::Project);
                discovery.rules(&inner.join("rules"), dir, Scope::Project);
            }
        }
        if places.sources.local {
            discovery.file(&dir.join("CLAUDE.local.md"), Scope::Local);
        }
    }
    discovery.found
}

struct Discovery<'a> {
    places: &'a InstructionPlaces<'a>,
    excludes: GlobSet,
    found: Instructions,
    /// The real paths of the files read so far.
    seen: Vec<PathBuf>,
    /// Bytes taken so far.
    total: usize,
}

/// A text as it lies on disk.
struct Raw {
    text: String,
    real: PathBuf,
}

/// Whose a file is, and the directory that it and what it imports must lie in.
#[derive(Clone)]
struct Ward {
    scope: Scope,
    base: Option<PathBuf>,
}

impl Discovery<'_> {
    fn excludes(&mut self) -> GlobSet {
        let mut set = GlobSetBuilder::new();
        for pattern in self.places.excludes {
            match GlobBuilder::new(pattern).literal_separator(true).build() {
                Ok(glob) => {
                    set.add(glob);
                }
                Err(error) => {
                    self.note(Path::new(pattern), format!("Not a pattern in claudeMdExcludes: {error}"));
                }
            }
        }
        set.build().unwrap_or_else(|_| GlobSet::empty())
    }

    fn managed(&mut self) {
        self.file(self.places.managed, Scope::Managed);
        if let Some(text) = self.places.managed_text.filter(|text| !text.trim().is_empty()) {
            self.found.files.push(InstructionFile {
                path: PathBuf::from("managed settings, claudeMd"),
                scope: Scope::Managed,
                content: text.to_owned(),
                imported_by: None,
                is_partial: false,
            });
        }
    }

    fn note(&mut self, path: &Path, message: String) {
        self.found.diagnostics.push(Diagnostic { path: path.to_owned(), message });
    }

    fn leave_out(&mut self, path: &Path, message: impl Into<String>) {
        self.found.left_out.push(Diagnostic { path: path.to_owned(), message: message.into() });
    }

    /// Takes a file and what it imports.
    fn file(&mut self, path: &Path, scope: Scope) {
        let ward = self.ward(path.parent().unwrap_or(path), scope);
        if let Some(raw) = self.read(path, &ward) {
            self.take(path.to_owned(), &ward, raw, None, 0);
        }
    }

    /// A project keeps to itself, and a directory above it to itself, unless the user approved more.
    fn ward(&self, dir: &Path, scope: Scope) -> Ward {
        let is_free = matches!(scope, Scope::Managed | Scope::User) || self.places.allows_external;
        let dir = if dir.ends_with(".claude") { dir.parent().unwrap_or(dir) } else { dir };
        let base = if dir.starts_with(self.places.root) { self.places.root } else { dir };
        Ward { scope, base: (!is_free).then(|| base.to_owned()) }
    }

    /// Takes a text, then everything it imports, depth first.
    fn take(&mut self, path: PathBuf, ward: &Ward, raw: Raw, imported_by: Option<PathBuf>, hops: usize) {
        let content = strip_html_comments(&raw.text);
        let names = imports::imports_of(&content);
        let is_partial = content != raw.text;
        let file =
            InstructionFile { path: path.clone(), scope: ward.scope, content, imported_by, is_partial };
        self.found.files.push(file);
        for name in names {
            self.import(&name, &path, &raw.real, ward, hops + 1);
        }
    }

    fn import(&mut self, name: &str, by: &Path, by_real: &Path, ward: &Ward, hops: usize) {
        let dir = by_real.parent().unwrap_or(by_real);
        let path = normalise(dir, &expand_home(self.places.home, name));
        let is_there = fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_dir());
        let is_known = fs::canonicalize(&path).is_ok_and(|real| self.seen.contains(&real));
        if !is_there || is_known {
            return;
        }
        if hops > HOP_LIMIT {
            return self.leave_out(&path, format!("More than {HOP_LIMIT} imports deep, in {}", by.display()));
        }
        if !imports::is_text_name(&path) {
            return self.leave_out(&path, format!("Not a kind of text file, in {}", by.display()));
        }
        if let Some(raw) = self.read(&path, ward) {
            self.take(path, ward, raw, Some(by.to_owned()), hops);
        }
    }

    /// Takes the rules below a directory; those for certain files wait.
    fn rules(&mut self, dir: &Path, base: &Path, scope: Scope) {
        let ward = self.ward(base, scope);
        for path in rules::rule_files(dir) {
            let Some(raw) = self.read(&path, &ward) else { continue };
            let (patterns, body) = rules::split(&raw.text);
            if patterns.is_empty() {
                let is_whole = body.len() == raw.text.len();
                let raw = Raw { text: body.to_owned(), real: raw.real };
                let idx = self.found.files.len();
                self.take(path, &ward, raw, None, 0);
                self.found.files[idx].is_partial |= !is_whole;
                continue;
            }
            let content = strip_html_comments(body);
            self.leave_out(&path, format!("Waits until a file is read that fits {}", patterns.join(", ")));
            let file = InstructionFile { path, scope, content, imported_by: None, is_partial: true };
            self.found.path_rules.push(PathRule { file, patterns, base: base.to_owned() });
        }
    }

    /// Reads a file unless there is none, it was read before, or it may not be taken.
    fn read(&mut self, path: &Path, ward: &Ward) -> Option<Raw> {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if is_absent(&error) => return None,
            Err(error) => {
                self.note(path, format!("Failed to read instructions: {error}"));
                return None;
            }
        };
        if self.seen.contains(&real) {
            return None;
        }
        if ward.scope != Scope::Managed && (self.excludes.is_match(path) || self.excludes.is_match(&real)) {
            self.leave_out(path, "Excluded by claudeMdExcludes");
            return None;
        }
        if ward.base.as_ref().is_some_and(|base| !real.starts_with(base)) {
            let message =
                "Outside the project and not approved; set hasClaudeMdExternalIncludesApproved for it";
            self.leave_out(path, message);
            return None;
        }
        match self.text(&real) {
            Ok(text) => {
                self.seen.push(real.clone());
                Some(Raw { text, real })
            }
            Err(message) => {
                self.note(path, message);
                None
            }
        }
    }

    fn text(&mut self, real: &Path) -> Result<String, String> {
        let said = |error: io::Error| format!("Failed to read instructions: {error}");
        let metadata = fs::metadata(real).map_err(said)?;
        if !metadata.is_file() {
            return Err("Not a regular file, so it was not read".to_owned());
        }
        if metadata.len() > SIZE_LIMIT {
            return Err(format!("Larger than 4 MiB ({} bytes), so it was not read", metadata.len()));
        }
        let bytes = fs::read(real).map_err(said)?;
        self.total += bytes.len();
        if self.total > TOTAL_LIMIT {
            return Err("More than 16 MiB of instructions in all, so it was not read".to_owned());
        }
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
