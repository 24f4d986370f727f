//! One walk over instruction files: what is taken, what is left out, and why.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use loci_core::path::{expand_home, normalise};
use loci_stdx::open_real;

use super::{
    Diagnostic, InstructionFile, InstructionPlaces, InstructionScope, Instructions, PathRule, imports, rules,
};
use crate::config::instructions::strip_html_comments;

/// The largest file that is read.
const SIZE_LIMIT: u64 = 4 * 1024 * 1024;
/// The most that is taken in all; a project with more has lost its thread, or means harm.
const TOTAL_LIMIT: usize = 16 * 1024 * 1024;
/// How many imports may lie between a file and one it brings in.
const HOP_LIMIT: usize = 4;

pub(super) struct Discovery<'a> {
    places: &'a InstructionPlaces,
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
    modified: Option<SystemTime>,
    /// Whether the text is not quite the file's.
    is_altered: bool,
}

/// Whose a file is, and the directory that it and what it imports must lie in.
#[derive(Clone)]
struct Ward {
    scope: InstructionScope,
    base: Option<PathBuf>,
}

impl<'a> Discovery<'a> {
    pub(super) fn new(places: &'a InstructionPlaces) -> Self {
        let mut discovery = Self {
            places,
            excludes: GlobSet::empty(),
            found: Instructions::default(),
            seen: Vec::new(),
            total: 0,
        };
        discovery.excludes = discovery.excludes();
        discovery
    }

    /// Leaves out what was read before.
    pub(super) fn without(self, seen: Vec<PathBuf>) -> Self {
        Self { seen, ..self }
    }

    pub(super) fn into_found(self) -> Instructions {
        self.found
    }

    /// Takes what lies in a directory of a project.
    pub(super) fn dir(&mut self, dir: &Path) {
        let inner = dir.join(".claude");
        if self.places.sources.project && !self.is_above_worktree(dir) {
            let n_before = self.found.files.len();
            self.file(&dir.join("CLAUDE.md"), InstructionScope::Project);
            // The config home itself is the user's, wherever it lies.
            let is_own = self.places.user.parent() == Some(&inner);
            if !is_own {
                self.file(&inner.join("CLAUDE.md"), InstructionScope::Project);
            }
            if self.places.reads_agents && self.found.files.len() == n_before && !has_own(dir, &inner) {
                self.file(&dir.join("AGENTS.md"), InstructionScope::Project);
            }
            if !is_own {
                self.rules(&inner.join("rules"), dir, InstructionScope::Project);
            }
        }
        if self.places.sources.local {
            self.file(&dir.join("CLAUDE.local.md"), InstructionScope::Local);
        }
    }

    /// Tells whether a directory belongs to the main checkout that our worktree lies in.
    fn is_above_worktree(&self, dir: &Path) -> bool {
        let main = self.places.main_checkout.as_deref();
        main.is_some_and(|main| {
            main != self.places.root
                && self.places.root.starts_with(main)
                && dir.starts_with(main)
                && !dir.starts_with(&self.places.root)
        })
    }

