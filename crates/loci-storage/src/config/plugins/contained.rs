//! The files of a directory that nothing leads out of.
//!
//! The kernel opens them below the directory's descriptor and follows no link on the way, which is one step a file. Only
//! where there is a link it is looked where it leads: one that stays inside is followed, another is left alone and reported.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use loci_stdx::{EntryKind, RealDir};

use super::super::definition_files::{into_text, is_markdown, read_limited, read_opened};
use super::is_within;

/// How many entries of a directory are looked at.
const COUNT_LIMIT: usize = 2_000;
/// How deep directories may lie.
const DEPTH_LIMIT: usize = 8;

/// A directory whose files are read.
pub(super) struct ContainedDir {
    /// The directory, without links.
    root: PathBuf,
    dir: RealDir,
    /// What lies in it, by name: what does not is not looked for.
    names: Vec<(OsString, EntryKind)>,
    /// Directories that are known to be reached without a link.
    plain: HashSet<PathBuf>,
    /// What is wrong with its files.
    pub(super) problems: Vec<String>,
}

/// Markdown files that were found, and the directories that links led to.
struct MarkdownWalk {
    files: Vec<PathBuf>,
    linked: HashSet<PathBuf>,
}

impl ContainedDir {
    /// Opens a directory, wherever links on the way to it lead.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let opened = is_normal(path).then(|| RealDir::open_listed(path).ok()).flatten();
        let (root, (dir, mut names)) = match opened {
            Some(opened) => (path.to_owned(), opened),
            None => {
                let root = path.canonicalize()?;
                let opened = RealDir::open_listed(&root)?;
                (root, opened)
            }
        };
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Self { plain: HashSet::new(), root, dir, names, problems: Vec::new() })
    }

    /// Returns what an entry of the directory itself is; none where there is none of that name.
    pub(super) fn entry(&self, name: impl AsRef<OsStr>) -> Option<EntryKind> {
        let name = name.as_ref();
        let at = self.names.binary_search_by(|(other, _)| other.as_os_str().cmp(name)).ok()?;
        Some(self.names[at].1)
    }

    /// Returns the directory, without links.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a path without links when it is there and lies in the directory.
    pub(super) fn inside(&mut self, relative: &Path) -> Option<PathBuf> {
        let path = self.root.join(relative);
        match self.kind_of_entry(&path) {
            Some(kind) if kind != EntryKind::Link => Some(path),
            _ => self.real(&path),
        }
    }

    /// The same for a path that begins at the directory.
    pub(super) fn real(&mut self, path: &Path) -> Option<PathBuf> {
        if !self.may_have(path) {
            return None;
        }
        if self.kind_of_entry(path).is_some_and(|kind| kind != EntryKind::Link) {
            return Some(path.to_owned());
        }
        let metadata = path.symlink_metadata().ok()?;
        if !metadata.is_symlink() && self.is_plain(path.parent()?) {
            return Some(path.to_owned());
        }
        let shown = self.relative(path);
        match path.canonicalize() {
            Ok(real) if is_within(&self.root, &real) => Some(real),
            Ok(_) => {
                self.problems.push(format!("`{shown}` leads out of the plugin; it is left alone"));
                None
            }
            Err(error) => {
                self.problems.push(format!("`{shown}` cannot be opened: {error}"));
                None
            }
        }
    }

    /// Tells whether there may be something at a path, by the first name of it.
    pub(super) fn may_have(&self, path: &Path) -> bool {
        match self.below(path).and_then(first_name) {
            Some(name) => self.entry(name).is_some(),
            None => true,
        }
    }

    /// Returns what of a path lies below the directory. Most begin with the very letters of it.
    fn below<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let inner = path.as_os_str().as_bytes().strip_prefix(self.root.as_os_str().as_bytes());
        match inner.and_then(|inner| if inner.is_empty() { Some(inner) } else { inner.strip_prefix(b"/") }) {
            Some(inner) => Some(Path::new(OsStr::from_bytes(inner))),
            None => path.strip_prefix(&self.root).ok(),
        }
    }

    /// Reads a file; what is wrong with one that is there is a problem.
    pub(super) fn read(&mut self, path: &Path) -> Option<String> {
        match self.read_if_there(path)? {
            Ok(text) => Some(text),
            Err(why) => {
                self.problems.push(why);
                None
            }
        }
    }

    /// Reads a file; none where there is nothing, the error where it cannot or must not be read.
    pub(super) fn read_if_there(&mut self, path: &Path) -> Option<Result<String, String>> {
        if !self.may_have(path) {
            return None;
        }
        let relative = self.below(path).filter(|it| !it.as_os_str().is_empty());
        let text = match relative.map(|relative| self.dir.open_below(relative)) {
            Some(Ok(file)) => {
                let stat = rustix::fs::fstat(&file).ok();
                let mut bytes = Vec::new();
                read_opened(file, stat.as_ref(), &mut bytes).and_then(|()| into_text(bytes))
            }
            Some(Err(error)) if error.kind() == ErrorKind::NotFound => return None,
            // A link on the way, or something that is no file.
            Some(Err(_)) | None => {
                let n_before = self.problems.len();
                let Some(real) = self.real(path) else {
                    let problems = self.problems.split_off(n_before);
                    return (!problems.is_empty()).then(|| Err(problems.join("; ")));
                };
                read_limited(&real)
            }
        };
        Some(text.map_err(|why| format!("`{}` {why}; it is left out", self.relative(path))))
    }

    /// Returns what lies in a directory inside, by name, and what each is; not more than anybody has.
    pub(super) fn entries(&self, path: &Path) -> Vec<(OsString, EntryKind)> {
        let below = self.below(path).unwrap_or(path);
        let mut all = self.dir.entries_below(below, COUNT_LIMIT).unwrap_or_default();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Returns the Markdown files in a directory inside, and those of the directories in it, by path.
    pub(super) fn markdown_files(&mut self, path: &Path) -> Vec<PathBuf> {
        let mut walk = MarkdownWalk { files: Vec::new(), linked: HashSet::from([path.to_owned()]) };
        self.collect_markdown(path, path, DEPTH_LIMIT, &mut walk);
        walk.files.sort();
        walk.files.truncate(COUNT_LIMIT);
        walk.files
    }

    /// Takes what lies in `real`, which is called `named`. A directory that several links lead to is looked at once, so that
    /// links in circles end.
    fn collect_markdown(&mut self, real: &Path, named: &Path, depth: usize, walk: &mut MarkdownWalk) {
        for (name, kind) in self.entries(real) {
            if walk.files.len() > COUNT_LIMIT {
                return;
            }
            let path = named.join(&name);
            let inner = match kind {
                EntryKind::Dir => Some(real.join(&name)),
                EntryKind::File | EntryKind::Other => None,
                EntryKind::Link => match self.real(&real.join(&name)) {
                    Some(target) if self.is_dir(&target) => match walk.linked.insert(target.clone()) {
                        true => Some(target),
                        false => continue,
                    },
                    Some(_) => None,
                    None => continue,
                },
            };
            match inner {
                Some(dir) if depth > 0 => self.collect_markdown(&dir, &path, depth - 1, walk),
                Some(_) => {}
                None if is_markdown(&path) => walk.files.push(path),
                None => {}
            }
        }
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// Tells whether there is a directory at a path; what lies in the directory itself is known.
    pub(super) fn is_dir(&self, path: &Path) -> bool {
        match self.kind_of_entry(path).filter(|kind| *kind != EntryKind::Link) {
            Some(kind) => kind == EntryKind::Dir,
            None => self.may_have(path) && path.is_dir(),
        }
    }

    /// Returns what an entry of the directory itself is.
    fn kind_of_entry(&self, path: &Path) -> Option<EntryKind> {
        let below = self.below(path)?;
        let name = first_name(below).filter(|name| *name == below.as_os_str())?;
        self.entry(name)
    }

    /// Tells whether a directory inside is reached without a link or a step up: then nothing below it has to be
    /// resolved, which would look at every directory above once more.
    fn is_plain(&mut self, dir: &Path) -> bool {
        if dir.as_os_str() == self.root.as_os_str() || self.plain.contains(dir) {
            return true;
        }
        let is_below =
            dir.starts_with(&self.root) && !dir.components().any(|part| part == Component::ParentDir);
        let is_dir = || dir.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let is_plain = is_below && is_dir() && dir.parent().is_some_and(|parent| self.is_plain(parent));
        if is_plain {
            self.plain.insert(dir.to_owned());
        }
        is_plain
    }
}

/// Tells whether a path begins at the root and is written as one without links is: no name of it is left out, or means a
/// step up or none at all.
fn is_normal(path: &Path) -> bool {
    let names = path.as_os_str().as_bytes().strip_prefix(b"/");
    names.is_some_and(|names| names.split(|byte| *byte == b'/').all(|name| !is_step(name)))
}

/// Returns the first name of a path; none where it begins with a step up, or with none at all.
fn first_name(path: &Path) -> Option<&OsStr> {
    let name = path.as_os_str().as_bytes().split(|byte| *byte == b'/').next()?;
    (!is_step(name)).then(|| OsStr::from_bytes(name))
}

fn is_step(name: &[u8]) -> bool {
    matches!(name, b"" | b"." | b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_as_written_only_where_they_are_written_plainly() {
        for (path, expected) in [
            ("/a/b", true),
            ("/a b/.claude", true),
            ("/", false),
            ("/a/b/", false),
            ("/a//b", false),
            ("/a/./b", false),
            ("/a/../b", false),
            ("a/b", false),
            ("", false),
        ] {
            assert_eq!(is_normal(Path::new(path)), expected, "{path}");
        }
        let name = |path| first_name(Path::new(path)).and_then(OsStr::to_str);
        assert_eq!(
            (name("skills/a"), name("bin"), name("../x"), name("./x"), name("")),
            (Some("skills"), Some("bin"), None, None, None)
        );
    }

    #[test]
    fn entry_is_known_by_its_name_however_the_directory_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("kit/skills")).unwrap();
        std::fs::write(root.join("kit/a.json"), "{}").unwrap();
        for written in ["kit", "kit/", "./kit", "kit/skills/.."] {
            let files = ContainedDir::open(&root.join(written)).unwrap();
            assert_eq!(files.root(), root.join("kit"), "{written}");
            assert_eq!(
                (files.entry("skills"), files.entry("a.json")),
                (Some(EntryKind::Dir), Some(EntryKind::File))
            );
            assert_eq!(files.entry("none"), None);
            assert!(files.may_have(&root.join("kit/skills/x")) && !files.may_have(&root.join("kit/none/x")));
            assert!(files.is_dir(&root.join("kit/skills")) && files.is_dir(&root.join("kit")));
        }
    }
}