    fn excludes(&mut self) -> GlobSet {
        let mut set = GlobSetBuilder::new();
        for pattern in &self.places.excludes {
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

    pub(super) fn managed(&mut self) {
        self.file(&self.places.managed, InstructionScope::Managed);
        if let Some(text) = self.places.managed_text.as_ref().filter(|text| !text.trim().is_empty()) {
            self.found.files.push(InstructionFile {
                path: PathBuf::from("managed settings, claudeMd"),
                scope: InstructionScope::Managed,
                content: text.to_owned(),
                imported_by: None,
                is_partial: false,
                real: None,
                modified: None,
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
    pub(super) fn file(&mut self, path: &Path, scope: InstructionScope) {
        let ward = self.ward(path.parent().unwrap_or(path), scope);
        if let Some(raw) = self.read(path, &ward) {
            self.take(path.to_owned(), &ward, raw, None, 0);
        }
    }

    /// A project keeps to itself, and a directory above it to itself, unless the user approved more.
    fn ward(&self, dir: &Path, scope: InstructionScope) -> Ward {
        let is_free = matches!(scope, InstructionScope::Managed | InstructionScope::User)
            || self.places.allows_external;
        let dir = if dir.ends_with(".claude") { dir.parent().unwrap_or(dir) } else { dir };
        let base = if dir.starts_with(&self.places.root) { &self.places.root } else { dir };
        Ward { scope, base: (!is_free).then(|| base.to_owned()) }
    }

    /// Takes a text, then everything it imports, depth first.
    fn take(&mut self, path: PathBuf, ward: &Ward, raw: Raw, imported_by: Option<PathBuf>, hops: usize) {
        let content = strip_html_comments(&raw.text);
        let names = imports::imports_of(&content);
        let is_partial = raw.is_altered || content != raw.text;
        self.found.files.push(InstructionFile {
            path: path.clone(),
            scope: ward.scope,
            content,
            imported_by,
            is_partial,
            real: Some(raw.real.clone()),
            modified: raw.modified,
        });
        for name in names {
            self.import(&name, &path, &raw.real, ward, hops + 1);
        }
    }

    fn import(&mut self, name: &str, by: &Path, by_real: &Path, ward: &Ward, hops: usize) {
        let dir = by_real.parent().unwrap_or(by_real);
        let path = normalise(dir, &expand_home(&self.places.home, name));
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
    pub(super) fn rules(&mut self, dir: &Path, base: &Path, scope: InstructionScope) {
        let ward = self.ward(base, scope);
        for path in rules::rule_files(dir) {
            let Some(raw) = self.read(&path, &ward) else { continue };
            let (patterns, body) = rules::split(&raw.text);
            if patterns.is_empty() {
                let is_altered = raw.is_altered || body.len() != raw.text.len();
                let raw = Raw { text: body.to_owned(), is_altered, ..raw };
                self.take(path, &ward, raw, None, 0);
                continue;
            }
            let content = strip_html_comments(body);
            self.leave_out(&path, format!("Waits until a file is read that fits {}", patterns.join(", ")));
            let file = InstructionFile {
                path,
                scope,
                content,
                imported_by: None,
                is_partial: true,
                real: Some(raw.real.clone()),
                modified: raw.modified,
            };
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
        if ward.scope != InstructionScope::Managed
            && (self.excludes.is_match(path) || self.excludes.is_match(&real))
        {
            self.leave_out(path, "Excluded by claudeMdExcludes");
            return None;
        }
        if ward.base.as_ref().is_some_and(|base| !real.starts_with(base)) {
            self.found.external.push(path.to_owned());
            self.leave_out(path, "Outside the project and not approved; see `loci config trust --imports`");
            return None;
        }
        match self.text(&real) {
            Ok(raw) => {
                self.seen.push(real);
                Some(raw)
            }
            Err(message) => {
                self.note(path, message);
                None
            }
        }
    }

    fn text(&mut self, real: &Path) -> Result<Raw, String> {
        let (bytes, modified) = bytes_of(real)?;
        if self.total + bytes.len() > TOTAL_LIMIT {
            return Err("More than 16 MiB of instructions in all, so it was not read".to_owned());
        }
        self.total += bytes.len();
        let text = String::from_utf8_lossy(&bytes);
        Ok(Raw {
            text: text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned(),
            real: real.to_owned(),
            modified,
            is_altered: matches!(text, Cow::Owned(_)),
        })
    }
}

/// Reads the file at a real path. Where that led is where it was judged to be: a link put there since then is not
/// followed (S-29).
fn bytes_of(real: &Path) -> Result<(Vec<u8>, Option<SystemTime>), String> {
    let said = |error: io::Error| format!("Failed to read instructions: {error}");
    let file = open_real(real).map_err(said)?;
    let metadata = file.metadata().map_err(said)?;
    if !metadata.is_file() {
        return Err("Not a regular file, so it was not read".to_owned());
    }
    if metadata.len() > SIZE_LIMIT {
        return Err(format!("Larger than 4 MiB ({} bytes), so it was not read", metadata.len()));
    }
    let mut bytes = Vec::new();
    file.take(SIZE_LIMIT).read_to_end(&mut bytes).map_err(said)?;
    Ok((bytes, metadata.modified().ok()))
}

/// Tells whether a directory has a `CLAUDE.md` of either place, whether or not it could be taken.
fn has_own(dir: &Path, inner: &Path) -> bool {
    [dir, inner].iter().any(|dir| fs::symlink_metadata(dir.join("CLAUDE.md")).is_ok())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What was judged by where it led is not read through a link that came since then (S-29).
    #[test]
    fn a_file_that_became_a_link_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("project/sub")).unwrap();
        fs::write(root.join("project/sub/CLAUDE.md"), "own").unwrap();
        fs::create_dir_all(root.join("outside")).unwrap();
        fs::write(root.join("outside/CLAUDE.md"), "SECRET").unwrap();
        symlink("../../outside/CLAUDE.md", root.join("project/sub/swapped.md")).unwrap();
        symlink("../outside", root.join("project/link")).unwrap();
        for (path, expected) in [
            ("sub/CLAUDE.md", Some(&b"own"[..])),
            ("sub/swapped.md", None),
            ("link/CLAUDE.md", None),
            ("sub", None),
        ] {
            let read = bytes_of(&root.join("project").join(path)).map(|(bytes, _)| bytes);
            assert_eq!(read.ok().as_deref(), expected, "{path}");
        }
    }
}
